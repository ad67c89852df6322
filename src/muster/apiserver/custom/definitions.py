"""What becomes of a definition: names accepted or not, established, and with it all its objects deleted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from muster.api import catalog
from muster.api.catalog import Raw
from muster.api.instant import Instant, to_time
from muster.apiserver.custom import registry
from muster.apiserver.custom.kinds import CustomKind
from muster.apiserver.storage import Store

Json = dict[str, Any]

KIND = catalog.CUSTOM_RESOURCE_DEFINITION
CLEANUP = "customresourcecleanup.apiextensions.k8s.io"
ACCEPTED, ESTABLISHED, TERMINATING = "NamesAccepted", "Established", "Terminating"
_SINGLE = (("plural", "PluralConflict"), ("singular", "SingularConflict"))
_KINDS = (("kind", "KindConflict"), ("listKind", "ListKindConflict"))


def settled(store: Store, made: Raw, now: Instant) -> Json:
    """The status of a definition: which names it has, whether it is served, which versions objects were stored in."""
    spec, status = made["spec"], made.get("status") or {}
    names, conflict = _accepted(store, made)
    before = {entry["type"]: entry for entry in status.get("conditions") or ()}
    if conflict is None:
        wanted = [_condition(ACCEPTED, "True", "NoConflicts", "no conflicts found")]
    else:
        wanted = [_condition(ACCEPTED, "False", *conflict)]
    if conflict is None or before.get(ESTABLISHED, {}).get("status") == "True":
        wanted.append(_condition(ESTABLISHED, "True", "InitialNamesAccepted", "the initial names have been accepted"))
    else:
        wanted.append(_condition(ESTABLISHED, "False", "NotAccepted", "not all names are accepted"))
    stored = list(status.get("storedVersions") or ())
    stored += [each["name"] for each in spec["versions"] if each.get("storage") and each["name"] not in stored]
    return {
        **status,
        "acceptedNames": names,
        "conditions": _merged(before, wanted, now),
        "storedVersions": stored,
    }


def _condition(kind: str, status: str, reason: str, message: str) -> Json:
    return {"type": kind, "status": status, "reason": reason, "message": message}


def _merged(before: dict[str, Json], wanted: list[Json], now: Instant) -> list[Json]:
    """Conditions in their order; the time of one whose status stays is that of before."""
    made = dict(before)
    for entry in wanted:
        old = before.get(entry["type"])
        same = old is not None and old.get("status") == entry["status"]
        time = old["lastTransitionTime"] if old is not None and same else to_time(now)
        made[entry["type"]] = {"lastTransitionTime": time, **entry}
    return list(made.values())


def _accepted(store: Store, made: Raw) -> tuple[Json, tuple[str, str] | None]:
    """The names that nobody else in the group has, and of one that somebody has why and which."""
    spec = made["spec"]
    wanted: Json = dict(spec["names"])
    accepted: Json = dict((made.get("status") or {}).get("acceptedNames") or {"plural": "", "kind": ""})
    resources, kinds = _taken(store, spec["group"], made["metadata"]["name"])
    conflict = None
    for key, reason in (*_SINGLE, *_KINDS):
        taken = kinds if (key, reason) in _KINDS else resources
        if wanted.get(key) and wanted[key] in taken:
            conflict = (reason, f'"{wanted[key]}" is already in use')
        elif wanted.get(key):
            accepted[key] = wanted[key]
    short = wanted.get("shortNames") or []
    used = [name for name in short if name in resources]
    if used:
        conflict = ("ShortNamesConflict", ", ".join(f'"{name}" is already in use' for name in used))
    for key, value in (("shortNames", [] if used else short), ("categories", wanted.get("categories") or [])):
        if value:
            accepted[key] = value
        elif not used:
            accepted.pop(key, None)
    return accepted, conflict


def _taken(store: Store, group: str, name: str) -> tuple[set[str], set[str]]:
    """Names of resources and of kinds that others in the group have."""
    resources, kinds = set[str](), set[str]()
    for kind in catalog.KINDS:
        if kind.group == group:
            resources |= {kind.plural, kind.singular, *kind.short_names}
            kinds |= {kind.kind, kind.list_kind}
    for other in store.all(KIND.resource):
        if other["metadata"]["name"] != name and other["spec"]["group"] == group:
            names = other.get("status", {}).get("acceptedNames") or {}
            resources |= {names.get("plural", ""), names.get("singular", ""), *(names.get("shortNames") or ())}
            kinds |= {names.get("kind", ""), names.get("listKind", "")}
    return resources, kinds


def is_terminating(store: Store, name: str) -> bool:
    """Whether a definition is being deleted, so that nothing new of its kind comes to be."""
    raw = store.get(KIND.resource, "", name)
    return raw is not None and "deletionTimestamp" in raw["metadata"]


def marked(raw: Raw, now: Instant) -> Json:
    """A definition that is being deleted: it waits for the last of its objects."""
    meta = dict(raw["metadata"])
    if "deletionTimestamp" not in meta:
        meta |= {"deletionTimestamp": to_time(now), "deletionGracePeriodSeconds": 0}
        meta["generation"] = meta.get("generation", 0) + 1
    meta["finalizers"] = [*(name for name in meta.get("finalizers") or () if name != CLEANUP), CLEANUP]
    status = raw.get("status") or {}
    before = {entry["type"]: entry for entry in status.get("conditions") or ()}
    told = _condition(TERMINATING, "True", "InstanceDeletionInProgress", "CustomResource deletion is in progress")
    return {**raw, "metadata": meta, "status": {**status, "conditions": _merged(before, [told], now)}}


def objects(store: Store, raw: Raw) -> Iterator[tuple[CustomKind, Raw]]:
    """Every object of a definition."""
    kind = registry.storing(store, raw)
    if kind is not None:
        yield from [(kind, each) for each in store.all(kind.resource)]


def finish(store: Store, name: str, now: Instant) -> None:
    """Lets go of a definition that is being deleted once its last object has gone."""
    raw = store.get(KIND.resource, "", name)
    if raw is None or "deletionTimestamp" not in raw["metadata"] or next(store.all(name), None) is not None:
        return
    left = [entry for entry in raw["metadata"].get("finalizers") or () if entry != CLEANUP]
    if left:
        if len(left) < len(raw["metadata"]["finalizers"]):
            store.put(KIND.resource, "", name, {**raw, "metadata": {**raw["metadata"], "finalizers": left}})
        return
    store.remove(KIND.resource, "", name)
    resettle(store, raw["spec"]["group"], now)


def resettle(store: Store, group: str, now: Instant) -> None:
    """Gives names that have become free to the definitions that wait for them."""
    for raw in list(store.all(KIND.resource)):
        if raw["spec"]["group"] == group:
            status = settled(store, raw, now)
            if status != raw.get("status"):
                store.put(
                    KIND.resource,
                    "",
                    raw["metadata"]["name"],
                    {**raw, "metadata": dict(raw["metadata"]), "status": status},
                )
