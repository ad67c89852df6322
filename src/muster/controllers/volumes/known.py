"""What the volume controller knows of the cluster, indexed by what it asks."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from muster.api import storage
from muster.api.object import Object
from muster.controllers.membership import Membership
from muster.controllers.volumes.matching import Key, claim_of, class_of, is_free, owner_of, preference

CLAIMS, VOLUMES, CLASSES, NODES = "persistentvolumeclaims", "persistentvolumes", "storageclasses", "nodes"
DRIVERS, CSI_NODES, CAPACITIES = "csidrivers", "csinodes", "csistoragecapacities"
RESOURCES = (NODES, CLASSES, DRIVERS, CSI_NODES, CAPACITIES, VOLUMES, CLAIMS)


class Known:
    """All objects by resource and key (namespace and name), claims and volumes by each other."""

    def __init__(self) -> None:
        self._all: dict[str, dict[Key, Object]] = {resource: {} for resource in RESOURCES}
        self._by_owner: Membership[Key, str] = Membership()
        self._by_volume: Membership[str, Key] = Membership()
        self._unbound: dict[Key, None] = {}
        self._free: dict[str, list[tuple[int, int, str]]] = {}
        self._listed: set[str] = set()

    @property
    def complete(self) -> bool:
        """Everything has been listed."""
        return len(self._listed) == len(RESOURCES)

    def replace(self, resource: str, objects: Sequence[Object]) -> list[Object]:
        """What was listed takes the place of what was known; returns what is gone by that."""
        there = {(obj.namespace, obj.name): obj.uid for obj in objects}
        gone = [obj for key, obj in self._all[resource].items() if there.get(key) != obj.uid]
        for obj in gone:
            self.remove(resource, obj)
        for obj in objects:
            self.put(resource, obj)
        self._listed.add(resource)
        return gone

    def put(self, resource: str, obj: Object) -> None:
        key = (obj.namespace, obj.name)
        before = self._all[resource].get(key)
        if before is not None:
            self._forget(resource, key, before)
        self._all[resource][key] = obj
        if resource == VOLUMES:
            owner = owner_of(obj)
            if owner is not None:
                self._by_owner.add(owner, obj.name)
            elif is_free(obj):
                insort(self._free.setdefault(class_of(obj), []), preference(obj))
        elif resource == CLAIMS:
            name = claim_of(obj).spec.volume_name
            if name:
                self._by_volume.add(name, key)
            if not is_bound(obj):
                self._unbound[key] = None

    def remove(self, resource: str, obj: Object) -> None:
        key = (obj.namespace, obj.name)
        before = self._all[resource].pop(key, None)
        if before is not None:
            self._forget(resource, key, before)

    def _forget(self, resource: str, key: Key, obj: Object) -> None:
        if resource == VOLUMES:
            owner = owner_of(obj)
            if owner is not None:
                self._by_owner.discard(owner, obj.name)
            elif is_free(obj):
                free = self._free[class_of(obj)]
                del free[bisect_left(free, preference(obj))]
        elif resource == CLAIMS:
            self._by_volume.discard(claim_of(obj).spec.volume_name, key)
            self._unbound.pop(key, None)

    def of(self, resource: str) -> Collection[Object]:
        return self._all[resource].values()

    def get(self, resource: str, name: str) -> Object | None:
        """An object of a kind without namespaces."""
        return self._all[resource].get(("", name))

    def claim(self, key: Key) -> Object | None:
        return self._all[CLAIMS].get(key)

    def claims(self) -> list[Key]:
        return list(self._all[CLAIMS])

    def unbound(self) -> list[Key]:
        return list(self._unbound)

    def reserved_for(self, claim: Key) -> list[str]:
        """Volumes whose claimRef names the claim."""
        return list(self._by_owner.of(claim))

    def asking_for(self, volume: str) -> list[Key]:
        """Claims whose volumeName names the volume."""
        return list(self._by_volume.of(volume))

    def default_class(self) -> str | None:
        raws: Iterator[Mapping[str, Any]] = (obj.raw for obj in self.of(CLASSES))
        return storage.default_class(raws)

    def candidates(self, claim: Key, storage_class: str | None) -> Iterator[Object]:
        """Volumes that may serve an unbound claim: those reserved for it, then free ones of a class, best first."""
        volumes = self._all[VOLUMES]
        yield from [volumes["", name] for name in self.reserved_for(claim)]
        for _, _, name in self._free.get(storage_class, ()) if storage_class is not None else ():
            yield volumes["", name]


def is_bound(claim: Object) -> bool:
    """Whether binding has been completed, by whom ever."""
    return storage.BIND_COMPLETED in (claim.meta.get("annotations") or {})
