"""How machines write without writing twice: what is under way, events, finalizers."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from muster.api import writes
from muster.api.calls import MERGE_PATCH, Request, Response
from muster.api.instant import SECOND, Instant, to_time
from muster.api.machine import Write
from muster.api.object import Object
from muster.workloadbuilder.names import hash_text

AGAIN: Instant = SECOND
"""How long a machine waits before it repeats a write that was refused."""


_LISTED = "listed"


class Pending:
    """Objects with a write under way: from the request until the watch has shown its result.

    A machine leaves such objects alone, since what it knows of them is about to be outdated. Deciding too early does no
    harm (writes are idempotent or conditional), it only costs a write.
    """

    def __init__(self) -> None:
        self._awaited: dict[Hashable, str | None] = {}
        self._seen: dict[Hashable, set[str]] = {}

    def __contains__(self, key: Hashable) -> bool:
        return key in self._awaited

    def __len__(self) -> int:
        return len(self._awaited)

    def begin(self, key: Hashable, revision: str = "") -> None:
        """A write of `key` is sent, made from what is known at `revision`."""
        self._awaited[key] = None
        self._seen[key] = {revision}

    def written(self, key: Hashable, response: Response) -> bool:
        """The write was carried out; True if the watch has already shown it, or may have."""
        if key not in self._awaited:
            return False
        body = response.body if isinstance(response.body, Mapping) else {}
        revision = (body.get("metadata") or {}).get("resourceVersion") or ""
        seen = self._seen[key]
        if _LISTED in seen or ((revision in seen) if revision else len(seen) > 1):
            self.forget(key)
            return True
        self._awaited[key] = revision
        return False

    def observed(self, key: Hashable, revision: str) -> None:
        """The watch has shown `key` at this revision."""
        if key not in self._awaited:
            return
        awaited = self._awaited[key]
        if awaited is None:
            self._seen[key].add(revision)
        elif awaited in ("", revision):
            self.forget(key)

    def outdated(self, key: Hashable) -> bool:
        """Whether the watch has shown another revision than the one that the write was made from."""
        return len(self._seen.get(key, ())) > 1

    def listed(self) -> None:
        """Everything was listed: what had been answered is in the list. What had not may be, and its revision may never
        be shown alone; so its answer will do."""
        for key, awaited in list(self._awaited.items()):
            if awaited is None:
                self._seen[key].add(_LISTED)
            else:
                self.forget(key)

    def forget(self, key: Hashable) -> None:
        """The object is gone, or its write was refused."""
        self._awaited.pop(key, None)
        self._seen.pop(key, None)


def without_finalizer(resource: str, obj: Object, finalizer: str) -> Request:
    """Takes one finalizer off; refused (409) if the object has changed meanwhile."""
    kept = [name for name in obj.meta.get("finalizers") or () if name != finalizer]
    body = {"metadata": {"finalizers": kept, "uid": obj.uid, "resourceVersion": obj.revision}}
    return writes.patch(resource, obj.namespace, obj.name, body, MERGE_PATCH)


def event(
    about: Mapping[str, Any], reason: str, message: str, *, component: str, now: Instant, warning: bool = False
) -> Write:
    """A v1 Event; named after what it says, so that saying it twice makes one object."""
    meta = about["metadata"]
    at = to_time(now)
    name = f"{meta['name']}.{hash_text(meta.get('uid', '') + component + reason + message)}"
    body = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": meta.get("namespace") or "default"},
        "involvedObject": {
            "apiVersion": about.get("apiVersion", ""),
            "kind": about.get("kind", ""),
            "name": meta["name"],
            "namespace": meta.get("namespace", ""),
            "uid": meta.get("uid", ""),
            "resourceVersion": meta.get("resourceVersion", ""),
        },
        "reason": reason,
        "message": message,
        "type": "Warning" if warning else "Normal",
        "count": 1,
        "firstTimestamp": at,
        "lastTimestamp": at,
        "source": {"component": component},
        "reportingComponent": component,
        "reportingInstance": component,
    }
    return Write(writes.create(body))


def controller_of(obj: Object) -> Mapping[str, Any] | None:
    """The owner reference that is the controller."""
    for reference in obj.meta.get("ownerReferences") or ():
        if reference.get("controller"):
            return reference  # type: ignore[no-any-return]
    return None


def with_condition(
    conditions: Sequence[Mapping[str, Any]],
    type_: str,
    status: str,
    now: Instant,
    *,
    reason: str = "",
    message: str | None = None,
) -> list[Mapping[str, Any]]:
    """The conditions with one set; its transition time changes only with its status.

    Conditions of the shared type (metav1.Condition) need a message, be it empty; None leaves it out.
    """
    kept: list[Mapping[str, Any]] = []
    at, place = to_time(now), None
    for condition in conditions:
        if condition.get("type") == type_:
            place = len(kept)
            if condition.get("status") == status:
                at = condition.get("lastTransitionTime") or at
        kept.append(condition)
    new: dict[str, Any] = {"type": type_, "status": status, "lastTransitionTime": at}
    if reason:
        new["reason"] = reason
    if message is not None:
        new["message"] = message
    if place is None:
        return [*kept, new]
    kept[place] = new
    return kept


def condition_status(obj: Object, type_: str) -> str | None:
    """Status of the condition of this type: "True", "False", "Unknown", or None if there is none."""
    for condition in (obj.raw.get("status") or {}).get("conditions") or ():
        if condition.get("type") == type_:
            return str(condition.get("status"))
    return None
