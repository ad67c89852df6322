"""Devices and the claims for them, as a fold over watch events and own choices: the part of the cache about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import replace
from typing import Any

from muster.model.devices import (
    Allotment,
    ClaimShape,
    DeviceClaim,
    DeviceKey,
    Devices,
    Grant,
    GroupClaims,
    Matcher,
    Offered,
    SliceRecord,
    TaintRule,
    User,
    user_of,
)
from muster.model.granting import extended_key
from muster.model.keys import Key
from muster.model.records import PodRecord
from muster.scheduler.claims import IMPLICIT, ClassRecord, matcher
from muster.scheduler.volumes import Topic, claims_of, put

CLAIM = "device claim"
DEVICES = Topic("devices", "")
"""What there is: slices, classes, taints, and devices that came free."""
_MANY = 2_000
"""Expressions, and shapes of claims, that are kept without a look at who still names them."""


def topics_of(record: PodRecord) -> Iterator[Topic]:
    """The claims that a pod uses, and the one that may be made for it."""
    for use in record.devices:
        if use.claim:
            yield Topic(CLAIM, Key(record.key.namespace, use.claim))
    if record.cls.extended:
        yield Topic(CLAIM, extended_key(record))


def awaited(record: PodRecord) -> set[Topic]:
    """What a pod waits for that waits for its claims, of either kind."""
    return {*(Topic("claim", key) for key in claims_of(record)), *topics_of(record)}


class DeviceStock:
    """What is known of devices. `moved` are the topics of which something changed since they were last taken."""

    def __init__(self) -> None:
        self.slices: dict[str, SliceRecord] = {}
        self.classes: dict[str, ClassRecord] = {}
        self.resources: dict[str, str] = {}
        """Extended resource -> the class that serves it; of several the one that was made last (D12)."""
        self.extended: dict[str, Key] = {}
        """By uid of a pod on its way, the claim that is made for its extended resources."""
        self.rules: dict[str, TaintRule] = {}
        self.claims: dict[Key, DeviceClaim] = {}
        self.groups: dict[Key, GroupClaims] = {}
        self.chosen: dict[Key, Allotment] = {}
        """What claims get that are on their way to it."""
        self.coming: dict[Key, Counter[User]] = {}
        """By claim, for whom it will be reserved, and how many pods on their way need that."""
        self._expected: dict[str, Mapping[Key, User]] = {}
        """By uid of a pod on its way."""
        self.version = 0
        self.moved: set[Topic] = set()
        self._held: dict[DeviceKey, tuple[Grant, ...]] = {}
        self._matchers: dict[str, Matcher] = {}
        self._shapes: dict[ClaimShape, ClaimShape] = {}
        self._offered: Offered | None = Offered()
        self._seen = Devices()

    # -- the fold

    def put_slice(self, name: str, record: SliceRecord | None) -> None:
        if put(self.slices, name, record):
            self._offers_changed()

    def put_class(self, name: str, record: ClassRecord | None) -> None:
        if put(self.classes, name, record):
            by_age = sorted(self.classes.items(), key=lambda one: (one[1].created, one[0]))
            self.resources = {f"{IMPLICIT}/{one}": one for one in self.classes}
            self.resources.update((known.resource, one) for one, known in by_age if known.resource)
            self._offers_changed()

    def put_rule(self, name: str, rule: TaintRule | None) -> None:
        if put(self.rules, name, rule):
            self._offers_changed()

    def put_claim(self, key: Key, record: DeviceClaim | None) -> None:
        if record is not None:
            record = replace(record, shape=self._known_shape(record.shape))
        before = self.allotment(key)
        if not put(self.claims, key, record):
            return
        self._changed(Topic(CLAIM, key))
        self._count(before, self.allotment(key))

    def put_group(self, key: Key, claims: GroupClaims | None) -> None:
        """What a PodGroup says of claims."""
        if put(self.groups, key, claims):
            self._changed(DEVICES)

    def _known_shape(self, shape: ClaimShape) -> ClaimShape:
        """One instance for alike claims; its expressions are compiled."""
        known = self._shapes.get(shape)
        if known is None:
            if len(self._shapes) >= _MANY:
                self._shapes.clear()
            known = self._shapes[shape] = shape
        for choices in known.requests:
            for choice in choices:
                self._compile(choice.selectors)
        return known

    def _compile(self, expressions: Iterable[str]) -> None:
        for text in expressions:
            if text not in self._matchers:
                self._matchers[text] = matcher(text)

    def _offers_changed(self) -> None:
        self._offered = None
        self._changed(DEVICES)

    def _changed(self, *topics: Topic) -> None:
        self.version += 1
        self.moved.update(topics)

    def take_moved(self) -> Set[Topic]:
        moved, self.moved = self.moved, set()
        return moved

    def _count(self, before: Allotment | None, after: Allotment | None) -> None:
        """Keeps count of who has what when a claim has something else than before."""
        if before == after:
            return
        for grant in before.grants if before is not None else ():
            left = list(self._held[grant.device])
            left.remove(grant)
            if left:
                self._held[grant.device] = tuple(left)
            else:
                del self._held[grant.device]
        for grant in after.grants if after is not None else ():
            self._held[grant.device] = (*self._held.get(grant.device, ()), grant)
        if before is not None:
            self._changed(DEVICES)

    # -- own choices

    def choose(self, choices: Mapping[Key, Allotment]) -> None:
        """These claims are on their way to these devices."""
        for key, allotment in choices.items():
            before = self.allotment(key)
            self.chosen[key] = allotment
            self._count(before, self.allotment(key))
        self.version += bool(choices)

    def expect(self, record: PodRecord) -> None:
        """A pod is on its way: its claims will be reserved for it. One for its extended resources is made if something
        is chosen for that."""
        key = extended_key(record)
        if record.cls.extended and self.allotment(key) is not None:
            self.extended[record.uid] = key
        users = self._expected[record.uid] = self.users(record)
        for key, user in users.items():
            self.coming.setdefault(key, Counter())[user] += 1
        self.version += 1

    def leave(self, uid: str) -> Mapping[Key, User]:
        """It is not any more; what was chosen for claims that nobody else on the way needs is free again. Returns for
        whom its claims were to be reserved."""
        left = self._expected.pop(uid, {})
        self.extended.pop(uid, None)
        for key, user in left.items():
            self.version += 1
            users = self.coming[key]
            users[user] -= 1
            if not users[user]:
                del users[user]
            if not users:
                del self.coming[key]
                before = self.allotment(key)
                if self.chosen.pop(key, None) is not None:
                    self._count(before, self.allotment(key))
        return left

    # -- reading

    def allotment(self, key: Key) -> Allotment | None:
        """What a claim has, or is about to have."""
        claim = self.claims.get(key)
        if claim is None or claim.allotment is None:
            return self.chosen.get(key)
        return claim.allotment

    def users(self, record: PodRecord) -> Mapping[Key, User]:
        """By claim of a pod, for whom it is reserved."""
        found: dict[Key, User] = {}
        for use in record.devices:
            key = Key(record.key.namespace, use.claim)
            found.setdefault(key, user_of(self.groups, record.key, record.uid, record.group, use))
        made = self.extended.get(record.uid)
        if made is not None:
            found[made] = User("pods", record.key.name, record.uid)
        return found

    def concern(self, record: PodRecord) -> bool:
        """Whether a pod has claims, or asks for extended resources that a device class serves."""
        return bool(record.devices) or any(one.resource in self.resources for one in record.cls.extended)

    def topics(self, record: PodRecord) -> Iterator[Topic]:
        """All that bears on whether the claims of a pod can be met."""
        yield from topics_of(record)
        yield DEVICES

    def columns(self) -> Devices:
        """All of it as it is now; the same instance while nothing has changed."""
        if self._seen.version != self.version:
            claims = dict(self.claims)
            for key, users in self.coming.items():
                claim = claims.get(key)
                if claim is not None and not users.keys() <= set(claim.users):
                    claims[key] = replace(claim, users=tuple(dict.fromkeys((*claim.users, *users))))
            own = dict(self.chosen), dict(self.groups), self.resources, dict(self._held)
            self._seen = Devices(self.version, self._offers(), claims, *own)
        return self._seen

    def _offers(self) -> Offered:
        if self._offered is None:
            if len(self._matchers) > _MANY:
                shapes = {claim.shape for claim in self.claims.values()}
                choices = {choice for shape in shapes for choices in shape.requests for choice in choices}
                named = {text for choice in choices for text in choice.selectors}
                self._matchers = {text: known for text, known in self._matchers.items() if text in named}
            classes = {name: record.expressions for name, record in self.classes.items()}
            for expressions in classes.values():
                self._compile(expressions)
            rules = tuple(sorted(self.rules.values()))
            self._offered = Offered(dict(self.slices), rules, classes, self._matchers)
        return self._offered

    def fingerprint(self) -> Mapping[str, Any]:
        """What a rebuilt one must agree on, as plain data: what is chosen counts as not held."""
        held: dict[DeviceKey, Counter[Grant]] = {key: Counter(grants) for key, grants in self._held.items()}
        for key, allotment in self.chosen.items():
            if key not in self.claims or self.claims[key].allotment is None:
                for grant in allotment.grants:
                    held[grant.device][grant] -= 1
        return {
            "slices": dict(self.slices),
            "classes": dict(self.classes),
            "rules": dict(self.rules),
            "claims": dict(self.claims),
            "groups": dict(self.groups),
            "held": {key: dict(+grants) for key, grants in held.items() if +grants},
        }
