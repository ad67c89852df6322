"""What a plugin may be asked, what it may assume, and what it must return.

A plugin is a frozen record with a `name` and one or more of the protocols below. Everything it says about a class of
pods is a column over nodes. Two kinds of verdict exist, and the difference is what keeps decisions fast and exact:

* *static*: a function of the node itself and of the part of the class that `*_key` returns. Cached for as long as the
  node columns live; members of a group cannot change it.
* *counted* (`Capacity`): amounts that pods on a node add up to, against what the node has. Resources and host ports
  are counted; the engine adds and takes away by itself, so that a group's own members count without asking again.
* *dependent* (`Dependent`): on which pods run in which domain. The plugin says what is to be counted by domain, the
  engine counts, members placed and taken back included, and the plugin's rules judge by the counts.

A dynamic score may look at what is used on a node, and at nothing but that node, so that after a placement only the
touched nodes are scored again.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from muster.model.diagnosis import Reason, Shortfall
from muster.model.records import PodClass
from muster.model.snapshot import NodeColumns, Snapshot

BEST = 100
"""The highest score; the lowest is 0."""


@dataclass(frozen=True, slots=True)
class View:
    """`M` node columns as a plugin sees them. Nothing in it may be changed.

    A static filter or score sees all nodes in their declared order (`M == len(nodes)`). A dynamic score may see any
    selection of them, one node twice with different usage included: it must treat each column by itself.
    """

    nodes: NodeColumns
    row: Mapping[str, int]
    """Resource name -> row of `alloc` and `used`."""
    alloc: np.ndarray
    """int64[rows, M]: what the node has."""
    used: np.ndarray
    """int64[rows, M]: what pods on it hold, without the pod that is scored."""
    feasible: np.ndarray
    """bool[M]: passes every static filter (all True while filters run): what a score that compares nodes looks at."""
    accelerators: tuple[int, ...] = ()
    """The rows of accelerators (`resources.is_accelerator`)."""


class Relaxation(NamedTuple):
    """`nodes` (bool[M]) would pass the filter after one change, named as in `diagnosis.Remedy`.

    A change that several filters name by the same action and detail is one change that lifts all their rejections.
    """

    action: str
    detail: str
    nodes: np.ndarray


@runtime_checkable
class Filter(Protocol):
    """Says which nodes a class may use at all (static)."""

    @property
    def name(self) -> str: ...

    @property
    def reason(self) -> Reason: ...

    def filter_key(self, pod_class: PodClass) -> Hashable | None:
        """What of the class decides; None: every node passes, and `filter` is not asked."""
        ...

    def filter(self, pod_class: PodClass, view: View) -> np.ndarray:
        """bool[M], True where the class may run."""
        ...

    def details(self, pod_class: PodClass, view: View) -> Iterable[tuple[str, np.ndarray]]:
        """Why, finer than `reason`: (detail, bool[M]) pairs; a node in none of them counts without a detail."""
        ...

    def relaxations(self, pod_class: PodClass, view: View) -> Iterable[Relaxation]:
        """Single changes that would let more nodes pass."""
        ...


class Rows(NamedTuple):
    """Counted limits for one decision: a pod of class `c` takes `amounts[c, i]` of row `i`; zero asks nothing."""

    details: tuple[str, ...]
    """One per row: what a rejection names. Rows of one detail count as one."""
    capacity: np.ndarray
    """int64[rows, N]"""
    used: np.ndarray
    """int64[rows, N]: by pods on the node now; may exceed the capacity."""
    amounts: np.ndarray
    """int64[C, rows], not negative"""
    reasons: Mapping[tuple[int, int], Reason] = {}
    """(class, row) -> why the class is rejected there, where that is not the plugin's own reason."""


@runtime_checkable
class Capacity(Protocol):
    """Limits the number of pods on a node by something that adds up."""

    @property
    def name(self) -> str: ...

    @property
    def reason(self) -> Reason: ...

    def rows(self, snapshot: Snapshot, classes: Sequence[PodClass]) -> Rows:
        """The limits that matter to any of these classes."""
        ...


@runtime_checkable
class Score(Protocol):
    """Prefers some nodes that a class may use to others."""

    @property
    def name(self) -> str: ...

    @property
    def dynamic(self) -> bool:
        """Whether it looks at `view.used`. If not, the result is kept with the node columns."""
        ...

    def score_key(self, pod_class: PodClass) -> Hashable | None:
        """What of the class decides; None: no opinion, and `score` is not asked."""
        ...

    def score(self, pod_class: PodClass, view: View) -> np.ndarray:
        """int64[M], 0..100, more is better. A static one may compare nodes among `view.feasible`."""
        ...


class Counter(NamedTuple):
    """Pods of some description, counted by domain. Nothing in it is changed; the engine counts on a copy."""

    codes: np.ndarray
    """int[N]: the domain of each node, -1 where it is in none."""
    counted: np.ndarray
    """bool[N]: whether pods on the node count."""
    counts: np.ndarray
    """int64[D + 1]: now, by domain; the last is always 0, so that code -1 finds it."""
    adds: np.ndarray
    """int64[C]: what a pod of each class adds where it is placed."""


class Rule(Protocol):
    """What a dependent plugin demands or prefers for one class. `counts` are those of all counters of its plugin."""

    @property
    def filters(self) -> bool:
        """Whether it rejects nodes at all."""
        ...

    @property
    def opens(self) -> bool:
        """Whether a further pod can let a node pass that was rejected: then the order of the members matters."""
        ...

    @property
    def scores(self) -> bool: ...

    def rejected(self, counts: Sequence[np.ndarray]) -> Iterable[tuple[Reason, np.ndarray]]:
        """(reason, bool[N] of the nodes that it rejects for it); a node counts under the first."""
        ...

    def score(self, counts: Sequence[np.ndarray], feasible: np.ndarray) -> np.ndarray:
        """int64[N], 0..100, more is better; nodes are compared among the feasible ones (bool[N])."""
        ...


class Skew(NamedTuple):
    """No domain may come to count more than `limit` above the one that counts least."""

    counter: int
    limit: int
    itself: int
    """1 where the pod is among those that are counted, else 0."""
    domains: np.ndarray
    """bool[D + 1]: those that are compared."""
    enough: bool
    """False: there are so few that the least counts as 0."""


class Terms(NamedTuple):
    """What a rule demands of the domains that a node is in, in words that a bound can be computed from."""

    near: tuple[int, ...] = ()
    """Each of these counters must count somebody there,"""
    first: bool = False
    """or none of them anybody anywhere, if the pod is of those that may be the first."""
    apart: tuple[int, ...] = ()
    """None of these may count anybody there."""
    skews: tuple[Skew, ...] = ()


@runtime_checkable
class Spelled(Protocol):
    """A rule that can also say its demands as terms. Of other rules, bounds know nothing."""

    @property
    def terms(self) -> Terms: ...


class Ceiling(NamedTuple):
    """Whatever the rules say, pods that are placed take no more than `most` in all, wherever they are."""

    amounts: np.ndarray
    """[C], whole numbers of any size: what a pod of each class takes."""
    most: int


class Relations(NamedTuple):
    """What a dependent plugin has to say in one decision."""

    counters: tuple[Counter, ...] = ()
    rules: Mapping[int, Rule] = {}
    """By class; classes without one depend on nobody."""
    ceilings: tuple[Ceiling, ...] = ()
    """What follows for the number of pods: it may prove at once that there is no placement."""


@runtime_checkable
class Dependent(Protocol):
    """Judges nodes by the pods that run in their domain, members of the group that are placed already included.

    `classes` say by `matched` which selections mean their pods (`engine.kinds`).
    """

    @property
    def name(self) -> str: ...

    def relate(self, snapshot: Snapshot, classes: Sequence[PodClass]) -> Relations: ...


@runtime_checkable
class Nearest(Protocol):
    """Can tell what its rejections lack where they come nearest to passing; asked for explanations only."""

    @property
    def name(self) -> str: ...

    def nearest(self, snapshot: Snapshot, pod_class: PodClass, usable: np.ndarray) -> Shortfall | None:
        """What one more pod of the class lacks on the best of the usable nodes (bool[N]); None: nothing that it knows
        of."""
        ...


Plugin = Filter | Capacity | Score | Dependent
