"""What a case expects of the cluster, compared with what is there: every difference is one sentence."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from muster.conformance.cases import CaseError
from muster.conformance.observed import Json, Observed, node_of

Check = Callable[[Observed, Any], Iterator[str]]


def differences(cluster: Observed, expected: Mapping[str, Any]) -> list[str]:
    """Everything that is not as expected.

    Raises:
        CaseError: an expectation is unknown or has the wrong shape.
    """
    found: list[str] = []
    for key, value in expected.items():
        check = _CHECKS.get(key)
        if check is None:
            raise CaseError(f"unknown expectation {key!r}; known: {', '.join(_CHECKS)}")
        try:
            found.extend(f"{key}: {sentence}" for sentence in check(cluster, value))
        except (KeyError, TypeError, AttributeError) as error:
            raise CaseError(f"expectation {key} has the wrong shape: {error!r} in {value!r}") from error
    return found


def _bound(cluster: Observed, names: list[str]) -> Iterator[str]:
    for name in names:
        pod = cluster.pod(name)
        if pod is None:
            yield f"{name} does not exist"
        elif not node_of(pod):
            yield f"{name} is not bound{_why(pod)}"


def _unbound(cluster: Observed, names: list[str]) -> Iterator[str]:
    for name in names:
        if cluster.pod(name) is None:
            yield f"{name} does not exist"
        elif cluster.node_of(name):
            yield f"{name} is bound to {cluster.node_of(name)}"


def _bound_count(cluster: Observed, counts: Mapping[str, int]) -> Iterator[str]:
    for group, count in counts.items():
        found = len(cluster.bound_members(group))
        if found != count:
            yield f"{group} has {found} bound pods, not {count}"


def _groups_bound(cluster: Observed, items: list[Json]) -> Iterator[str]:
    for item in items:
        whole = 0
        for group in item["groups"]:
            bound, minimum = len(cluster.bound_members(group)), _min_count(cluster, group)
            if bound >= minimum:
                whole += 1
            elif bound:
                yield f"{group} has {bound} bound pods, fewer than its minCount {minimum}"
        if whole != item["count"]:
            yield f"{whole} of {', '.join(item['groups'])} are bound, not {item['count']}"


def _min_count(cluster: Observed, group: str) -> int:
    spec = (cluster.get("PodGroup", group) or {}).get("spec") or {}
    return int(((spec.get("schedulingPolicy") or {}).get("gang") or {}).get("minCount", 1))


def _bound_total(cluster: Observed, items: list[Json]) -> Iterator[str]:
    for item in items:
        if "groups" in item:
            nodes = [node_of(pod) for group in item["groups"] for pod in cluster.bound_members(group)]
        else:
            nodes = [node for node in map(cluster.node_of, item["pods"]) if node]
        if "node" in item:
            nodes = [node for node in nodes if node == item["node"]]
        if len(nodes) != item["count"]:
            where = f" to {item['node']}" if "node" in item else ""
            names = _shortened(item.get("groups") or item["pods"])
            yield f"{len(nodes)} of {names} are bound{where}, not {item['count']}"


def _on(cluster: Observed, places: Mapping[str, str | list[str]]) -> Iterator[str]:
    for name, place in places.items():
        allowed = [place] if isinstance(place, str) else place
        node = cluster.node_of(name)
        if node not in allowed:
            yield f"{name} is on {node or 'no node'}, not on {' or '.join(allowed)}"


def _same_domain(cluster: Observed, items: list[Json]) -> Iterator[str]:
    for item in items:
        groups = item.get("groups") or [item["group"]]
        pods = [pod for group in groups for pod in cluster.bound_members(group)]
        domains = cluster.domains(pods, item["key"])
        if len(domains) > 1 or None in domains:
            yield f"{', '.join(groups)} is in {_listed(domains)}, not in one {item['key']}"
        elif "in" in item and not domains <= set(item["in"]):
            yield f"{', '.join(groups)} is in {_listed(domains)}, not in {' or '.join(item['in'])}"


def _distinct_domain(cluster: Observed, items: list[Json]) -> Iterator[str]:
    for item in items:
        owner: dict[str | None, str] = {}
        for group in item["groups"]:
            for domain in cluster.domains(cluster.bound_members(group), item["key"]):
                if domain in owner:
                    yield f"{owner[domain]} and {group} are both in {item['key']} {domain}"
                owner[domain] = group


def _gone(cluster: Observed, name: str) -> bool:
    pod = cluster.pod(name)
    return pod is None or "deletionTimestamp" in pod["metadata"]


def _evicted(cluster: Observed, names: list[str]) -> Iterator[str]:
    return (f"{name} is still there" for name in names if not _gone(cluster, name))


def _kept(cluster: Observed, names: list[str]) -> Iterator[str]:
    return (f"{name} is gone or being deleted" for name in names if _gone(cluster, name))


def _evicted_count(cluster: Observed, items: Json | list[Json]) -> Iterator[str]:
    for item in items if isinstance(items, list) else [items]:
        if "pods" in item:
            count = sum(_gone(cluster, name) for name in item["pods"])
        else:
            members = cluster.members(item["group"])
            count = sum("deletionTimestamp" in pod["metadata"] for pod in members)
            count += len(cluster.vanished(item["group"]))
        if count != item["count"]:
            yield f"{count} of {_shortened(item.get('pods') or [item['group']])} are evicted, not {item['count']}"


def _nominated(cluster: Observed, nodes: Mapping[str, str]) -> Iterator[str]:
    for name, node in nodes.items():
        found = ((cluster.pod(name) or {}).get("status") or {}).get("nominatedNodeName") or ""
        if found != node:
            yield f"{name} is nominated to {found or 'no node'}, not to {node or 'none'}"


def _conditions(cluster: Observed, items: list[Json]) -> Iterator[str]:
    for item in items:
        what = f"{item['kind']} {item['name']}"
        held = cluster.get(item["kind"], item["name"])
        if held is None:
            yield f"{what} does not exist"
            continue
        found = [c for c in (held.get("status") or {}).get("conditions") or () if c.get("type") == item["type"]]
        if not found:
            yield f"{what} has no condition {item['type']}"
        elif not _agrees(found[0], item):
            yield f"{what} has {_condition(found[0])}, not {_condition(item)}"


def _agrees(found: Json, wanted: Json) -> bool:
    same = all(found.get(key) == wanted[key] for key in ("status", "reason") if key in wanted)
    return same and wanted.get("message", "") in (found.get("message") or "")


def _condition(item: Json) -> str:
    message = f" {item['message']!r}" if item.get("message") else ""
    return f"{item['type']}={item.get('status')}/{item.get('reason', 'any')}{message}"


def _no_conditions(cluster: Observed, items: list[Json]) -> Iterator[str]:
    for item in items:
        held = cluster.get(item["kind"], item["name"])
        if held is None:
            yield f"{item['kind']} {item['name']} does not exist"
        elif conditions := (held.get("status") or {}).get("conditions"):
            yield f"{item['kind']} {item['name']} has {', '.join(map(_condition, conditions))}"


def _event(cluster: Observed, kind: str, names: list[str], wanted: Json) -> bool:
    for event in cluster.every("Event").values():
        about = event.get("involvedObject") or event.get("regarding") or {}
        note = event.get("message") or event.get("note") or ""
        if about.get("kind") != kind or about.get("name") not in names or event.get("reason") != wanted["reason"]:
            continue
        if wanted.get("message", "") in note and wanted.get("type", event.get("type")) == event.get("type"):
            return True
    return False


def _events(cluster: Observed, items: list[Json]) -> Iterator[str]:
    for item in items:
        if not _event(cluster, item["kind"], [item["name"]], item):
            yield f"{item['kind']} {item['name']} has no event {item['reason']} {item.get('message', '')!r}"


def _any_event(cluster: Observed, items: list[Json]) -> Iterator[str]:
    for item in items:
        if not _event(cluster, item["kind"], item["names"], item):
            yield f"none of {_shortened(item['names'])} has an event {item['reason']} {item.get('message', '')!r}"


def _claims(cluster: Observed, items: list[Json]) -> Iterator[str]:
    for item in items:
        what = item.get("name") or "{claim} of {kind} {name}".format(**{"claim": "", **item["owner"]})
        claim = _find_claim(cluster, item)
        if claim is None:
            yield f"claim {what} does not exist"
            continue
        status = claim.get("status") or {}
        results = (((status.get("allocation") or {}).get("devices") or {}).get("results")) or []
        users = [f"{_KIND_OF.get(u['resource'], u['resource'])}/{u['name']}" for u in status.get("reservedFor") or ()]
        found = {
            "allocated": "allocation" in status,
            "devices": sorted({result["device"] for result in results}),
            "deviceCount": len(results),
            "requests": sorted({result["request"] for result in results}),
            "reservedFor": sorted(users),
            "reservedCount": len(users),
        }
        for key in found.keys() & item.keys():
            wanted = sorted(item[key]) if isinstance(item[key], list) else item[key]
            if found[key] != wanted:
                yield f"claim {what} has {key} {found[key]}, not {wanted}"


_KIND_OF = {"pods": "Pod", "podgroups": "PodGroup", "compositepodgroups": "CompositePodGroup"}


def _find_claim(cluster: Observed, item: Json) -> Json | None:
    if "name" in item:
        return cluster.get("ResourceClaim", item["name"])
    owner = item["owner"]
    for claim in cluster.every("ResourceClaim").values():
        meta = claim["metadata"]
        owned = any(
            r["kind"] == owner["kind"] and r["name"] == owner["name"] for r in meta.get("ownerReferences") or ()
        )
        notes = (meta.get("annotations") or {}).values()
        if owned and ("claim" not in owner or owner["claim"] in notes or f"-{owner['claim']}-" in meta["name"]):
            return claim
    return None


def _claim_count(cluster: Observed, count: int) -> Iterator[str]:
    found = len(cluster.every("ResourceClaim"))
    if found != count:
        yield f"there are {found} claims, not {count}"


def _match(cluster: Observed, items: list[Json]) -> Iterator[str]:
    for item in items:
        what = f"{item['kind']} {item['name']}"
        held = cluster.get(item["kind"], item["name"])
        if item.get("absent"):
            if held is not None:
                yield f"{what} exists"
            continue
        if held is None:
            yield f"{what} does not exist"
            continue
        yield from (f"{what}: {difference}" for difference in subset_differences(held, item.get("subset", {})))
        yield from (f"{what}: {path} is missing" for path in item.get("present", ()) if _at(held, path) is None)
        yield from (f"{what}: {path} is there" for path in item.get("missing", ()) if _at(held, path) is not None)


def subset_differences(found: Any, wanted: Any, path: str = "") -> Iterator[str]:
    """Where `found` lacks something of `wanted`; maps may have more keys, lists must have the same length."""
    if isinstance(wanted, Mapping) and isinstance(found, Mapping):
        for key, value in wanted.items():
            if key not in found:
                yield f"{path}.{key} is missing".lstrip(".")
            else:
                yield from subset_differences(found[key], value, f"{path}.{key}".lstrip("."))
    elif isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        for index, (left, right) in enumerate(zip(found, wanted, strict=True)):
            yield from subset_differences(left, right, f"{path}[{index}]")
    elif found != wanted or isinstance(found, bool) != isinstance(wanted, bool):
        yield f"{path or 'value'} is {found!r}, not {wanted!r}"


def _at(held: Any, path: str) -> Any:
    for step in re.findall(r"[^.\[\]]+", path):
        if isinstance(held, list):
            held = held[int(step)] if int(step) < len(held) else None
        else:
            held = (held or {}).get(step)
    return held


def _why(pod: Json) -> str:
    """The scheduler's own words, for the report."""
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "PodScheduled":
            return f" ({condition.get('reason')}: {condition.get('message', '')})"
    return ""


def _listed(domains: set[str | None]) -> str:
    return ", ".join(sorted(domain or "no domain" for domain in domains))


def _shortened(names: list[str]) -> str:
    return ", ".join(names) if len(names) <= 4 else f"{names[0]} … {names[-1]}"


_CHECKS: Mapping[str, Check] = {
    "bound": _bound,
    "unbound": _unbound,
    "boundCount": _bound_count,
    "groupsBound": _groups_bound,
    "boundTotal": _bound_total,
    "on": _on,
    "sameDomain": _same_domain,
    "distinctDomain": _distinct_domain,
    "evicted": _evicted,
    "kept": _kept,
    "evictedCount": _evicted_count,
    "nominated": _nominated,
    "conditions": _conditions,
    "noConditions": _no_conditions,
    "events": _events,
    "anyEvent": _any_event,
    "claims": _claims,
    "claimCount": _claim_count,
    "match": _match,
}
