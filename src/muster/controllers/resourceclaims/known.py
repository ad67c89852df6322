"""What the controller of claims has been shown, and which of it belongs together."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from muster.api.object import Object
from muster.controllers.membership import Membership
from muster.controllers.pod_status import TERMINAL, phase
from muster.controllers.resourceclaims.made import ENTRY, entries
from muster.controllers.writing import controller_of

PODS, GROUPS, CLAIMS, TEMPLATES = "pods", "podgroups", "resourceclaims", "resourceclaimtemplates"


class Name(NamedTuple):
    """An object of one of these resources."""

    resource: str
    namespace: str
    name: str


class Known:
    """Objects by resource and key; owners by the templates that they name; claims by owner and by who reserved them."""

    def __init__(self, resources: Collection[str]) -> None:
        self._objects: dict[str, dict[Name, Object]] = {resource: {} for resource in resources}
        self._listed: set[str] = set()
        self._asking: Membership[Name, Name] = Membership()
        self._owned: Membership[str, Name] = Membership()
        self._reserved: Membership[str, Name] = Membership()
        self._members: Membership[Name, Name] = Membership()

    @property
    def complete(self) -> bool:
        """Whether everything has been listed: only then is what is not there known not to be there."""
        return len(self._listed) == len(self._objects)

    def get(self, name: Name) -> Object | None:
        return self._objects.get(name.resource, {}).get(name)

    def of(self, resource: str) -> Sequence[Object]:
        return tuple(self._objects[resource].values())

    def replace(self, resource: str, objects: Sequence[Object]) -> list[Object]:
        """Takes in a list; returns what is not there any more."""
        there = {Name(resource, obj.namespace, obj.name): obj.uid for obj in objects}
        gone = [obj for name, obj in self._objects[resource].items() if there.get(name) != obj.uid]
        for obj in gone:
            self.remove(resource, obj)
        for obj in objects:
            self.put(resource, obj)
        self._listed.add(resource)
        return gone

    def put(self, resource: str, obj: Object) -> None:
        name = Name(resource, obj.namespace, obj.name)
        self._unlink(self._objects[resource].get(name), name)
        self._objects[resource][name] = obj
        for index, of, what in self._links(name, obj):
            index.add(of, what)

    def remove(self, resource: str, obj: Object) -> None:
        name = Name(resource, obj.namespace, obj.name)
        self._unlink(self._objects[resource].pop(name, None), name)

    def _unlink(self, obj: Object | None, name: Name) -> None:
        for index, of, what in self._links(name, obj) if obj is not None else ():
            index.discard(of, what)

    def _links(self, name: Name, obj: Object) -> Iterator[tuple[Membership[Any, Name], Any, Name]]:
        if name.resource in (PODS, GROUPS):
            templates = [entry.template for entry in entries(obj) if entry.template]
            for template in templates:
                yield self._asking, Name(TEMPLATES, obj.namespace, template), name
            if name.resource == PODS and templates and (group := group_of(obj)):
                yield self._members, group, name
        elif name.resource == CLAIMS:
            owner = controller_of(obj)
            if owner is not None:
                yield self._owned, str(owner.get("uid") or ""), name
            for consumer in reserved_for(obj):
                yield self._reserved, str(consumer.get("uid") or ""), name

    def asking(self, template: Name) -> Collection[Name]:
        """Pods and groups that name a template."""
        return self._asking.of(template)

    def members(self, group: Name) -> Collection[Name]:
        """Pods of a group that get claims from templates."""
        return self._members.of(group)

    def touching(self, uid: str) -> list[Name]:
        """Claims that a pod or group owns or has reserved."""
        return list(dict.fromkeys((*self._owned.of(uid), *self._reserved.of(uid))))

    def owner_of(self, claim: Object) -> Name | None:
        """The pod or group that a claim was made for."""
        owner = controller_of(claim) or {}
        resource = {"Pod": PODS, "PodGroup": GROUPS}.get(str(owner.get("kind")))
        return Name(resource, claim.namespace, str(owner.get("name"))) if resource is not None else None

    def owned(self, uid: str) -> Iterator[Object]:
        for name in self._owned.of(uid):
            claim = self.get(name)
            if claim is not None:
                yield claim

    def made_for(self, uid: str) -> Mapping[str, Object]:
        """Claims that were made for a pod or group from templates: entry -> claim."""
        return {(claim.meta.get("annotations") or {}).get(ENTRY) or "": claim for claim in self.owned(uid)}

    def holds(self, namespace: str, consumer: Mapping[str, Any]) -> bool | None:
        """Whether somebody that a claim is reserved for may still use it (D16, D23); None: the watch does not show him,
        so he is gone, or too new to be shown."""
        resource, name, uid = consumer.get("resource"), str(consumer.get("name") or ""), consumer.get("uid")
        if resource not in self._objects:
            return True  # of a kind that is not watched: whoever made it lets go of it himself
        there = self.get(Name(str(resource), namespace, name))
        if there is None or there.uid != uid:
            return None
        return resource == GROUPS or phase(there) not in TERMINAL


def reserved_for(claim: Object) -> Sequence[Mapping[str, Any]]:
    return (claim.raw.get("status") or {}).get("reservedFor") or ()


def group_of(pod: Object) -> Name | None:
    """The PodGroup that a pod is in."""
    name = ((pod.raw.get("spec") or {}).get("schedulingGroup") or {}).get("podGroupName")
    return Name(GROUPS, pod.namespace, name) if name else None
