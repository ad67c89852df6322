"""Which changes among other pods may help an entry that waits because of them: by its terms, and which way they went.

| waits for | helped by |
|---|---|
| affinity | one more whom its terms mean; one fewer if it means itself, for then it may be the first |
| anti-affinity | one fewer whom a term means |
| anti-affinity of running pods | one fewer with a term that means it |
| spread (DoNotSchedule) | one more, fewer, or one that begins to terminate |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from typing import NamedTuple

from muster.model.neighbours import Holding, PodDemands, Selection
from muster.model.records import EntryKey, PodRecord
from muster.scheduler.entries import Entry
from muster.scheduler.neighbours import Move, Way

_UP, _DOWN = (Way.MORE, Way.ANY), (Way.FEWER, Way.ANY)
Spaces = Mapping[str, Mapping[str, str]]
Pods = Callable[[EntryKey], Iterable[PodRecord]]


class Company(NamedTuple):
    """An entry that waits because of other pods."""

    entry: Entry
    kept_out: bool
    """Terms of running pods keep it out."""
    proven: bool
    """There is no placement among these pods. If not, another attempt may go otherwise after any change."""

    @property
    def counts_by_taints(self) -> bool:
        """Whether a node that gets or loses a taint counts otherwise for one of its spread constraints."""
        demands = (cls.demands for cls in self.entry.classes if cls.demands is not None)
        return any(one.hard and one.honor_taints for asked in demands for one in asked.spread)


class Changes(NamedTuple):
    """What other pods' coming and going has changed."""

    selections: frozenset[Selection]
    more: frozenset[Selection]
    fewer: frozenset[Selection]
    freed: tuple[Holding, ...]
    """Terms that keep others out, and that fewer pods have."""

    @classmethod
    def of(cls, moved: Set[Move]) -> Changes:
        freed, ways = [], []
        for what, way in moved:
            if isinstance(what, Holding):
                if what.weight is None and way in _DOWN:
                    freed.append(what)
            else:
                ways.append((what, way))
        return cls(
            frozenset(what for what, _ in ways),
            frozenset(what for what, way in ways if way in _UP),
            frozenset(what for what, way in ways if way in _DOWN),
            tuple(freed),
        )

    def may_help(self, company: Company, pods: Pods, spaces: Spaces) -> bool:
        """Whether one of the entry's pods, the pending ones of which `pods` tells, may find a place now."""
        demands = {cls.demands for cls in company.entry.classes if cls.demands is not None}
        if not company.proven:
            concerned = any(not self.selections.isdisjoint(asked.selections()) for asked in demands)
            return concerned or (company.kept_out and bool(self.freed))
        if any(self._helps(asked) for asked in demands):
            return True
        freed = [(held.term.selector,) for held in self.freed] if company.kept_out else []
        missed = [near for near in map(_near, demands) if near in self.fewer]
        if not freed and not missed:
            return False
        return any(
            any(_means(selection, pod, spaces) for selection in freed)
            or (_near(pod.cls.demands) in missed and _means(_near(pod.cls.demands), pod, spaces))
            for pod in pods(company.entry.key)
        )

    def _helps(self, asked: PodDemands) -> bool:
        if _near(asked) in self.more or any((term.selector,) in self.fewer for term in asked.anti_affinity):
            return True
        return any(one.hard and (one.selector,) in self.selections for one in asked.spread)


def _near(asked: PodDemands | None) -> Selection:
    return () if asked is None else tuple(term.selector for term in asked.affinity)


def _means(selection: Selection, pod: PodRecord, spaces: Spaces) -> bool:
    labels = dict(pod.labels)
    return all(selector.selects(pod.key.namespace, labels, spaces) for selector in selection)
