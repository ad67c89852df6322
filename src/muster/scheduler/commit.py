"""From a decision to bound pods: the re-check of a plan, and every pod's way to its node (`bindings`)."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from muster.api import writes
from muster.api.calls import Response
from muster.api.instant import MINUTE, Instant
from muster.api.machine import Write
from muster.engine.fit import in_one_domain, still_fits
from muster.engine.profile import Profile
from muster.model.keys import Key
from muster.model.plan import Plan
from muster.model.records import EntryKey, EntryKind, GroupNode, Phase, PodRecord, QueueEntry
from muster.scheduler.bindings import ENDED, SETTLED, TRANSITIONS, Binding, BindTag, Happening, Step
from muster.scheduler.cache import Cache
from muster.scheduler.entries import backoff
from muster.scheduler.parties import Parties
from muster.scheduler.prebind import PATIENCE, TIMED_OUT, Prebind, VolumeTag
from muster.scheduler.trees import is_satisfied, lets, nodes_of, tree_of
from muster.scheduler.volumes import Topic, claims_of

GIVE_UP: Instant = MINUTE
"""So long after the first refusal an entry with nothing bound gives its slots back."""


class Commit:
    """Bindings under way. Assumes and forgets in the cache; the queue is the caller's business."""

    def __init__(self, cache: Cache, profile: Profile) -> None:
        self.cache = cache
        self.bindings: dict[str, Binding] = {}
        self._profile = profile
        self._retries: list[tuple[Instant, str]] = []
        self._refused: dict[EntryKey, dict[str, Binding]] = {}
        """Bindings that were refused and not accepted since, by entry and pod uid."""
        self._arrived: list[Binding] = []
        self.prebind = Prebind(cache)
        self.parties = Parties(cache)
        self._claimants: Counter[Key] = Counter()
        """How many of the bindings use each claim."""
        self.claiming: dict[str, Binding] = {}
        """Those that wait for claims, their own or those of others of their group, by pod uid."""
        self._claiming_by: dict[Key, set[str]] = {}

    # -- the re-check

    def changed_nodes(self, plans: Sequence[Plan]) -> frozenset[str]:
        """Nodes that these plans rely on and that are not as they were. To be asked before any of them is taken."""
        generation, version = self.cache.rooms.generation, self.cache.neighbours.version
        return frozenset(
            node
            for plan in plans
            for node, at in (plan.generations or {}).items()
            if generation(node) != at or plan.neighbours not in (None, version)
        )

    def holds(self, head: QueueEntry, plan: Plan, changed: frozenset[str]) -> bool:
        """Whether a plan can be taken as it is: its pods and group are as they were, and its nodes too or fit still."""
        if not all(self._is_as_it_was(record, head, plan) for record in self._bound_by(head, plan)):
            return False
        if head.group is not None and not self._reaches_minimum(head, len(plan.binds)):
            return False
        if head.tree is not None and not self._satisfies_tree(head, plan):
            return False
        if head.group is not None and not self._is_together(head.group.key, {step.node for step in plan.binds}):
            return False
        pods = {record.uid: record for record in head.pods}
        storing = any(pods[step.uid].volumes is not None for step in plan.binds)
        if not storing and changed.isdisjoint(plan.generations or {step.node: 0 for step in plan.binds}):
            return True
        placements = [(pods[step.uid], step.node) for step in plan.binds]
        if not still_fits(self.cache.snapshot(), self._profile, placements):
            return False
        return not storing or self.prebind.choices(placements) is not None

    def _bound_by(self, head: QueueEntry, plan: Plan) -> Iterator[PodRecord]:
        taken = {step.uid for step in plan.binds}
        return (record for record in head.pods if record.uid in taken)

    def _is_as_it_was(self, record: PodRecord, head: QueueEntry, plan: Plan) -> bool:
        now = self.cache.pods.get(record.key)
        return now is record or (
            now is not None
            and now.uid == record.uid
            and now.phase is Phase.PENDING
            and not now.terminating
            and now.cls is record.cls
            and now.priority == record.priority
            and now.scheduler_name == record.scheduler_name
            and record.uid not in self.cache.assumed
        )

    def _reaches_minimum(self, head: QueueEntry, placed: int) -> bool:
        assert head.group is not None
        group, members = self.cache.groups.get(head.group.key), self.cache.members.get(head.group.key)
        if group is None or group.terminating or members is None or group.uid != head.group.uid:
            return False
        return len(members.running) + len(members.succeeded) + placed >= group.min_count

    def _is_together(self, key: Key, nodes: Iterable[str] = ()) -> bool:
        """Whether the running members of a group and these nodes are in one domain, if it has to be in one."""
        group, members = self.cache.groups.get(key), self.cache.members.get(key)
        if group is None or members is None or group.topology_key is None:
            return True
        names = {record.node or self.cache.assumed[record.uid] for record in members.running.values()}
        return in_one_domain((self.cache.nodes.get(name) for name in names.union(nodes)), group.topology_key)

    def _satisfies_tree(self, head: QueueEntry, plan: Plan) -> bool:
        """Whether every group on the way down to a pod of the plan is there and has its minimum with it."""
        root = self.cache.forest.composites.get(head.key.key)
        if root is None or root.uid != head.uid or root.terminating or root.parent is not None:
            return False
        placed: Counter[Key] = Counter()
        for record in self._bound_by(head, plan):
            if self.cache.owner(record) != head.key or record.group is None:
                return False
            placed[Key(record.key.namespace, record.group)] += 1
        tree = tree_of(self.cache, head.key.key)
        groups = {record.uid: record.group or "" for record in head.pods}
        where: dict[str, set[str]] = {}
        for step in plan.binds:
            where.setdefault(groups[step.uid], set()).add(step.node)
        return lets(tree, placed) and self._are_together(tree, where)

    def _are_together(self, tree: GroupNode, where: Mapping[str, set[str]]) -> bool:
        """Whether each group above these PodGroups is in one domain, if it has to be, with these nodes added."""
        for group in nodes_of(tree):
            key, leaves = group.record.topology_key, tuple(group.leaves())
            if key is None or not any(leaf.record.key.name in where for leaf in leaves):
                continue
            names = {pod.node for leaf in leaves for pod in leaf.bound if pod.node is not None}
            names.update(*(where.get(leaf.record.key.name, ()) for leaf in leaves))
            if not in_one_domain((self.cache.nodes.get(name) for name in names), key):
                return False
        return True

    # -- the way of each pod

    def start(self, head: QueueEntry, plan: Plan, now: Instant, *, quiet: bool) -> Iterator[Write]:
        """Assumes every pod of the plan on its node and sends the bindings, or first what their claims need."""
        by_uid = {record.uid: record for record in head.pods}
        storing = [(by_uid[step.uid], step.node) for step in plan.binds if by_uid[step.uid].volumes is not None]
        if storing:
            self.cache.stock.choose(self.prebind.choices(storing) or {})
        fresh = []
        for step in plan.binds:
            binding = Binding(self.cache.pods[by_uid[step.uid].key], step.node, head.key, quiet)
            binding.ready = not self.prebind.unbound(binding.record)
            self.cache.assume(binding.record, step.node)
            self.bindings[step.uid] = binding
            self._claimants.update(claims_of(binding.record))
            fresh.append(binding)
        self.parties.join(fresh)
        for binding in fresh:
            yield from self._send(binding, now)

    def _send(self, binding: Binding, now: Instant) -> Iterator[Write]:
        if binding.record.volumes is not None and self.prebind.unbound(binding.record):
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
        written = tuple(self.prebind.writes(binding.record, binding.attempts))
        binding.unanswered = len(written)
        yield from written

    def _await(self, binding: Binding) -> None:
        self.claiming[binding.record.uid] = binding
        for key in claims_of(binding.record):
            self._claiming_by.setdefault(key, set()).add(binding.record.uid)

    def _bind(self, binding: Binding) -> Write:
        self._move(binding, Happening.SENT)
        self.parties.leave(binding, ended=False)
        binding.attempts += 1
        key = binding.record.key
        request = writes.bind(key.namespace, key.name, binding.record.uid, binding.node)
        return Write(request, BindTag(binding.record.uid, binding.attempts))

    def _move(self, binding: Binding, happening: Happening) -> Step:
        binding.step = TRANSITIONS[binding.step, happening]
        if self.claiming.pop(binding.record.uid, None) is not None:
            for key in claims_of(binding.record):
                self._claiming_by[key].discard(binding.record.uid)
                if not self._claiming_by[key]:
                    del self._claiming_by[key]
        if binding.step in SETTLED:
            self._no_longer_refused(binding)
        if binding.step in ENDED:
            del self.bindings[binding.record.uid]
            self.parties.leave(binding, ended=True)
        if binding.step is Step.DROPPED:
            self.cache.forget(self.cache.pods.get(binding.record.key) or binding.record)
        if binding.step in ENDED and binding.record.volumes is not None:
            self._release(binding.record)
        return binding.step

    def _release(self, record: PodRecord) -> None:
        """What was chosen for its claims is free again, but for those that others on their way use too."""
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
        binding.message = _said(response)
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
        binding.message = _said(response)
        self._refuse(binding, response, now)
        return binding

    def _refuse(self, binding: Binding, response: Response, now: Instant) -> None:
        if response.status in (404, 409, 410):
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
        keys: set[Key] = set()
        for kind, key in moved:
            if kind == "claim" and isinstance(key, Key):
                keys.add(key)
            elif kind == "volume":
                volume = self.cache.stock.volumes.get(str(key))
                if volume is None:
                    return tuple(self.claiming.values())
                if volume.claim is not None:
                    keys.add(volume.claim)
                keys.update(claim for claim, choice in self.cache.stock.chosen.items() if choice.volume == key)
        found = {uid: None for claim in keys for uid in self._claiming_by.get(claim, ())}
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
        return binding.checked_at == at or self._fits(binding)

    def _still_belongs(self, binding: Binding) -> bool:
        """Whether the groups of the pod, it included, are still in one domain where they have to be."""
        if binding.entry.kind is EntryKind.COMPOSITE:
            tree, leaf = tree_of(self.cache, binding.entry.key), binding.record.group or ""
            return self._are_together(tree, {leaf: {binding.node}})
        return binding.entry.kind is EntryKind.POD or self._is_together(binding.entry.key)

    def _fits(self, binding: Binding) -> bool:
        """Asks the filters with the pod off the node; if they agree it is back there afterwards."""
        record, touched = self.cache.pods[binding.record.key], dict(self.cache.rooms.touched)
        moved = set(self.cache.stock.moved)
        self.cache.forget(record)
        fits = still_fits(self.cache.snapshot(), self._profile, [(record, binding.node)])
        if fits:
            self.cache.assume(record, binding.node)
            self.cache.rooms.touched = touched
            self.cache.stock.moved = moved
            binding.checked_at = self.cache.rooms.generation(binding.node)
        return fits

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
        if any(b.step is Step.BINDING for b in refused) or self.has_bound(key):
            return None
        return min(b.refused_at or 0 for b in refused) + GIVE_UP

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
        return {key: tuple(refused.values()) for key, refused in self._refused.items()}

    def has_bound(self, key: EntryKey) -> bool:
        """Whether anything of the entry holds a node for certain: then its refused members keep their slots."""
        if key.kind is EntryKind.POD:
            return False
        leaves = self.cache.forest.leaves(key.key) if key.kind is EntryKind.COMPOSITE else (key.key,)
        below = (members for leaf in leaves if (members := self.cache.members.get(leaf)) is not None)
        return any(self._is_certain(record) for members in below for record in members.running.values())

    def _is_certain(self, record: PodRecord) -> bool:
        binding = self.bindings.get(record.uid)
        return binding is None or binding.step is Step.BOUND


def _said(response: Response) -> str:
    body = response.body
    message = body.get("message") if isinstance(body, Mapping) else None
    return str(message) if message else f"status {response.status}"
