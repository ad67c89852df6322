"""The Deployment controller: ReplicaSets of its versions, sized so that the newest takes over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from muster.api.calls import Response
from muster.api.instant import Instant
from muster.api.machine import Effect
from muster.controllers.apps.care import CREATE, SELF, STATUS, Care, problem_of
from muster.controllers.apps.deployments import sizes, status
from muster.controllers.apps.deployments.sizes import Limits, Sizes
from muster.controllers.apps.deployments.versions import (
    REVISION,
    Version,
    brought_up,
    hash_of,
    new_version,
    next_revision,
    outlived,
    sort_out,
)
from muster.controllers.apps.deployments.versions import sizes as size_annotations
from muster.controllers.apps.owner import Owner
from muster.controllers.pod_status import deleted

KIND, DEPLOYMENTS, REPLICA_SETS = "Deployment", "deployments", "replicasets"
COMPONENT = "deployment-controller"


class Deployments(Care):
    """All Deployments. While a ReplicaSet of one is being written it waits, so that it never acts on old sizes."""

    def __init__(self) -> None:
        super().__init__(KIND, DEPLOYMENTS, REPLICA_SETS, COMPONENT)

    def warning(self, what: str, key: str, response: Response) -> tuple[str, str]:
        if what != CREATE:
            return super().warning(what, key, response)
        return status.NOT_CREATED, f'Failed to create new replica set "{key}": {problem_of(response)}'

    def sync(self, owner: Owner, now: Instant) -> list[Effect]:
        mine, waits, effects = self.claim(owner)
        if waits or owner.creating or any(self.patched(owner, each) for each in mine):
            return effects
        deployment, limits = owner.object.raw, Limits.of(owner.spec)
        new, old = sort_out(deployment, mine)
        if deleted(owner.object):
            return effects + self._report(owner, new, old, limits, now, rolling_out=False)
        effects += self._number(owner, new, old)
        everyone = [*old, new] if new is not None else old
        rolling_out = not owner.spec.get("paused") and not sizes.was_scaled(limits, everyone)
        if any(self.patched(owner, each.object) for each in everyone):
            return effects
        if rolling_out:
            effects += self._roll_out(owner, new, old, limits, now)
        else:
            there = owner.status.get("replicas") or 0
            effects += self._resize(owner, everyone, sizes.scaled(limits, new, old, there), limits, now)
        if owner.spec.get("paused") or status.is_complete(deployment, owner.status):
            for each in outlived(deployment, old):
                effects += self.delete(owner, each.object)
        return effects + self._report(owner, new, old, limits, now, rolling_out=rolling_out)

    def _number(self, owner: Owner, new: Version | None, old: Sequence[Version]) -> list[Effect]:
        """The newest version has the highest number, and the Deployment that of its newest version."""
        if new is None:
            return []
        patch = brought_up(owner.object.raw, new, next_revision(old))
        if patch:
            return self.patch(owner, new.object, patch)
        number = new.annotation(REVISION)
        if (owner.object.meta.get("annotations") or {}).get(REVISION) == number:
            return []
        return self.patch_self(owner, {"metadata": {"annotations": {REVISION: number}}}, SELF)

    # -- versions and their sizes

    def _roll_out(
        self, owner: Owner, new: Version | None, old: Sequence[Version], limits: Limits, now: Instant
    ) -> list[Effect]:
        everyone = [*old, new] if new is not None else old
        if limits.rolling:
            if new is None:
                return self._begin(owner, old, limits, now)
            return self._resize(owner, everyone, sizes.rolling(limits, new, old), limits, now)
        wanted = sizes.recreating(limits, new, old)
        if not wanted and new is None and all(each.is_empty() for each in old):
            return self._begin(owner, old, limits, now)
        return self._resize(owner, everyone, wanted, limits, now)

    def _begin(self, owner: Owner, old: Sequence[Version], limits: Limits, now: Instant) -> list[Effect]:
        """Makes the newest version; under another name, if that of its hash is taken."""
        if now < owner.retry_at:
            return owner.wake(owner.retry_at)
        size = sizes.first_size(limits, old)
        made = new_version(owner.object.raw, hash_of(owner.object.raw), size, limits.most, next_revision(old))
        name = made["metadata"]["name"]
        if name in owner.taken or any(each.object.name == name for each in old):
            collisions = (owner.status.get("collisionCount") or 0) + 1
            return self.patch_self(owner, {"status": {"collisionCount": collisions}}, STATUS)
        message = f"Scaled up replica set {name} from 0 to {size}"
        effects = [self.create(owner, made)]
        return effects if not size else [*effects, self.says(owner, "ScalingReplicaSet", message, now)]

    def _resize(
        self, owner: Owner, versions: Sequence[Version], wanted: Sizes, limits: Limits, now: Instant
    ) -> list[Effect]:
        effects: list[Effect] = []
        for each in versions:
            size = wanted.get(each.uid, each.size)
            annotations = size_annotations(limits.wanted, limits.most)
            if size == each.size and not self._rescaled(each, limits):
                continue
            body: dict[str, Any] = {"metadata": {"annotations": annotations}}
            if size != each.size:
                body["spec"] = {"replicas": size}
                direction = "up" if size > each.size else "down"
                message = f"Scaled {direction} replica set {each.object.name} from {each.size} to {size}"
                effects.append(self.says(owner, "ScalingReplicaSet", message, now))
            effects += self.patch(owner, each.object, body)
        return effects

    @staticmethod
    def _rescaled(version: Version, limits: Limits) -> bool:
        """Whether it was last sized for another size of the Deployment; of one without pods nobody asks."""
        return bool(version.size) and sizes.was_scaled(limits, [version])

    # -- status

    def _report(
        self,
        owner: Owner,
        new: Version | None,
        old: Sequence[Version],
        limits: Limits,
        now: Instant,
        *,
        rolling_out: bool,
    ) -> list[Effect]:
        """Writes the status if it is not what it should be, and looks again when it would be stuck."""
        deployment = owner.object.raw
        counts = status.numbers(deployment, new, old, limits)
        problem = owner.problem[1] if owner.problem is not None and new is None else None
        conditions = status.conditions(deployment, counts, new, old, limits, problem, now, rolling_out=rolling_out)
        wanted: dict[str, Any] = {**counts, "conditions": conditions}
        patch = {key: value or None for key, value in wanted.items() if (owner.status.get(key) or 0) != (value or 0)}
        effects: list[Effect] = []
        due = status.progress_due(deployment, conditions) if rolling_out else None
        if due is not None and due > now:
            effects += owner.wake(due)
        return [*effects, *self.patch_self(owner, {"status": patch}, STATUS)] if patch else effects
