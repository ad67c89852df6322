"""The status of a StatefulSet: its pods counted, and which revision they have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from muster.controllers.apps.owner import Owner
from muster.controllers.apps.stateful.replicas import Replica, Wanted

COUNTS = ("replicas", "readyReplicas", "availableReplicas", "currentReplicas", "updatedReplicas")


def changes(
    owner: Owner, wanted: Wanted, there: Sequence[Replica], *, current: str, update: str, collisions: int
) -> dict[str, Any]:
    """What of the status is not as it should be."""
    new: dict[str, Any] = {
        "observedGeneration": owner.object.meta.get("generation") or 0,
        "collisionCount": collisions,
        "currentRevision": current,
        "updateRevision": update,
        **_counts(there, current, update),
    }
    if not wanted.on_delete and _updated(new, wanted):
        new["currentRevision"], new["currentReplicas"] = update, new["updatedReplicas"]
    old = owner.status
    return {key: value for key, value in new.items() if key not in old or old[key] != value}


def _counts(there: Sequence[Replica], current: str, update: str) -> Mapping[str, int]:
    staying = [each for each in there if not each.leaving]
    return {
        "replicas": len(there),
        "readyReplicas": sum(each.ready for each in there),
        "availableReplicas": sum(each.available for each in there),
        "currentReplicas": sum(each.revision == current for each in staying),
        "updatedReplicas": sum(each.revision == update for each in staying),
    }


def _updated(new: Mapping[str, Any], wanted: Wanted) -> bool:
    """Whether an update has reached every pod, and all are ready."""
    return all(new[field] == wanted.replicas for field in ("replicas", "readyReplicas", "updatedReplicas"))
