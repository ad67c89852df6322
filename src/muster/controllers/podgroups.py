"""Deletion protection: a deleted group stays until nothing lives in it (V36)."""

from __future__ import annotations

from collections.abc import Sequence

from muster.api.gates import FeatureGates
from muster.api.instant import Instant
from muster.api.machine import DELETED, Effect, Event, Listed, Observed, Refused, WakeAt, Woken, Write, Written
from muster.api.object import Object
from muster.controllers.membership import Membership
from muster.controllers.pod_status import TERMINAL, deleted, phase
from muster.controllers.writing import AGAIN, Pending, without_finalizer

POD_GROUPS, COMPOSITES, PODS = "podgroups", "compositepodgroups", "pods"
FINALIZERS = {
    POD_GROUPS: "scheduling.k8s.io/podgroup-protection",
    COMPOSITES: "scheduling.k8s.io/compositepodgroup-protection",
}
_Key = tuple[str, str, str]  # resource, namespace, name


class PodGroups:
    """Takes the protection finalizer off a deleted PodGroup once its pods are terminal or gone, and off a deleted
    CompositePodGroup once no group names it as its parent."""

    def __init__(self, gates: FeatureGates) -> None:
        composites = (COMPOSITES,) if gates.composite_pod_group else ()
        self.resources: tuple[str, ...] = (PODS, POD_GROUPS, *composites)
        self._listed: set[str] = set()
        self._leaving: dict[_Key, Object] = {}
        self._member_of: dict[str, dict[str, _Key]] = {resource: {} for resource in self.resources}
        self._members: Membership[_Key, str] = Membership()
        self._pending = Pending()

    def handle(self, event: Event, now: Instant) -> Sequence[Effect]:
        match event:
            case Observed(resource, change, obj):
                return self._gone(resource, obj) if change == DELETED else self._seen(resource, obj)
            case Listed(resource, objects):
                return self._all(resource, objects)
            case Written((_, str(), str()) as key, response):
                self._pending.written(key, response)
            case Refused((_, str(), str()) as key, response):
                self._pending.forget(key)
                if response.status != 404:
                    return [WakeAt(now + AGAIN, key)]
            case Woken((str(resource), str(namespace), str(name))):
                return self._release((resource, namespace, name))
        return ()

    def _all(self, resource: str, objects: Sequence[Object]) -> list[Effect]:
        there = {obj.uid for obj in objects}
        effects: list[Effect] = []
        for uid in [uid for uid in self._member_of[resource] if uid not in there]:
            effects += self._leave(resource, uid)
        if resource != PODS:
            for key in [key for key in self._leaving if key[0] == resource]:
                del self._leaving[key]
            self._pending.listed()
        self._listed.add(resource)
        for obj in objects:
            effects += self._seen(resource, obj)
        if len(self._listed) == len(self.resources):
            for key in list(self._leaving):
                effects += self._release(key)
        return effects

    def _seen(self, resource: str, obj: Object) -> list[Effect]:
        effects = self._join(resource, obj)
        if resource == PODS:
            return effects
        key = (resource, obj.namespace, obj.name)
        self._pending.observed(key, obj.revision)
        if deleted(obj):
            self._leaving[key] = obj
            return effects + self._release(key)
        self._leaving.pop(key, None)
        return effects

    def _gone(self, resource: str, obj: Object) -> list[Effect]:
        if resource != PODS:
            key = (resource, obj.namespace, obj.name)
            self._leaving.pop(key, None)
            self._pending.forget(key)
        return self._leave(resource, obj.uid)

    def _join(self, resource: str, obj: Object) -> list[Effect]:
        group = _group_of(resource, obj)
        if group is None:
            return self._leave(resource, obj.uid)
        if obj.uid not in self._member_of[resource]:
            self._member_of[resource][obj.uid] = group
            self._members.add(group, obj.uid)
        return []

    def _leave(self, resource: str, uid: str) -> list[Effect]:
        group = self._member_of[resource].pop(uid, None)
        if group is None:
            return []
        self._members.discard(group, uid)
        return self._release(group)

    def _release(self, key: _Key) -> list[Effect]:
        obj = self._leaving.get(key)
        finalizer = FINALIZERS.get(key[0], "")
        if obj is None or key in self._members or key in self._pending or len(self._listed) < len(self.resources):
            return []
        if finalizer not in (obj.meta.get("finalizers") or ()):
            return []
        self._pending.begin(key, obj.revision)
        return [Write(without_finalizer(key[0], obj, finalizer), key)]


def _group_of(resource: str, obj: Object) -> _Key | None:
    """The group that this pod or group lives in; None for none, and for a pod that has ended."""
    spec = obj.raw.get("spec") or {}
    if resource != PODS:
        parent = spec.get("parentCompositePodGroupName")
        return (COMPOSITES, obj.namespace, parent) if parent else None
    name = (spec.get("schedulingGroup") or {}).get("podGroupName")
    return (POD_GROUPS, obj.namespace, name) if name and phase(obj) not in TERMINAL else None
