"""What is possible, found by looking at everything: exact and slow, for clusters of a few nodes and pods.

Shares no code with engine or plugins: every filter is written here once more, on one node at a time, in plain
integers and strings. The count of members is exact because nodes are gone through one after the other, keeping every
vector of "so many of each class are placed" that can be reached. All filters here are monotone (a pod more never
helps another), so the order in which members are placed does not matter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from muster.model.diagnosis import Reason
from muster.model.keys import Key
from muster.model.plan import Bind
from muster.model.records import (
    HostPort,
    NodeRecord,
    PodClass,
    PodRecord,
    QueueEntry,
    Requirement,
    Taint,
    Term,
    Toleration,
)
from muster.model.snapshot import Nomination, Snapshot

CORDON = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
HARD = ("NoSchedule", "NoExecute")
Counts = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """What can be done for one entry in this snapshot."""

    feasible: bool
    """Whether as many members as the entry needs can be placed together (an entry in error: never)."""
    most: int
    """The most pending members that can be placed together, whether that is enough or not."""
    assignment: Mapping[Key, str]
    """One way to place `most` members: pod -> node."""


def can_place(snapshot: Snapshot, entry: QueueEntry) -> Answer:
    """The exact answer for one entry. Time grows with (pods per class + 1) to the power of classes, squared.

    A group with a topology constraint is tried in each of its domains; the one that takes most counts.
    """
    answers = [_can_place_on(snapshot, entry, nodes) for nodes in domains(snapshot, entry).values()]
    return max(answers, key=lambda answer: answer.most, default=Answer(False, 0, {}))


def domains(snapshot: Snapshot, entry: QueueEntry) -> dict[str, frozenset[str]]:
    """Where the entry may go: names of nodes by label value, or all of them under "" without a constraint.

    Running members leave only their own domain; none if they have no common one (statements 35, 36).
    """
    key = entry.group.topology_key if entry.group else None
    if key is None:
        return {"": frozenset(node.name for node in snapshot.nodes.records)}
    found: dict[str, set[str]] = {}
    for node in snapshot.nodes.records:
        if key in node.labels:
            found.setdefault(node.labels[key], set()).add(node.name)
    labels = {node.name: node.labels.get(key) for node in snapshot.nodes.records}
    held = {labels[pod.node] for pod in entry.bound if pod.node in labels}
    if entry.bound and (len(held) != 1 or None in held):
        return {}
    return {value: frozenset(names) for value, names in found.items() if not held or value in held}


def most_on(snapshot: Snapshot, entry: QueueEntry, nodes: frozenset[str]) -> int:
    """The most pending members that fit on these nodes together."""
    return _can_place_on(snapshot, entry, nodes).most


def _can_place_on(snapshot: Snapshot, entry: QueueEntry, nodes: frozenset[str]) -> Answer:
    classes, demand = _classes(entry.pods)
    ways: dict[Counts, tuple[tuple[str, Counts], ...]] = {(0,) * len(classes): ()}
    for room in _rooms(snapshot, entry):
        if room.node.name in nodes:
            ways = _with_node(ways, room, classes, demand)
    best = max(ways, key=sum)
    most = sum(best)
    feasible = mismatch(entry) is None and most >= entry.needed
    return Answer(feasible, most, _named(ways[best], classes, entry.pods))


def feasible_nodes(snapshot: Snapshot, entry: QueueEntry, pod: PodRecord) -> tuple[str, ...]:
    """The nodes that pass every filter for this one member of the entry, in the snapshot's order."""
    return tuple(room.node.name for room in _rooms(snapshot, entry) if room.takes((pod.cls,)))


def violations(snapshot: Snapshot, entry: QueueEntry, binds: Sequence[Bind]) -> list[str]:
    """What is wrong with carrying out these binds for the entry, one sentence each; empty for a sound plan."""
    pods = {pod.key: pod for pod in entry.pods}
    wrong = [f"{bind.pod} is no pending member" for bind in binds if bind.pod not in pods]
    wrong += [f"{bind.pod} has another uid" for bind in binds if bind.pod in pods and bind.uid != pods[bind.pod].uid]
    wrong += [f"{bind.pod} is bound twice" for bind in binds if sum(other.pod == bind.pod for other in binds) > 1]
    used = {bind.node for bind in binds} & {node.name for node in snapshot.nodes.records}
    if used and not any(used <= nodes for nodes in domains(snapshot, entry).values()):
        wrong.append(f"{sorted(used)} are not in one domain that it may use")
    known = {room.node.name: room for room in _rooms(snapshot, entry)}
    for name in sorted({bind.node for bind in binds}):
        there = tuple(pods[bind.pod].cls for bind in binds if bind.node == name and bind.pod in pods)
        if name not in known:
            wrong.append(f"there is no node {name}")
        elif not known[name].takes(there):
            wrong.append(f"{name} cannot take {len(there)} of them")
    return wrong


def rejections(snapshot: Snapshot, entry: QueueEntry, pod: PodRecord) -> Counter[tuple[Reason, str]]:
    """Why each node says no to this member alone: counts of (reason, detail) over nodes, by the first filter.

    A node that lacks several resources counts under each. Details are given for resources only, "" elsewhere.
    """
    found: Counter[tuple[Reason, str]] = Counter()
    for bare, room in zip(_rooms(snapshot, entry, held=False), _rooms(snapshot, entry), strict=True):
        reason, details = bare.rejection(pod.cls)
        if reason is Reason.NONE:
            reason, details = room.rejection(pod.cls)
            reason = Reason.NONE if reason is Reason.NONE else Reason.NOMINATED_AWAY
        if reason is not Reason.NONE:
            found.update((reason, detail) for detail in details)
    return found


def after(snapshot: Snapshot, entry: QueueEntry, binds: Iterable[Bind]) -> Snapshot:
    """The snapshot with these binds carried out: room and ports are taken, the pods' nominations are gone."""
    pods = {pod.key: pod for pod in entry.pods}
    used = snapshot.used.copy()
    ports = {port: dict(counts) for port, counts in snapshot.ports.items()}
    bound: set[str] = set()
    for bind in binds:
        pod, column = pods[bind.pod], snapshot.nodes.index[bind.node]
        bound.add(pod.uid)
        for name, amount in pod.cls.requests:
            used[snapshot.axis.row[name], column] += amount
        for port in pod.cls.host_ports:
            counts = ports.setdefault(port, {})
            counts[bind.node] = counts.get(bind.node, 0) + 1
    held = tuple(nomination for nomination in snapshot.nominations if nomination.uid not in bound)
    return replace(snapshot, used=used, ports=ports, nominations=held)


def mismatch(entry: QueueEntry) -> str | None:
    """What makes the whole entry an error before any placement (31, 32 with the gate off), or None."""
    if entry.group is None:
        return None
    members = (*entry.pods, *entry.bound)
    if len({pod.scheduler_name for pod in members}) > 1:
        return "schedulerName"
    if any(pod.priority != entry.group.priority for pod in members):
        return "priority"
    if len({pod.preemption_policy for pod in members}) > 1:
        return "preemptionPolicy"
    return None


@dataclass(frozen=True, slots=True)
class _Room:
    """One node with what is left on it for one entry."""

    node: NodeRecord
    free: Mapping[str, int]
    ports: tuple[HostPort, ...]

    def takes(self, classes: Sequence[PodClass]) -> bool:
        """Whether pods of these classes fit here together."""
        wanted: dict[str, int] = {}
        for name, amount in (item for cls in classes for item in cls.requests):
            wanted[name] = wanted.get(name, 0) + amount
        if any(amount > 0 and amount > self.free.get(name, 0) for name, amount in wanted.items()):
            return False
        if not all(admits(self.node, cls) for cls in classes):
            return False
        taken = list(self.ports)
        for cls in classes:
            if any(clash(port, other) for port in cls.host_ports for other in taken):
                return False
            taken.extend(cls.host_ports)
        return True

    def rejection(self, cls: PodClass) -> tuple[Reason, tuple[str, ...]]:
        """The first filter that keeps one pod of this class out, and the resources that are short if it is theirs."""
        if self.node.unschedulable and not tolerated(CORDON, cls.tolerations):
            return Reason.NODE_UNSCHEDULABLE, ("",)
        if any(taint.effect in HARD and not tolerated(taint, cls.tolerations) for taint in self.node.taints):
            return Reason.NODE_TAINTED, ("",)
        if not admits(self.node, cls):
            return Reason.NODE_SELECTOR, ("",)
        if not set(cls.features) <= set(self.node.features):
            return Reason.NODE_FEATURES, ("",)
        if any(clash(port, other) for port in cls.host_ports for other in self.ports):
            return Reason.HOST_PORTS, ("",)
        short = tuple(name for name, amount in cls.requests if amount > 0 and amount > self.free.get(name, 0))
        return (Reason.INSUFFICIENT, short) if short else (Reason.NONE, ())


def _rooms(snapshot: Snapshot, entry: QueueEntry, held: bool = True) -> Iterator[_Room]:
    """Every node as the entry finds it: what bound pods and (with `held`) the nominations above it leave (P23)."""
    above = [nomination for nomination in snapshot.nominations if held and holds_against(nomination, entry)]
    for column, node in enumerate(snapshot.nodes.records):
        here = [nomination.cls for nomination in above if nomination.node == node.name]
        free = {name: amount - int(snapshot.used[snapshot.axis.row[name], column]) for name, amount in node.allocatable}
        for name, amount in (item for cls in here for item in cls.requests):
            free[name] = free.get(name, 0) - amount
        taken = [port for port, counts in snapshot.ports.items() if counts.get(node.name, 0) > 0]
        yield _Room(node, free, (*taken, *(port for cls in here for port in cls.host_ports)))


def holds_against(nomination: Nomination, entry: QueueEntry) -> bool:
    """A nomination of equal or higher priority keeps others out, but not its own pod or its own group."""
    own = any(nomination.uid == pod.uid for pod in entry.pods)
    own = own or (entry.group is not None and nomination.group == entry.group.key)
    return not own and nomination.priority >= entry.priority


def admits(node: NodeRecord, cls: PodClass) -> bool:
    """Everything about the node itself: cordon, taints, node selector, required affinity."""
    taints = [*node.taints, *([CORDON] if node.unschedulable else [])]
    if any(t.effect in HARD and not tolerated(t, cls.tolerations) for t in taints):
        return False
    if any(node.labels.get(key) != value for key, value in cls.node_selector):
        return False
    return cls.required is None or any(matches(node, term) for term in cls.required)


def tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    return any(_tolerates(toleration, taint) for toleration in tolerations)


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
        return False
    if toleration.operator == "Exists":
        return True
    if toleration.operator == "Equal":
        return toleration.value == taint.value
    return _ordered(toleration.operator, taint.value, toleration.value)


def matches(node: NodeRecord, term: Term) -> bool:
    """Whether the node meets every requirement of the term; an empty term matches nothing."""
    return bool(term.requirements) and all(_meets(node, requirement) for requirement in term.requirements)


def _meets(node: NodeRecord, requirement: Requirement) -> bool:
    value = node.name if requirement.key is None else node.labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value is not None and value in requirement.values
        case "NotIn":
            return value is None or value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    return value is not None and _ordered(requirement.operator, value, requirement.values[0])


def _ordered(operator: str, left: str, right: str) -> bool:
    """Whether left is below (Lt) or above (Gt) right, both whole numbers."""
    try:
        return int(left) < int(right) if operator == "Lt" else int(left) > int(right)
    except ValueError:
        return False


def clash(one: HostPort, other: HostPort) -> bool:
    """Whether two pods on one node cannot both have these ports."""
    everywhere = "0.0.0.0" in (one.ip, other.ip)
    return (one.protocol, one.port) == (other.protocol, other.port) and (everywhere or one.ip == other.ip)


def _classes(pods: Sequence[PodRecord]) -> tuple[tuple[PodClass, ...], Counts]:
    demand: dict[PodClass, int] = {}
    for pod in pods:
        demand[pod.cls] = demand.get(pod.cls, 0) + 1
    return tuple(demand), tuple(demand.values())


def _with_node(
    ways: Mapping[Counts, tuple[tuple[str, Counts], ...]], room: _Room, classes: Sequence[PodClass], demand: Counts
) -> dict[Counts, tuple[tuple[str, Counts], ...]]:
    """All count vectors that can be reached when this node takes part too."""
    loads = [load for load in product(*(range(n + 1) for n in demand)) if room.takes(_spelled(load, classes))]
    reached: dict[Counts, tuple[tuple[str, Counts], ...]] = {}
    for placed, way in ways.items():
        for load in loads:
            total = tuple(a + b for a, b in zip(placed, load, strict=True))
            if all(a <= b for a, b in zip(total, demand, strict=True)):
                reached.setdefault(total, (*way, (room.node.name, load)))
    return reached


def _spelled(load: Counts, classes: Sequence[PodClass]) -> tuple[PodClass, ...]:
    return tuple(cls for count, cls in zip(load, classes, strict=True) for _ in range(count))


def _named(way: Sequence[tuple[str, Counts]], classes: Sequence[PodClass], pods: Sequence[PodRecord]) -> dict[Key, str]:
    waiting = {cls: [pod.key for pod in pods if pod.cls == cls] for cls in classes}
    return {
        waiting[cls].pop(0): node
        for node, load in way
        for count, cls in zip(load, classes, strict=True)
        for _ in range(count)
    }
