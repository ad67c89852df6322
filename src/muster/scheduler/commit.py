"""From a decision that holds (`recheck`) to bound pods: every pod's way to its node (`bindings`)."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from muster.api import writes
from muster.api.calls import Response
from muster.api.instant import MINUTE, Instant
from muster.api.machine import Write
from muster.engine.profile import Profile
from muster.model.keys import Key
from muster.model.plan import Plan
from muster.model.records import EntryKey, EntryKind, Phase, PodRecord, QueueEntry
from muster.scheduler.allocating import Allocating
from muster.scheduler.bindings import ENDED, ON_THE_WIRE, SETTLED, TRANSITIONS, Binding, BindTag, Happening, Step
from muster.scheduler.cache import Cache
from muster.scheduler.devices import CLAIM, awaited
from muster.scheduler.entries import Entry, backoff
from muster.scheduler.parties import Parties
from muster.scheduler.prebind import PATIENCE, TIMED_OUT, Prebind, VolumeTag
from muster.scheduler.recheck import Recheck
from muster.scheduler.recording import Record, Recording, said, uncertain
from muster.scheduler.trees import is_satisfied, tree_of
from muster.scheduler.volumes import Topic, claims_of

GIVE_UP: Instant = MINUTE
"""So long after the first refusal slots are given back by an entry with nothing bound, or that has its minimum."""


class Commit:
    """Bindings under way. Assumes and forgets in the cache; the queue is the caller's business."""

    def __init__(self, cache: Cache, profile: Profile) -> None:
        self.cache = cache
        self.bindings: dict[str, Binding] = {}
        self._retries: list[tuple[Instant, str]] = []
        self._refused: dict[EntryKey, dict[str, Binding]] = {}
        """Bindings that were refused and not accepted since, by entry and pod uid."""
        self._arrived: list[Binding] = []
        self._landed: list[Binding] = []
        self.prebind = Prebind(cache)
        self.allocating = Allocating(cache)
        self.recheck = Recheck(cache, profile, self.prebind, self.allocating)
        self.parties = Parties(cache)
        self.recording = Recording(cache)
        self._underway: dict[EntryKey, dict[str, Binding]] = {}
        """Pods of groups that are not bound for certain yet."""
        self._claimants: Counter[Key] = Counter()
        """How many of the bindings use each claim."""
        self.claiming: dict[str, Binding] = {}
        """Those that wait for claims, their own or those of others of their group, by pod uid."""
        self._claiming_by: dict[Topic, set[str]] = {}

    # -- the way of each pod

    def start(self, head: QueueEntry, plan: Plan, now: Instant, *, quiet: bool, recorded: str = "") -> Iterator[Write]:
        """Assumes every pod of the plan on its node and sends the bindings, or first what their claims need.

        A gang's plan is recorded before that (M11), unless it is `recorded` on the group already.
        """
        by_uid = {record.uid: record for record in head.pods}
        storing = [(by_uid[step.uid], step.node) for step in plan.binds if by_uid[step.uid].volumes is not None]
        if storing:
            self.cache.stock.choose(self.prebind.choices(storing) or {})
        self.allocating.begin([(by_uid[step.uid], step.node) for step in plan.binds])
        fresh = []
        for step in plan.binds:
            binding = Binding(self.cache.pods[by_uid[step.uid].key], step.node, head.key, quiet)
            binding.ready = not self.lacks_claims(binding.record)
            binding.place = self.cache.nodes.get(step.node)
            self.cache.assume(binding.record, step.node)
            self.bindings[step.uid] = binding
            self._claimants.update(claims_of(binding.record))
            fresh.append(binding)
        self.parties.join(fresh)
        if recorded:
            self.recording.adopt(head.key, head.uid, recorded, fresh)
        elif self._is_to_be_recorded(head.key, fresh):
            for binding in fresh:
                self._move(binding, Happening.NOTED)
            yield from self.recording.begin(head.key, head.uid, fresh)
            return
        for binding in fresh:
            yield from self._send(binding, now)

    def could_be_placed(self, entry: Entry, plan: Plan) -> None:
        """Notes on the bindings of a plan since when its pods could have been placed."""
        for step in plan.binds:
            binding = self.bindings.get(step.uid)
            if binding is not None and entry.ready_since is not None:
                binding.since = max(entry.ready_since, binding.record.created)
                binding.tries = entry.attempts + 1

    def _is_to_be_recorded(self, key: EntryKey, fresh: Sequence[Binding]) -> bool:
        if key.kind is EntryKind.POD:
            return False
        underway = self._underway.setdefault(key, {})
        underway.update((binding.record.uid, binding) for binding in fresh)
        return self.recording.needed(key, (it.record for it in fresh), uncertain(underway.values()))

    def may_be_bound(self, record: Record) -> bool:
        """Whether a plan that was decided before it was recorded still holds."""
        if self._is_out_of_reach(record.entry):
            return False
        waiting = record.waiting
        if all(self._is_untouched(binding) for binding in waiting):
            return True
        return all(self._still_belongs(binding) for binding in waiting) and self._fit(waiting)

    def _is_untouched(self, binding: Binding) -> bool:
        """Whether nobody else has changed its node, as far as it needs no filter to say so."""
        record, node = binding.record, self.cache.nodes.get(binding.node)
        if node is None or binding.place is None or (node is not binding.place and node != binding.place):
            return False
        if record.cls.host_ports or record.cls.demands is not None or record.volumes is not None:
            return False
        if self.cache.devices.concern(record):
            return False
        return min(self.cache.rooms.free(binding.node), default=0) >= 0

    def bind_recorded(self, record: Record, now: Instant) -> Iterator[Write]:
        """Their plan is written down: the pods may be bound."""
        for binding in record.waiting:
            yield from self._send(binding, now)

    def drop_recording(self, record: Record) -> None:
        """Gives back the slots of a plan that is not carried out."""
        for binding in record.waiting:
            self.drop(binding)

    def drop_out_of_reach(self, record: Record) -> None:
        """The same, once too few of its pods are left for the minimum."""
        if self._is_out_of_reach(record.entry):
            self.drop_recording(record)

    def _send(self, binding: Binding, now: Instant) -> Iterator[Write]:
        if self.lacks_claims(binding.record):
            yield from self._prepare(binding, now)
            return
        self.parties.is_ready(binding)
        if self.parties.lets(binding):
            yield self._bind(binding)
        elif binding.step is not Step.READY:
            self._move(binding, Happening.HELD)
            binding.expires_at = binding.expires_at or now + PATIENCE
            self._await(binding)

    def _prepare(self, binding: Binding, now: Instant) -> Iterator[Write]:
        self._move(binding, Happening.PREPARED)
        binding.attempts += 1
        binding.expires_at = binding.expires_at or now + PATIENCE
        self._await(binding)
        self.allocating.prepare(binding.record)
        written = tuple(self.prebind.writes(binding.record, binding.attempts))
        binding.unanswered = len(written)
        yield from written

    def _await(self, binding: Binding) -> None:
        self.claiming[binding.record.uid] = binding
        for topic in awaited(binding.record):
            self._claiming_by.setdefault(topic, set()).add(binding.record.uid)

    def lacks_claims(self, record: PodRecord) -> list[Key]:
        """The claims of a pod, of either kind, that are not ready for it."""
        if record.volumes is None and not record.devices and not record.cls.extended:
            return []
        return [*self.prebind.unbound(record), *self.allocating.unready(record)]

    def trouble(self, binding: Binding) -> str:
        """Why the claims of a pod will not be ready on its node; "": they may be."""
        of_volumes = self.prebind.trouble(binding.record, binding.node)
        return of_volumes or self.allocating.trouble(binding.record, binding.node)

    def _bind(self, binding: Binding) -> Write:
        self._move(binding, Happening.SENT)
        self.parties.leave(binding, ended=False)
        binding.attempts += 1
        key = binding.record.key
        request = writes.bind(key.namespace, key.name, binding.record.uid, binding.node)
        return Write(request, BindTag(binding.record.uid, binding.attempts))

    def _move(self, binding: Binding, happening: Happening) -> Step:
        if happening is Happening.ACCEPTED or (happening is Happening.SEEN and binding.step in ON_THE_WIRE):
            self._landed.append(binding)
        binding.step = TRANSITIONS[binding.step, happening]
        if self.claiming.pop(binding.record.uid, None) is not None:
            for topic in awaited(binding.record):
                self._claiming_by[topic].discard(binding.record.uid)
                if not self._claiming_by[topic]:
                    del self._claiming_by[topic]
        if binding.step in SETTLED:
            self._no_longer_refused(binding)
            self._settled(binding)
        if binding.step in ENDED:
            del self.bindings[binding.record.uid]
            self.parties.leave(binding, ended=True)
        if binding.step is Step.DROPPED:
            self.cache.forget(self.cache.pods.get(binding.record.key) or binding.record)
        if binding.step in ENDED:
            self._release(binding)
        return binding.step

    def _settled(self, binding: Binding) -> None:
        """It is bound for certain, or not on its way any more."""
        self.recording.left(binding)
        underway = self._underway.get(binding.entry)
        if underway is not None and underway.pop(binding.record.uid, None) is not None and not underway:
            del self._underway[binding.entry]

    def _release(self, binding: Binding) -> None:
        """What was chosen for its claims is free again, but for those that others on their way use too."""
        record = binding.record
        if record.devices or record.cls.extended:
            self.allocating.leave(record, bound=binding.step is Step.DONE)
        if record.volumes is None:
            return
        self.prebind.forget(record)
        mine = claims_of(record)
        self._claimants.subtract(mine)
        self.cache.stock.release(key for key in mine if self._claimants[key] <= 0)

    def _no_longer_refused(self, binding: Binding) -> None:
        refused = self._refused.get(binding.entry, {})
        if refused.pop(binding.record.uid, None) is not None and not refused:
            del self._refused[binding.entry]

    def outcome(self, tag: BindTag, response: Response, now: Instant) -> Binding | None:
        """Takes in how a binding ended; returns what it belonged to, None if nobody waits for it any more."""
        binding = self.bindings.get(tag.uid)
        if binding is None or binding.step is not Step.BINDING or binding.attempts != tag.attempt:
            return None
        if response.ok:
            self._move(binding, Happening.ACCEPTED)
            return binding
        binding.message, binding.status = said(response), response.status
        self._refuse(binding, response, now)
        return binding

    def claim_outcome(self, tag: VolumeTag, response: Response, now: Instant) -> Binding | None:
        """The same for a write for one of its claims; None too if it was accepted: the watch tells the rest."""
        binding = self.claiming.get(tag.uid)
        if binding is None or binding.attempts != tag.attempt:
            return None
        binding.unanswered -= 1
        if response.ok:
            if not binding.unanswered:
                self._no_longer_refused(binding)
                binding.refused_at = None
            return None
        binding.message = said(response)
        self._refuse(binding, response, now)
        return binding

    def _refuse(self, binding: Binding, response: Response, now: Instant) -> None:
        if response.status in (404, 410):
            self._move(binding, Happening.GONE)
            return
        self._move(binding, Happening.REFUSED)
        if binding.refused_at is None:
            binding.refused_at = now
        uid = binding.record.uid
        self._refused.setdefault(binding.entry, {})[uid] = binding
        binding.retry_at = now + backoff(binding.attempts)
        heapq.heappush(self._retries, (binding.retry_at, uid))

    def seen(self, record: PodRecord) -> None:
        """The watch shows a state of a pod: bound, or ended or ending, which ends its way."""
        binding = self.bindings.get(record.uid)
        if binding is None:
            return
        if record.phase is Phase.BOUND and not record.terminating:
            self._move(binding, Happening.SEEN)
            if not binding.quiet:
                self._arrived.append(binding)
        elif record.phase is not Phase.PENDING or record.terminating:
            self.drop(binding)

    def take_landed(self) -> Sequence[Binding]:
        """Those that are bound since this was asked last."""
        landed, self._landed = self._landed, []
        return landed

    def take_arrived(self) -> Sequence[Binding]:
        """Bindings that the watch showed before their answer came."""
        arrived, self._arrived = self._arrived, []
        return arrived

    def gone(self, uid: str) -> None:
        """The pod does not exist any more."""
        if uid in self.bindings:
            self.drop(self.bindings[uid])

    def drop(self, binding: Binding) -> None:
        self._move(binding, Happening.GONE)

    # -- timers

    def retry_due(self) -> Instant | None:
        while self._retries:
            at, uid = self._retries[0]
            binding = self.bindings.get(uid)
            if binding is not None and binding.step is Step.RETRYING and binding.retry_at == at:
                return at
            heapq.heappop(self._retries)
        return None

    def due_retries(self, now: Instant) -> Iterator[Binding]:
        """Bindings to be sent again now; the caller sends or drops each."""
        while (at := self.retry_due()) is not None and at <= now:
            yield self.bindings[heapq.heappop(self._retries)[1]]

    def send_again(self, binding: Binding, now: Instant) -> Iterator[Write]:
        return self._send(binding, now)

    def concerned(self, moved: Iterable[Topic]) -> Sequence[Binding]:
        """Those that wait for claims of which something has changed."""
        topics: set[Topic] = set()
        for topic in moved:
            kind, key = topic
            if kind in ("claim", CLAIM):
                topics.add(topic)
            elif kind == "volume":
                volume = self.cache.stock.volumes.get(str(key))
                if volume is None:
                    return tuple(self.claiming.values())
                chosen = [claim for claim, choice in self.cache.stock.chosen.items() if choice.volume == key]
                topics.update(Topic("claim", claim) for claim in (volume.claim, *chosen) if claim is not None)
        found = {uid: None for topic in topics for uid in self._claiming_by.get(topic, ())}
        return [self.claiming[uid] for uid in found]

    def claims_expire_at(self) -> Instant | None:
        """When the next pod has waited for its claims for too long."""
        return min((binding.expires_at for binding in self.claiming.values()), default=None)

    def expire_claims(self, now: Instant) -> Iterator[Binding]:
        """Takes back those that have."""
        for uid, binding in tuple(self.claiming.items()):
            if binding.expires_at <= now and self.claiming.get(uid) is binding:
                self._move(binding, Happening.EXPIRED)
                binding.message = TIMED_OUT
                yield binding

    def may_be_sent_again(self, binding: Binding) -> bool:
        """Whether the decision still holds: group and node are there, the minimum is in reach, and the pod fits."""
        if binding.node not in self.cache.nodes or self._is_out_of_reach(binding.entry):
            return False
        if not self._still_belongs(binding):
            return False
        at = self.cache.rooms.generation(binding.node)
        if binding.checked_at != at and not self._fit([binding]):
            return False
        binding.checked_at = self.cache.rooms.generation(binding.node)
        return True

    def _still_belongs(self, binding: Binding) -> bool:
        """Whether the groups of the pod, it included, are still in one domain where they have to be."""
        if binding.entry.kind is EntryKind.COMPOSITE:
            tree, leaf = tree_of(self.cache, binding.entry.key), binding.record.group or ""
            return self.recheck.are_together(tree, {leaf: {binding.node}})
        return binding.entry.kind is EntryKind.POD or self.recheck.is_together(binding.entry.key)

    def _fit(self, bindings: Sequence[Binding]) -> bool:
        """Asks the filters with these pods off their nodes; if they agree they are back there afterwards."""
        records = [self.cache.pods[binding.record.key] for binding in bindings]
        touched, moved = dict(self.cache.rooms.touched), set(self.cache.stock.moved)
        for record in records:
            self.cache.forget(record)
        placements = [(record, binding.node) for record, binding in zip(records, bindings, strict=True)]
        if not self.recheck.fits(placements):
            return False
        for record, node in placements:
            self.cache.assume(record, node)
        self.cache.rooms.touched = touched
        self.cache.stock.moved = moved
        return True

    def _is_out_of_reach(self, key: EntryKey) -> bool:
        """Whether a group is gone, or has nothing bound and, with all its slots, less than its minimum."""
        if key.kind is EntryKind.POD:
            return False
        if key.kind is EntryKind.COMPOSITE:
            root = self.cache.forest.composites.get(key.key)
            if root is None or root.terminating:
                return True
            return not is_satisfied(tree_of(self.cache, key.key)) and not self.has_bound(key)
        group, members = self.cache.groups.get(key.key), self.cache.members.get(key.key)
        if group is None or group.terminating or members is None:
            return True
        return len(members.running) + len(members.succeeded) < group.min_count and not self.has_bound(key)

    def drop_hopeless(self, key: EntryKey) -> None:
        """Gives back the other slots of an entry that has lost one, if they alone are of no use."""
        if self._is_out_of_reach(key):
            for binding in tuple(self._refused.get(key, {}).values()):
                if binding.step is Step.RETRYING:
                    self.drop(binding)

    def drop_short(self, key: EntryKey) -> Sequence[Binding]:
        """Gives back the slots of members that wait for claims and whose groups are below their minimum for good."""
        dropped: list[Binding] = []
        while short := self.parties.short(key):
            for binding in short:
                self.drop(binding)
            dropped += short
        return dropped

    def give_up_due(self) -> Instant | None:
        """When the next entry with nothing bound gives its slots back."""
        return min((at for key in self._refused if (at := self._gives_up_at(key)) is not None), default=None)

    def _gives_up_at(self, key: EntryKey) -> Instant | None:
        """None: not at all, or not while an answer is awaited."""
        refused = self._refused[key].values()
        if any(b.step is Step.BINDING for b in refused) or self._keeps_slots(key):
            return None
        return min(b.refused_at or 0 for b in refused) + GIVE_UP

    def _keeps_slots(self, key: EntryKey) -> bool:
        """Whether some of an entry is bound; of a PodGroup alone, only as its minimum needs what was refused."""
        if not self.has_bound(key):
            return False
        group, members = self.cache.groups.get(key.key), self.cache.members.get(key.key)
        if key.kind is not EntryKind.POD_GROUP or group is None or members is None:
            return True
        return len(members.running) + len(members.succeeded) - len(self._refused[key]) < group.min_count

    def give_up(self, now: Instant) -> Iterator[tuple[EntryKey, str]]:
        """Gives back the slots of entries that were refused for too long with nothing bound; yields what was said."""
        for key in tuple(self._refused):
            at = self._gives_up_at(key)
            if at is not None and at <= now:
                refused = tuple(self._refused[key].values())
                for binding in refused:
                    self._move(binding, Happening.EXPIRED)
                yield key, refused[0].message

    def refused(self) -> Mapping[EntryKey, Sequence[Binding]]:
        """Entries with refused bindings, for the views."""
        unrecorded = {key: it.waiting for key, it in self.recording.records.items() if it.message and it.waiting}
        return {**unrecorded, **{key: tuple(refused.values()) for key, refused in self._refused.items()}}

    def has_bound(self, key: EntryKey) -> bool:
        """Whether anything of the entry holds a node for certain: then its refused members keep their slots."""
        return any(self._is_certain(record) for record in self._members(key))

    def bound(self, key: EntryKey) -> int:
        """How many pods of the entry hold a node for certain."""
        return sum(self._is_certain(record) for record in self._members(key))

    def _members(self, key: EntryKey) -> Iterator[PodRecord]:
        """The members of a group that have a node, assumed ones included."""
        if key.kind is EntryKind.POD:
            return
        leaves = self.cache.forest.leaves(key.key) if key.kind is EntryKind.COMPOSITE else (key.key,)
        for leaf in leaves:
            members = self.cache.members.get(leaf)
            yield from members.running.values() if members is not None else ()

    def _is_certain(self, record: PodRecord) -> bool:
        binding = self.bindings.get(record.uid)
        return binding is None or binding.step is Step.BOUND
