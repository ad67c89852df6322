"""The check before a commit: would the plan still fit on the cluster as it is now?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from muster.engine.kinds import Kinds
from muster.engine.profile import Profile
from muster.engine.trial import Trial
from muster.model.records import NodeRecord, PodRecord
from muster.model.snapshot import Snapshot

_FEW = 8
"""Of so many pods every order is tried."""


def in_one_domain(records: Iterable[NodeRecord | None], key: str) -> bool:
    """Whether these nodes all carry the label with one value (statement 36). None is a node that is gone: no matter."""
    values = {record.labels.get(key) for record in records if record is not None}
    return len(values) <= 1 and None not in values


def still_fits(snapshot: Snapshot, profile: Profile, placements: Iterable[tuple[PodRecord, str]]) -> bool:
    """Whether these pods (each with a node's name) fit on the snapshot all together, by the filters of a decision.

    False if a node is gone. Nominations are not looked at: the decision did, and one made since yields to it.
    """
    pods = tuple(placements)
    kinds = Kinds(snapshot, (pod for pod, _ in pods))
    wanted = Counter((kinds.of(pod), node) for pod, node in pods)
    index = snapshot.nodes.index
    if any(node not in index for _, node in wanted):
        return False
    trial = Trial(snapshot, profile, (pod_class for pod_class, _ in wanted), kinds)
    if trial.ties is not None:
        return _fit_in_turn(trial, [(trial.index[pod_class], index[node]) for pod_class, node in wanted.elements()])
    ledger = trial.ledger
    for (pod_class, name), count in wanted.items():
        cls, node = trial.index[pod_class], index[name]
        if trial.state(cls).slots[node] < count:
            return False
        ledger.place(cls, node, count)
    return True


def _fit_in_turn(trial: Trial, placements: list[tuple[int, int]]) -> bool:
    """Whether there is an order for these (class, node), each passing with the earlier ones in place.

    Of many pods not every order is tried; where none is found, the plan is decided anew.
    """
    left = placements
    while left:
        closed: list[tuple[int, int]] = []
        for cls, node in left:
            if trial.fits(cls, node):
                trial.ledger.place(cls, node)
            else:
                closed.append((cls, node))
        if len(closed) == len(left):
            trial.ledger.rollback(0)
            return len(placements) <= _FEW and _fit_somehow(trial, tuple(sorted(placements)), set())
        left = closed
    return True


def _fit_somehow(trial: Trial, left: tuple[tuple[int, int], ...], dead: set[tuple[tuple[int, int], ...]]) -> bool:
    if not left or left in dead:
        return not left
    dead.add(left)
    start = trial.ledger.checkpoint()
    for step in dict.fromkeys(left):
        if trial.fits(*step):
            trial.ledger.place(*step)
            at = left.index(step)
            if _fit_somehow(trial, left[:at] + left[at + 1 :], dead):
                return True
            trial.ledger.rollback(start)
    return False
