"""Claims, volumes and who uses them, as a fold over watch events: the storage part of the cache."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Any, NamedTuple, TypeVar

from muster.model.keys import Key
from muster.model.records import PodRecord
from muster.model.volumes import (
    CapacityRecord,
    Choice,
    ClaimRecord,
    ClassRecord,
    Disk,
    DriverRecord,
    VolumeRecord,
    Volumes,
)

K = TypeVar("K", bound="Key | str")
V = TypeVar("V")


class Topic(NamedTuple):
    """Something that a waiting pod may depend on."""

    kind: str
    key: Key | str


def claims_of(record: PodRecord) -> set[Key]:
    """The claims that a pod uses."""
    return {Key(record.key.namespace, use.name) for use in record.volumes.claims} if record.volumes else set()


class Stock:
    """What is known of storage. `moved` are the topics of which something changed since they were last taken."""

    def __init__(self) -> None:
        self.claims: dict[Key, ClaimRecord] = {}
        self.volumes: dict[str, VolumeRecord] = {}
        self.classes: dict[str, ClassRecord] = {}
        self.drivers: dict[str, DriverRecord] = {}
        self.capacities: dict[Key, CapacityRecord] = {}
        self.attachments: dict[str, tuple[str, str]] = {}
        self.chosen: dict[Key, Choice] = {}
        self.version = 0
        self._mounts: dict[Key, dict[str, int]] = {}
        self._disks: dict[Disk, dict[str, int]] = {}
        self.moved: set[Topic] = set()
        self._seen = Volumes()

    # -- the fold

    def put_claim(self, key: Key, record: ClaimRecord | None) -> ClaimRecord | None:
        """Takes in a claim, None once it is gone; returns what was known before."""
        old = self.claims.get(key)
        if put(self.claims, key, record):
            self._changed(Topic("claim", key))
        return old

    def put_volume(self, name: str, record: VolumeRecord | None) -> None:
        old = self.volumes.get(name)
        if put(self.volumes, name, record):
            topics = {Topic("class", one.class_name) for one in (old, record) if one is not None}
            self._changed(Topic("volume", name), *topics)

    def put_class(self, name: str, record: ClassRecord | None) -> None:
        if put(self.classes, name, record):
            self._changed(Topic("class", name))

    def put_driver(self, name: str, record: DriverRecord | None) -> None:
        if put(self.drivers, name, record):
            self._changed(Topic("driver", name))

    def put_capacity(self, key: Key, record: CapacityRecord | None) -> None:
        old = self.capacities.get(key)
        if put(self.capacities, key, record):
            self._changed(*{Topic("class", one.class_name) for one in (old, record) if one is not None})

    def put_attachment(self, name: str, what: tuple[str, str] | None) -> None:
        old = self.attachments.get(name)
        if put(self.attachments, name, what):
            volumes = {one[0] for one in (old, what) if one is not None}
            found = {self.volumes[volume].driver for volume in volumes if volume in self.volumes}
            self._changed(*(Topic("driver", driver) for driver in found))

    def _changed(self, *topics: Topic) -> None:
        self.version += 1
        self.moved.update(topics)

    def take_moved(self) -> Set[Topic]:
        moved, self.moved = self.moved, set()
        return moved

    # -- pods

    def move(self, record: PodRecord, before: str | None, after: str | None) -> None:
        """A pod is no longer on one node, and is on another; None: on none."""
        if record.volumes is None or before == after:
            return
        keys = claims_of(record)
        for node, sign in ((before, -1), (after, 1)):
            if node is None:
                continue
            for key in keys:
                _count(self._mounts, key, node, sign)
            for disk, units in record.volumes.disks:
                _count(self._disks, disk, node, sign * units)
        self.version += 1
        if before is not None:
            self.moved.update(Topic("claim", key) for key in keys)
            drivers = {handle[0] for key in keys if (handle := self._handle(key)) is not None}
            self.moved.update(Topic("driver", driver) for driver in drivers)

    def _handle(self, key: Key) -> tuple[str, str] | None:
        return self.columns().handle_of(key)

    # -- own choices

    def choose(self, choices: Mapping[Key, Choice]) -> None:
        """These claims are on their way to a volume."""
        if choices:
            self.chosen.update(choices)
            self.version += 1

    def release(self, claims: Iterable[Key]) -> None:
        """They are bound, or not on their way any more."""
        for key in claims:
            choice = self.chosen.pop(key, None)
            if choice is not None:
                record = self.claims.get(key)
                name = record.class_name if record is not None else None
                self._changed(Topic("claim", key), *((Topic("class", name),) if name else ()))

    def no_longer_held(self, record: PodRecord) -> None:
        """A nominated pod does without what its claims would have needed: others may have it."""
        claims = (self.claims.get(key) for key in claims_of(record))
        self.moved.update(
            Topic("class", claim.class_name) for claim in claims if claim is not None and claim.class_name
        )

    # -- reading

    def topics(self, record: PodRecord) -> Iterator[Topic]:
        """All that bears on where the volumes of a pod can be."""
        for key in claims_of(record):
            yield Topic("claim", key)
            claim = self.claims.get(key)
            if claim is None:
                continue
            if claim.class_name:
                yield Topic("class", claim.class_name)
                found = self.classes.get(claim.class_name)
                if found is not None and found.provisioner:
                    yield Topic("driver", found.provisioner)
            if claim.volume:
                yield Topic("volume", claim.volume)
                volume = self.volumes.get(claim.volume)
                if volume is not None and volume.driver:
                    yield Topic("driver", volume.driver)

    def columns(self) -> Volumes:
        """All of it as it is now; the same instance while nothing has changed."""
        if self._seen.version != self.version:
            self._seen = Volumes(
                self.version,
                dict(self.claims),
                dict(self.volumes),
                dict(self.classes),
                dict(self.drivers),
                dict(self.capacities),
                {key: dict(nodes) for key, nodes in self._mounts.items()},
                {disk: dict(nodes) for disk, nodes in self._disks.items()},
                dict(self.chosen),
                tuple(sorted(self.attachments.values())),
            )
        return self._seen

    def fingerprint(self) -> Mapping[str, Any]:
        """What a rebuilt one must agree on, as plain data."""
        return {
            "claims": dict(self.claims),
            "volumes": dict(self.volumes),
            "classes": dict(self.classes),
            "drivers": dict(self.drivers),
            "capacities": dict(self.capacities),
            "attachments": dict(self.attachments),
        }


def put(table: dict[K, V], key: K, record: V | None) -> bool:
    """Puts a record into a table, takes it out if it is None; whether it is news."""
    old = table.get(key)
    if record is None:
        table.pop(key, None)
    else:
        table[key] = record
    return old != record


def _count(table: dict[Any, dict[str, int]], key: object, node: str, sign: int) -> None:
    nodes = table.setdefault(key, {})
    nodes[node] = nodes.get(node, 0) + sign
    if not nodes[node]:
        del nodes[node]
        if not nodes:
            del table[key]
