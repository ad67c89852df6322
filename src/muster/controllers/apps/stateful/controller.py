"""The StatefulSet controller: pods with names, ordinals and claims of their own, made, updated and removed in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from muster.api import writes
from muster.api.calls import Response
from muster.api.instant import Instant
from muster.api.machine import DELETED, Effect, Write
from muster.api.object import Object
from muster.controllers.apps.care import CHECK, LOOK, STATUS, Care, problem_of
from muster.controllers.apps.owner import Owner
from muster.controllers.apps.revisions import REVISION, REVISIONS, SEEK, Revisions, Settled, template_of
from muster.controllers.apps.stateful import status
from muster.controllers.apps.stateful.claims import CLAIM, CLAIMS, StatefulClaims
from muster.controllers.apps.stateful.plan import Steps, plan
from muster.controllers.apps.stateful.replicas import (
    KIND,
    PODS,
    Replica,
    Wanted,
    identity,
    new_pod,
    ordinal_of,
    replica,
    wanted_by,
)
from muster.controllers.pod_status import deleted

STATEFUL_SETS = "statefulsets"
COMPONENT = "statefulset-controller"
HASH_LABEL = "controller.kubernetes.io/hash"


class _View(NamedTuple):
    """One look at one set: what it wants, its pods, its revisions."""

    wanted: Wanted
    there: Sequence[Replica]
    settled: Settled
    current: Object
    update: Object


class StatefulSets(Care):
    """All StatefulSets. Nothing has to be remembered: names of pods, claims and revisions follow from the set."""

    def __init__(self) -> None:
        super().__init__(KIND, STATEFUL_SETS, PODS, COMPONENT, REVISIONS, CLAIMS)
        self._revisions = Revisions(KIND, HASH_LABEL, self.pending)
        self._claims = StatefulClaims(self.pending)

    # -- revisions and claims

    def others(self, resource: str, change: str, obj: Object, now: Instant) -> list[Effect]:
        if resource == REVISIONS:
            uids = self._revisions.gone(obj) if change == DELETED else self._revisions.seen(obj)
        else:
            uids = [self._claims.gone(obj) if change == DELETED else self._claims.seen(obj)]
        return [effect for uid in uids for effect in self.look_at(uid, now)]

    def others_listed(self, resource: str, objects: Sequence[Object], now: Instant) -> list[Effect]:
        self.pending.listed()
        if resource == REVISIONS:
            self._revisions.listed(objects)
        else:
            self._claims.listed(objects)
        return []

    def owner_gone(self, owner: Owner, now: Instant) -> list[Effect]:
        self._revisions.forget(owner.uid)
        self._claims.forget(owner.uid)
        return []

    def written(self, what: str, owner: Owner, key: str, response: Response, now: Instant) -> list[Effect]:
        if what == SEEK:
            self._revisions.found(owner, key, response)
            return owner.wake(now)
        if what == LOOK:  # the pod of this ordinal is another's; once that is gone, the name is free
            owner.taken.discard(key)
            owner.refused(now)
            message = f"create Pod {key} in StatefulSet {owner.object.name} failed: there is another pod of this name"
            return self.warns(owner, "FailedCreate", message, now)
        return []

    def refused(self, what: str, owner: Owner, key: str, response: Response, now: Instant) -> list[Effect]:
        if what == REVISION:
            return self._revisions.refused(owner, key, response.status)
        if what == CLAIM and response.status not in (0, 404, 409):
            owner.refused(now)
            message = f"create Claim {key} in StatefulSet {owner.object.name} failed: {problem_of(response)}"
            return self.warns(owner, "FailedCreate", message, now)
        return []

    # -- one look

    def adoptable(self, owner: Owner) -> list[Object]:
        return [each for each in super().adoptable(owner) if ordinal_of(owner.object.name, each.name) is not None]

    def adopt(self, owner: Owner) -> list[Effect]:
        return [*super().adopt(owner), *self._revisions.adopt(owner)]

    def sync(self, owner: Owner, now: Instant) -> list[Effect]:
        mine, waits, effects = self.claim(owner)
        going = deleted(owner.object)
        if not going and not owner.asked and self._revisions.adoptable(owner):
            owner.asked = waits = True
            get = writes.get(STATEFUL_SETS, owner.object.namespace, owner.object.name)
            effects.append(Write(get, (CHECK, owner.uid, "")))
        if waits:
            return effects
        view = self._view(owner, mine, now)
        if isinstance(view, list):
            return effects + view
        if not going:
            effects += view.settled.effects + self._act(owner, view, now)
            live = {each.revision for each in view.there} | {view.current.name}
            effects += self._revisions.surplus(owner, view.settled, live)
        return effects + self._report(owner, view)

    def _view(self, owner: Owner, mine: Sequence[Object], now: Instant) -> _View | list[Effect]:
        """What is there; or, while the revision of the template is not, what makes it."""
        settled = self._revisions.settle(owner)
        update = settled.update
        if update is None:
            return settled.effects if not deleted(owner.object) else []
        wanted = wanted_by(owner.spec)
        there: list[Replica] = []
        for pod in mine:
            ordinal = ordinal_of(owner.object.name, pod.name)
            if ordinal is not None:
                there.append(replica(pod, ordinal, wanted, leaving=self.leaving(owner, pod), now=now))
        name = owner.status.get("currentRevision")
        current = next((each for each in settled.all if each.name == name), update)
        return _View(wanted, there, settled, current, update)

    def _act(self, owner: Owner, view: _View, now: Instant) -> list[Effect]:
        held, effects = self._kept(owner, view)
        creating = {ordinal_of(owner.object.name, name) for name in owner.creating}
        steps = plan(
            view.wanted,
            view.there,
            update=view.update.name,
            creating={each for each in creating if each is not None},
            held=held,
        )
        effects += self._create(owner, view, steps, now)
        for each in steps.delete:
            gone = self.delete(owner, each.pod)
            if gone:
                message = f"delete Pod {each.pod.name} in StatefulSet {owner.object.name} successful"
                effects += [*gone, self.says(owner, "SuccessfulDelete", message, now)]
        soon = [each.next for each in view.there if each.next is not None]
        return effects + (owner.wake(min(soon)) if soon else [])

    def _create(self, owner: Owner, view: _View, steps: Steps, now: Instant) -> list[Effect]:
        if not steps.create:
            if not owner.creating:
                owner.pace = 1
            return []
        if now < owner.retry_at:
            return owner.wake(owner.retry_at)
        effects: list[Effect] = []
        templates = {each.name: template_of(each) for each in (view.current, view.update)}
        for ordinal in steps.create[: owner.room()]:
            complete, made = self._claims.ready(owner, ordinal)
            effects += made
            if complete:
                revision = (view.current if ordinal in view.wanted.kept_back else view.update).name
                effects.append(self.create(owner, new_pod(owner.object.raw, templates[revision], ordinal, revision)))
                message = f"create Pod {owner.object.name}-{ordinal} in StatefulSet {owner.object.name} successful"
                effects.append(self.says(owner, "SuccessfulCreate", message, now))
        return effects

    def _kept(self, owner: Owner, view: _View) -> tuple[set[str], list[Effect]]:
        """Gives pods the labels that say who they are, and their claims the right owners; the pods that have to wait
        with their deletion for that."""
        held: set[str] = set()
        effects: list[Effect] = []
        for each in view.there:
            condemned = each.ordinal not in view.wanted.ordinals
            right, changed = self._claims.keep(owner, each, condemned=condemned)
            effects += changed
            if condemned and not right:
                held.add(each.pod.uid)
            labels = each.pod.meta.get("labels") or {}
            mine = identity(each.pod.name, each.ordinal)
            if not each.leaving and any(labels.get(key) != value for key, value in mine.items()):
                effects += self.patch(owner, each.pod, {"metadata": {"labels": mine}})
            if not each.ended and not each.pod.raw["spec"].get("nodeName"):
                effects += self._claims.ready(owner, each.ordinal)[1]
        return held, effects

    def _report(self, owner: Owner, view: _View) -> list[Effect]:
        """Writes the status if it is not what it should be."""
        changed = status.changes(
            owner,
            view.wanted,
            view.there,
            current=view.current.name,
            update=view.update.name,
            collisions=self._revisions.collisions(owner),
        )
        return self.patch_self(owner, {"status": changed}, STATUS) if changed else []
