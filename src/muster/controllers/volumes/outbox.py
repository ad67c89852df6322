"""What the volume controller writes: one write per object at a time, one event per claim until another is due."""

from __future__ import annotations

from typing import Any

from muster.api import writes
from muster.api.instant import Instant
from muster.api.machine import Effect, Write
from muster.api.object import Object
from muster.controllers.volumes.known import CLAIMS, VOLUMES
from muster.controllers.writing import Pending, event

CLAIM, VOLUME = "claim", "volume"
COMPONENT = "persistentvolume-controller"


class Outbox:
    """Makes writes and notes them as pending, and events that are not said twice."""

    def __init__(self) -> None:
        self.pending = Pending()
        self._said: dict[str, tuple[str, str]] = {}

    def forget(self, uid: str) -> None:
        """The claim has gone."""
        self._said.pop(uid, None)

    def create_volume(self, made: dict[str, Any]) -> list[Effect]:
        tag = (VOLUME, made["metadata"]["name"])
        self.pending.begin(tag)
        return [Write(writes.create(made), tag)]

    def patch_volume(self, volume: Object, body: dict[str, Any]) -> list[Effect]:
        """Refused if anyone has changed the volume: two must not reserve it for two claims."""
        meta = {**body.get("metadata", {}), "uid": volume.uid, "resourceVersion": volume.revision}
        return self.send(VOLUMES, volume, {**body, "metadata": meta})

    def patch_claim(self, claim: Object, body: dict[str, Any]) -> list[Effect]:
        return self.send(CLAIMS, claim, {**body, "metadata": {**body.get("metadata", {}), "uid": claim.uid}})

    def claim_status(self, claim: Object, status: dict[str, Any]) -> list[Effect]:
        return self.send(CLAIMS, claim, {"metadata": {"uid": claim.uid}, "status": status}, "status")

    def send(self, resource: str, obj: Object, body: Any, subresource: str | None = None) -> list[Effect]:
        tag = tag_of(resource, obj)
        self.pending.begin(tag, obj.revision)
        return [Write(writes.patch(resource, obj.namespace, obj.name, body, subresource=subresource), tag)]

    def say(self, claim: Object, reason: str, why: str, now: Instant, *, warning: bool = False) -> list[Effect]:
        """An event, unless it was the last one about this claim."""
        if self._said.get(claim.uid) == (reason, why):
            return []
        self._said[claim.uid] = (reason, why)
        return [event(claim.raw, reason, why, component=COMPONENT, now=now, warning=warning)]


def tag_of(resource: str, obj: Object) -> tuple[str, Any]:
    return (CLAIM, (obj.namespace, obj.name)) if resource == CLAIMS else (VOLUME, obj.name)


def annotation(obj: Object, name: str) -> str:
    return (obj.meta.get("annotations") or {}).get(name) or ""
