"""A hierarchy as goals: what each group still needs, what may be tried at all, and where running members pin it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from muster.engine.compact import levels_below
from muster.engine.members import Members, members_by_class
from muster.engine.placement import Candidates, Refusal, candidates
from muster.engine.trial import Trial
from muster.model.records import EntryKey, EntryKind, GroupNode, GroupRecord, PodRecord, QueueEntry


@dataclass(slots=True, eq=False)
class Goal:
    """One group of the hierarchy in this attempt.

    A group without quorum is not `possible`: no work is spent on it (statement 17), but what runs of it stays.
    """

    node: GroupNode
    depth: int
    possible: bool
    need: int
    """Leaf: members to be placed for its minimum; composite group: children to be satisfied. 0: nothing."""
    children: tuple[Goal, ...] = ()
    """Those that are possible."""
    members: Sequence[Members] = ()
    """Pending pods by class: of a leaf, or of all leaves below a constrained composite group."""
    wanted: int = 0
    """Pending pods of all possible leaves below."""
    levels: tuple[str, ...] = ()
    """Topology levels below the nearest constraint: a leaf is kept together there."""
    entry: QueueEntry | None = None
    """The group as if it were an entry of its own: all its pending and running pods."""
    awaited: int = 0
    """Members that the minimums of leaves below call for and that are not there to be tried yet."""
    whole: bool = True
    """Whether everything below may be tried."""
    index: int = field(default=0)
    """Its place in the hierarchy."""

    @property
    def key(self) -> str | None:
        """The label key of its topology constraint."""
        return self.node.record.topology_key

    @property
    def is_leaf(self) -> bool:
        return self.node.is_leaf

    @property
    def least(self) -> int:
        """How many pods must be placed at least for it to be satisfied."""
        if self.is_leaf:
            return self.need
        return sum(sorted(goal.least for goal in self.children if not goal.done)[: self.need])

    @property
    def done(self) -> bool:
        """Whether it has its minimum with what runs."""
        return self.need == 0

    def leaves(self) -> Iterator[Goal]:
        """The leaves that may be tried, in order."""
        if self.is_leaf:
            yield self
        for child in self.children:
            yield from child.leaves()

    def all(self) -> Iterator[Goal]:
        """It and everything below that may be tried."""
        yield self
        for child in self.children:
            yield from child.all()

    def domains(self, trial: Trial) -> Candidates | Refusal:
        """Where it may go inside the placement of this world (statements 35-37)."""
        assert self.entry is not None
        return candidates(trial, self.entry)


def goal_of(trial: Trial, entry: QueueEntry) -> Goal:
    """The goals of a hierarchy's entry."""
    assert entry.tree is not None
    levels = trial.snapshot.nodes.levels
    root = _goal(trial, entry.tree, 0, levels)
    for index, goal in enumerate(root.all()):
        goal.index = index
    return root


def _goal(trial: Trial, node: GroupNode, depth: int, levels: tuple[str, ...]) -> Goal:
    if node.record.topology_key is not None:
        levels = levels_below(trial.snapshot.nodes.levels, node.record.topology_key)
    if node.is_leaf:
        need = max(node.record.min_count - len(node.bound) - node.succeeded, 0)
        possible = len(node.pending) >= need and (need == 0 or bool(node.pending))
        members = members_by_class(trial, node.pending) if node.pending and possible else ()
        wanted = len(node.pending) if possible else 0
        entry = _entry(node, node.pending, node.bound, need)
        return Goal(node, depth, possible, need, (), members, wanted, levels, entry)
    below = [_goal(trial, child, depth + 1, levels) for child in node.children]
    children = tuple(goal for goal in below if goal.possible)
    need = max(node.record.min_count - sum(goal.done for goal in children), 0)
    pending = tuple(pod for goal in children if goal.entry for pod in goal.entry.pods)
    bound = tuple(pod for leaf in node.leaves() for pod in leaf.bound)
    possible = len(children) >= node.record.min_count
    wanted = sum(goal.wanted for goal in children)
    whole = all(goal.possible and goal.whole for goal in below)
    awaited = sum(goal.awaited if goal.possible else _awaited(goal.node) for goal in below)
    crowd = members_by_class(trial, pending) if pending and node.record.topology_key is not None else ()
    return Goal(
        node, depth, possible, need, children, crowd, wanted, levels, _entry(node, pending, bound, need), awaited, whole
    )


def _awaited(node: GroupNode) -> int:
    return sum(max(leaf.record.min_count - len(leaf.bound) - leaf.succeeded, 0) for leaf in node.leaves())


def _entry(node: GroupNode, pending: tuple[PodRecord, ...], bound: tuple[PodRecord, ...], need: int) -> QueueEntry:
    """A group of the hierarchy in the shape of a flat one, for the choice among domains."""
    record = node.record
    flat = GroupRecord(
        record.key,
        record.uid,
        record.generation,
        record.policy,
        record.min_count if node.is_leaf else len(bound) + need,
        record.priority,
        record.created,
        record.topology_key,
    )
    kind = EntryKind.POD_GROUP if node.is_leaf else EntryKind.COMPOSITE
    return QueueEntry(
        EntryKey(kind, record.key),
        record.uid,
        record.priority,
        0,
        0,
        pending,
        flat,
        len(bound),
        node.succeeded,
        bound,
    )
