"""What is possible for a small hierarchy of groups, found by looking at everything; shares no code with the engine.

Every choice of satisfied groups and of domains is tried; pods are then put onto nodes one after the other. For trees of
a few groups and pods on a few nodes; ports and neighbours are not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from muster.model.keys import Key
from muster.model.plan import Bind
from muster.model.records import GroupNode, NodeRecord, PodRecord, QueueEntry
from muster.model.snapshot import Snapshot
from muster.testing.oracle import admits, holds_against

Names = frozenset[str]
"""Nodes by name."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A leaf that may be given members: so many at least, on these nodes."""

    leaf: GroupNode
    least: int
    nodes: Names


def most_placed(snapshot: Snapshot, entry: QueueEntry) -> int:
    """The most pods that can be placed with the root satisfied; 0: it cannot be, or nothing can be placed."""
    assert entry.tree is not None
    nodes = {node.name: node for node in snapshot.nodes.records}
    free = {
        node.name: {name: amount - int(snapshot.used[snapshot.axis.row[name], n]) for name, amount in node.allocatable}
        for n, node in enumerate(snapshot.nodes.records)
    }
    for nomination in snapshot.nominations:
        if nomination.node in free and holds_against(nomination, entry):
            row = free[nomination.node]
            row.update({name: row.get(name, 0) - amount for name, amount in nomination.cls.requests})
    best = 0
    for way in _ways(entry.tree, frozenset(nodes), nodes):
        if way is not None:
            best = max(best, _most(way, nodes, free))
    return best


def _ways(tree: GroupNode, where: Names, nodes: Mapping[str, NodeRecord]) -> Iterator[tuple[_Part, ...] | None]:
    """Every way to satisfy a group inside its parent's nodes. None: it is left out."""
    yield None
    for inside in _domains(tree, where, nodes):
        if tree.is_leaf:
            least = max(tree.record.min_count - len(tree.bound) - tree.succeeded, 0)
            yield (_Part(tree, least, inside),)
            continue
        for ways in product(*(tuple(_ways(child, inside, nodes)) for child in tree.children)):
            if sum(way is not None for way in ways) >= tree.record.min_count:
                yield tuple(part for way in ways if way is not None for part in way)


def _domains(tree: GroupNode, where: Names, nodes: Mapping[str, NodeRecord]) -> list[Names]:
    key = tree.record.topology_key
    if key is None:
        return [where]
    found: dict[str, set[str]] = {}
    for name in where:
        if key in nodes[name].labels:
            found.setdefault(nodes[name].labels[key], set()).add(name)
    running = [pod.node for leaf in tree.leaves() for pod in leaf.bound]
    return [frozenset(names) for names in found.values() if all(node in names for node in running)]


def _most(parts: Sequence[_Part], nodes: Mapping[str, NodeRecord], free: Mapping[str, Mapping[str, int]]) -> int:
    pods = [(i, pod) for i, part in enumerate(parts) for pod in part.leaf.pending]
    dead: set[object] = set()
    least = tuple(part.least for part in parts)

    def go(at: int, room: dict[str, dict[str, int]], need: tuple[int, ...]) -> int:
        if at == len(pods):
            return 0 if not any(need) else -1
        name = (at, need, tuple(sorted((n, tuple(sorted(r.items()))) for n, r in room.items())))
        if name in dead:
            return -1
        i, pod = pods[at]
        best = -1
        for node in sorted(parts[i].nodes):
            if admits(nodes[node], pod.cls) and all(room[node].get(k, 0) >= v for k, v in pod.cls.requests):
                taken = {k: v - dict(pod.cls.requests).get(k, 0) for k, v in room[node].items()}
                fewer = (*need[:i], max(need[i] - 1, 0), *need[i + 1 :])
                rest = go(at + 1, {**room, node: taken}, fewer)
                best = max(best, rest + 1 if rest >= 0 else -1)
                if best == len(pods) - at:
                    return best
        still = sum(1 for j, _ in pods[at + 1 :] if j == i)
        if still >= need[i]:
            best = max(best, go(at + 1, room, need))
        if best < 0:
            dead.add(name)
        return best

    return max(go(0, {name: dict(row) for name, row in free.items()}, least), 0)


def tree_violations(snapshot: Snapshot, entry: QueueEntry, binds: Sequence[Bind]) -> list[str]:
    """What is wrong with carrying out these binds for a hierarchy, one sentence each; empty for a sound plan."""
    assert entry.tree is not None
    nodes = {node.name: node for node in snapshot.nodes.records}
    where = {bind.pod: bind.node for bind in binds}
    pods = {pod.key: pod for pod in entry.pods}
    wrong = [f"{bind.pod} is no pending member" for bind in binds if bind.pod not in pods]
    wrong += [f"{bind.pod} may not be on {bind.node}" for bind in binds if not _may(nodes, pods, bind)]
    for n, node in enumerate(snapshot.nodes.records):
        for name, amount in node.allocatable:
            here = [pods[pod] for pod, at in where.items() if at == node.name and pod in pods]
            asked = sum(dict(pod.cls.requests).get(name, 0) for pod in here)
            if asked and asked + int(snapshot.used[snapshot.axis.row[name], n]) > amount:
                wrong.append(f"{node.name} is short of {name}")
    if binds:
        wrong += _group_violations(entry.tree, frozenset(nodes), nodes, where)
        if not _satisfied(entry.tree, where):
            wrong.append("the root is not satisfied")
    return wrong


def _may(nodes: Mapping[str, NodeRecord], pods: Mapping[Key, PodRecord], bind: Bind) -> bool:
    return bind.node in nodes and bind.pod in pods and admits(nodes[bind.node], pods[bind.pod].cls)


def _group_violations(
    tree: GroupNode, around: Names, nodes: Mapping[str, NodeRecord], where: Mapping[Key, str]
) -> Iterator[str]:
    used = {where[pod.key] for leaf in tree.leaves() for pod in leaf.pending if pod.key in where}
    inside = [names for names in _domains(tree, around, nodes) if used <= names]
    if used and not inside:
        yield f"{sorted(used)} are not in one domain that {tree.record.key.name} may use"
    if used and not _satisfied(tree, where):
        yield f"{tree.record.key.name} is not satisfied, and members of it are bound"
    for child in tree.children:
        yield from _group_violations(child, inside[0] if inside else around, nodes, where)


def _satisfied(tree: GroupNode, where: Mapping[Key, str]) -> bool:
    if tree.is_leaf:
        there = len(tree.bound) + tree.succeeded + sum(pod.key in where for pod in tree.pending)
        return there >= tree.record.min_count
    return sum(_satisfied(child, where) for child in tree.children) >= tree.record.min_count
