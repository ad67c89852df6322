"""What must hold of a cluster whatever happens to it. Every check returns sentences; none means that it holds.

The arithmetic here is its own: it reads the server's objects with exact fractions and asks the oracle, and shares
neither requests nor filters with what it checks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from muster.api import catalog
from muster.api.calls import Request, Response
from muster.api.instant import Instant
from muster.api.machine import Listed, Write
from muster.api.object import Object
from muster.apiserver.server import ApiServer
from muster.model.decision import Decision
from muster.model.diagnosis import Verdict
from muster.model.keys import Key
from muster.model.plan import Evict
from muster.model.records import (
    CompositeRecord,
    EntryKey,
    EntryKind,
    GroupNode,
    GroupRecord,
    NodeRecord,
    Phase,
    PodRecord,
    QueueEntry,
)
from muster.model.snapshot import Snapshot
from muster.scheduler.effects import Decide
from muster.scheduler.ingest import Ingest
from muster.scheduler.machine import Scheduler
from muster.testing import builders, oracle
from muster.testing.trees import most_placed, tree_violations

Json = Mapping[str, Any]
LARGEST = 2_000
"""Entries whose exact answer needs more combinations of members than this are left to other tests."""
MOST_IN_A_TREE = 6
"""Likewise the pods of a hierarchy."""
_SUFFIXES = {
    "m": Fraction(1, 1000), "k": Fraction(10**3), "M": Fraction(10**6), "G": Fraction(10**9), "T": Fraction(10**12),
    "Ki": Fraction(2**10), "Mi": Fraction(2**20), "Gi": Fraction(2**30), "Ti": Fraction(2**40), "": Fraction(1),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class State:
    """The server's objects at one moment."""

    nodes: tuple[Json, ...]
    pods: tuple[Json, ...]
    groups: tuple[Json, ...]
    composites: tuple[Json, ...] = ()


def read(server: ApiServer, now: Instant) -> State:
    """What the server holds."""
    resources = ("nodes", "pods", "podgroups", "compositepodgroups")
    return State(*(tuple(_items(server, resource, now)) for resource in resources))


def overcommitted(state: State) -> list[str]:
    """Nodes whose pods are given more than there is; a pod counts from its binding until it ends."""
    room = {node["metadata"]["name"]: node["status"]["allocatable"] for node in state.nodes}
    return [
        f"{name} has {float(there)} {resource} and its pods ask for {float(there - amount)}"
        for name, resources in _left(state).items()
        for resource, amount in resources.items()
        for there in (_quantity(room[name].get(resource, "0")),)
        if amount < 0
    ]


def growing_in_vain(state: State) -> list[str]:
    """Pods that wait to grow in place although there is room on their node; meaningful at rest."""
    left, wrong = _left(state), []
    for pod in state.pods:
        free = left.get(pod["spec"].get("nodeName", ""))
        if free is not None and is_deferred(pod):
            has = _allocated(pod)
            if all(amount - has.get(resource, 0) <= free[resource] for resource, amount in _requests(pod).items()):
                wrong.append(f"{pod['metadata']['name']} waits to grow, and there is room for it")
    return wrong


def is_deferred(pod: Json) -> bool:
    """Whether its kubelet has put off to let it grow."""
    told = pod.get("status", {}).get("conditions") or ()
    ended = _phase(pod) in ("Succeeded", "Failed")
    return not ended and any(it["type"] == "PodResizePending" and it.get("reason") == "Deferred" for it in told)


def _left(state: State) -> dict[str, dict[str, Fraction]]:
    """By node and resource, what is not given to any pod."""
    left: dict[str, dict[str, Fraction]] = {}
    for node in state.nodes:
        given = node["status"]["allocatable"]
        left[node["metadata"]["name"]] = defaultdict(Fraction, {name: _quantity(text) for name, text in given.items()})
    for pod in state.pods:
        free = left.get(pod["spec"].get("nodeName", ""))
        if free is not None and _phase(pod) not in ("Succeeded", "Failed"):
            free["pods"] -= 1
            for resource, amount in _allocated(pod).items():
                free[resource] -= amount
    return left


def _allocated(pod: Json) -> dict[str, Fraction]:
    """What its kubelet has given to a pod's containers; until that is told, what it asks for."""
    told = {it["name"]: it["allocatedResources"] for it in _statuses(pod) if "allocatedResources" in it}
    if not told:
        return _requests(pod)
    given = [{"name": name, "resources": {"requests": amounts}} for name, amounts in told.items()]
    others = [it for it in pod["spec"]["containers"] if it["name"] not in told]
    return _requests({**pod, "spec": {**pod["spec"], "containers": [*given, *others]}})


def _statuses(pod: Json) -> Sequence[Json]:
    return pod.get("status", {}).get("containerStatuses") or ()


def premature(asked: Decide) -> list[str]:
    """Entries that must not be decided: gated, of another scheduler, or a member without its group (9, 11, 13)."""
    wrong = []
    for head in asked.heads:
        if any(pod.gates for pod in head.pods):
            wrong.append(f"{head.key} is decided although a member is gated")
        if head.tree is not None or head.resize:
            continue
        if head.group is None and head.pods[0].group is not None:
            wrong.append(f"{head.key} is decided alone although it belongs to group {head.pods[0].group}")
        if head.group is None and head.pods[0].scheduler_name != builders.DEFAULT_SCHEDULER:
            wrong.append(f"{head.key} is decided although it belongs to {head.pods[0].scheduler_name}")
    return wrong


def unsound(asked: Decide, decision: Decision) -> list[str]:
    """Plans that bind part of a minimum, to where pods do not fit together, or for an entry that is in error."""
    wrong, snapshot = [], asked.snapshot
    for head, plan, diagnosis in zip(asked.heads, decision.plans, decision.diagnoses, strict=False):
        binds = plan.binds
        if not binds:
            continue
        if head.tree is not None:
            wrong += [f"{head.key}: {sentence}" for sentence in tree_violations(snapshot, head, binds)]
            snapshot = oracle.after(snapshot, head, binds)
            continue
        if len(binds) < head.needed:
            wrong.append(f"{head.key} needs {head.needed} members at once and gets {len(binds)}")
        if (mismatch := oracle.mismatch(head)) is not None:
            wrong.append(f"{head.key} is bound although its members disagree on {mismatch}")
        if diagnosis.verdict is not Verdict.SCHEDULED:
            wrong.append(f"{head.key} is bound with the verdict {diagnosis.verdict.value}")
        wrong += [f"{head.key}: {sentence}" for sentence in oracle.violations(snapshot, head, binds)]
        snapshot = oracle.after(snapshot, head, binds)
    return wrong


def missed(asked: Decide, decision: Decision) -> list[str]:
    """Entries that the decision leaves out although they could have been placed; large ones are not looked at."""
    wrong, snapshot = [], asked.snapshot
    for head, plan, diagnosis in zip(asked.heads, decision.plans, decision.diagnoses, strict=False):
        if head.tree is not None:
            # With a running member in no known domain the whole hierarchy is in error; the oracle looks at subtrees.
            judged = diagnosis.proven and diagnosis.verdict is not Verdict.ERROR
            if not plan.binds and _is_small_tree(head) and judged and most_placed(snapshot, head):
                wrong.append(f"{head.key} could be placed")
        elif not plan.binds and not head.resize and diagnosis.proven and _is_small(head) and not _has_devices(head):
            answer = oracle.can_place(snapshot, head)
            if answer.feasible:
                wrong.append(f"{head.key} could be placed: {dict(answer.assignment)}")
        snapshot = oracle.after(snapshot, head, plan.binds)
    return wrong


def reckless(asked: Decide, decision: Decision) -> list[str]:
    """Evictions of the wrong pods, for nothing, or beside bindings; of small flat entries also whether they help."""
    wrong: list[str] = []
    for head, plan in zip(asked.heads, decision.plans, strict=False):
        gone = {step.uid: step for step in plan.steps if isinstance(step, Evict)}
        if not gone:
            continue
        assert asked.snapshot.running is not None
        known = {pod.uid: pod for pod in asked.snapshot.running.pods}
        wrong += [f"{head.key} evicts {step.pod}, which does not run" for uid, step in gone.items() if uid not in known]
        victims = [known[uid] for uid in gone if uid in known]
        groups, leaving = asked.snapshot.groups, asked.snapshot.running.leaving
        for pod in victims:
            group = groups.get(Key(pod.key.namespace, pod.group)) if pod.group else None
            if group is None or group.parent is None:
                own = pod.priority if group is None else group.priority
                wrong += [f"{head.key} evicts {pod.key}, which is as important"] if own >= head.priority else []
            if pod.terminating or pod.uid in leaving:
                wrong.append(f"{head.key} evicts {pod.key} a second time")
        if plan.binds:
            wrong.append(f"{head.key} binds and evicts at once")
        if head.tree is None and not head.resize and _is_small(head):
            free = replace(asked.snapshot, used=asked.snapshot.used.copy())
            for pod in known.values():
                if pod.uid in gone or ((pod.terminating or pod.uid in leaving) and pod.priority < head.priority):
                    at = free.nodes.index.get(pod.node or "")
                    if at is not None:
                        free.used[:, at] -= free.axis.vector(pod.usage)
            free = replace(free, ports={})
            if not oracle.can_place(free, head).feasible:
                wrong.append(f"{head.key} evicts {sorted(str(pod.key) for pod in victims)} and would not fit then")
    return wrong


def rash(scheduler: Scheduler, effects: Iterable[Any]) -> list[str]:
    """Bindings that the scheduler asks for although it already knows that the node is gone, closed or too full."""
    wrong = []
    for effect in effects:
        if type(effect) is not Write or not effect.request.path.endswith("/binding"):
            continue
        body = effect.request.body
        name, key = body["target"]["name"], Key(body["metadata"]["namespace"], body["metadata"]["name"])
        node, pod = scheduler.cache.nodes.get(name), scheduler.cache.pods.get(key)
        if pod is None or node is None:
            wrong.append(
                f"{key} is bound to {name}, and {'the pod' if pod is None else 'the node'} is known to be gone"
            )
        elif not oracle.admits(node, pod.cls):
            wrong.append(f"{key} is bound to {name}, which is known not to admit it")
        elif min(scheduler.cache.rooms.free(name)) < 0:
            wrong.append(f"{key} is bound to {name}, which is known to be too full")
    return wrong


def scattered(state: State, *, ignored: Collection[str] = ()) -> list[str]:
    """Groups with a topology constraint whose bound members are not all in one domain.

    Groups with members on `ignored` nodes (relabelled since) or on nodes that are gone are left out.
    """
    labels = {node["metadata"]["name"]: node["metadata"].get("labels") or {} for node in state.nodes}
    where: dict[tuple[str, str], set[str]] = defaultdict(set)
    for pod in state.pods:
        group, node = (pod["spec"].get("schedulingGroup") or {}).get("podGroupName"), pod["spec"].get("nodeName")
        if group and node and _phase(pod) not in ("Succeeded", "Failed"):
            where[pod["metadata"]["namespace"], group].add(node)
    wrong = []
    for group in state.groups:
        place = (group["metadata"]["namespace"], group["metadata"]["name"])
        constraints = (group["spec"].get("schedulingConstraints") or {}).get("topology") or ()
        nodes = where[place]
        if constraints and nodes <= labels.keys() and nodes.isdisjoint(ignored):
            values = {labels[node].get(constraints[0]["key"], "none") for node in nodes}
            if len(values) > 1 or "none" in values:
                wrong.append(f"{'/'.join(place)} has members in the domains {sorted(values)}")
    return wrong


def waiting_in_vain(state: State, *, groups: bool = True, topology: bool = False) -> list[str]:
    """Pending pods that fit now, that no gate, missing group or nomination holds, and that belong to this scheduler.

    `groups`: whether GenericWorkload is on; `topology`: whether TopologyAwareWorkloadScheduling is.
    """
    known = _Known(state, groups=groups, topology=topology)
    placeable = (entry for entry in known.trees() if most_placed(known.snapshot, entry))
    wrong = [f"{entry.key} waits, and could be placed" for entry in placeable]
    for entry in known.entries():
        if _is_small(entry) and not _has_devices(entry):
            answer = oracle.can_place(known.snapshot, entry)
            if answer.feasible:
                wrong.append(f"{entry.key} waits, and could be placed: {dict(answer.assignment)}")
    return wrong


def differs_from_rebuilt(scheduler: Scheduler, make: Callable[[], Any], server: ApiServer, now: Instant) -> list[str]:
    """Whether a cache that followed the changes is equal to one made from a list of everything.

    Only meaningful when every change has been delivered and nothing is assumed.
    """
    fresh = make()
    for resource in fresh.resources:
        fresh.handle(Listed(resource, [Object(raw) for raw in _items(server, resource, now)]), now)
    if scheduler.cache.fingerprint() == fresh.cache.fingerprint():
        return []
    return [f"the cache that followed the changes is not the one made anew: {_parts(scheduler, fresh)}"]


class _Known:
    """The state as records, and the queue entries that it calls for (statements 8, 9, 13, 15, M5)."""

    def __init__(self, state: State, *, groups: bool, topology: bool) -> None:
        ingest = Ingest(groups=groups, topology=topology)
        self.nodes: list[NodeRecord] = [ingest.node(Object(raw)) for raw in state.nodes]
        self.pods: list[PodRecord] = [ingest.pod(Object(raw)) for raw in state.pods]
        self.groups: dict[Key, GroupRecord] = {}
        for raw in state.groups:
            record = ingest.group(Object(raw))
            self.groups[record.key] = record
        composites = [ingest.composite(Object(raw)) for raw in state.composites]
        self.composites = {record.key: record for record in composites}

    @property
    def snapshot(self) -> Snapshot:
        names = {node.name for node in self.nodes}
        bound = [pod for pod in self.pods if pod.holds_room and pod.node in names]
        held = [
            builders.nomination(pod, pod.nominated_node)
            for pod in self.pods
            if pod.phase is Phase.PENDING and not pod.terminating and pod.nominated_node in names
        ]
        wanted = {name for pod in self.pods for name, _ in pod.cls.requests}
        return builders.snapshot(self.nodes, bound, nominations=held, known=wanted)

    def entries(self) -> Iterator[QueueEntry]:
        members: dict[Key, list[PodRecord]] = defaultdict(list)
        for pod in self.pods:
            if pod.group is not None:
                members[Key(pod.key.namespace, pod.group)].append(pod)
            elif _is_waiting(pod) and not pod.gates:
                yield _entry(EntryKey(EntryKind.POD, pod.key), (pod,), None, pod.priority)
        for key, pods in members.items():
            group = self.groups.get(key)
            waiting = tuple(pod for pod in pods if _is_waiting(pod))
            if group is None or group.parent or group.terminating or not waiting or any(pod.gates for pod in waiting):
                continue
            running = tuple(pod for pod in pods if pod.phase is Phase.BOUND and not pod.terminating)
            ended = sum(pod.phase is Phase.SUCCEEDED and not pod.terminating for pod in pods)
            entry = _entry(EntryKey(EntryKind.POD_GROUP, key), waiting, group, group.priority)
            yield replace(entry, running=len(running), bound=running, succeeded=ended)

    def trees(self) -> Iterator[QueueEntry]:
        """Entries of hierarchies that may be attempted and that can be looked at completely (13, 17, 51)."""
        for root in self.composites.values():
            if root.parent is not None or root.terminating:
                continue
            entry = builders.hierarchy(self._tree(root))
            odd = any(pod.gates or pod.devices or pod.cls.host_ports for pod in entry.pods)
            agree = len({pod.scheduler_name for pod in (*entry.pods, *entry.bound)}) < 2 and all(
                pod.priority == root.priority for pod in (*entry.pods, *entry.bound)
            )
            assert entry.tree is not None
            if entry.pods and entry.tree.has_quorum and agree and not odd and _is_small_tree(entry):
                yield entry

    def _tree(self, record: CompositeRecord) -> GroupNode:
        inner = [c for c in self.composites.values() if c.parent == record.key.name and not c.terminating]
        leaves = [g for g in self.groups.values() if g.parent == record.key.name and not g.terminating]
        return GroupNode(record, (*map(self._tree, inner), *map(self._leaf, leaves)))

    def _leaf(self, group: GroupRecord) -> GroupNode:
        pods = [p for p in self.pods if p.group == group.key.name and not p.terminating]
        pending = tuple(p for p in pods if p.phase is Phase.PENDING)
        bound = tuple(p for p in pods if p.phase is Phase.BOUND)
        return GroupNode(group, (), pending, bound, sum(p.phase is Phase.SUCCEEDED for p in pods))


def _is_small_tree(entry: QueueEntry) -> bool:
    return len(entry.pods) <= MOST_IN_A_TREE and not any(pod.cls.host_ports for pod in entry.pods)


def _entry(key: EntryKey, pods: tuple[PodRecord, ...], group: GroupRecord | None, priority: int) -> QueueEntry:
    return QueueEntry(key, group.uid if group else pods[0].uid, priority, 0, 0, pods, group)


def _is_waiting(pod: PodRecord) -> bool:
    """A pending pod that is ours; a foreign member of a group makes the group an error, which the oracle knows."""
    ours = pod.group is not None or pod.scheduler_name == builders.DEFAULT_SCHEDULER
    return pod.phase is Phase.PENDING and not pod.terminating and ours


def _is_small(entry: QueueEntry) -> bool:
    combinations = 1
    for count in _counts(entry.pods):
        combinations *= count + 1
    return combinations <= LARGEST


def _counts(pods: Iterable[PodRecord]) -> Iterable[int]:
    counts: dict[Any, int] = defaultdict(int)
    for pod in pods:
        counts[pod.cls] += 1
    return counts.values()


def _has_devices(entry: QueueEntry) -> bool:
    """Whether a member has claims for devices, of which the oracle knows nothing."""
    return any(pod.devices for pod in entry.pods)


def _items(server: ApiServer, resource: str, now: Instant) -> Sequence[Json]:
    response = server.handle(Request("GET", catalog.by_resource(resource).path(None)), now)
    assert isinstance(response, Response)
    return response.body["items"] if response.ok else ()


def _phase(pod: Json) -> str:
    return str((pod.get("status") or {}).get("phase", "Pending"))


def _requests(pod: Json) -> dict[str, Fraction]:
    """The sum over containers, or the largest init container where that is more; plus overhead.

    Sidecars and pod-level resources are not looked at: runs that are checked here do not use them.
    """
    spec = pod["spec"]
    total: dict[str, Fraction] = defaultdict(Fraction)
    for container in spec["containers"]:
        for resource, amount in _container(container).items():
            total[resource] += amount
    for container in spec.get("initContainers") or ():
        for resource, amount in _container(container).items():
            total[resource] = max(total[resource], amount)
    for resource, text in (spec.get("overhead") or {}).items():
        total[resource] += _quantity(text)
    return total


def _container(container: Json) -> dict[str, Fraction]:
    resources = container.get("resources") or {}
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    return {resource: _quantity(text) for resource, text in {**limits, **requests}.items()}


def _quantity(text: str | int) -> Fraction:
    """The value of a quantity, without exponents; enough for what runs are made of."""
    digits = str(text).rstrip("mkMGTi")
    return Fraction(digits) * _SUFFIXES[str(text)[len(digits) :]]


def _parts(scheduler: Scheduler, fresh: Scheduler) -> str:
    """Which of what both caches hold differs."""
    found = []
    for name in ("nodes", "pods", "groups", "members", "assumed"):
        mine, other = getattr(scheduler.cache, name), getattr(fresh.cache, name)
        keys = sorted(str(key) for key in mine.keys() | other.keys() if mine.get(key) != other.get(key))
        if keys:
            found.append(f"{name} {', '.join(keys[:5])}")
    return "; ".join(found) or "the columns"
