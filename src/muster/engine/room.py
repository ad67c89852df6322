"""What a hierarchy could use of the cluster's free room, summed over domains: bounds that prove "cannot fit"."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from muster.engine.counting import Counting
from muster.engine.goals import Goal
from muster.engine.problem import distinct_rows
from muster.engine.trial import Trial
from muster.model.topology import Placement, domains_of

Demand = tuple[tuple[int, int], ...]
"""(class, how many)"""


class Room:
    """The free room as it was before anything of the hierarchy was placed. None stands for the whole cluster."""

    def __init__(self, trial: Trial, root: Goal) -> None:
        self._trial = trial
        self._goals = tuple(root.all())
        classes = {some.cls for goal in root.leaves() for some in goal.members}
        self._slots = {cls: trial.state(cls).slots.copy() for cls in sorted(classes)}
        self._sums: dict[tuple[int, Placement | None], int] = {}
        self._free: dict[Placement | None, np.ndarray] = {}
        self._fits: dict[tuple[int, Placement | None], bool] = {}
        self._options: dict[tuple[int, Placement | None], tuple[Placement, ...]] = {}
        self._pinned = {goal.index: self._values(goal) for goal in self._goals if goal.key is not None}
        useful = np.logical_or.reduce(list(self._slots.values())) if self._slots else np.zeros(len(trial), dtype=bool)
        self._room = np.maximum(trial.ledger.capacity - trial.ledger.used, 0) * useful
        self.counting = Counting(trial, self._slots, self._room)
        self._alike: dict[tuple[int, Placement], object] = {}
        self._kinds: np.ndarray | None = None
        nodes = trial.snapshot.nodes
        bound = root.entry.bound if root.entry is not None else ()
        self._run_on = {n for pod in bound if pod.node and (n := nodes.index.get(pod.node)) is not None}
        self._counters = (
            () if trial.ties is None else tuple((counter, counts.copy()) for counter, counts in trial.ties.state())
        )
        self._keys = tuple(dict.fromkeys(goal.key for goal in self._goals if goal.key is not None))

    def _values(self, goal: Goal) -> frozenset[str]:
        """The label values of the nodes on which members run."""
        assert goal.key is not None and goal.entry is not None
        nodes = self._trial.snapshot.nodes
        held = (nodes.index.get(pod.node) for pod in goal.entry.bound if pod.node is not None)
        return frozenset(nodes.records[n].labels.get(goal.key, "") for n in held if n is not None)

    # -- sums

    def slots(self, cls: int, where: Placement | None) -> int:
        """How many pods of a class fit if they are alone."""
        known = self._sums.get((cls, where))
        if known is None:
            column = self._slots[cls]
            known = self._sums[cls, where] = int((column if where is None else column[where.nodes]).sum())
        return known

    def holds(self, demand: Demand, where: Placement | None) -> bool:
        """Whether so many of each class may fit together, by the sums."""
        if any(count > self.slots(cls, where) for cls, count in demand):
            return False
        if len(demand) < 2:
            return True
        free = self._free.get(where)
        if free is None:
            room = self._room if where is None else self._room[:, where.nodes]
            free = self._free[where] = room.sum(axis=1)
        amounts = self._trial.ledger.amounts
        asked = np.zeros_like(free)
        for cls, count in demand:
            asked += amounts[cls] * count
        return bool((asked <= free).all())

    def most(self, goal: Goal, where: Placement | None) -> int:
        """No more pods of a group than this fit inside its parent's placement."""
        if goal.key is None:
            return self._most_inside(goal, where)
        return max((self._most_inside(goal, domain) for domain in self.options(goal, where)), default=0)

    def _most_inside(self, goal: Goal, where: Placement | None) -> int:
        if goal.is_leaf:
            return sum(min(self.slots(some.cls, where), len(some)) for some in goal.members)
        wanted: dict[int, int] = {}
        for leaf in goal.leaves():
            for some in leaf.members:
                wanted[some.cls] = wanted.get(some.cls, 0) + len(some)
        together = sum(min(self.slots(cls, where), count) for cls, count in wanted.items())
        return min(together, sum(self.most(child, where) for child in goal.children))

    def fits(self, goal: Goal, where: Placement | None) -> bool:
        """Whether a group may be satisfied by itself inside a placement that it has been given."""
        known = self._fits.get((goal.index, where))
        if known is None:
            known = self._fits[goal.index, where] = self._may_fit(goal, where)
        return known

    def _may_fit(self, goal: Goal, where: Placement | None) -> bool:
        if goal.done:
            return True
        if goal.is_leaf:
            return sum(min(self.slots(some.cls, where), len(some)) for some in goal.members) >= goal.need
        able = sum(not child.done and self.has_option(child, where) for child in goal.children)
        return able >= goal.need and self.counting.allows(goal, where, self.options)

    def has_option(self, goal: Goal, where: Placement | None) -> bool:
        """Whether there is any place for a group inside its parent's placement."""
        return self.fits(goal, where) if goal.key is None else bool(self.options(goal, where))

    # -- domains

    def options(self, goal: Goal, where: Placement | None) -> tuple[Placement, ...]:
        """The domains that may hold a constrained group: where most of it fits, then the tightest, come first."""
        known = self._options.get((goal.index, where))
        if known is None:
            known = self._options[goal.index, where] = tuple(self._domains(goal, where))
        return known

    def _domains(self, goal: Goal, where: Placement | None) -> list[Placement]:
        assert goal.key is not None
        domains = domains_of(self._trial.snapshot.nodes, goal.key, where)
        if not len(domains):
            return []
        inside = {cls: self._trial.inside(self._slots[cls], where) for cls in self._classes(goal)}
        sums = {cls: domains.sums(column) for cls, column in inside.items()}
        most = np.zeros(len(domains), dtype=np.int64)
        spare = np.zeros(len(domains), dtype=np.int64)
        for leaf in goal.leaves():
            for some in leaf.members:
                most += np.minimum(sums[some.cls], len(some))
        for column in sums.values():
            spare += column
        pinned = self._pinned[goal.index]
        among = range(len(domains)) if not pinned else [domains.place[v] for v in pinned if v in domains.place]
        order = sorted(among, key=lambda d: (-min(int(most[d]), goal.wanted), int(spare[d]), d))
        return [domains[d] for d in order if int(most[d]) >= goal.least and self.fits(goal, domains[d])]

    def _classes(self, goal: Goal) -> Sequence[int]:
        return sorted({some.cls for leaf in goal.leaves() for some in leaf.members})

    # -- symmetry

    def likeness(self, goal: Goal, domain: Placement) -> object:
        """Equal for domains between which the choice makes no difference to a group, nor to the rest of the tree.

        That is so where the nodes look alike, lie alike in the domains of the keys used below, share the domains of
        every other key that the hierarchy uses, count alike to members that look at other pods, and no member runs
        there. Otherwise every domain is like itself only.
        """
        known = self._alike.get((goal.index, domain))
        if known is None:
            known = self._alike[goal.index, domain] = self._likeness(goal, domain)
        return known

    def _likeness(self, goal: Goal, domain: Placement) -> object:
        nodes = domain.nodes.tolist()
        if self._run_on and not self._run_on.isdisjoint(nodes):
            return id(domain)
        inner = tuple(dict.fromkeys(g.key for g in goal.all() if g.key is not None and g.key != goal.key))
        if len(inner) > 1:
            return id(domain)
        columns = self._trial.snapshot.nodes
        foreign = [columns.label(key).codes for key in self._keys if key != goal.key and key not in inner]
        counted = self._counted(domain)
        if counted is None:
            return id(domain)
        kinds = self._kinds_of_nodes()
        looks = [(int(kinds[n]), *(int(codes[n]) for codes in foreign)) for n in nodes]
        if not inner:
            return counted, tuple(sorted(looks))
        codes = columns.label(inner[0]).codes
        parts: dict[int, list[tuple[int, ...]]] = {}
        for n, look in zip(nodes, looks, strict=True):
            parts.setdefault(int(codes[n]), []).append(look)
        if any(code >= 0 and len(some) != int((codes == code).sum()) for code, some in parts.items()):
            return id(domain)
        bare = tuple(sorted(parts.pop(-1, ())))
        return counted, bare, tuple(sorted(tuple(sorted(some)) for some in parts.values()))

    def _counted(self, domain: Placement) -> object | None:
        """What the counts of pods by domain say of a placement as a whole; None: they look into it.

        Counts of each node by itself are part of how nodes look.
        """
        found: list[object] = []
        for counter, counts in self._counters:
            codes, every = counter.codes[domain.nodes], counter.codes
            first = int(codes[0])
            if (codes == first).all():
                own = first >= 0 and int((every == first).sum()) == len(codes)
                found.append(("own", int(counts[first])) if own else ("around", first))
            elif not (np.bincount(every[every >= 0])[codes[codes >= 0]] == 1).all():
                return None
        return tuple(found)

    def _kinds_of_nodes(self) -> np.ndarray:
        """int64[N]: nodes with equal free room that admit the same classes have the same number."""
        if self._kinds is None:
            alone = [
                column
                for counter, counts in self._counters
                for column in (counter.counted, counter.codes >= 0, counts[counter.codes])
            ]
            _, self._kinds = distinct_rows(np.vstack([self._room, *self._slots.values(), *alone]).T)
        return self._kinds
