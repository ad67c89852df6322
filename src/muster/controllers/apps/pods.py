"""Pods of an owner: which count, which are available, which one can spare, and how they are made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from muster.api.instant import SECOND, Instant, from_time
from muster.api.object import Object
from muster.controllers.pod_status import TERMINAL, deleted, is_ready, node_of, phase

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


def is_active(pod: Object) -> bool:
    """Neither ended nor being deleted."""
    return phase(pod) not in TERMINAL and not deleted(pod)


def ready_since(pod: Object) -> Instant | None:
    """When it became ready; None while it is not."""
    if not is_ready(pod):
        return None
    for condition in pod.raw["status"]["conditions"]:
        if condition.get("type") == "Ready":
            text = condition.get("lastTransitionTime")
            return from_time(text) if text else 0
    return None


def available_at(pod: Object, min_ready_seconds: int) -> Instant | None:
    """When it counts as available, having been ready for so long; None while it is not ready."""
    since = ready_since(pod)
    return None if since is None else since + min_ready_seconds * SECOND


class Count(NamedTuple):
    """Pods by what can be said of them. `next`: when another one becomes available, if nothing changes."""

    there: int
    labelled: int
    ready: int
    available: int
    next: Instant | None


def count(
    pods: Iterable[Object],
    labels: Mapping[str, str],
    min_ready_seconds: int,
    now: Instant,
    leaving: Callable[[Object], bool] = lambda pod: False,
) -> Count:
    """Counts pods; `labels` are those of the template, which all of the newest pods have.

    Those that are `leaving` are there, but nobody should count on them any more: neither ready nor available.
    """
    there = labelled = ready = available = 0
    soon: Instant | None = None
    for pod in pods:
        there += 1
        has = pod.meta.get("labels") or {}
        labelled += all(has.get(key) == value for key, value in labels.items())
        at = available_at(pod, min_ready_seconds)
        if at is None or leaving(pod):
            continue
        ready += 1
        if at <= now:
            available += 1
        else:
            soon = at if soon is None else min(soon, at)
    return Count(there, labelled, ready, available, soon)


def dispensable(pods: Sequence[Object], beside: Mapping[str, int]) -> list[Object]:
    """The pods, those that one can best do without first.

    Without a node before with, Pending before Running, not ready before ready, cheap to delete before dear, on nodes
    with many of the kind before alone (`beside`: how many of the related pods each node has), ready for a short time
    before long, restarted often before rarely, young before old.
    """
    return sorted(pods, key=lambda pod: _worth(pod, beside))


def _worth(pod: Object, beside: Mapping[str, int]) -> tuple[Any, ...]:
    since = ready_since(pod)
    statuses = (pod.raw.get("status") or {}).get("containerStatuses") or ()
    restarts = max((each.get("restartCount") or 0 for each in statuses), default=0)
    created = pod.meta.get("creationTimestamp") or ""
    return (
        bool(node_of(pod)),
        _PHASES.get(phase(pod), 1),
        since is not None,
        _cost(pod),
        -beside.get(node_of(pod), 0),
        -(since or 0),
        -restarts,
        -(from_time(created) if created else 0),
        pod.name,
    )


def _cost(pod: Object) -> int:
    text = (pod.meta.get("annotations") or {}).get(DELETION_COST) or "0"
    try:
        return int(text)
    except ValueError:
        return 0


def by_node(pods: Iterable[Object]) -> dict[str, int]:
    """How many of the pods each node has."""
    found: dict[str, int] = {}
    for pod in pods:
        node = node_of(pod)
        found[node] = found.get(node, 0) + 1
    return found


def from_template(
    template: Mapping[str, Any], name: str, namespace: str, owner: Mapping[str, Any], prefix: str
) -> dict[str, Any]:
    """A pod as the template has it. Its spec is shared with the template, not copied.

    `prefix`: what pods of this owner are named after.
    """
    given = template.get("metadata") or {}
    meta: dict[str, Any] = {
        "name": name,
        "generateName": prefix,
        "namespace": namespace,
        "labels": given.get("labels") or {},
        "ownerReferences": [owner],
    }
    for key in ("annotations", "finalizers"):
        if given.get(key):
            meta[key] = given[key]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": template.get("spec") or {}}
