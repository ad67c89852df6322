"""The check before a commit: would the plan still fit on the cluster as it is now?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from muster.engine.kinds import Kinds
from muster.engine.profile import Profile
from muster.engine.trial import Trial
from muster.model.records import NodeRecord, PodRecord
from muster.model.snapshot import Snapshot


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
    """Whether there is an order for these (class, node): whoever may go next goes, and may open the way for others."""
    left = placements
    while left:
        closed: list[tuple[int, int]] = []
        for cls, node in left:
            if trial.fits(cls, node):
                trial.ledger.place(cls, node)
            else:
                closed.append((cls, node))
        if len(closed) == len(left):
            return False
        left = closed
    return True
