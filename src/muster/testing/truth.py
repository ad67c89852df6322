"""Whether a decision about a `mixed` instance is sound, complete and truthful: every claim that can be checked.

Shares no code with engine or plugins: it is given what was bound and what was said.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from muster.model.diagnosis import Diagnosis, Reason, Remedy, Shortfall, Verdict
from muster.model.plan import Bind
from muster.model.records import GroupNode, NodeRecord, PodRecord, QueueEntry, Toleration
from muster.testing import builders, company, oracle, trees
from muster.testing.crowd import Placement, crowd_of
from muster.testing.mixed import Mixed
from muster.testing.solver import Found, most, solve
from muster.testing.turns import STATES, in_some_order

_STATIC = (Reason.NODE_UNSCHEDULABLE, Reason.NODE_TAINTED, Reason.NODE_SELECTOR)
_ALONE = (*_STATIC, Reason.HOST_PORTS, Reason.INSUFFICIENT)
"""What a node says to a pod alone, whoever of its group is placed."""


def faults(instance: Mixed, binds: Sequence[Bind], diagnosis: Diagnosis, found: Found) -> Iterator[str]:
    """Everything that is wrong, one sentence each. `found`: what the solver says of the instance."""
    yield from unsound(instance, binds)
    if binds and found.possible is False:
        yield f"{len(binds)} bound, and the oracle finds no placement"
    if found.possible and not binds and diagnosis.proven and diagnosis.verdict is not Verdict.ERROR:
        yield f"called impossible, and the oracle finds {found.placement}"
    if binds and diagnosis.verdict is not Verdict.SCHEDULED:
        yield f"bound, and the verdict is {diagnosis.verdict.name}"
    if not binds and diagnosis.verdict is Verdict.SCHEDULED and instance.entry.pods:
        yield "nothing bound, and the verdict is SCHEDULED"
    if diagnosis.verdict is Verdict.ERROR and not _is_split(instance):
        yield "called an error, and running members agree"
    placed = {bind.pod for bind in binds}
    waiting = {pod.key for pod in instance.entry.pods} - placed
    if diagnosis.verdict is not Verdict.ERROR and set(diagnosis.pods) != waiting:
        yield f"speaks of {sorted(key.name for key in diagnosis.pods)}, {sorted(key.name for key in waiting)} wait"
    if diagnosis.verdict is Verdict.UNSCHEDULABLE:
        yield from _wrong_counts(instance, diagnosis)
        yield from _wrong_rejections(instance, diagnosis)
        yield from _wrong_shortfall(instance, diagnosis)
        yield from _idle_remedies(instance, diagnosis)
        yield from _wrong_outcomes(instance, diagnosis)


# -- what was bound


def unsound(instance: Mixed, binds: Sequence[Bind]) -> Iterator[str]:
    """What is wrong with carrying out these binds; nothing for a sound plan."""
    if not binds:
        return
    entry = instance.entry
    wrong = oracle.violations if entry.tree is None else trees.tree_violations
    yield from wrong(instance.snapshot, entry, binds)
    if entry.tree is None and len(binds) < entry.needed:
        yield f"{len(binds)} bound, {entry.needed} needed"
    crowd = crowd_of(instance.world, entry)
    role_of = {pod.key: r for r, role in enumerate(crowd.roles) for pod in role.pods}
    index = {node.name: n for n, node in enumerate(crowd.nodes)}
    wanted: Placement = {}
    for bind in binds:
        spot = role_of[bind.pod], index[bind.node]
        wanted[spot] = wanted.get(spot, 0) + 1
    if in_some_order(crowd, wanted, 10 * STATES) is False:
        yield f"in no order can it be done: {[(bind.pod.name, bind.node) for bind in binds]}"


def _is_split(instance: Mixed) -> bool:
    """Whether running members of some constrained group are not all in one domain."""
    labels = {node.name: node.labels for node in instance.world.nodes}

    def split(key: str | None, bound: Sequence[PodRecord]) -> bool:
        values = {labels[pod.node or ""].get(key or "") for pod in bound}
        return key is not None and bool(bound) and (len(values) > 1 or None in values)

    def below(tree: GroupNode) -> bool:
        running = [pod for leaf in tree.leaves() for pod in leaf.bound]
        return split(tree.record.topology_key, running) or any(below(child) for child in tree.children)

    entry = instance.entry
    if entry.tree is not None:
        return below(entry.tree)
    return entry.group is not None and split(entry.group.topology_key, entry.bound)


# -- what was said


def _wrong_counts(instance: Mixed, diagnosis: Diagnosis) -> Iterator[str]:
    """Placed members and what domains lack, of flat groups."""
    entry = instance.entry
    if entry.tree is not None:
        return
    bound = most(instance.world, entry)
    if bound is not None and diagnosis.placed > bound:
        yield f"{diagnosis.placed} said to be placeable, {bound} are"
    if bound is not None and diagnosis.placed >= entry.needed:
        yield f"{diagnosis.placed} said to be placeable, {entry.needed} would have done"
    depends = crowd_of(instance.world, entry)
    if depends.ordered or depends.apart:
        return
    free = replace(entry, group=None)
    places = oracle.domains(instance.snapshot, entry)
    for value, lacking in diagnosis.deficits:
        there = most(instance.world, free, places[value])
        if there is not None and lacking != entry.needed - there:
            yield f"{value} is said to lack {lacking}, it takes {there} of {entry.needed}"


def _nodes_of(instance: Mixed, diagnosis: Diagnosis) -> list[NodeRecord]:
    """The nodes that the diagnosis of a flat group speaks of."""
    if not diagnosis.domain:
        return list(instance.world.nodes)
    return [node for node in instance.world.nodes if node.labels.get(diagnosis.topology_key) == diagnosis.domain]


def _wrong_rejections(instance: Mixed, diagnosis: Diagnosis) -> Iterator[str]:
    """Reasons that no placement changes are counted as they are; nothing else is said of more nodes than are left."""
    if instance.entry.tree is not None:
        return
    nodes = {node.name for node in _nodes_of(instance, diagnosis)}
    bound = [pod for pod in instance.world.bound if pod.node in nodes]
    inside = [node for node in instance.world.nodes if node.name in nodes]
    part = replace(instance, world=replace(instance.world, nodes=inside, bound=bound))
    view = part.snapshot
    pods = {pod.key: pod for pod in instance.entry.pods}
    judged: set[object] = set()
    for key, verdict in diagnosis.pods.items():
        pod = pods[key]
        told = tuple(one for one in verdict.rejections if one.reason < Reason.GATED)
        if not told or (pod.cls, told) in judged:
            continue
        judged.add((pod.cls, told))
        expected = _alone(oracle.rejections(view, part.entry, pod).items())
        found = _alone(((one.reason, one.detail), one.nodes) for one in told)
        if expected != found:
            yield f"{key.name}: said {dict(found)}, true is {dict(expected)}"
        if sum(one.nodes for one in told) < len(nodes):
            yield f"{key.name}: {len(nodes)} nodes, reasons for {sum(one.nodes for one in told)}"


def _alone(counts: Iterable[tuple[tuple[Reason, str], int]]) -> Counter[tuple[Reason, str]]:
    found: Counter[tuple[Reason, str]] = Counter()
    for (reason, detail), nodes in counts:
        if reason in _ALONE:
            found[reason, detail if reason is Reason.INSUFFICIENT else ""] += nodes
    return found


def _wrong_shortfall(instance: Mixed, diagnosis: Diagnosis) -> Iterator[str]:
    """One node that lacks so much for one or more of those left out; fellow members may have taken some of it."""
    for told in (diagnosis.shortfall, *(outcome.shortfall for outcome in diagnosis.groups)):
        yield from _wrong_lack(instance, diagnosis, told)


def _wrong_lack(instance: Mixed, diagnosis: Diagnosis, told: Shortfall | None) -> Iterator[str]:
    node = next((node for node in instance.world.nodes if told is not None and node.name == told.where), None)
    if told is None or node is None or told.resource not in {name for name, _ in node.allocatable}:
        return
    used = sum(dict(pod.usage).get(told.resource, 0) for pod in instance.world.bound if pod.node == node.name)
    free = dict(node.allocatable).get(told.resource, 0) - used
    left = [pod for pod in instance.entry.pods if pod.key in diagnosis.pods and oracle.admits(node, pod.cls)]
    asked = [dict(pod.cls.requests).get(told.resource, 0) for pod in left]
    least, highest = told.lacking + free, sum(asked) + max(-free, 0)
    if told.lacking <= 0 or told.lacking > highest or not any(0 < amount <= least for amount in asked):
        yield f"{told} where {free} is free and members ask for {asked}"


def _wrong_outcomes(instance: Mixed, diagnosis: Diagnosis) -> Iterator[str]:
    """Of a hierarchy: groups are said to be what their numbers make them, and no leaf holds more than it could."""
    tree = instance.entry.tree
    if tree is None or not diagnosis.groups:
        return
    leaves = {leaf.record.key: leaf for leaf in tree.leaves()}
    for outcome in diagnosis.groups:
        if outcome.satisfied and outcome.there < outcome.min_count:
            yield f"{outcome.key.name} is said to be satisfied with {outcome.there} of {outcome.min_count}"
        leaf = leaves.get(outcome.key)
        if leaf is None or outcome.depth == 0:
            continue
        alone = _alone_entry(leaf)
        if crowd_of(instance.world, alone).near:
            continue  # members of other leaves may be the company that it needs
        could = most(instance.world, alone) if alone.pods else 0
        there = len(leaf.bound) + leaf.succeeded + (could or 0)
        if could is not None and outcome.there > there:
            yield f"{outcome.key.name} is said to hold {outcome.there}, it holds {there} at most"


def _alone_entry(leaf: GroupNode) -> QueueEntry:
    record = leaf.record
    group = builders.group(record.key.name, record.min_count, topology_key=record.topology_key)
    return builders.entry(*leaf.pending, group=group, bound=leaf.bound, succeeded=leaf.succeeded)


# -- what was advised


def _idle_remedies(instance: Mixed, diagnosis: Diagnosis) -> Iterator[str]:
    """Remedies that do not help."""
    for remedy in diagnosis.remedies:
        after = applied(instance, remedy)
        if after is not None and solve(after.world, after.entry).possible is False:
            yield f"{remedy} does not help"


def applied(instance: Mixed, remedy: Remedy) -> Mixed | None:
    """The instance with the remedy applied; None for remedies that leave open how."""
    world, entry = instance.world, instance.entry
    match remedy.action:
        case "lower-min-count" if entry.group is not None:
            return replace(instance, entry=replace(entry, group=replace(entry.group, min_count=remedy.amount)))
        case "uncordon":
            meant = [n.name for n in world.nodes if remedy.where in ("", n.name)]
            nodes = [replace(n, unschedulable=n.unschedulable and n.name not in meant) for n in world.nodes]
            return replace(instance, world=replace(world, nodes=nodes))
        case "tolerate":
            return replace(instance, entry=_tolerating(entry, remedy.detail))
        case "add-nodes":
            model = next((node for node in world.nodes if node.name == remedy.detail), None)
            return None if model is None else replace(instance, world=_grown(world, model, remedy.amount))
        case "free" if any(n.name == remedy.where and remedy.detail in dict(n.allocatable) for n in world.nodes):
            nodes = [_with_more(n, remedy.detail, remedy.amount if n.name == remedy.where else 0) for n in world.nodes]
            return replace(instance, world=replace(world, nodes=nodes))
    return None


def _tolerating(entry: QueueEntry, detail: str) -> QueueEntry:
    """All members tolerate the taint `key=value:effect`, as far as given."""
    taint, _, effect = detail.rpartition(":")
    key, equals, value = taint.partition("=")
    toleration = Toleration(key, "Equal" if equals else "Exists", value, effect)

    def told(pods: Sequence[PodRecord]) -> tuple[PodRecord, ...]:
        return tuple(replace(p, cls=replace(p.cls, tolerations=(*p.cls.tolerations, toleration))) for p in pods)

    def below(tree: GroupNode) -> GroupNode:
        return replace(tree, children=tuple(map(below, tree.children)), pending=told(tree.pending))

    return replace(entry, pods=told(entry.pods), tree=None if entry.tree is None else below(entry.tree))


def _grown(world: company.World, model: NodeRecord, count: int) -> company.World:
    names = [f"copy-{number}" for number in range(count)]
    copies = [replace(model, name=name, labels={**model.labels, builders.HOSTNAME: name}) for name in names]
    return replace(world, nodes=[*world.nodes, *copies])


def _with_more(node: NodeRecord, resource: str, amount: int) -> NodeRecord:
    room = dict(node.allocatable)
    room[resource] = room.get(resource, 0) + amount
    return replace(node, allocatable=tuple(sorted((name, much) for name, much in room.items() if much)))
