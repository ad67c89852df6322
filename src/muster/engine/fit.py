"""The check before a commit: would the plan still fit on the cluster as it is now?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from muster.engine.profile import Profile
from muster.engine.trial import Trial
from muster.model.plan import Bind
from muster.model.records import PodClass
from muster.model.snapshot import Snapshot


def still_fits(snapshot: Snapshot, binds: Iterable[tuple[Bind, PodClass]], profile: Profile) -> frozenset[str]:
    """Names of the nodes that cannot take what the plan gives them any more; empty: the plan holds.

    The same filters and limits as in the decision, over the touched nodes, for all binds together. Nominations are not
    looked at: the decision did, and those made since yield to what was decided before them.
    """
    index = snapshot.nodes.index
    wanted = Counter((bind.node, pod_class) for bind, pod_class in binds)
    gone = frozenset(node for node, _ in wanted if node not in index)
    trial = Trial(snapshot, profile, (pod_class for _, pod_class in wanted))
    ledger = trial.ledger
    refused = np.zeros(len(snapshot.nodes), dtype=bool)
    for (node, pod_class), count in wanted.items():
        if node in gone:
            continue
        cls, n = trial.index[pod_class], index[node]
        asked = ledger.amounts[cls]
        short = (asked > 0) & (ledger.capacity[:, n] - ledger.used[:, n] < asked * count)
        refused[n] |= bool(short.any()) or not trial.state(cls).feasible.passes[n]
        ledger.place(cls, n, count)
    return gone | {snapshot.nodes.names[n] for n in np.flatnonzero(refused).tolist()}
