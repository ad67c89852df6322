"""A LeaderWorkerSet: a group per replica, and below it one for each part that has needs of its own.

Facts: leaderworkerset.x-k8s.io/v1. A replica is a leader and `size` - 1 workers; replicas are independent of each
other. With LeaderReady the workers are made only when the leader is ready, so that both cannot be one gang.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from muster.workloadbuilder.adapters import roles
from muster.workloadbuilder.adapters.fields import Field
from muster.workloadbuilder.adapters.view import Group, View
from muster.workloadbuilder.build import MOST_CHILDREN
from muster.workloadbuilder.items import Block, WorkloadItem

LABEL = "leaderworkerset.sigs.k8s.io"
EXCLUSIVE = f"{LABEL}/exclusive-topology"
SUBGROUP_EXCLUSIVE = f"{LABEL}/subgroup-exclusive-topology"
REPLICA, LEADER, WORKERS, SUBGROUP = "replica", "leader", "workers", "subgroup"
_LEADS = {"matchLabels": {f"{LABEL}/worker-index": "0"}}
_WORKS = {"matchExpressions": [{"key": f"{LABEL}/worker-index", "operator": "NotIn", "values": ["0"]}]}


class _Part(NamedTuple):
    """A part of each replica that is a group of its own: its item, its pods besides the replica's labels, and why."""

    item: WorkloadItem
    pods: Block
    why: str


def view(lws: Field, related: Sequence[Block] = ()) -> View:
    spec, template = lws / "spec", lws / "spec" / "leaderWorkerTemplate"
    size, replicas = (template / "size").number(1, 1), (spec / "replicas").number(1, most=roles.MOST_GROUPS)
    if not template.given:
        lws.errors.append(template.place.required("it says how a replica looks"))
    worker = template / "workerTemplate"
    leader = template / "leaderTemplate" if (template / "leaderTemplate").given else worker
    nothing = roles.own_group([leader, worker])
    pods = max(replicas, (lws / "status" / "replicas").number(0, most=roles.MOST_GROUPS))
    if nothing or not pods:
        return View(None, nothing=nothing or "it has no replicas")
    priority = roles.one_priority([leader, worker])
    topology = roles.topology_key((lws / "metadata" / "annotations").entry(EXCLUSIVE))
    late = (spec / "startupPolicy").text("LeaderCreated")
    if late not in ("LeaderCreated", "LeaderReady"):
        (spec / "startupPolicy").wrong("must be LeaderCreated or LeaderReady")
    parts = _parts(lws, leader, worker, size, priority)
    notes = _notes(replicas, pods)
    if not parts:
        item = roles.leaf(REPLICA, roles.Wish(size, "gang", topology, priority), lws / "metadata")
        why = f"its leader and {size - 1} workers start together, or none does"
        return View(item, [_whole(lws, index, why, leaf=True) for index in range(pods)], notes)
    policy = "basic" if late == "LeaderReady" and size > 1 else "gang"
    wish = roles.Wish(len(parts), policy, topology, priority)
    item = roles.tree(REPLICA, wish, lws / "metadata", [part.item for part in parts])
    if policy == "basic" and item.user.policy is not None and "gang" in (item.user.policy.composite or {}):
        (spec / "startupPolicy").wrong("LeaderReady makes no worker before its leader runs: they cannot be one gang")
    return View(item, _groups(lws, parts, pods, late == "LeaderReady"), notes)


def _parts(lws: Field, leader: Field, worker: Field, size: int, priority: str) -> list[_Part]:
    template = lws / "spec" / "leaderWorkerTemplate"
    if (template / "subGroupPolicy").given:
        return _subgroups(lws, leader, worker, size, priority)
    late = (lws / "spec" / "startupPolicy").text() == "LeaderReady"
    asked = any(key in ((role / "metadata" / "annotations").mapping()) for role in (leader, worker)
                for key in roles.SCHEDULING)  # fmt: skip
    if size == 1 or not (late or asked or roles.needs(leader) != roles.needs(worker)):
        return []
    reason = (
        "the workers are made when the leader is ready"
        if late
        else "leader and workers have annotations or needs of their own"
    )
    wants = roles.Wish(1, priority_class=priority), roles.Wish(size - 1, priority_class=priority)
    return [
        _Part(roles.leaf(LEADER, wants[0], leader / "metadata"), _LEADS, f"the leader: {reason}"),
        _Part(roles.leaf(WORKERS, wants[1], worker / "metadata"), _WORKS, f"{size - 1} workers: {reason}"),
    ]


def _subgroups(lws: Field, leader: Field, worker: Field, size: int, priority: str) -> list[_Part]:
    policy = lws / "spec" / "leaderWorkerTemplate" / "subGroupPolicy"
    kind, each = (policy / "subGroupPolicyType").text("LeaderWorker"), (policy / "subGroupSize").number(1, 1)
    if kind not in ("LeaderWorker", "LeaderExcluded"):
        (policy / "subGroupPolicyType").wrong("must be LeaderWorker or LeaderExcluded")
    if not (policy / "subGroupSize").given:
        policy.errors.append((policy / "subGroupSize").place.required())
    if kind == "LeaderWorker" and (lws / "spec" / "startupPolicy").text() == "LeaderReady":
        (lws / "spec" / "startupPolicy").wrong(
            "LeaderReady makes no worker before its leader runs: they cannot be one subgroup; use LeaderExcluded"
        )
    extra = (size - 1) % each == 0
    if each > size or not (extra or (kind == "LeaderWorker" and size % each == 0)):
        (policy / "subGroupSize").wrong(f"must divide the size ({size}) or the number of workers ({size - 1})")
    topology = roles.topology_key((lws / "metadata" / "annotations").entry(SUBGROUP_EXCLUSIVE))
    parts: list[_Part] = []
    if kind == "LeaderExcluded":
        wish = roles.Wish(1, priority_class=priority)
        parts.append(_Part(roles.leaf(LEADER, wish, leader / "metadata"), _LEADS, "the leader is in no subgroup"))
    number = (size - 1) // each if extra else size // each
    roles.check_number(range(number + len(parts)), policy / "subGroupSize")
    for index in range(min(number, MOST_CHILDREN)):
        leads = kind == "LeaderWorker" and extra and index == 0
        pods = each + leads
        labels = {"matchLabels": {f"{LABEL}/subgroup-index": str(index)}}
        if kind == "LeaderExcluded":
            labels |= _WORKS  # type: ignore[arg-type]
        wish = roles.Wish(pods, "gang", topology, priority)
        where = f", in one domain of {topology}" if topology else ""
        why = f"subgroup {index} has {pods} pods{', the leader among them' if leads else ''}{where}"
        parts.append(_Part(roles.leaf(f"{SUBGROUP}-{index}", wish, worker / "metadata"), labels, why))
    return parts


def _groups(lws: Field, parts: list[_Part], replicas: int, late: bool) -> list[Group]:
    whole = f"leader first, then the workers: {len(parts)} gangs" if late else f"its {len(parts)} parts start together"
    groups: list[Group] = []
    for index in range(replicas):
        groups.append(_whole(lws, index, whole, leaf=False))
        for part in parts:
            labels = {**_labels(lws, index), **part.pods.get("matchLabels", {})}
            pods = {**part.pods, "matchLabels": labels}
            why = f"of replica {index}: {part.why}"
            groups.append(Group(part.item.name, why, pods, index, (REPLICA, index)))
    return groups


def _whole(lws: Field, index: int, why: str, *, leaf: bool) -> Group:
    return Group(REPLICA, f"replica {index}: {why}", {"matchLabels": _labels(lws, index)} if leaf else None, index)


def _labels(lws: Field, index: int) -> dict[str, str]:
    return {f"{LABEL}/name": (lws / "metadata" / "name").text(), f"{LABEL}/group-index": str(index)}


def _notes(replicas: int, there: int) -> list[str]:
    notes = ["replicas are independent: each starts, is scaled and is evicted without the others"]
    if there > replicas:
        notes.append(
            f"{there} replicas are there while an update or a scaling down is under way; {replicas} are wanted"
        )
    return notes
