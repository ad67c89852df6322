"""The check before a commit: would the plan still fit on the cluster as it is now?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from muster.engine.profile import Profile
from muster.engine.trial import Trial
from muster.model.records import NodeRecord, PodClass
from muster.model.snapshot import Snapshot


def in_one_domain(records: Iterable[NodeRecord | None], key: str) -> bool:
    """Whether these nodes all carry the label with one value (statement 36). None is a node that is gone: no matter."""
    values = {record.labels.get(key) for record in records if record is not None}
    return len(values) <= 1 and None not in values


def still_fits(snapshot: Snapshot, profile: Profile, placements: Iterable[tuple[PodClass, str]]) -> bool:
    """Whether these pods (class, node name) fit on the snapshot all together, by the filters and limits of a decision.

    False if a node is gone. Nominations are not looked at: the decision did, and one made since yields to it.
    """
    wanted = Counter(placements)
    index = snapshot.nodes.index
    if any(node not in index for _, node in wanted):
        return False
    trial = Trial(snapshot, profile, (pod_class for pod_class, _ in wanted))
    ledger = trial.ledger
    for (pod_class, name), count in wanted.items():
        cls, node = trial.index[pod_class], index[name]
        if trial.state(cls).slots[node] < count:
            return False
        ledger.place(cls, node, count)
    return True
