"""Watch events, folded into the cache, with everything that depends on it told: queue, bindings, reports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from muster.api.instant import Instant
from muster.api.machine import DELETED, Listed, Observed, Write
from muster.api.object import Object
from muster.model.keys import Key
from muster.model.records import CompositeRecord, EntryKey, EntryKind, GroupRecord, NodeRecord, Phase, PodRecord
from muster.scheduler.accounts import Accounts
from muster.scheduler.cache import Cache
from muster.scheduler.commit import Commit
from muster.scheduler.entries import News, Seen
from muster.scheduler.families import FAMILIES, Families, Requirements
from muster.scheduler.heldback import HeldBack
from muster.scheduler.ingest import Ingest, Malformed
from muster.scheduler.queue import Queue
from muster.scheduler.reports import COMPOSITE_SCHEDULED, INITIALLY_SCHEDULED, POD_SCHEDULED, Reports
from muster.scheduler.residents import BUDGETS, budget_of
from muster.scheduler.resizes import Resizes
from muster.scheduler.slots import text_of
from muster.scheduler.stocktaking import DEVICES, STORAGE, Shelf, shelves
from muster.scheduler.trees import is_satisfied, nodes_of, tree_of
from muster.scheduler.versions import Versions, version

NODES, PODS, GROUPS, NAMESPACES = "nodes", "pods", "podgroups", "namespaces"
COMPOSITES = "compositepodgroups"


class Watching:
    """Takes in what happens in the cluster."""

    def __init__(
        self,
        ingest: Ingest,
        cache: Cache,
        queue: Queue,
        commit: Commit,
        reports: Reports,
        heldback: HeldBack,
        families: Families,
        resizes: Resizes,
        accounts: Accounts,
    ) -> None:
        self._accounts = accounts
        self._ingest, self._cache, self._queue = ingest, cache, queue
        self._commit, self._reports, self._heldback, self._families = commit, reports, heldback, families
        self._resizes = resizes
        self._said: list[Write] = []
        self._versions = {
            r: Versions() for r in (NODES, NAMESPACES, COMPOSITES, GROUPS, BUDGETS, PODS, *STORAGE, *DEVICES, *FAMILIES)
        }
        self._put: dict[str, Callable[[Object, Instant, bool], None]] = {
            NODES: self._put_node,
            NAMESPACES: self._put_namespace,
            COMPOSITES: self._put_composite,
            GROUPS: self._put_group,
            BUDGETS: self._put_budget,
            PODS: self._put_pod,
            **{resource: partial(self._put_family, resource) for resource in FAMILIES},
        }
        self._drop: dict[str, Callable[[Key, Instant], None]] = {
            NODES: self._drop_node,
            NAMESPACES: self._drop_namespace,
            COMPOSITES: self._drop_composite,
            GROUPS: self._drop_group,
            BUDGETS: self._drop_budget,
            PODS: self._drop_pod,
            **{resource: partial(self._regroup, resource, None) for resource in FAMILIES},
        }
        for resource, shelf in shelves(cache).items():
            self._put[resource] = partial(self._put_away, shelf)
            self._drop[resource] = partial(self._throw_away, shelf)

    def listed(self, event: Listed, now: Instant) -> Sequence[Write]:
        """Everything there is: what is not in it is gone."""
        resource = event.resource
        if resource not in self._versions:
            return ()
        versions = self._versions[resource]
        if versions:
            for key in versions.missing({_key(obj) for obj in event.objects}):
                self._drop[resource](key, now)
        for obj in event.objects:
            self._news(resource, obj, now, listed=True)
        return self._take_said()

    def observed(self, event: Observed, now: Instant) -> Sequence[Write]:
        """One change; late, repeated and reordered ones are recognised and make no difference."""
        resource, obj = event.resource, event.object
        if resource not in self._versions:
            return ()
        if event.change != DELETED:
            self._news(resource, obj, now, listed=False)
        elif self._versions[resource].ends(key := _key(obj), obj.uid):
            self._drop[resource](key, now)
        return self._take_said()

    def _take_said(self) -> Sequence[Write]:
        said, self._said = self._said, []
        return said

    def _news(self, resource: str, obj: Object, now: Instant, *, listed: bool) -> None:
        meta = obj.raw.get("metadata")
        if type(meta) is not dict or not isinstance(uid := meta.get("uid"), str):
            return
        key = Key(meta.get("namespace", ""), meta.get("name", ""))
        if not self._versions[resource].accepts(key, uid, version(str(meta.get("resourceVersion", "")))):
            return
        try:
            self._put[resource](obj, now, listed)
        except Malformed as error:
            self._drop_other(resource, key, uid, now)
            self._said.extend(self._reports.malformed(obj, str(error), now))

    def _drop_other(self, resource: str, key: Key, uid: str, now: Instant) -> None:
        """Whatever had this name before an object that cannot be read is gone; its own earlier state is kept."""
        cache = self._cache
        if resource in FAMILIES or resource == BUDGETS:
            return
        known: NodeRecord | CompositeRecord | GroupRecord | PodRecord | None
        if resource == NAMESPACES or resource in STORAGE or resource in DEVICES:
            return  # What is known of it stays until it can be read again.
        if resource == NODES:
            known = cache.nodes.get(key.name)
        elif resource == COMPOSITES:
            known = cache.forest.composites.get(key)
        else:
            known = cache.groups.get(key) if resource == GROUPS else cache.pods.get(key)
        if known is not None and known.uid != uid:
            self._drop[resource](key, now)

    # -- nodes

    def _put_node(self, obj: Object, now: Instant, listed: bool) -> None:
        record = self._ingest.node(obj)
        self._cache.put_node(record)
        self._resizes.node_changed(record.name)

    def _drop_node(self, key: Key, now: Instant) -> None:
        self._cache.drop_node(key.name)
        self._resizes.node_changed(key.name)

    # -- namespaces

    def _put_namespace(self, obj: Object, now: Instant, listed: bool) -> None:
        self._cache.put_namespace(obj.name, self._ingest.namespace(obj))

    def _drop_namespace(self, key: Key, now: Instant) -> None:
        self._cache.put_namespace(key.name, None)

    # -- storage

    def _put_away(self, shelf: Shelf, obj: Object, now: Instant, listed: bool) -> None:
        shelf.put(Key(obj.namespace, obj.name), self._ingest.storage(obj, shelf.read))

    def _throw_away(self, shelf: Shelf, key: Key, now: Instant) -> None:
        shelf.put(key, None)

    # -- disruption budgets

    def _put_budget(self, obj: Object, now: Instant, listed: bool) -> None:
        self._cache.residents.budgets[_key(obj)] = self._ingest.storage(obj, budget_of)

    def _drop_budget(self, key: Key, now: Instant) -> None:
        self._cache.residents.budgets.pop(key, None)

    # -- groups

    def _put_group(self, obj: Object, now: Instant, listed: bool) -> None:
        record = self._ingest.group(obj)
        self._cache.devices.put_group(record.key, self._ingest.claims_of_group(obj))
        before = self._owners([record.key])
        old = self._cache.put_group(record)
        if old is not None and old.uid != record.uid:
            self._reports.forget(old.uid)
            self._commit.recording.dropped(EntryKey(EntryKind.POD_GROUP, record.key))
        self._commit.recording.seen(EntryKey(EntryKind.POD_GROUP, record.key), text_of(obj.raw))
        self._reports.seen(obj, record.uid, INITIALLY_SCHEDULED)
        if old != record:
            self._moved(before, now, _group_news(old, record))

    def _drop_group(self, key: Key, now: Instant) -> None:
        before = self._owners([key])
        self._cache.devices.put_group(key, None)
        old = self._cache.drop_group(key)
        self._commit.recording.dropped(EntryKey(EntryKind.POD_GROUP, key))
        if old is not None:
            self._reports.forget(old.uid)
            self._moved(before, now)

    # -- composite groups

    def _put_composite(self, obj: Object, now: Instant, listed: bool) -> None:
        record = self._ingest.composite(obj)
        before = self._owners(self._cache.forest.below(record.key))
        old = self._cache.put_composite(record)
        if old is not None and old.uid != record.uid:
            self._reports.forget(old.uid)
            self._commit.recording.dropped(EntryKey(EntryKind.COMPOSITE, record.key))
        self._commit.recording.seen(EntryKey(EntryKind.COMPOSITE, record.key), text_of(obj.raw))
        self._reports.seen(obj, record.uid, COMPOSITE_SCHEDULED)
        if old != record:
            self._moved(before, now, _group_news(old, record))
            self._check(record.key, now)

    def _check(self, composite: Key, now: Instant) -> None:
        """A composite group without members can make a hierarchy invalid, and end that."""
        root = self._cache.forest.root_of(composite) if self._cache.forest.checked else None
        if root is not None:
            self.refresh(EntryKey(EntryKind.COMPOSITE, root), now)

    def _drop_composite(self, key: Key, now: Instant) -> None:
        before = self._owners(self._cache.forest.below(key))
        old = self._cache.drop_composite(key)
        self._commit.recording.dropped(EntryKey(EntryKind.COMPOSITE, key))
        if old is not None:
            self._reports.forget(old.uid)
            self._moved(before, now)
            if old.parent is not None:
                self._check(Key(key.namespace, old.parent), now)

    def _owners(self, leaves: Iterable[Key]) -> dict[Key, EntryKey]:
        return {leaf: self._cache.owner_of_group(leaf) for leaf in leaves}

    def _moved(self, before: Mapping[Key, EntryKey], now: Instant, news: News = News.NOTHING) -> None:
        """Links or minimums have changed: members go to the entry that they belong to now, and keep their age."""
        ages: dict[EntryKey, Seen | None] = {}
        for leaf, old in before.items():
            new, entry = self._cache.owner_of_group(leaf), self._queue.entries.get(old)
            seen = ages.get(new)
            if new != old and entry is not None and leaf in self._cache.members:
                seen = entry.seen if seen is None else min(seen, entry.seen)
            ages[new] = seen
        for key in dict.fromkeys(before.values()):
            if key not in ages:
                self.refresh(key, now)
        for key, seen in ages.items():
            self.refresh(key, now, news, seen)

    # -- pods

    def _put_family(self, resource: str, obj: Object, now: Instant, listed: bool) -> None:
        self._regroup(resource, self._ingest.family(resource, obj), _key(obj), now)

    def _regroup(self, resource: str, selector: Requirements | None, key: Key, now: Instant) -> None:
        """Pending pods may be spread otherwise now: they get other classes."""
        if not self._families.put(resource, key, selector):
            return
        waiting = [entry for entry in self._queue.entries if entry.key.namespace == key.namespace]
        for entry in waiting:
            changed = False
            for record in self._queue.pending(entry):
                again = self._families.applied(record)
                if again is not record:
                    self._cache.put_pod(again)
                    changed = True
            if changed:
                self.refresh(entry, now, News.CURE)

    def _put_pod(self, obj: Object, now: Instant, listed: bool) -> None:
        record = self._ingest.pod(obj)
        if record.phase is Phase.PENDING and not self._families.empty:
            record = self._families.applied(record)
        known = self._cache.pods.get(record.key)
        if known is not None and known.uid != record.uid:
            self._drop_pod(record.key, now)
            known = None
        if record.phase is Phase.PENDING:
            self._reports.seen(obj, record.uid, POD_SCHEDULED)
        elif known is not None and known.phase is Phase.PENDING:
            self._reports.forget(record.uid)
        if known == record:
            return
        ours = record.uid in self._cache.assumed
        self._cache.put_pod(record)
        self._resizes.pod_changed(known, record, now)
        self._said.extend(self._accounts.look(EntryKey(EntryKind.POD, record.key), now))
        self._commit.seen(record)
        key = self._cache.owner(record)
        if known is not None and known.group != record.group:
            self.refresh(self._cache.owner(known), now)
        if record.phase is not Phase.PENDING and key.kind is EntryKind.POD and known is None:
            return
        seen = Seen(record.created if listed else now, record.created) if known is None else None
        labels_count = self._cache.neighbours.counts_anything
        news = _pod_news(known, record, ours=ours, labels_count=labels_count)
        self.refresh(key, now, news, seen if _is_waiting(record) else None)

    def _drop_pod(self, key: Key, now: Instant) -> None:
        old = self._cache.drop_pod(key)
        if old is not None:
            self._resizes.pod_changed(old, None, now)
            self._said.extend(self._accounts.look(EntryKey(EntryKind.POD, key), now))
            self._reports.forget(old.uid)
            self._commit.gone(old.uid)
            self.refresh(self._cache.owner(old), now, News.LEFT)

    def refresh(self, key: EntryKey, now: Instant, news: News = News.NOTHING, seen: Seen | None = None) -> None:
        """Brings one entry up to date, notes if it is held, and says of a group that runs that it was scheduled."""
        self._queue.refresh(key, now, news, seen)
        self._heldback.note(key, now)
        self._said.extend(self._accounts.look(key, now))
        if key.kind is EntryKind.POD_GROUP and self._has_its_minimum(key.key):
            self._said.extend(self._reports.scheduled(self._cache.groups[key.key], now))
        elif key.kind is EntryKind.COMPOSITE and key.key in self._cache.forest.composites:
            tree = tree_of(self._cache, key.key)
            for node in nodes_of(tree) if any(leaf.bound for leaf in tree.leaves()) else ():
                if is_satisfied(node):
                    self._said.extend(self._reports.scheduled(node.record, now))

    def _has_its_minimum(self, group: Key) -> bool:
        known, members = self._cache.groups.get(group), self._cache.members.get(group)
        if known is None or members is None or not members.running:
            return False
        return len(members.running) + len(members.succeeded) >= known.min_count


def _key(obj: Object) -> Key:
    return Key(obj.namespace, obj.name)


def _group_news(old: GroupRecord | CompositeRecord | None, new: GroupRecord | CompositeRecord) -> News:
    """A lowered minimum or another policy helps at once; a raised one wakes nothing (statement 34)."""
    if old is None or old.uid != new.uid or new.min_count < old.min_count:
        return News.URGENT
    changed = (old.priority, old.preemption_policy, old.parent, old.topology_key, old.policy) != (
        new.priority,
        new.preemption_policy,
        new.parent,
        new.topology_key,
        new.policy,
    )
    return News.CURE if changed else News.NOTHING


def _pod_news(old: PodRecord | None, new: PodRecord, *, ours: bool, labels_count: bool) -> News:
    """Whether the change of a pod can let its own entry be placed.

    `ours`: it was assumed to be where it is now. `labels_count`: somebody selects pods by their labels.
    """
    if not _counts(new) or new.phase is Phase.SUCCEEDED:
        return News.LEFT
    if old is None or not _counts(old):
        return News.CURE
    if new.phase is Phase.PENDING:
        relabelled = labels_count and old.labels != new.labels
        return News.CURE if relabelled or _asks(old) != _asks(new) else News.NOTHING
    return News.CURE if old.phase is Phase.PENDING and not ours else News.NOTHING


def _is_waiting(record: PodRecord) -> bool:
    return record.phase is Phase.PENDING and not record.terminating


def _counts(record: PodRecord) -> bool:
    """Whether a pod counts towards its group's minimum."""
    return record.phase is not Phase.FAILED and not record.terminating


def _asks(record: PodRecord) -> tuple[object, ...]:
    """What of a pending pod bears on whether it can be placed."""
    return (
        record.cls,
        record.priority,
        record.scheduler_name,
        record.preemption_policy,
        record.gates,
        record.devices,
    )
