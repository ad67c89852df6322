"""What the scheduler knows of the cluster: a fold over watch events, plus the placements it has decided itself.

Thrown away and rebuilt from a list of everything it is equal (`fingerprint`), but for pods that are assumed: decided,
and not seen bound yet.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from muster.model.keys import Key
from muster.model.mounts import crowd_of, storage_of
from muster.model.neighbours import PodDemands
from muster.model.records import CompositeRecord, EntryKey, EntryKind, GroupRecord, NodeRecord, Phase, PodRecord
from muster.model.running import Running
from muster.model.snapshot import Nomination, Snapshot
from muster.model.volumes import Volumes
from muster.scheduler.devices import CLAIM, DeviceStock
from muster.scheduler.forest import Forest
from muster.scheduler.neighbours import Neighbourhood, Tenant
from muster.scheduler.residents import Residents
from muster.scheduler.rooms import Holding, Rooms, Touch
from muster.scheduler.volumes import Stock, Topic

DEFAULT_SCHEDULER = "default-scheduler"


@dataclass(slots=True)
class Members:
    """The pods that name one group, by where they are. Terminating, failed and deleted ones are in none of these."""

    pending: dict[Key, PodRecord] = field(default_factory=dict)
    running: dict[Key, PodRecord] = field(default_factory=dict)
    """Those with a node, assumed ones included."""
    succeeded: set[Key] = field(default_factory=set)
    gated: dict[Key, PodRecord] = field(default_factory=dict)
    """Those of `pending` with scheduling gates."""
    foreign: int = 0
    """How many of `pending` name another scheduler."""

    @property
    def present(self) -> int:
        """What counts towards the minimum (statement 15, M5)."""
        return len(self.pending) + len(self.running) + len(self.succeeded)

    def __bool__(self) -> bool:
        return bool(self.pending or self.running or self.succeeded)


class Cache:
    """Nodes, pods and groups as last seen, and which pods are assumed to be where.

    Args:
        scheduler_name: pods of other schedulers hold room and count, and are not ours to place or to nominate.
        levels: topology label keys, widest first, that fix the order of nodes; none: the well-known ones.
        checked: hierarchies of groups are held to the rules of v1.38.
    """

    def __init__(
        self, scheduler_name: str = DEFAULT_SCHEDULER, levels: Sequence[str] = (), *, checked: bool = False
    ) -> None:
        self.rooms = Rooms(levels)
        self.neighbours = Neighbourhood()
        self.stock = Stock()
        self.devices = DeviceStock()
        self.residents = Residents()
        self._drivers: dict[str, Mapping[str, int | None]] = {}
        """Node -> the storage drivers on it, also of nodes that are not known (yet)."""
        self.pods: dict[Key, PodRecord] = {}
        self.groups: dict[Key, GroupRecord] = {}
        self.forest = Forest(self.groups, checked=checked)
        self.members: dict[Key, Members] = {}
        self.assumed: dict[str, str] = {}
        """Pod uid -> node."""
        self._scheduler_name = scheduler_name
        self._nominated: dict[str, Nomination] = {}
        self._nominations: tuple[Nomination, ...] | None = ()
        self._groups_seen: dict[Key, GroupRecord] | None = {}
        self._snapshot: Snapshot | None = None

    @property
    def nodes(self) -> dict[str, NodeRecord]:
        return self.rooms.records

    # -- the fold

    def put_node(self, record: NodeRecord) -> None:
        drivers = self._drivers.get(record.name)
        record = replace(record, drivers=drivers) if drivers else record
        if self.rooms.records.get(record.name) != record:
            self.residents.node_changed()
        self.rooms.put_node(record)

    def put_drivers(self, node: str, drivers: Mapping[str, int | None]) -> None:
        """The storage drivers of a node; they are a part of it."""
        if drivers:
            self._drivers[node] = drivers
        else:
            self._drivers.pop(node, None)
        record = self.rooms.records.get(node)
        if record is not None:
            self.rooms.put_node(replace(record, drivers=drivers))

    def drop_node(self, name: str) -> None:
        if name in self.rooms.records:
            self.residents.node_changed()
            self.rooms.drop_node(name)

    def put_group(self, record: GroupRecord) -> GroupRecord | None:
        """Returns what was known before."""
        old = self.groups.get(record.key)
        if old != record:
            self.groups[record.key] = record
            self.forest.leaf_changed(record.key, old, record)
            self.residents.group(old, record)
            self._groups_changed()
        return old

    def drop_group(self, key: Key) -> GroupRecord | None:
        old = self.groups.pop(key, None)
        if old is not None:
            self.forest.leaf_changed(key, old, None)
            self.residents.group(old, None)
            self._groups_changed()
        return old

    def put_composite(self, record: CompositeRecord) -> CompositeRecord | None:
        """Returns what was known before."""
        old = self.forest.put(record)
        self.residents.group(old, record)
        return old

    def drop_composite(self, key: Key) -> CompositeRecord | None:
        old = self.forest.drop(key)
        if old is not None:
            self.residents.group(old, None)
        return old

    def owner(self, record: PodRecord) -> EntryKey:
        """The queue entry that a pod belongs to."""
        if record.group is None:
            return EntryKey(EntryKind.POD, record.key)
        return self.owner_of_group(Key(record.key.namespace, record.group))

    def owner_of_group(self, key: Key) -> EntryKey:
        """The queue entry of a PodGroup's members: the root of its hierarchy, itself as long as there is none."""
        group = self.groups.get(key)
        if group is not None and group.parent is not None and not group.terminating:
            root = self.forest.above(group).root
            if root is not None:
                return EntryKey(EntryKind.COMPOSITE, root.key)
        return EntryKey(EntryKind.POD_GROUP, key)

    def put_pod(self, record: PodRecord) -> PodRecord | None:
        """Takes in the state of a pod; returns what was known before. Another uid means another pod."""
        old = self.pods.get(record.key)
        if old is not None and old.uid != record.uid:
            self.drop_pod(record.key)
            old = None
        before, tenant = (self._holding(old), self._tenant(old)) if old else (None, None)
        was = self._place_of(old) if old is not None else None
        if old is not None:
            self._leave(old)
        if record.cls.demands is not None and record.phase is Phase.PENDING:
            self._ask(record.cls.demands)
        self.pods[record.key] = record
        if record.phase is not Phase.PENDING or record.terminating:
            self.assumed.pop(record.uid, None)
        else:
            self.rooms.know(record.cls.requests)
        after = self._holding(record)
        self._move(record.uid, before, after)
        assumed = self.assumed.get(record.uid)
        self.residents.move(old if before else None, record if after else None, assumed)
        self._settle(tenant, self._tenant(record))
        self.stock.move(record, was, self._place_of(record))
        if record.extended_claim and (old is None or old.extended_claim != record.extended_claim):
            self.devices.moved.add(Topic(CLAIM, Key(record.key.namespace, record.extended_claim)))
        self._join(record)
        self._nominate(old, record)
        return old

    def drop_pod(self, key: Key) -> PodRecord | None:
        old = self.pods.pop(key, None)
        if old is None:
            return None
        before, tenant = self._holding(old), self._tenant(old)
        self._leave(old)
        self.stock.move(old, self._place_of(old), None)
        self.assumed.pop(old.uid, None)
        self._move(old.uid, before, None)
        self.residents.move(old if before else None, None)
        self._settle(tenant, None)
        self._nominate(old, None)
        return old

    def put_namespace(self, name: str, labels: Mapping[str, str] | None) -> None:
        """The labels of a namespace, None once it is gone."""
        version = self.neighbours.version
        self.neighbours.put_space(name, labels, self._tenants())
        if self.neighbours.version != version:
            self.rooms.revision += 1

    # -- own placements

    def assume(self, record: PodRecord, node: str) -> None:
        """Counts a pending pod on the node until it is seen there, or `forget`."""
        self._leave(record)
        self.assumed[record.uid] = node
        self._move(record.uid, None, self._holding(record))
        self.residents.move(None, record, node)
        self._settle(None, self._tenant(record))
        self.stock.move(record, None, node)
        self._join(record)
        if record.uid in self._nominated:
            self._nominations = None

    def forget(self, record: PodRecord) -> None:
        """Takes an assumed pod back; nothing if it is not assumed."""
        if record.uid not in self.assumed:
            return
        before, tenant = self._holding(record), self._tenant(record)
        self._leave(record)
        self.stock.move(record, self.assumed[record.uid], None)
        del self.assumed[record.uid]
        self._move(record.uid, before, None)
        self.residents.move(record, None)
        self._settle(tenant, None)
        self._join(record)
        if record.uid in self._nominated:
            self._nominations = None

    # -- reading

    def snapshot(self) -> Snapshot:
        """The cluster as it is now; the same instance while nothing has changed."""
        columns = self.rooms.columns()
        known = self._snapshot
        volumes, devices = self.stock.columns(), self.devices.columns()
        same = known is not None and known.volumes is volumes and known.devices is devices
        if same and known is not None and known.revision == self.rooms.revision:
            return known
        if self._nominations is None:
            waiting = (held for uid, held in self._nominated.items() if uid not in self.assumed)
            self._nominations = tuple(sorted(waiting, key=lambda held: (-held.priority, held.pod)))
        if self._groups_seen is None:
            self._groups_seen = dict(self.groups)
        self._snapshot = Snapshot(
            revision=self.rooms.revision,
            nodes=columns,
            used=self.rooms.used(),
            generations=self.rooms.generations(),
            ports=self.rooms.ports(),
            nominations=self._storing(self._nominations, volumes),
            groups=self._groups_seen,
            neighbours=self.neighbours.columns(columns),
            volumes=volumes,
            devices=devices,
        )
        return self._snapshot

    def _storing(self, nominations: tuple[Nomination, ...], known: Volumes) -> tuple[Nomination, ...]:
        """With what the volumes of nominated pods come down to now, so that they are held too."""
        storing = [record for held in nominations if (record := self.pods[held.pod]).volumes is not None]
        if not storing:
            return nominations
        crowd = crowd_of(storing, known)
        found: list[Nomination] = []
        for held in nominations:
            record = self.pods[held.pod]
            if record.volumes is not None:
                held = held._replace(cls=replace(held.cls, storage=storage_of(record, known, crowd)))
            found.append(held)
        return tuple(found)

    def topics(self, record: PodRecord) -> Iterator[Topic]:
        """All that bears on whether the volumes and devices of a pod can be had."""
        if record.volumes is not None:
            yield from self.stock.topics(record)
        if self.devices.concern(record):
            yield from self.devices.topics(record)

    def running(self) -> Running:
        """Every pod that holds room, and what protects it."""
        return self.residents.running(self.forest.composites)

    def take_touched(self) -> dict[str, Touch]:
        """Nodes that got better for somebody since the last call."""
        touched, self.rooms.touched = self.rooms.touched, {}
        return touched

    def fingerprint(self) -> dict[str, Any]:
        """Everything that a rebuilt cache must agree on, as plain data; assumed pods as the pending ones they are."""
        snapshot = self.snapshot()
        used = {
            name: dict(zip(snapshot.axis.names, snapshot.used[:, at].tolist(), strict=True))
            for at, name in enumerate(snapshot.nodes.names)
        }
        ports = {port: dict(users) for port, users in snapshot.ports.items()}
        for uid, holding in self.rooms.held():
            if uid in self.assumed:
                for name, amount in holding.usage if holding.node in used else ():
                    used[holding.node][name] -= amount
                for port in holding.ports:
                    ports[port][holding.node] -= 1
        return {
            "nodes": dict(self.nodes),
            "pods": dict(self.pods),
            "groups": dict(self.groups),
            "composites": dict(self.forest.composites),
            "members": {key: self._members_fingerprint(found) for key, found in self.members.items()},
            "used": {node: {name: amount for name, amount in row.items() if amount} for node, row in used.items()},
            "ports": {(port, node): count for port, users in ports.items() for node, count in users.items() if count},
            "nominated": dict(self._nominated),
            "storage": self.stock.fingerprint(),
            "devices": self.devices.fingerprint(),
        }

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cache) and self.fingerprint() == other.fingerprint()

    __hash__ = None  # type: ignore[assignment]

    # -- inside

    def _members_fingerprint(self, members: Members) -> tuple[set[Key], set[Key], set[Key]]:
        assumed = {key for key, record in members.running.items() if record.uid in self.assumed}
        return (members.pending.keys() | assumed, members.running.keys() - assumed, members.succeeded)

    def _groups_changed(self) -> None:
        self._groups_seen = None
        self.rooms.revision += 1

    def _holding(self, record: PodRecord) -> Holding | None:
        if record.phase is Phase.BOUND:
            assert record.node is not None
            return Holding(record.node, record.usage, record.cls.host_ports)
        node = self.assumed.get(record.uid)
        return Holding(node, record.cls.requests, record.cls.host_ports) if node else None

    def _place_of(self, record: PodRecord) -> str | None:
        """The node on which a pod uses its volumes."""
        return record.node if record.phase is Phase.BOUND else self.assumed.get(record.uid)

    def _tenant(self, record: PodRecord) -> Tenant | None:
        """The pod as its neighbours see it, if it has a node and has not ended."""
        node = record.node if record.phase is Phase.BOUND else self.assumed.get(record.uid)
        if node is None:
            return None
        return Tenant(node, record.key.namespace, record.labels, record.terminating, record.cls.demands)

    def _tenants(self) -> Iterator[Tenant]:
        return (tenant for record in self.pods.values() if (tenant := self._tenant(record)) is not None)

    def _ask(self, demands: PodDemands) -> None:
        """From now on, what these demands are about is counted."""
        if self.neighbours.crowded:
            pending = (record.cls.demands for record in self.pods.values() if record.phase is Phase.PENDING)
            self.neighbours.keep(known for known in pending if known is not None)
        version = self.neighbours.version
        self.neighbours.ask(demands, self._tenants())
        if self.neighbours.version != version:
            self.rooms.revision += 1

    def _settle(self, before: Tenant | None, after: Tenant | None) -> None:
        version = self.neighbours.version
        self.neighbours.move(before, after)
        if self.neighbours.version != version:
            self.rooms.revision += 1

    def _move(self, uid: str, before: Holding | None, after: Holding | None) -> None:
        if before == after:
            return
        if before is not None:
            self.rooms.give(uid, before)
        if after is not None:
            self.rooms.take(uid, after)

    def _leave(self, record: PodRecord) -> None:
        """Takes the record out of its group's members."""
        if record.group is None:
            return
        group = Key(record.key.namespace, record.group)
        members = self.members.get(group)
        if members is None:
            return
        if members.pending.pop(record.key, None) is not None:
            members.gated.pop(record.key, None)
            members.foreign -= record.scheduler_name != self._scheduler_name
        elif members.running.pop(record.key, None) is None:
            members.succeeded.discard(record.key)
        if not members:
            del self.members[group]

    def _join(self, record: PodRecord) -> None:
        """Puts the record among its group's members where it belongs."""
        if record.group is None or record.terminating or record.phase is Phase.FAILED:
            return
        group = Key(record.key.namespace, record.group)
        members = self.members.get(group)
        if members is None:
            members = self.members[group] = Members()
        if record.phase is Phase.SUCCEEDED:
            members.succeeded.add(record.key)
        elif record.phase is Phase.BOUND or record.uid in self.assumed:
            members.running[record.key] = record
        else:
            members.pending[record.key] = record
            members.foreign += record.scheduler_name != self._scheduler_name
            if record.gates:
                members.gated[record.key] = record

    def _nominate(self, old: PodRecord | None, new: PodRecord | None) -> None:
        """Keeps the nomination of a pending pod of ours, and notes where one ended."""
        wanted = self._nomination_of(new) if new else None
        known = self._nominated.get(new.uid if new else old.uid) if (old or new) else None  # type: ignore[union-attr]
        if wanted == known:
            return
        self._nominations = None
        if known is not None:
            del self._nominated[known.uid]
            if old is not None and old.volumes is not None:
                self.stock.no_longer_held(old)
            self.rooms.note_nomination_ended(known.node)
        if wanted is not None:
            self._nominated[wanted.uid] = wanted
            self.rooms.revision += 1

    def _nomination_of(self, record: PodRecord) -> Nomination | None:
        if (
            record.nominated_node is None
            or record.phase is not Phase.PENDING
            or record.terminating
            or record.scheduler_name != self._scheduler_name
        ):
            return None
        group = Key(record.key.namespace, record.group) if record.group else None
        cls = record.cls if record.cls.demands is None else replace(record.cls, demands=None)
        apart = () if record.cls.demands is None else record.cls.demands.anti_affinity
        about = record.nominated_node, cls, record.priority, group, record.labels, apart
        return Nomination(record.key, record.uid, *about)
