"""Taints that say what is wrong with a node, and how long a pod stands them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from muster.api.instant import SECOND, Instant

NO_SCHEDULE, NO_EXECUTE = "NoSchedule", "NoExecute"
NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"

_BY_CONDITION: Mapping[str, Mapping[str, str]] = {
    "MemoryPressure": {"True": "node.kubernetes.io/memory-pressure"},
    "DiskPressure": {"True": "node.kubernetes.io/disk-pressure"},
    "PIDPressure": {"True": "node.kubernetes.io/pid-pressure"},
    "NetworkUnavailable": {"True": "node.kubernetes.io/network-unavailable"},
}
_MANAGED = frozenset(
    {NOT_READY, UNREACHABLE, UNSCHEDULABLE, *(key for keys in _BY_CONDITION.values() for key in keys.values())}
)


def managed_taints(
    node: Mapping[str, Any], taints: Sequence[Mapping[str, Any]], at: str
) -> list[Mapping[str, Any]] | None:
    """The node's taints as its conditions and cordon ask for; None if they are right already.

    A node that reports no Ready condition is taken for ready. Taints of others are kept.
    """
    wanted = set(_wanted(node))
    kept = [taint for taint in taints if _identity(taint) in wanted or not _is_ours(taint)]
    missing = wanted - {_identity(taint) for taint in taints}
    if not missing and len(kept) == len(taints):
        return None
    new: list[Mapping[str, Any]] = []
    for key, effect in sorted(missing):
        new.append({"key": key, "effect": effect, **({} if key == UNSCHEDULABLE else {"timeAdded": at})})
    return kept + new


def _wanted(node: Mapping[str, Any]) -> list[tuple[str, str]]:
    wanted = [(UNSCHEDULABLE, NO_SCHEDULE)] if (node.get("spec") or {}).get("unschedulable") else []
    for condition in (node.get("status") or {}).get("conditions") or ():
        type_, status = condition.get("type"), condition.get("status")
        if type_ == "Ready" and status != "True":
            key = UNREACHABLE if status == "Unknown" else NOT_READY
            wanted += [(key, NO_SCHEDULE), (key, NO_EXECUTE)]
        elif status in (pressure := _BY_CONDITION.get(type_, {})):
            wanted.append((pressure[status], NO_SCHEDULE))
    return wanted


def _identity(taint: Mapping[str, Any]) -> tuple[str, str]:
    return taint.get("key", ""), taint.get("effect", "")


def _is_ours(taint: Mapping[str, Any]) -> bool:
    """Users may set such taints by hand with other effects; those stay."""
    key, effect = _identity(taint)
    return key in _MANAGED and (effect == NO_SCHEDULE or (effect == NO_EXECUTE and key in (NOT_READY, UNREACHABLE)))


def tolerates(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    if toleration.get("effect") and toleration["effect"] != taint.get("effect"):
        return False
    key = toleration.get("key") or ""
    if toleration.get("operator", "Equal") == "Exists":
        return not key or key == taint.get("key")
    return bool(key == taint.get("key") and (toleration.get("value") or "") == (taint.get("value") or ""))


def evicted_at(
    taints: Sequence[Mapping[str, Any]], since: Sequence[Instant], tolerations: Sequence[Mapping[str, Any]]
) -> Instant | None:
    """When a pod must leave a node with these NoExecute taints; None: never, 0: at once.

    `since` says for each taint from when on the pod has had to tolerate it; the shortest toleration counts.
    """
    earliest: Instant | None = None
    for taint, began in zip(taints, since, strict=True):
        matching = [each for each in tolerations if tolerates(each, taint)]
        if not matching:
            return 0
        for toleration in matching:
            seconds = toleration.get("tolerationSeconds")
            if seconds is not None:
                at = began + max(0, seconds) * SECOND
                earliest = at if earliest is None else min(earliest, at)
    return earliest
