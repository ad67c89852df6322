"""Which pods are alike in one decision: those of one class that the same selections in play mean, with alike volumes
and device claims.

A selection is in play if a pod to be decided asks about it, or a running pod has a term with it. Labels that no
selection in play looks at, such as a completion index, do not tell pods apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from muster.model import granting
from muster.model.devices import PodClaims
from muster.model.mounts import crowd_of, storage_of
from muster.model.neighbours import Labels, Selection, SelectionIndex
from muster.model.records import PodClass, PodRecord
from muster.model.snapshot import Snapshot
from muster.model.volumes import Storage


class Kinds:
    """The class of each pod as far as this decision can tell it."""

    __slots__ = (
        "_beyond",
        "_claimed",
        "_crowd",
        "_devices",
        "_index",
        "_known",
        "_meant",
        "_spaces",
        "_stored",
        "_storing",
        "_users",
        "_volumes",
        "plain",
    )

    def __init__(self, snapshot: Snapshot, pods: Iterable[PodRecord]) -> None:
        pods = tuple(pods)
        classes = {id(pod.cls): pod.cls for pod in pods}.values()
        demands = [pod_class.demands for pod_class in classes if pod_class.demands is not None]
        running = snapshot.neighbours.holding
        stores = any(pod_class.stores for pod_class in classes)
        devices = any(granting.needs_devices(pod_class, snapshot.devices) for pod_class in classes)
        self.plain = not demands and not running and not stores and not devices
        """Nobody asks about anybody, for volumes or for devices: a pod's class is its record's."""
        if self.plain:
            return
        self._devices = snapshot.devices
        self._users = granting.crowd_of(pods) if devices else Counter()
        self._beyond = granting.beyond(pods, self._devices, self._users) if devices else frozenset()
        self._claimed: dict[PodClaims, PodClaims] = {}
        self._volumes = snapshot.volumes
        self._crowd = crowd_of(pods, snapshot.volumes) if stores else Counter()
        self._stored: dict[Storage, Storage] = {}
        self._storing: dict[str, PodClass] = {}
        in_play: dict[Selection, None] = {}
        for asked in demands:
            in_play.update(dict.fromkeys(asked.selections()))
            in_play.update(dict.fromkeys((holding.term.selector,) for holding in asked.holdings()))
        in_play.update(dict.fromkeys((holding.term.selector,) for holding in running))
        self._index = SelectionIndex(in_play)
        self._spaces = snapshot.neighbours.spaces
        self._meant: dict[tuple[str, Labels], tuple[Selection, ...]] = {}
        self._known: dict[tuple[int, tuple[Selection, ...], int, int], PodClass] = {}

    def of(self, pod: PodRecord) -> PodClass:
        if self.plain:
            return pod.cls
        if pod.volumes is None and not granting.needs_devices(pod.cls, self._devices):
            return self._find(pod)
        found = self._storing.get(pod.uid)
        if found is None:
            found = self._storing[pod.uid] = self._find(pod)
        return found

    def _find(self, pod: PodRecord) -> PodClass:
        who = pod.key.namespace, pod.labels
        meant = self._meant.get(who)
        if meant is None:
            found = self._index.meant(*who, self._spaces)
            meant = self._meant[who] = tuple(sorted(found, key=repr)) if len(found) > 1 else found
        storage = self._storage_of(pod) if pod.volumes is not None else None
        claims = self._claims_of(pod) if granting.needs_devices(pod.cls, self._devices) else None
        if not meant and storage is None and claims is None:
            return pod.cls
        which = id(pod.cls), meant, id(storage), id(claims)
        known = self._known.get(which)
        if known is None:
            known = self._known[which] = replace(pod.cls, matched=meant, storage=storage, claims=claims)
        return known

    def _claims_of(self, pod: PodRecord) -> PodClaims:
        found = granting.claims_of(pod, self._devices, self._users, self._beyond)
        return self._claimed.setdefault(found, found)

    def _storage_of(self, pod: PodRecord) -> Storage:
        found = storage_of(pod, self._volumes, self._crowd)
        return self._stored.setdefault(found, found)
