"""Which pods are alike in one decision: those of one class that the same selections in play mean.

A selection is in play if a pod to be decided asks about it, or a running pod has a term with it. Labels that no
selection in play looks at, such as a completion index, do not tell pods apart.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from muster.model.neighbours import Labels, Selection, SelectionIndex
from muster.model.records import PodClass, PodRecord
from muster.model.snapshot import Snapshot


class Kinds:
    """The class of each pod as far as this decision can tell it."""

    __slots__ = ("_index", "_known", "_meant", "_spaces", "plain")

    def __init__(self, snapshot: Snapshot, pods: Iterable[PodRecord]) -> None:
        classes = {id(pod.cls): pod.cls for pod in pods}.values()
        demands = [pod_class.demands for pod_class in classes if pod_class.demands is not None]
        running = snapshot.neighbours.holding
        self.plain = not demands and not running
        """Nobody asks about anybody: a pod's class is its record's."""
        if self.plain:
            return
        in_play: dict[Selection, None] = {}
        for asked in demands:
            in_play.update(dict.fromkeys(asked.selections()))
            in_play.update(dict.fromkeys((holding.term.selector,) for holding in asked.holdings()))
        in_play.update(dict.fromkeys((holding.term.selector,) for holding in running))
        self._index = SelectionIndex(in_play)
        self._spaces = snapshot.neighbours.spaces
        self._meant: dict[tuple[str, Labels], tuple[Selection, ...]] = {}
        self._known: dict[tuple[int, tuple[Selection, ...]], PodClass] = {}

    def of(self, pod: PodRecord) -> PodClass:
        if self.plain:
            return pod.cls
        who = pod.key.namespace, pod.labels
        meant = self._meant.get(who)
        if meant is None:
            found = self._index.meant(*who, self._spaces)
            meant = self._meant[who] = tuple(sorted(found, key=repr)) if len(found) > 1 else found
        if not meant:
            return pod.cls
        known = self._known.get((id(pod.cls), meant))
        if known is None:
            known = self._known[id(pod.cls), meant] = replace(pod.cls, matched=meant)
        return known
