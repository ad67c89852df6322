"""The Deployment controller: ReplicaSets of its versions, sized so that the newest takes over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from muster.api.calls import Response
from muster.api.instant import Instant
from muster.api.machine import Effect
from muster.api.object import Object
from muster.controllers.apps.care import CREATE, PATCH, SELF, STATUS, Care, problem_of
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
        self._steps: dict[str, tuple[int, int]] = {}
        """By uid of a ReplicaSet that is being written: its old size and its new one."""

    def warning(self, what: str, key: str, response: Response) -> tuple[str, str]:
        if what != CREATE:
            return super().warning(what, key, response)
        return status.NOT_CREATED, f'Failed to create new replica set "{key}": {problem_of(response)}'

    def made(self, owner: Owner, child: Object, now: Instant) -> list[Effect]:
        return self._tells(owner, child, 0, child.raw["spec"].get("replicas") or 0, now)

    def written(self, what: str, owner: Owner, key: str, response: Response, now: Instant) -> list[Effect]:
        before, after = self._steps.pop(key, (0, 0)) if what == PATCH else (0, 0)
        there = Object(response.body)
        if before == after or (there.raw["spec"].get("replicas") or 0) != after:
            return []
        return self._tells(owner, there, before, after, now)

    def refused(self, what: str, owner: Owner, key: str, response: Response, now: Instant) -> list[Effect]:
        self._steps.pop(key, None)
        return []

    def _tells(self, owner: Owner, version: Object, before: int, after: int, now: Instant) -> list[Effect]:
        direction = "up" if after > before else "down"
        message = f"Scaled {direction} replica set {version.name} from {before} to {after}"
        return [self.says(owner, "ScalingReplicaSet", message, now)] if before != after else []

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
            effects += self._resize(owner, everyone, sizes.scaled(limits, new, old, there), limits)
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
            return self._resize(owner, everyone, sizes.rolling(limits, new, old), limits)
        wanted = sizes.recreating(limits, new, old)
        if not wanted and new is None and all(each.is_empty() for each in old):
            return self._begin(owner, old, limits, now)
        return self._resize(owner, everyone, wanted, limits)

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
        return [self.create(owner, made)]

    def _resize(self, owner: Owner, versions: Sequence[Version], wanted: Sizes, limits: Limits) -> list[Effect]:
        effects: list[Effect] = []
        for each in versions:
            size = wanted.get(each.uid, each.size)
            annotations = size_annotations(limits.wanted, limits.most)
            if size == each.size and not self._rescaled(each, limits):
                continue
            body: dict[str, Any] = {"metadata": {"annotations": annotations}}
            if size != each.size:
                body["spec"] = {"replicas": size}
                self._steps[each.uid] = (each.size, size)
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
