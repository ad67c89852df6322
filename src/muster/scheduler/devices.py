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
from muster.model.keys import Key
from muster.model.records import PodRecord
from muster.scheduler.claims import matcher
from muster.scheduler.volumes import Topic, put

CLAIM = "device claim"
DEVICES = Topic("devices", "")
"""What there is: slices, classes, taints, and devices that came free."""
_MANY = 2_000
"""Expressions, and shapes of claims, that are kept without a look at who still names them."""


def topics_of(record: PodRecord) -> Iterator[Topic]:
    """The claims that a pod uses."""
    for use in record.devices:
        if use.claim:
            yield Topic(CLAIM, Key(record.key.namespace, use.claim))


class DeviceStock:
    """What is known of devices. `moved` are the topics of which something changed since they were last taken."""

    def __init__(self) -> None:
        self.slices: dict[str, SliceRecord] = {}
        self.classes: dict[str, tuple[str, ...]] = {}
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

    def put_class(self, name: str, expressions: tuple[str, ...] | None) -> None:
        if put(self.classes, name, expressions):
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
        """A pod is on its way: its claims will be reserved for it."""
        users = self._expected[record.uid] = self.users(record)
        for key, user in users.items():
            self.coming.setdefault(key, Counter())[user] += 1
        self.version += 1

    def leave(self, uid: str) -> Mapping[Key, User]:
        """It is not any more; what was chosen for claims that nobody else on the way needs is free again. Returns for
        whom its claims were to be reserved."""
        left = self._expected.pop(uid, {})
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
        if claim is None:
            return None
        return claim.allotment if claim.allotment is not None else self.chosen.get(key)

    def users(self, record: PodRecord) -> Mapping[Key, User]:
        """By claim of a pod, for whom it is reserved."""
        found: dict[Key, User] = {}
        for use in record.devices:
            key = Key(record.key.namespace, use.claim)
            found.setdefault(key, user_of(self.groups, record.key, record.uid, record.group, use))
        return found

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
            self._seen = Devices(
                self.version, self._offers(), claims, dict(self.chosen), dict(self.groups), dict(self._held)
            )
        return self._seen

    def _offers(self) -> Offered:
        if self._offered is None:
            if len(self._matchers) > _MANY:
                shapes = {claim.shape for claim in self.claims.values()}
                choices = {choice for shape in shapes for choices in shape.requests for choice in choices}
                named = {text for choice in choices for text in choice.selectors}
                self._matchers = {text: known for text, known in self._matchers.items() if text in named}
            for expressions in self.classes.values():
                self._compile(expressions)
            rules = tuple(sorted(self.rules.values()))
            self._offered = Offered(dict(self.slices), rules, dict(self.classes), self._matchers)
        return self._offered

    def fingerprint(self) -> Mapping[str, Any]:
        """What a rebuilt one must agree on, as plain data: what is chosen counts as not held."""
        held: dict[DeviceKey, Counter[Grant]] = {key: Counter(grants) for key, grants in self._held.items()}
        for key, allotment in self.chosen.items():
            if key in self.claims and self.claims[key].allotment is None:
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
