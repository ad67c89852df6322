"""What came of every group of a hierarchy, and why: each group's own result, and the parent that failed above it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from muster.engine.attempt import promising
from muster.engine.explain import Failure, class_verdict, explain
from muster.engine.gang import place_group
from muster.engine.goals import Goal
from muster.engine.holds import Holds
from muster.engine.placement import Refusal, Survey, choose
from muster.engine.spots import Spot, counts_of, total
from muster.engine.trial import Trial
from muster.model.diagnosis import Diagnosis, GroupOutcome, PodVerdict, Reason, Rejection, Remedy, Verdict
from muster.model.keys import Key
from muster.model.records import EntryKind, GroupNode, QueueEntry
from muster.model.topology import Placement, domains_of


@dataclass(slots=True)
class _Own:
    """A group's own result, whatever became of its parent."""

    satisfied: bool
    placed: int = 0
    domain: str = ""
    diagnosis: Diagnosis | None = None
    rejections: tuple[Rejection, ...] = ()
    nodes: int = 0
    """How many nodes the rejections speak of."""


class Report:
    """Makes the diagnosis of one decided hierarchy. `start`: the ledger's checkpoint before anything was placed."""

    def __init__(self, trial: Trial, holds: Holds, entry: QueueEntry, root: Goal, start: int) -> None:
        self._trial, self._holds, self._entry, self._root, self._start = trial, holds, entry, root, start
        self._own: dict[str, _Own] = {}
        """By uid of the group."""
        self._pods: dict[Key, PodVerdict] = {}

    def placed(self, spots: Sequence[Spot]) -> Diagnosis:
        """Of a hierarchy that is satisfied, with this on the ledger."""
        self._settle(self._root, self._trial, spots)
        count = total(spots)
        first = self._first_rejections()
        return self._diagnosis(Verdict.SCHEDULED, count, first, True)

    def failed(self, proven: bool) -> Diagnosis:
        """Of one that is not. Changes the ledger, which is to be rolled back."""
        if self._root.possible:
            self._probe(self._trial, self._root)
            self._own[self._root.node.record.uid].satisfied = False
        diagnosis = self._diagnosis(Verdict.UNSCHEDULABLE, 0, self._first_rejections(), proven)
        alone = self._only_cause(self._root)
        if alone is None:
            return diagnosis
        remedies = tuple(_of_group(remedy, alone.entry.key.name) for remedy in alone.remedies)
        return replace(diagnosis, shortfall=alone.shortfall, remedies=remedies)

    # -- after a success

    def _settle(self, goal: Goal, world: Trial, spots: Sequence[Spot]) -> bool:
        """Notes what a group got, and why it did not get more."""
        if goal.is_leaf:
            return self._settle_leaf(goal, world, spots)
        inside = self._inside(goal, world, spots)
        satisfied = sum([self._settle(child, inside, spots) for child in goal.children])
        own = self._own[goal.node.record.uid] = _Own(satisfied >= goal.node.record.min_count)
        own.domain = inside.placement.value if goal.key and inside.placement else ""
        return own.satisfied

    def _settle_leaf(self, goal: Goal, world: Trial, spots: Sequence[Spot]) -> bool:
        counts = counts_of(goal, spots)
        satisfied = sum(counts) >= goal.need
        if not satisfied:
            checkpoint = world.ledger.checkpoint()
            self._probe(world, goal)
            world.ledger.rollback(checkpoint)
            self._own[goal.node.record.uid].satisfied = False
            return False
        inside = self._inside(goal, world, spots)
        own = self._own[goal.node.record.uid] = _Own(True, sum(counts))
        own.domain = inside.placement.value if goal.key and inside.placement else ""
        for some, count in zip(goal.members, counts, strict=True):
            if count < len(some):
                verdict = class_verdict(inside, self._holds, some.cls, inside.ledger.checkpoint())
                self._pods.update(dict.fromkeys((pod.key for pod in some.pods[count:]), verdict))
                own.rejections, own.nodes = own.rejections or verdict.rejections, verdict.nodes
        return True

    def _inside(self, goal: Goal, world: Trial, spots: Sequence[Spot]) -> Trial:
        """The world of the domain that a group is in; its parent's where it has no constraint or is nowhere."""
        if goal.key is None:
            return world
        below = set(goal.leaves())
        nodes = self._trial.snapshot.nodes
        placed = (node for spot in spots if spot.goal in below for _, node, _ in spot.where)
        assert goal.entry is not None
        bound = (nodes.index.get(pod.node) for pod in goal.entry.bound if pod.node)
        node = next((n for n in (*placed, *bound) if n is not None), None)
        if node is None:
            return world
        placement = _domain(self._trial, goal.key, world.placement, nodes.records[node].labels.get(goal.key, ""))
        return world if placement is None else self._trial.part(placement)

    # -- after a failure

    def _probe(self, world: Trial, goal: Goal) -> bool:
        """Tries a group by itself: what is satisfied stays on the world's ledger."""
        if goal.is_leaf:
            return self._probe_leaf(world, goal)
        checkpoint = world.ledger.checkpoint()
        part = self._nearest(world, goal) if goal.key is not None and goal.members else world
        own = self._own[goal.node.record.uid] = _Own(False)
        if part is None:
            own.rejections = (Rejection(Reason.NO_DOMAINS, 0, goal.key or ""),)
            self._reject(goal, PodVerdict(own.rejections, len(world)))
            return False
        failed = [child for child in goal.children if not self._probe(part, child)]
        if len(failed) == 1 and failed[0] is not goal.children[-1] and self._probe(part, failed[0]):
            failed.clear()  # What is said of the only one is said with all its siblings in place.
        own.satisfied = len(goal.children) - len(failed) >= goal.node.record.min_count
        own.domain = part.placement.value if part is not world and part.placement else ""
        if own.satisfied and part is not world:
            world.adopt(part)
        elif not own.satisfied:
            world.ledger.rollback(checkpoint)
        return own.satisfied

    def _nearest(self, world: Trial, goal: Goal) -> Trial | None:
        """The world of the domain that may hold the group, or that holds most of it."""
        first = next(promising(world, goal, 1), None)
        if first is not None:
            return first
        found = goal.domains(world)
        if isinstance(found, Refusal) or not len(found.among):
            return None
        assert goal.entry is not None
        most = Survey(world, goal.members, goal.entry, found).most
        return world.part(found.domains[int(found.among[int(most.argmax())])])

    def _probe_leaf(self, world: Trial, goal: Goal) -> bool:
        own = self._own[goal.node.record.uid] = _Own(goal.done)
        if not goal.members:
            return own.satisfied
        assert goal.entry is not None
        checkpoint, part, start = world.ledger.checkpoint(), world, world.ledger.checkpoint()
        if goal.key is None:
            placed = place_group(world, goal.members, goal.entry.needed, 1, goal.levels)
        else:
            found = goal.domains(world)
            if isinstance(found, Refusal):
                own.rejections = (Rejection(found.reason, 0, goal.key),)
                self._reject(goal, PodVerdict(own.rejections, len(world)))
                return own.satisfied
            choice = choose(world, goal.members, goal.entry, found, 1)
            placed, part, start = choice.placed, choice.part, 0
            own.domain = part.placement.value if part.placement else ""
        own.placed = placed.total
        if placed.enough:
            own.satisfied = True
            if part is not world:
                world.adopt(part)
            return True
        own.diagnosis = explain(part, self._holds, goal.entry, Failure(goal.members, placed, start))
        own.rejections, own.nodes = own.diagnosis.rejections, own.diagnosis.nodes
        self._pods.update(own.diagnosis.pods)
        world.ledger.rollback(checkpoint)
        return own.satisfied

    def _reject(self, goal: Goal, verdict: PodVerdict) -> None:
        assert goal.entry is not None
        self._pods.update(dict.fromkeys((pod.key for pod in goal.entry.pods), verdict))

    def _only_cause(self, goal: Goal) -> Diagnosis | None:
        """The diagnosis of the one leaf that, if it fitted, would satisfy the hierarchy."""
        own = self._own.get(goal.node.record.uid)
        if goal.is_leaf:
            return own.diagnosis if own else None
        satisfied = [child for child in goal.children if self._is_satisfied(child)]
        if len(satisfied) != goal.node.record.min_count - 1:
            return None
        failed = [child for child in goal.children if not self._is_satisfied(child)]
        return self._only_cause(failed[0]) if len(failed) == 1 else None

    def _is_satisfied(self, goal: Goal) -> bool:
        own = self._own.get(goal.node.record.uid)
        return own is not None and own.satisfied

    # -- putting it together

    def _first_rejections(self) -> tuple[Rejection, ...]:
        for leaf in self._root.leaves():
            own = self._own.get(leaf.node.record.uid)
            if own is not None and own.rejections:
                return own.rejections
        return next((own.rejections for own in self._own.values() if own.rejections), ())

    def _diagnosis(self, verdict: Verdict, placed: int, rejections: tuple[Rejection, ...], proven: bool) -> Diagnosis:
        entry, trial = self._entry, self._trial
        assert entry.tree is not None
        groups = tuple(self._outcomes(entry.tree, 0, None))
        return Diagnosis(
            entry.key,
            entry.uid,
            verdict,
            trial.snapshot.revision,
            min_count=entry.tree.record.min_count,
            running=entry.running,
            succeeded=entry.succeeded,
            pending=len(entry.pods),
            placed=placed,
            rejections=rejections,
            pods=self._all_pods(groups, verdict),
            proven=proven,
            nodes=len(trial),
            groups=groups,
        )

    def _all_pods(self, groups: Sequence[GroupOutcome], verdict: Verdict) -> dict[Key, PodVerdict]:
        """Every member that is not placed: with its own reasons, or those of its group."""
        assert self._entry.tree is not None
        by_key = {outcome.key: outcome for outcome in groups if outcome.kind is EntryKind.POD_GROUP}
        found: dict[Key, PodVerdict] = {}
        for leaf in self._entry.tree.leaves():
            outcome = by_key[leaf.record.key]
            out = verdict is not Verdict.SCHEDULED or not outcome.satisfied or bool(outcome.blocker)
            lucky = PodVerdict((), len(self._trial), leaf.record.key.name)
            for pod in leaf.pending:
                own = self._pods.get(pod.key)
                if own is not None or out:
                    found[pod.key] = lucky if own is None or not own.rejections else _of_leaf(own, leaf)
        return found

    def _outcomes(self, node: GroupNode, depth: int, blocker: tuple[str, bool] | None) -> Iterator[GroupOutcome]:
        own = self._own.get(node.record.uid) or _Own(False)
        kind = EntryKind.POD_GROUP if node.is_leaf else EntryKind.COMPOSITE
        if node.is_leaf:
            exists = len(node.pending) + len(node.bound) + node.succeeded
            there = len(node.bound) + node.succeeded + own.placed
            left = len(node.pending) - own.placed
            failed: tuple[str, ...] = ()
        else:
            exists = sum(child.has_quorum for child in node.children)
            below = [(child, self._own.get(child.record.uid)) for child in node.children]
            lost = [child.record.key.name for child, its in below if its is None or not its.satisfied]
            there, left, failed = len(below) - len(lost), len(lost), tuple(lost)
        yield GroupOutcome(
            kind,
            node.record.key,
            depth,
            node.record.min_count,
            there,
            left,
            own.satisfied,
            exists,
            failed,
            own.domain,
            node.record.topology_key or "",
            own.rejections,
            own.nodes or len(self._trial),
            blocker[0] if blocker else "",
            bool(blocker and blocker[1]),
            own.diagnosis.shortfall if own.diagnosis is not None and not own.satisfied else None,
        )
        if not own.satisfied:
            blocker = (node.record.key.name, True)
        elif blocker is not None:
            blocker = (blocker[0], False)
        for child in node.children:
            yield from self._outcomes(child, depth + 1, blocker)


def _of_group(remedy: Remedy, name: str) -> Remedy:
    """A remedy of one group of several."""
    return remedy._replace(where=name) if remedy.action == "lower-min-count" else remedy


def _of_leaf(own: PodVerdict, leaf: GroupNode) -> PodVerdict:
    """A verdict that speaks of no nodes is told in the words of the group."""
    return own if own.rejections[0].reason < Reason.GATED else replace(own, group=leaf.record.key.name)


def _domain(trial: Trial, key: str, parent: Placement | None, value: str) -> Placement | None:
    domains = domains_of(trial.snapshot.nodes, key, parent)
    place = domains.place.get(value)
    return None if place is None else domains[place]
