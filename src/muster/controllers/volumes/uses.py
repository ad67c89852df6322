"""Claims of pods: made for generic ephemeral volumes, and kept, with their volumes, as long as they are in use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from muster.api import writes
from muster.api.calls import STRATEGIC_PATCH
from muster.api.instant import Instant
from muster.api.machine import DELETED, Effect, Event, Listed, Observed, Refused, WakeAt, Woken, Write, Written
from muster.api.object import Object
from muster.api.storage import CLAIM_PROTECTION, VOLUME_PROTECTION
from muster.controllers.membership import Membership
from muster.controllers.pod_status import TERMINAL, deleted, node_of, phase
from muster.controllers.volumes.known import CLAIMS, VOLUMES
from muster.controllers.volumes.matching import Key
from muster.controllers.writing import AGAIN, Pending, controller_of, event

PODS = "pods"
COMPONENT = "ephemeral-volume-controller"
_FINALIZERS = {CLAIMS: CLAIM_PROTECTION, VOLUMES: VOLUME_PROTECTION}
_Kept = tuple[str, str, str]  # resource, namespace, name


class Claims:
    """Makes the claims of pods with ephemeral volumes, which go with their pod; keeps a deleted claim until no running
    pod uses it, and a deleted volume until it is bound to no claim."""

    resources: tuple[str, ...] = (CLAIMS, VOLUMES, PODS)

    def __init__(self) -> None:
        self._kept: dict[_Kept, Object] = {}
        self._pods: dict[str, Object] = {}
        self._claims_of: dict[str, dict[Key, Mapping[str, Any] | None]] = {}
        self._users: Membership[Key, str] = Membership()
        self._listed: set[str] = set()
        self._pending = Pending()
        self._told: set[tuple[str, Key]] = set()

    def handle(self, event: Event, now: Instant) -> Sequence[Effect]:
        if type(event) is Observed and event.resource == PODS:
            return self._pod_gone(event.object) if event.change == DELETED else self._pod_seen(event.object, now)
        match event:
            case Observed(resource, change, obj):
                return self._gone(resource, obj, now) if change == DELETED else self._seen(resource, obj)
            case Listed(resource, objects):
                return self._all(resource, objects, now)
            case Written((str(resource), str(space), str(name)) as tag, response):
                return self._look((resource, space, name), now) if self._pending.written(tag, response) else ()
            case Refused((str(), str(), str()) as tag, _):
                self._pending.forget(tag)
                return [WakeAt(now + AGAIN, tag)]
            case Woken((str(resource), str(space), str(name))):
                return self._look((resource, space, name), now)
        return ()

    def _all(self, resource: str, objects: Sequence[Object], now: Instant) -> list[Effect]:
        effects: list[Effect] = []
        for obj in self._not_among({obj.uid for obj in objects}, resource):
            effects += self._pod_gone(obj) if resource == PODS else self._gone(resource, obj, now)
        self._pending.listed()
        self._listed.add(resource)
        for obj in objects:
            effects += self._pod_seen(obj, now) if resource == PODS else self._seen(resource, obj)
        wanted = {(CLAIMS, *claim): None for claims in self._claims_of.values() for claim in claims}
        for key in {**wanted, **dict.fromkeys(self._kept)}:
            effects += self._look(key, now)
        return effects

    def _not_among(self, uids: set[str], resource: str) -> list[Object]:
        known = (
            self._pods.values() if resource == PODS else [obj for key, obj in self._kept.items() if key[0] == resource]
        )
        return [obj for obj in known if obj.uid not in uids]

    # -- pods

    def _pod_seen(self, pod: Object, now: Instant) -> Sequence[Effect]:
        if not (pod.raw.get("spec") or {}).get("volumes"):
            return ()
        uid = pod.uid
        if uid not in self._pods:
            claims = _claims(pod)
            if not claims:
                return ()
            self._claims_of[uid] = claims
            for claim in claims:
                self._users.add(claim, uid)
        self._pods[uid] = pod
        return [effect for claim in self._claims_of[uid] for effect in self._look((CLAIMS, *claim), now)]

    def _pod_gone(self, pod: Object) -> Sequence[Effect]:
        self._pods.pop(pod.uid, None)
        effects: list[Effect] = []
        for claim in self._claims_of.pop(pod.uid, {}):
            self._users.discard(claim, pod.uid)
            self._told.discard((pod.uid, claim))
            effects += self._keep_or_release((CLAIMS, *claim))
        return effects

    # -- claims and volumes

    def _seen(self, resource: str, obj: Object) -> Sequence[Effect]:
        key = (resource, obj.namespace, obj.name)
        self._pending.observed(key, obj.revision)
        self._kept[key] = obj
        return self._keep_or_release(key)

    def _gone(self, resource: str, obj: Object, now: Instant) -> Sequence[Effect]:
        key = (resource, obj.namespace, obj.name)
        self._kept.pop(key, None)
        self._pending.forget(key)
        return self._look(key, now)

    def _look(self, key: _Kept, now: Instant) -> list[Effect]:
        """What is to be done about a claim or volume: made, kept, or let go."""
        if len(self._listed) < len(self.resources):
            return []
        resource, *claim = key
        if resource == CLAIMS:
            for uid in list(self._users.of((claim[0], claim[1]))):
                template = self._claims_of[uid][claim[0], claim[1]]
                if template is not None and _alive(self._pods[uid]):
                    return self._make(key, self._pods[uid], template, now)
        return self._keep_or_release(key)

    def _make(self, key: _Kept, pod: Object, template: Mapping[str, Any], now: Instant) -> list[Effect]:
        """The claim of a pod's ephemeral volume; one of that name that is not the pod's is never used."""
        there = self._kept.get(key)
        if there is None:
            if key in self._pending:
                return []
            self._pending.begin(key)
            return [Write(writes.create(_claim(key, pod, template)), key)]
        owner = controller_of(there)
        told = (pod.uid, (key[1], key[2]))
        if (owner is None or owner.get("uid") != pod.uid) and told not in self._told:
            self._told.add(told)
            why = f'PVC "{key[1]}/{key[2]}" was not created for pod "{pod.namespace}/{pod.name}" (pod is not owner)'
            return [event(pod.raw, "FailedBinding", why, component=COMPONENT, now=now, warning=True)]
        return self._keep_or_release(key)

    def _keep_or_release(self, key: _Kept) -> list[Effect]:
        obj = self._kept.get(key)
        if obj is None or key in self._pending or len(self._listed) < len(self.resources):
            return []
        finalizer = _FINALIZERS[key[0]]
        held = finalizer in (obj.meta.get("finalizers") or ())
        if not deleted(obj):
            return [] if held else self._patch(key, obj, {"finalizers": [finalizer]})
        if not held or self._in_use(key, obj):
            return []
        return self._patch(key, obj, {"$deleteFromPrimitiveList/finalizers": [finalizer]})

    def _in_use(self, key: _Kept, obj: Object) -> bool:
        if key[0] == VOLUMES:
            return phase(obj) == "Bound"
        users = (self._pods[uid] for uid in self._users.of((key[1], key[2])))
        return any(node_of(pod) and phase(pod) not in TERMINAL for pod in users)

    def _patch(self, key: _Kept, obj: Object, meta: Mapping[str, Any]) -> list[Effect]:
        """One entry of a list, whatever else is in it by now."""
        self._pending.begin(key, obj.revision)
        body = {"metadata": {**meta, "uid": obj.uid}}
        return [Write(writes.patch(key[0], obj.namespace, obj.name, body, STRATEGIC_PATCH), key)]


def _alive(pod: Object) -> bool:
    return not deleted(pod) and phase(pod) not in TERMINAL


def _claims(pod: Object) -> dict[Key, Mapping[str, Any] | None]:
    """The claims a pod uses, each with the template it is made from if it is the pod's own."""
    found: dict[Key, Mapping[str, Any] | None] = {}
    for volume in pod.raw["spec"]["volumes"]:
        if "persistentVolumeClaim" in volume:
            found[pod.namespace, volume["persistentVolumeClaim"]["claimName"]] = None
        elif "ephemeral" in volume:
            found[pod.namespace, f"{pod.name}-{volume['name']}"] = volume["ephemeral"]["volumeClaimTemplate"]
    return found


def _claim(key: _Kept, pod: Object, template: Mapping[str, Any]) -> dict[str, Any]:
    """Owned by the pod, with the template's labels and annotations."""
    meta = template.get("metadata") or {}
    owner = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": pod.name,
        "uid": pod.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    made: dict[str, Any] = {
        "name": key[2],
        "namespace": key[1],
        "ownerReferences": [owner],
        "finalizers": [CLAIM_PROTECTION],
    }
    made |= {field: meta[field] for field in ("labels", "annotations") if meta.get(field)}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": made, "spec": template["spec"]}
