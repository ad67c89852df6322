"""The claims of the pods of a StatefulSet: made before the pod, and kept or let go with it as the set says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from muster.api import writes
from muster.api.calls import MERGE_PATCH
from muster.api.machine import Effect, Write
from muster.api.object import Object
from muster.controllers.apps.care import reference_to
from muster.controllers.apps.owner import Owner
from muster.controllers.apps.stateful.replicas import KIND, Replica, claim_name
from muster.controllers.pod_status import deleted
from muster.controllers.writing import Pending, controller_of

CLAIMS = "persistentvolumeclaims"
CLAIM = "claim"
"""First part of tags; the set's uid and the claim's name follow."""
Raw = Mapping[str, Any]


class StatefulClaims:
    """All claims, and which sets have asked for them. `pending`: writes under way, shared with the controller."""

    def __init__(self, pending: Pending) -> None:
        self._known: dict[tuple[str, str], Object] = {}
        self._user: dict[tuple[str, str], str] = {}
        self._pending = pending

    def seen(self, claim: Object) -> str:
        """Takes one as it is now; the uid of the set to look at, or ""."""
        key = (claim.namespace, claim.name)
        before = self._known.get(key)
        self._known[key] = claim
        uid = self._user.get(key, "")
        self._pending.observed((CLAIM, uid, claim.name), claim.revision)
        if before is not None and before.uid == claim.uid and deleted(before) == deleted(claim):
            same = before.meta.get("ownerReferences") == claim.meta.get("ownerReferences")
            return "" if same else uid
        return uid

    def gone(self, claim: Object) -> str:
        key = (claim.namespace, claim.name)
        self._known.pop(key, None)
        uid = self._user.get(key, "")
        self._pending.forget((CLAIM, uid, claim.name))
        return uid

    def listed(self, objects: Sequence[Object]) -> None:
        there = {(obj.namespace, obj.name) for obj in objects}
        for key in [key for key in self._known if key not in there]:
            self.gone(self._known[key])
        for obj in objects:
            self.seen(obj)

    def forget(self, uid: str) -> None:
        """The set is gone."""
        self._user = {key: user for key, user in self._user.items() if user != uid}

    def ready(self, owner: Owner, ordinal: int) -> tuple[bool, list[Effect]]:
        """Whether the pod of this ordinal may be made now; if not, its claims are made or waited for."""
        effects: list[Effect] = []
        complete = True
        for template in owner.spec.get("volumeClaimTemplates") or ():
            claim = self._of(owner, template, ordinal)
            if claim is None:
                complete = False
                effects += self._make(owner, template, ordinal)
            elif deleted(claim) or _of_former_pod(claim, f"{owner.object.name}-{ordinal}"):
                complete = False
        return complete, effects

    def keep(self, owner: Owner, pod: Replica, *, condemned: bool) -> tuple[bool, list[Effect]]:
        """Whether the claims of a pod go with what they should go with; if not, that is changed first."""
        effects: list[Effect] = []
        right = True
        for template in owner.spec.get("volumeClaimTemplates") or ():
            claim = self._of(owner, template, pod.ordinal)
            if claim is None or deleted(claim):
                continue
            wanted = _wanted_references(owner, pod, claim, condemned=condemned)
            if wanted is not None:
                right = False
                effects += self._patch(owner, claim, {"metadata": {"ownerReferences": wanted}})
        return right, effects

    def _of(self, owner: Owner, template: Raw, ordinal: int) -> Object | None:
        key = (owner.object.namespace, claim_name(template["metadata"]["name"], owner.object.name, ordinal))
        self._user[key] = owner.uid
        return self._known.get(key)

    def _make(self, owner: Owner, template: Raw, ordinal: int) -> list[Effect]:
        given = template["metadata"]
        name = claim_name(given["name"], owner.object.name, ordinal)
        key = (CLAIM, owner.uid, name)
        if key in self._pending:
            return []
        matched = (owner.spec.get("selector") or {}).get("matchLabels") or {}
        metadata: dict[str, Any] = {"name": name, "namespace": owner.object.namespace}
        if given.get("labels") or matched:
            metadata["labels"] = {**(given.get("labels") or {}), **matched}
        for field in ("annotations", "finalizers"):
            if given.get(field):
                metadata[field] = given[field]
        if _policy(owner, "whenDeleted") == "Delete":
            metadata["ownerReferences"] = [reference_to(owner.object.raw, KIND)]
        made = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": template["spec"]}
        self._pending.begin(key)
        return [Write(writes.create(made), key)]

    def _patch(self, owner: Owner, claim: Object, body: Raw) -> list[Effect]:
        key = (CLAIM, owner.uid, claim.name)
        if key in self._pending:
            return []
        self._pending.begin(key, claim.revision)
        meta = {**body["metadata"], "uid": claim.uid, "resourceVersion": claim.revision}
        return [Write(writes.patch(CLAIMS, claim.namespace, claim.name, {"metadata": meta}, MERGE_PATCH), key)]


def _policy(owner: Owner, when: str) -> str:
    return str((owner.spec.get("persistentVolumeClaimRetentionPolicy") or {}).get(when) or "Retain")


def _of_former_pod(claim: Object, pod_name: str) -> bool:
    """Whether it still is to go with a pod that had this name."""
    return any(each.get("kind") == "Pod" and each.get("name") == pod_name for each in _references(claim))


def _references(claim: Object) -> Sequence[Raw]:
    return claim.meta.get("ownerReferences") or ()


def _wanted_references(owner: Owner, pod: Replica, claim: Object, *, condemned: bool) -> list[Raw] | None:
    """The owners that the claim should have; None if it has them, or belongs to another controller.

    With the set go the claims of pods that are to stay, if `whenDeleted` says so; with its pod goes the claim of a pod
    that is condemned by scaling, if `whenScaled` says so.
    """
    uids = {owner.uid, pod.pod.uid}
    controller = controller_of(claim)
    if controller is not None and controller.get("uid") not in uids and controller.get("kind") not in (KIND, "Pod"):
        return None
    with_pod = condemned and _policy(owner, "whenScaled") == "Delete"
    with_set = _policy(owner, "whenDeleted") == "Delete" and not with_pod
    wanted = [each for each in _references(claim) if each.get("uid") not in uids]
    if with_set:
        wanted.append(reference_to(owner.object.raw, KIND))
    elif with_pod:
        wanted.append({**reference_to(pod.pod.raw, "Pod"), "apiVersion": "v1"})
    return None if _identities(wanted) == _identities(_references(claim)) else wanted


def _identities(references: Sequence[Raw]) -> set[tuple[str, str]]:
    return {(str(each.get("kind")), str(each.get("uid"))) for each in references}
