"""What is possible for pods that look at each other, found by trying every order: for a few nodes and pods.

Shares no code with engine or plugins: the rules on affinity and spread are written here once more, pod by pod, as
kube-scheduler states them; everything about a node alone is `oracle`'s.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from muster.model.diagnosis import Reason
from muster.model.neighbours import LabelRequirement, PodSelector, SpreadConstraint
from muster.model.plan import Bind
from muster.model.records import NodeRecord, PodRecord, QueueEntry
from muster.testing import oracle

Placed = tuple[tuple[PodRecord, NodeRecord], ...]


@dataclass(frozen=True)
class World:
    """A cluster, pod by pod; `spaces` are the labels of namespaces."""

    nodes: Sequence[NodeRecord]
    bound: Sequence[PodRecord] = ()
    spaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def there(self) -> Placed:
        by_name = {node.name: node for node in self.nodes}
        return tuple((pod, by_name[pod.node or ""]) for pod in self.bound)


def most(world: World, entry: QueueEntry) -> int:
    """The most pending members that can be placed, one after the other, in any order."""
    start = (-1,) * len(entry.pods)
    reached, waiting, best = {start}, [start], 0
    while waiting:
        state = waiting.pop()
        best = max(best, sum(node >= 0 for node in state))
        for after in steps(world, entry.pods, state):
            if after not in reached:
                reached.add(after)
                waiting.append(after)
    return best


def steps(world: World, pods: Sequence[PodRecord], state: tuple[int, ...]) -> Iterable[tuple[int, ...]]:
    """What can be after one more pod is placed; a state is the node of each pod by number, -1 for none."""
    placed = world.there + tuple((pod, world.nodes[at]) for pod, at in zip(pods, state, strict=True) if at >= 0)
    for number, pod in enumerate(pods):
        for at, node in enumerate(world.nodes) if state[number] < 0 else ():
            if rejection(world, placed, pod, node) is Reason.NONE:
                yield (*state[:number], at, *state[number + 1 :])


def is_possible(world: World, entry: QueueEntry, binds: Sequence[Bind]) -> bool:
    """Whether there is an order in which each of these binds passes every filter with the earlier ones in place."""
    pods, by_name = {pod.key: pod for pod in entry.pods}, {node.name: node for node in world.nodes}
    wanted = [(pods[bind.pod], by_name[bind.node]) for bind in binds]
    seen: set[frozenset[int]] = set()

    def goes_on(done: frozenset[int]) -> bool:
        if len(done) == len(wanted):
            return True
        if done in seen:
            return False
        seen.add(done)
        placed = world.there + tuple(wanted[i] for i in sorted(done))
        left = (i for i in range(len(wanted)) if i not in done)
        return any(rejection(world, placed, *wanted[i]) is Reason.NONE and goes_on(done | {i}) for i in left)

    return goes_on(frozenset())


def rejection(world: World, placed: Placed, pod: PodRecord, node: NodeRecord) -> Reason:
    """The first filter that keeps the pod off the node, NONE if it may go there."""
    if not oracle.admits(node, pod.cls):
        return Reason.NODE_SELECTOR
    here = [other for other, its in placed if its.name == node.name]
    if any(oracle.clash(a, b) for other in here for a in other.cls.host_ports for b in pod.cls.host_ports):
        return Reason.HOST_PORTS
    allocatable = dict(node.allocatable)
    for name, amount in pod.cls.requests:
        if amount + sum(dict(other.cls.requests).get(name, 0) for other in here) > allocatable.get(name, 0):
            return Reason.INSUFFICIENT
    if not all(_is_even(world, placed, pod, node, one) for one in hard(pod)):
        return Reason.TOPOLOGY_SPREAD
    return _of_affinity(world, placed, pod, node)


def _of_affinity(world: World, placed: Placed, pod: PodRecord, node: NodeRecord) -> Reason:
    demands = pod.cls.demands
    if demands is not None and demands.affinity:
        keys = [term.topology_key for term in demands.affinity]
        if any(key not in node.labels for key in keys):
            return Reason.POD_AFFINITY
        meant = [(p, n) for p, n in placed if all(means(world, term.selector, p) for term in demands.affinity)]
        near = all(any(n.labels.get(key) == node.labels[key] for _, n in meant) for key in keys)
        nobody = not any(key in n.labels for _, n in meant for key in keys)
        first = nobody and all(means(world, term.selector, pod) for term in demands.affinity)
        if not near and not first:
            return Reason.POD_AFFINITY
    for term in demands.anti_affinity if demands is not None else ():
        if any(together(term.topology_key, node, n) and means(world, term.selector, p) for p, n in placed):
            return Reason.POD_ANTI_AFFINITY
    for other, n in placed:
        for term in other.cls.demands.anti_affinity if other.cls.demands is not None else ():
            if together(term.topology_key, node, n) and means(world, term.selector, pod):
                return Reason.EXISTING_ANTI_AFFINITY
    return Reason.NONE


def together(key: str, one: NodeRecord, other: NodeRecord) -> bool:
    return key in one.labels and one.labels[key] == other.labels.get(key)


def hard(pod: PodRecord) -> list[SpreadConstraint]:
    return [one for one in pod.cls.demands.spread if one.hard] if pod.cls.demands is not None else []


def _is_even(world: World, placed: Placed, pod: PodRecord, node: NodeRecord, constraint: SpreadConstraint) -> bool:
    key = constraint.topology_key
    if key not in node.labels:
        return False
    counting = [n for n in world.nodes if counts(n, pod, constraint)]
    crowd = {n.labels[key]: 0 for n in counting}
    for other, n in placed:
        if n in counting and not other.terminating and means(world, constraint.selector, other):
            crowd[n.labels[key]] += 1
    fewest = min(crowd.values()) if crowd and len(crowd) >= constraint.min_domains else 0
    own = means(world, constraint.selector, pod)
    return crowd.get(node.labels[key], 0) + own - fewest <= constraint.max_skew


def counts(node: NodeRecord, pod: PodRecord, constraint: SpreadConstraint) -> bool:
    if not all(one.topology_key in node.labels for one in hard(pod)):
        return False
    cls = pod.cls
    if constraint.honor_affinity:
        selected = all(node.labels.get(key) == value for key, value in cls.node_selector)
        if not selected or not (cls.required is None or any(oracle.matches(node, term) for term in cls.required)):
            return False
    taints = [*node.taints, *([oracle.CORDON] if node.unschedulable else [])]
    tolerated = all(t.effect not in oracle.HARD or oracle.tolerated(t, cls.tolerations) for t in taints)
    return tolerated or not constraint.honor_taints


def means(world: World, selector: PodSelector, pod: PodRecord) -> bool:
    if selector.requirements is None or not _all_hold(selector.requirements, dict(pod.labels)):
        return False
    space = pod.key.namespace
    by_labels = selector.by_labels is not None and _all_hold(selector.by_labels, world.spaces.get(space, {}))
    return space in selector.namespaces or by_labels


def _all_hold(requirements: Iterable[LabelRequirement], labels: Mapping[str, str]) -> bool:
    for key, operator, values in requirements:
        known = {
            "In": labels.get(key) in values,
            "NotIn": labels.get(key) not in values,
            "Exists": key in labels,
            "DoesNotExist": key not in labels,
        }
        if not known[operator]:
            return False
    return True
