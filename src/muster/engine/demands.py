"""What rules on pods by domain demand of every placement that can be made in some order, as rows of a program.

Each row is necessary and none is sufficient: whether there is an order for what comes out is yet to be seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from muster.engine.extension import Skew
from muster.engine.program import Program
from muster.engine.trial import Trial

Spots = Mapping[int, Sequence[tuple[int, int]]]
"""Class -> (node, column that says how many of it go there)."""


def closed(trial: Trial, cls: int) -> np.ndarray:
    """bool[M]: nodes that no member placed before can open to the class."""
    found, ties = np.zeros(len(trial), dtype=bool), trial.ties
    for plugin, terms in ties.terms(cls) if ties is not None else ():
        assert ties is not None
        for place in (*terms.near, *(skew.counter for skew in terms.skews)):
            found |= trial.cut(ties.counted(plugin, place)[0].codes) < 0
        for place in terms.apart:
            counter, counts = ties.counted(plugin, place)
            found |= counts[trial.cut(counter.codes)] > 0
    return found


class _Count(NamedTuple):
    """A counter, cut down to the nodes of the world."""

    codes: np.ndarray
    counted: np.ndarray
    counts: np.ndarray
    adds: np.ndarray

    @property
    def name(self) -> bytes:
        """Equal for counters of the same domains."""
        return self.codes.tobytes()


class Demands:
    """Writes the demands of all classes into a program."""

    def __init__(self, trial: Trial, program: Program, spots: Spots) -> None:
        assert trial.ties is not None
        self._trial, self._ties, self._program = trial, trial.ties, program
        self._spots = {cls: some for cls, some in spots.items() if some}
        self._counts: dict[tuple[int, int], _Count] = {}
        self._present: dict[object, int] = {}
        self._near: dict[tuple[int, tuple[int, ...]], list[int]] = {}
        self._first: set[tuple[int, int]] = set()
        self._bars: dict[int, list[_Count]] = {}
        self._skews: dict[object, tuple[int, Skew, list[int]]] = {}
        for cls in self._spots:
            self._read(cls)

    def write(self) -> None:
        self._apart()
        for (plugin, places), classes in self._near.items():
            self._together(plugin, places, classes)
        for plugin, skew, classes in self._skews.values():
            self._even(plugin, skew, classes)

    def _read(self, cls: int) -> None:
        for plugin, terms in self._ties.terms(cls):
            if terms.near:
                self._near.setdefault((plugin, terms.near), []).append(cls)
                if terms.first:
                    self._first.add((plugin, cls))
            self._bars.setdefault(cls, []).extend(self._count(plugin, place) for place in terms.apart)
            for skew in terms.skews:
                alike = (plugin, skew.counter, skew.limit, skew.domains.tobytes(), skew.enough)
                self._skews.setdefault(alike, (plugin, skew, []))[2].append(cls)

    def _count(self, plugin: int, place: int) -> _Count:
        known = self._counts.get((plugin, place))
        if known is None:
            counter, counts = self._ties.counted(plugin, place)
            codes, counted = self._trial.cut(counter.codes), self._trial.cut(counter.counted)
            known = self._counts[plugin, place] = _Count(codes, counted, counts, counter.adds)
        return known

    def _columns(self, classes: Iterable[int], codes: np.ndarray, domain: int) -> list[int]:
        return [column for cls in classes for node, column in self._spots.get(cls, ()) if codes[node] == domain]

    def _adding(self, count: _Count, domain: int, classes: Iterable[int]) -> dict[int, int]:
        """What members of these classes add to a domain."""
        return {
            column: int(count.adds[cls])
            for cls in classes
            if count.adds[cls]
            for node, column in self._spots.get(cls, ())
            if count.codes[node] == domain and count.counted[node]
        }

    def _here(self, count: _Count, domain: int, classes: Sequence[int]) -> int | None:
        """A column that is 1 where any of the classes has a member in the domain; None where none can."""
        name = count.name, domain, tuple(classes)
        if name not in self._present:
            columns = self._columns(classes, count.codes, domain)
            if not columns:
                return None
            here = self._present[name] = self._program.column()
            for column in columns:
                self._program.at_most({column: 1, here: -self._program.upper[column]}, 0)
        return self._present[name]

    # -- who keeps whom out

    def _apart(self) -> None:
        """Those who keep each other out, whoever comes first, are never in one domain."""
        barred: dict[tuple[int, int], set[bytes]] = {}
        domains: dict[bytes, _Count] = {}
        for cls, counts in self._bars.items():
            for count in counts:
                if (count.counted | (count.codes < 0)).all():
                    domains.setdefault(count.name, count)
                    for other in self._spots:
                        if count.adds[other]:
                            barred.setdefault((cls, other), set()).add(count.name)
        for name, count in domains.items():
            alone = [cls for cls in self._spots if name in barred.get((cls, cls), ())]
            clique: list[int] = []
            for cls in alone:
                if all(_each_other(barred, name, cls, other) for other in clique):
                    clique.append(cls)
            pairs = [
                (one, other)
                for one, other in combinations(self._spots, 2)
                if not (one in clique and other in clique) and _each_other(barred, name, one, other)
            ]
            for domain in np.unique(count.codes[count.codes >= 0]).tolist():
                for some in (clique, *([cls] for cls in alone if cls not in clique)):
                    self._program.at_most(dict.fromkeys(self._columns(some, count.codes, domain), 1), 1)
                for one, other in pairs:
                    here, there = self._here(count, domain, [one]), self._here(count, domain, [other])
                    if here is not None and there is not None:
                        self._program.at_most({here: 1, there: 1}, 1)

    # -- who wants whom

    def _together(self, plugin: int, places: tuple[int, ...], classes: Sequence[int]) -> None:
        """In every domain of theirs is somebody whom they want and who does not want the same, or one who began."""
        counts = [self._count(plugin, place) for place in places]
        began = self._beginnings(plugin, counts, classes)
        for at, count in enumerate(counts):
            others = [cls for cls in self._spots if cls not in classes]
            for domain in np.unique(count.codes[count.codes >= 0]).tolist():
                if count.counts[domain]:
                    continue
                company = self._adding(count, domain, others)
                company.update((column, 1) for where, column in began if where[at] == domain)
                for cls in classes:
                    here = self._here(count, domain, [cls])
                    if here is not None:
                        self._program.at_most({here: 1, **{column: -adds for column, adds in company.items()}}, 0)

    def _beginnings(
        self, plugin: int, counts: Sequence[_Count], classes: Sequence[int]
    ) -> list[tuple[tuple[int, ...], int]]:
        """(a domain of each key, column: whether the first of the classes went there)."""
        able = [cls for cls in classes if (plugin, cls) in self._first]
        if any(count.counts.any() for count in counts):
            return []
        found: dict[tuple[int, ...], list[int]] = {}
        for cls in able:
            for node, column in self._spots[cls]:
                found.setdefault(tuple(int(count.codes[node]) for count in counts), []).append(column)
        began = [(where, self._program.column()) for where in found]
        for (_, column), members in zip(began, found.values(), strict=True):
            self._program.at_most({column: 1, **dict.fromkeys(members, -1)}, 0)
        self._program.at_most({column: 1 for _, column in began}, 1)
        return began

    # -- who is spread

    def _even(self, plugin: int, skew: Skew, classes: Sequence[int]) -> None:
        """The last of them who came into a domain was within the skew, and the emptiest has only grown since then."""
        count, program = self._count(plugin, skew.counter), self._program
        most = sum(program.upper[column] for some in self._spots.values() for _, column in some)
        top = most + int(count.counts.max(initial=0))
        fewest = program.column(top if skew.enough and skew.domains.any() else 0)
        for domain in np.flatnonzero(skew.domains).tolist() if skew.enough else ():
            there = self._adding(count, domain, self._spots)
            program.at_most({fewest: 1, **{column: -adds for column, adds in there.items()}}, int(count.counts[domain]))
        themselves = [cls for cls in classes if count.adds[cls]]
        for domain in np.unique(count.codes[count.codes >= 0]).tolist():
            here = self._here(count, domain, classes)
            if here is None:
                continue
            running, own = int(count.counts[domain]), self._adding(count, domain, themselves)
            # The last one counts itself, or is counted among those before it.
            itself = int(len(themselves) == len(classes) and not own and skew.itself)
            slack = sum(factor * program.upper[column] for column, factor in own.items()) + running + 1
            program.at_most({**own, here: slack, fewest: -1}, skew.limit - running - itself + slack)


def _each_other(barred: Mapping[tuple[int, int], set[bytes]], name: bytes, one: int, other: int) -> bool:
    return name in barred.get((one, other), ()) and name in barred.get((other, one), ())
