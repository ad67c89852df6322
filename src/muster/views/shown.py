"""Parts of a diagnosis as JSON-able data: the nearest domain, what is lacking, the groups, the way to what failed."""

from __future__ import annotations

from typing import Any

from muster.model import wording
from muster.model.diagnosis import Diagnosis, GroupOutcome, Shortfall, Verdict
from muster.model.records import EntryKind

Row = dict[str, Any]


def nearest(diagnosis: Diagnosis) -> Row | None:
    """The domain that a constrained group is in or, where none suffices, the nearest; None without one."""
    if not diagnosis.domain:
        return None
    holds = diagnosis.running + diagnosis.succeeded + diagnosis.placed
    return {
        "key": diagnosis.topology_key,
        "value": diagnosis.domain,
        "looked": diagnosis.placements,
        "holds": holds,
        "short": max(diagnosis.min_count - holds, 0),
        "lacks": None if diagnosis.verdict is Verdict.SCHEDULED else shortfall(diagnosis.shortfall),
        "others": {value: slots for value, slots in diagnosis.deficits if value != diagnosis.domain},
    }


def shortfall(found: Shortfall | None) -> Row | None:
    """What is missing where it is nearest."""
    if found is None:
        return None
    if found.devices is not None:
        return {"devices": {name: value for name, value in found.devices._asdict().items() if value not in ("", 0)}}
    row: Row = {"resource": found.resource, "lacking": found.lacking, "where": found.where, "nodes": found.nodes}
    return {**row, "asked": found.asked, "most": found.most} if found.asked else row


def lacks(diagnosis: Diagnosis) -> list[Row]:
    """What each kind of unplaced members lacks, if there are several."""
    return [
        {
            "pod": lack.pod,
            "pods": lack.pods,
            "reasons": [
                {"reason": reason.name, "nodes": nodes, "detail": detail} for reason, nodes, detail in lack.rejections
            ],
            "shortfall": shortfall(lack.shortfall),
        }
        for lack in diagnosis.lacks
    ]


def group(outcome: GroupOutcome, diagnosis: Diagnosis) -> Row:
    """One group of a hierarchy."""
    return {
        "kind": outcome.kind.value,
        "name": outcome.key.name,
        "depth": outcome.depth,
        "minCount": outcome.min_count,
        "there": outcome.there,
        "satisfied": outcome.satisfied,
        "domain": {"key": outcome.topology_key, "value": outcome.domain} if outcome.domain else None,
        "reasons": [
            {"reason": reason.name, "nodes": nodes, "detail": detail} for reason, nodes, detail in outcome.rejections
        ],
        "lacks": shortfall(outcome.shortfall),
        "sentence": wording.outcome_message(diagnosis, outcome),
    }


def path(diagnosis: Diagnosis) -> list[Row]:
    """The groups from the root of a hierarchy to the one that fails by itself: at each step the first that does."""
    found: list[GroupOutcome] = []
    for outcome in diagnosis.groups:
        if (
            outcome.depth == len(found)
            and not outcome.satisfied
            and (not found or outcome.key.name in found[-1].failed)
        ):
            found.append(outcome)
    if not found or found[0].kind is EntryKind.POD_GROUP:
        return []
    return [{"kind": outcome.kind.value, "name": outcome.key.name} for outcome in found]
