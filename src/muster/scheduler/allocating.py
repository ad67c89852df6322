"""What has to happen to the device claims of a pod before it can be bound: devices are chosen for each, and it is
allocated and reserved, with one write for all pods of a plan that share it (D20, D22).

What was reserved for pods that are not bound in the end is taken back; with the last reservation of a claim its
allocation (D24).
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from muster.api import writes
from muster.api.calls import MERGE_PATCH, STRATEGIC_PATCH, Request, Response
from muster.api.instant import MINUTE, Instant
from muster.api.machine import Write
from muster.api.resource import DELETE_PROTECTION
from muster.model.devices import MOST_USERS, Allotment, DeviceClaim, User
from muster.model.diagnosis import Diagnosis, Reason
from muster.model.granting import extended_key
from muster.model.keys import Key
from muster.model.records import Phase, PodRecord
from muster.scheduler.cache import Cache
from muster.scheduler.entries import backoff
from muster.scheduler.grants import chosen_for, made_for, reaches, told, written
from muster.scheduler.recording import said
from muster.scheduler.volumes import Topic

CLAIMS = "resourceclaims"
GIVE_UP: Instant = MINUTE
"""So long writes for a claim may be refused before its pods give their places back."""
_OVER = frozenset({404, 410})


class DeviceTag(NamedTuple):
    """Tag of a write for a claim; `protects`: it puts the finalizer on only."""

    claim: Key
    number: int
    protects: bool = False


@dataclass(slots=True)
class Work:
    """What is to be written for one claim."""

    uid: str
    users: dict[str, User] = field(default_factory=dict)
    """For whom it is to be reserved, by uid of the pods that wait for it."""
    added: set[User] = field(default_factory=set)
    """Whom a write from here has reserved it for, as long as any of them is on the way."""
    stale: set[User] = field(default_factory=set)
    """Whose reservation is to be taken back."""
    free: bool = False
    """It is to be deallocated, unless somebody has it by then."""
    number: int = 0
    """Of the write that is awaited; 0: none."""
    before: frozenset[str] = frozenset()
    """The version that was last written to, and the one that the watch shows then: until it shows another one, nothing
    can be said."""
    retry_at: Instant | None = None
    attempts: int = 0
    refused_at: Instant | None = None
    message: str = ""
    hopeless: bool = False
    make: PodRecord | None = None
    """The pod for whose extended resources the claim is made (D12)."""
    made: bool = False
    """It was sent to be made, and is not shown yet."""
    told: bool = False
    """The pod was told of it, and does not show it yet."""


class Allocating:
    """Chooses devices, and says of pods on their way how far their claims are."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._works: dict[Key, Work] = {}
        self._numbers = 0
        self._due: dict[Key, None] = {}
        """Claims to be looked at before the machine rests."""
        self._retries: list[tuple[Instant, Key]] = []
        self._letters: list[Write] = []
        self._last: tuple[object, object, object, Mapping[Key, Allotment] | None] = (None, None, None, None)

    # -- of pods

    def unready(self, record: PodRecord) -> list[Key]:
        """The claims of a pod that are not allocated, not reserved for it, or whose devices are not ready (D20)."""
        stock = self._cache.devices
        if not record.devices and record.uid not in stock.extended:
            return []
        found = [key for key, user in stock.users(record).items() if not _is_ready(stock.claims.get(key), user)]
        made = stock.extended.get(record.uid)
        return [*found, made] if made is not None and made not in found and not self._knows(record, made) else found

    def _knows(self, record: PodRecord, made: Key) -> bool:
        """Whether a pod says which claim was made for its extended resources."""
        now = self._cache.pods.get(record.key)
        return now is not None and now.uid == record.uid and now.extended_claim == made.name

    def choices(self, placements: Sequence[tuple[PodRecord, str]]) -> Mapping[Key, Allotment] | None:
        """What each claim of these pods gets that has nothing; None: they cannot all be served there."""
        concern = self._cache.devices.concern
        pods = tuple((record, node) for record, node in placements if concern(record))
        if not pods:
            return {}
        known, nodes = self._cache.devices.columns(), self._cache.rooms.columns()
        where = tuple((record.uid, node) for record, node in pods)
        if self._last[0] is not known or self._last[1] is not nodes or self._last[2] != where:
            self._last = known, nodes, where, chosen_for(known, nodes, pods)
        return self._last[3]

    def begin(self, placements: Sequence[tuple[PodRecord, str]]) -> None:
        """These pods are on their way."""
        stock = self._cache.devices
        stock.choose(self.choices(placements) or {})
        for record, _ in placements:
            if stock.concern(record):
                stock.expect(record)

    def prepare(self, record: PodRecord) -> None:
        """The claims of a pod are to be made ready for it."""
        stock = self._cache.devices
        for key, user in stock.users(record).items():
            claim = stock.claims.get(key)
            if stock.extended.get(record.uid) == key:
                self._works.setdefault(key, Work("", make=record)).users[record.uid] = user
                self._due[key] = None
            elif claim is not None:
                self._work(key, claim).users[record.uid] = user
                self._due[key] = None

    def _work(self, key: Key, claim: DeviceClaim) -> Work:
        work = self._works.get(key)
        if work is None or work.uid != claim.uid:
            work = self._works[key] = Work(claim.uid)
        return work

    def trouble(self, record: PodRecord, node: str) -> str:
        """Why the claims of a pod will not be ready on this node; "": they may be."""
        stock = self._cache.devices
        for key, user in stock.users(record).items():
            claim, work, allotment = stock.claims.get(key), self._works.get(key), stock.allotment(key)
            named = f'resourceclaim "{key.name}"'
            if work is not None and work.hopeless:
                return f"{named} could not be allocated: {work.message}"
            if claim is None and work is not None and work.make is not None:
                continue
            if claim is None or claim.terminating or (work is not None and work.uid not in ("", claim.uid)):
                return f"{named} was deleted"
            if claim.failed:
                return f"{named}: a device cannot be made ready: {claim.failed}"
            if allotment is None:
                return f"{named} was deallocated"
            if not reaches(allotment.reach, self._cache.rooms.columns(), node):
                return f'{named} was allocated where node "{node}" cannot use it'
            if user not in claim.users and len(claim.users) >= MOST_USERS:
                return f"{named} is reserved for as many as it can be"
        return ""

    def leave(self, record: PodRecord, *, bound: bool) -> None:
        """A pod is not on its way any more; if it was not bound, its reservations are taken back."""
        made = self._cache.devices.extended.get(record.uid)
        if made is not None and not bound and self._knows(record, made):
            self._letters.append(Write(_told_pod(record, None), None))
        for key, user in self._cache.devices.leave(record.uid).items():
            work = self._works.get(key)
            if work is None:
                continue
            work.users.pop(record.uid, None)
            work.hopeless = work.hopeless and bool(work.users)
            if not bound and user in work.added and not self._is_needed(record, key, user):
                work.stale.add(user)
            self._due[key] = None

    def _is_needed(self, record: PodRecord, key: Key, user: User) -> bool:
        """Whether somebody else on the way, or bound, has the same reservation, or whoever ends it takes it back."""
        if user in self._cache.devices.coming.get(key, ()):
            return True
        if user.resource != "pods":
            members = self._cache.members.get(Key(record.key.namespace, user.name))
            return members is not None and bool(members.running)
        now = self._cache.pods.get(record.key)
        return now is None or now.uid != record.uid or now.phase is not Phase.PENDING or now.terminating

    def let_go(self, pods: Iterable[PodRecord], *, away: bool) -> None:
        """What claims of these pods, which cannot be placed now, are reserved for nobody else but them is let go (D24);
        `away`: so are claims that nobody has and that keep them where they cannot run (D15)."""
        stock = self._cache.devices
        mine: dict[Key, set[User]] = {}
        for record in pods:
            for key, user in stock.users(record).items() if stock.concern(record) else ():
                if user.resource == "pods" or not self._is_needed(record, key, user):
                    mine.setdefault(key, set()).add(user)
            if record.cls.extended:
                mine.setdefault(extended_key(record), set()).add(User("pods", record.key.name, record.uid))
        for key, users in mine.items():
            claim = stock.claims.get(key)
            if claim is None or claim.allotment is None or key in stock.coming:
                continue
            stale = users.intersection(claim.users)
            free = away and not claim.users and not claim.allotment.reach.everywhere
            if stale or free:
                work = self._work(key, claim)
                work.free = free
                work.stale |= stale
                self._due[key] = None

    # -- of claims

    def moved(self, topics: Collection[Topic]) -> None:
        """Something has changed about these claims."""
        if self._works:
            self._due.update((key, None) for _, key in topics if isinstance(key, Key) and key in self._works)

    @property
    def busy(self) -> bool:
        return bool(self._due) or bool(self._letters) or any(work.number for work in self._works.values())

    def due(self) -> Instant | None:
        """When the next refused write is to be sent again."""
        while self._retries:
            at, key = self._retries[0]
            work = self._works.get(key)
            if work is not None and work.retry_at == at:
                return at
            heapq.heappop(self._retries)
        return None

    def flush(self, now: Instant) -> Iterator[Write]:
        """What is to be written now."""
        while (at := self.due()) is not None and at <= now:
            key = heapq.heappop(self._retries)[1]
            self._works[key].retry_at, self._works[key].before = None, frozenset()
            self._due[key] = None
        letters, self._letters = self._letters, []
        yield from letters
        due, self._due = self._due, {}
        for key in due:
            work = self._works.get(key)
            if work is not None and not work.number:
                yield from self._next(key, work)

    def _next(self, key: Key, work: Work) -> Iterator[Write]:
        claim = self._cache.devices.claims.get(key)
        if work.make is not None and work.users and (claim is None or not work.uid):
            if claim is None or claim.owner != work.make.uid:
                yield from self._make(key, work, work.make)
                return
            work.uid, work.made = claim.uid, False
        if claim is None or claim.uid != work.uid or claim.terminating:
            del self._works[key]  # Whoever waits for it finds out; what is reserved goes with it.
            return
        if not (work.users or work.stale or work.free or key in self._cache.devices.coming):
            del self._works[key]
        elif claim.version not in work.before:
            work.retry_at = None
            work.stale &= set(claim.users)
            work.free = work.free and claim.allotment is not None
            wanted = self._wanted(key, work, claim)
            if wanted and claim.allotment is None and not claim.protected:
                yield self._write(key, claim, work, protects=True)
            elif wanted or work.stale or (work.free and not claim.users):
                yield self._write(key, claim, work)
            elif work.make is not None and work.users and not work.told and not self._knows(work.make, key):
                work.told = True
                about = told(work.make, key, claim.allotment) if claim.allotment is not None else None
                yield Write(_told_pod(work.make, about), self._tag(key, work))

    def _make(self, key: Key, work: Work, record: PodRecord) -> Iterator[Write]:
        allotment = self._cache.devices.allotment(key)
        if not work.made and work.retry_at is None and allotment is not None:
            work.made, work.uid = True, ""
            yield Write(
                writes.create(made_for(record, key, allotment, self._cache.devices.resources)), self._tag(key, work)
            )

    def _tag(self, key: Key, work: Work, *, protects: bool = False) -> DeviceTag:
        self._numbers += 1
        work.number = self._numbers
        return DeviceTag(key, work.number, protects)

    def _wanted(self, key: Key, work: Work, claim: DeviceClaim) -> list[User]:
        """Those that it is still to be reserved for; nobody while there is nothing to allocate."""
        if self._cache.devices.allotment(key) is None or claim.failed:
            return []
        wanted = dict.fromkeys(user for user in work.users.values() if user not in claim.users)
        return list(wanted)[: MOST_USERS - len(claim.users)]

    def _write(self, key: Key, claim: DeviceClaim, work: Work, version: str = "", *, protects: bool = False) -> Write:
        work.before = frozenset((claim.version, version or claim.version))
        meta = {"uid": claim.uid, "resourceVersion": version or claim.version}
        tag = self._tag(key, work, protects=protects)
        if protects:
            body: dict[str, object] = {"metadata": {**meta, "finalizers": [DELETE_PROTECTION]}}
            return Write(writes.patch(CLAIMS, *key, body, STRATEGIC_PATCH), tag)
        wanted = self._wanted(key, work, claim)
        work.added.update(wanted)
        left = [user for user in claim.users if user not in work.stale] + wanted
        status: dict[str, object] = {}
        if not left:
            status = {"reservedFor": None, "allocation": None, "devices": None}
        else:
            gone = ({"$patch": "delete", "uid": user.uid} for user in sorted(work.stale & set(claim.users)))
            status["reservedFor"] = [*map(_reservation, wanted), *gone]
            if claim.allotment is None:
                status["allocation"] = written(claim, self._cache.devices.chosen[key], self._cache.devices.columns())
        body = {"metadata": meta, "status": status}
        kind = STRATEGIC_PATCH if left else MERGE_PATCH
        return Write(writes.patch(CLAIMS, *key, body, kind, subresource="status"), tag)

    def answered(self, tag: DeviceTag, response: Response, now: Instant) -> Iterator[Write]:
        """How a write ended: after the finalizer comes the allocation at once, everything else the watch tells."""
        work = self._works.get(tag.claim)
        if work is None or work.number != tag.number:
            return
        work.number = 0
        self._due[tag.claim] = None
        if not response.ok:
            self._refused(tag.claim, work, response, now)
            return
        work.refused_at, work.attempts, work.message = None, 0, ""
        claim = self._cache.devices.claims.get(tag.claim)
        version = _version(response)
        if not (tag.protects and version) or claim is None or claim.uid != work.uid or claim.version not in work.before:
            return
        if self._wanted(tag.claim, work, claim) and not claim.terminating:
            yield self._write(tag.claim, claim, work, version)

    def _refused(self, key: Key, work: Work, response: Response, now: Instant) -> None:
        work.attempts += 1
        work.made = work.told = False
        work.message = said(response)
        work.refused_at = now if work.refused_at is None else work.refused_at
        work.hopeless = response.status in _OVER or now - work.refused_at >= GIVE_UP
        work.retry_at = now + backoff(work.attempts)
        heapq.heappush(self._retries, (work.retry_at, key))


def _told_pod(record: PodRecord, status: Mapping[str, object] | None) -> Request:
    """Tells a pod which claim was made for its extended resources, or that there is none."""
    body = {"metadata": {"uid": record.uid}, "status": {"extendedResourceClaimStatus": status}}
    return writes.patch("pods", *record.key, body, MERGE_PATCH, subresource="status")


def _is_ready(claim: DeviceClaim | None, user: User) -> bool:
    if claim is None or claim.allotment is None or claim.failed or claim.awaited:
        return False
    return user in claim.users


def keeps_away(diagnosis: Diagnosis) -> bool:
    """Whether devices that a claim has keep pods from a node."""
    verdicts = (diagnosis.rejections, *(verdict.rejections for verdict in diagnosis.pods.values()))
    return any(rejection.reason is Reason.DEVICE_AWAY for rejections in verdicts for rejection in rejections)


def _reservation(user: User) -> Mapping[str, str]:
    group = {"apiGroup": "scheduling.k8s.io"} if user.resource == "podgroups" else {}
    return {**group, "resource": user.resource, "name": user.name, "uid": user.uid}


def _version(response: Response) -> str:
    meta = response.body.get("metadata") if isinstance(response.body, Mapping) else None
    return str(meta.get("resourceVersion") or "") if isinstance(meta, Mapping) else ""
