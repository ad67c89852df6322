"""What the scheduler knows of devices, and what claims ask of them, without any Kubernetes shape in it.

Amounts are whole billionths (a quantity of 1 is 10**9), so that every quantity that Kubernetes can express is exact.
Names of attributes and capacities are complete: "domain/name", with the driver's own name for the domain where the
object gave none (D5).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import NamedTuple, Protocol

from muster.model.keys import Key
from muster.model.terms import Requirement, Term

UNIT = 10**9
"""An amount of 1."""


class PoolKey(NamedTuple):
    driver: str
    pool: str


class DeviceKey(NamedTuple):
    driver: str
    pool: str
    device: str

    def __str__(self) -> str:
        return "/".join(self)


class DeviceTaint(NamedTuple):
    """`effect` NoSchedule and NoExecute keep claims off that do not tolerate it; any other one only informs (D10)."""

    key: str
    value: str
    effect: str


class TaintRule(NamedTuple):
    """A taint on all devices that it means; "" means every driver, pool or device (DeviceTaintRule)."""

    taint: DeviceTaint
    driver: str = ""
    pool: str = ""
    device: str = ""

    def means(self, key: DeviceKey) -> bool:
        wanted = (self.driver, self.pool, self.device)
        return all(not one or one == other for one, other in zip(wanted, key, strict=True))


class DeviceToleration(NamedTuple):
    """`key` "" tolerates every key (operator Exists); `effect` "" every effect; operator Equal or Exists."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""

    def tolerates(self, taint: DeviceTaint) -> bool:
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        return self.operator == "Exists" or self.value == taint.value


Values = frozenset[tuple[str, object]]


class Attribute(NamedTuple):
    """What a device says of itself: one value, or (`listed`) any number; of kind int, bool, string or version."""

    kind: str
    values: tuple[object, ...]
    listed: bool = False

    @property
    def said(self) -> Values:
        """The values with their kind: what attributes have in common, whether they are lists or not (D6)."""
        return frozenset((self.kind, value) for value in self.values)


class Range(NamedTuple):
    """What a request may take of a capacity: from `least` on, in steps, up to `most`. None: no such limit."""

    least: int
    most: int | None = None
    step: int | None = None


@dataclass(frozen=True, slots=True)
class DeviceCapacity:
    """How much a device has of something, and what parts of it requests may take if they share the device (D11)."""

    value: int
    default: int | None = None
    """What a request takes that does not name it; None: everything."""
    values: tuple[int, ...] = ()
    """The amounts that can be taken, ascending; a request is rounded up to one of them. Empty: see `range`."""
    range: Range | None = None

    def taken_by(self, asked: int | None) -> int | None:
        """What a request takes, rounded up to what can be taken; None: so much cannot be taken."""
        if asked is None:
            return self.value if self.default is None else self.default
        if self.values:
            return next((value for value in self.values if value >= asked), None)
        if self.range is None:
            return asked
        least, most, step = self.range
        taken = max(asked, least)
        if step:
            taken = least + -(-(taken - least) // step) * step
        return taken if most is None or taken <= most else None


class Draw(NamedTuple):
    """What a device takes of a counter that devices of its pool share (D9)."""

    counters: str
    counter: str
    amount: int


@dataclass(frozen=True, slots=True)
class Reach:
    """From where a device can be used: from one node, from those that a selector means, or (neither) from all (D2)."""

    node: str = ""
    terms: tuple[Term, ...] | None = None

    @property
    def everywhere(self) -> bool:
        return not self.node and self.terms is None

    @property
    def selector(self) -> tuple[Term, ...] | None:
        """As alternatives that a node must satisfy one of; None: every node will do."""
        return (Term((Requirement(None, "In", (self.node,)),)),) if self.node else self.terms


EVERYWHERE = Reach()


@dataclass(frozen=True, slots=True)
class DeviceRecord:
    """One device of a slice. `attributes` and `capacity` are not to be changed."""

    name: str
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    capacity: Mapping[str, DeviceCapacity] = field(default_factory=dict)
    draws: tuple[Draw, ...] = ()
    taints: tuple[DeviceTaint, ...] = ()
    shared: bool = False
    """Whether several requests may have it at once, each a part of its capacity (D11)."""
    reach: Reach | None = None
    """Its own; None: that of its slice."""
    binds_to_node: bool = False
    conditions: tuple[str, ...] = ()
    """What its driver must report True before a pod may be bound."""
    failures: tuple[str, ...] = ()
    """What its driver reports if that will not come."""


@dataclass(frozen=True, slots=True)
class SliceRecord:
    """A ResourceSlice: some of the devices of a pool, or counters that its devices share."""

    name: str
    pool: PoolKey
    generation: int
    slices: int
    """How many slices its pool has at this generation."""
    reach: Reach = EVERYWHERE
    devices: tuple[DeviceRecord, ...] = ()
    counters: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """(counter set, counter) -> how much there is."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One way to meet a request. `name` is what an allocation calls it: the request, or "request/subrequest" (D7)."""

    name: str
    device_class: str
    selectors: tuple[str, ...] = ()
    """Expressions that a device must satisfy, besides those of the class."""
    count: int | None = 1
    """How many devices; None: all that match (D4)."""
    admin: bool = False
    """Ignores other users, and does not block them (D8)."""
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: tuple[tuple[str, int], ...] = ()
    """(name, amount) that each device must have, and give if it is shared. A name without "/" is the driver's own."""
    _hash: int = field(default=0, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        content = (
            self.name,
            self.device_class,
            self.selectors,
            self.count,
            self.admin,
            self.tolerations,
            self.capacity,
        )
        object.__setattr__(self, "_hash", hash(content))

    def __hash__(self) -> int:
        return self._hash

    @property
    def request(self) -> str:
        """The name of the request that it is a choice of."""
        return self.name.partition("/")[0]


class Constraint(NamedTuple):
    """What the devices of some requests must have in common, or must not (D6)."""

    attribute: str
    distinct: bool = False
    """False: one value in common to all; True: no value in common to any two."""
    requests: tuple[str, ...] = ()
    """Requests, or choices of them; none: all."""

    def covers(self, choice: Choice) -> bool:
        return not self.requests or choice.name in self.requests or choice.request in self.requests


@dataclass(frozen=True, slots=True)
class ClaimShape:
    """What a claim asks for. Claims of one shape are alike to an allocation."""

    requests: tuple[tuple[Choice, ...], ...]
    """For each request its choices, the best first; all but a prioritized list have one."""
    constraints: tuple[Constraint, ...] = ()
    _hash: int = field(default=0, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.requests, self.constraints)))

    def __hash__(self) -> int:
        return self._hash


class Grant(NamedTuple):
    """A device that a claim has, or a part of it."""

    request: str
    """The name of the choice that it was given for."""
    device: DeviceKey
    admin: bool = False
    consumed: tuple[tuple[str, int], ...] = ()
    """What it takes of a shared device, by the names of its capacities; () of one that is not shared."""


class Failure(str):
    """What went wrong when an expression was evaluated on a device."""


class Matcher(Protocol):
    """A compiled expression. It must say the same of devices that agree in the driver and in all that it reads."""

    @property
    def reads(self) -> frozenset[str] | None:
        """Last parts of the names of attributes and capacities that it may look at; None: it may look at any."""
        ...

    def __call__(self, driver: str, device: DeviceRecord) -> bool | Failure: ...


class User(NamedTuple):
    """Whom a claim is reserved for: a pod, or a whole group (D20). `resource` is pods, podgroups or another one."""

    resource: str
    name: str
    uid: str


class Allotment(NamedTuple):
    """What a claim was given, and from where that can be used."""

    grants: tuple[Grant, ...]
    reach: Reach = EVERYWHERE


@dataclass(frozen=True, slots=True)
class DeviceClaim:
    """A ResourceClaim."""

    key: Key
    uid: str
    shape: ClaimShape
    version: str = field(default="", compare=False)
    """Its resourceVersion, for a write that must not overtake another."""
    allotment: Allotment | None = None
    users: tuple[User, ...] = ()
    owner: str = ""
    """Uid of the pod or group that it was made for."""
    terminating: bool = False
    protected: bool = False
    """Whether it has the finalizer that keeps it while it is allocated (D27)."""
    awaited: tuple[str, ...] = ()
    """Binding conditions that its drivers have not reported yet, each with its device."""
    failed: str = ""
    """A device whose driver has reported that they will not come."""


class DeviceUse(NamedTuple):
    """An entry of a pod's `resourceClaims`."""

    entry: str
    claim: str
    """"": it is to be made from a template, and its name is not known yet (D14)."""
    template: str = ""
    """What it was made from, for the pod or for its group, which must own it; "": it is nobody's."""


class GroupClaims(NamedTuple):
    """What a PodGroup says of claims that it reserves for all its pods (D18, D20)."""

    uid: str
    entries: frozenset[tuple[str, str, str]]
    """(entry, claim that it names or "", template that it names or "")."""


class ClaimFlaw(Enum):
    """Why a claim keeps its pod from every node (D14, D13). The value is what a rejection calls it."""

    MISSING = "missing"
    UNMADE = "unmade"
    """It is to be made from a template; the name is that of the pod's entry."""
    NOT_OWNED = "foreign"
    TERMINATING = "terminating"
    FULL = "full"
    """It is reserved for as many as can be."""


class ExtendedRequest(NamedTuple):
    """What a container asks for of an extended resource (D12)."""

    request: str
    """What a claim for it calls it."""
    container: str
    resource: str
    amount: int


class PodClaims(NamedTuple):
    """What the claims of a pod come down to in one decision."""

    pinned: tuple[tuple[Term, ...], ...] = ()
    """Of each claim that is allocated, the nodes that can use it, as alternatives."""
    own: tuple[ClaimShape, ...] = ()
    """What is to be allocated for this pod alone."""
    joint: tuple[tuple[Key, ClaimShape], ...] = ()
    """What is to be allocated once for several pods of the decision."""
    flaw: tuple[ClaimFlaw, str] | None = None
    extended: tuple[tuple[str, ClaimShape], ...] = ()
    """By extended resource, what is to be allocated where no device plugin offers it (D12)."""


class DeviceLack(NamedTuple):
    """What a request of a claim lacks where it is nearest to being met."""

    request: str
    device_class: str
    needed: int
    """So many devices are asked for;"""
    found: int
    """so many are free there."""
    taken: int = 0
    """Further ones that would do, and that others have."""
    tainted: int = 0
    """Further ones that would do, but for a taint."""
    attribute: str = ""
    """In which the devices must agree, where that is what fails;"""
    value: str = ""
    """and the value that most of them have."""
    failed: str = ""
    """A device on which an expression failed,"""
    why: str = ""
    """and what it said."""
    claim: str = ""
    node: str = ""


@dataclass(frozen=True, eq=False)
class Offered:
    """The devices that there are, and what selects them; the same instance while nothing of that changes."""

    slices: Mapping[str, SliceRecord] = field(default_factory=dict)
    rules: tuple[TaintRule, ...] = ()
    classes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Device class -> its expressions."""
    matchers: Mapping[str, Matcher] = field(default_factory=dict)
    """Expression -> what carries it out: of all classes and claims. May grow."""
    cache: dict[object, object] = field(default_factory=dict)
    """What was worked out about it lives here, as long as it does."""


@dataclass(frozen=True)
class Devices:
    """Devices and claims at one revision; nothing in it is changed."""

    version: int = 0
    offered: Offered = field(default_factory=Offered)
    claims: Mapping[Key, DeviceClaim] = field(default_factory=dict)
    chosen: Mapping[Key, Allotment] = field(default_factory=dict)
    """What was decided for claims of pods that are on their way to their nodes."""

    groups: Mapping[Key, GroupClaims] = field(default_factory=dict)
    """By group, those that have claims."""
    resources: Mapping[str, str] = field(default_factory=dict)
    """Extended resource -> the device class whose devices serve it (D12)."""
    counted: Mapping[DeviceKey, tuple[Grant, ...]] | None = field(default=None, compare=False, repr=False)
    """What `held` comes to, if somebody has kept count of it."""

    def user(self, pod: Key, uid: str, group: str | None, use: DeviceUse) -> User:
        """For whom a claim of a pod is reserved: for its group, if that has the same entry (D18), or for itself."""
        return user_of(self.groups, pod, uid, group, use)

    @cached_property
    def held(self) -> Mapping[DeviceKey, tuple[Grant, ...]]:
        """By device, what claims have of it or are about to have."""
        if self.counted is not None:
            return self.counted
        found: dict[DeviceKey, tuple[Grant, ...]] = {}
        for key in {**self.claims, **self.chosen}:
            allotment = self.allotment(key)
            for grant in allotment.grants if allotment is not None else ():
                found[grant.device] = (*found.get(grant.device, ()), grant)
        return found

    def allotment(self, key: Key) -> Allotment | None:
        """What a claim has, or is about to have."""
        claim = self.claims.get(key)
        given = claim.allotment if claim is not None else None
        return given if given is not None else self.chosen.get(key)


def user_of(groups: Mapping[Key, GroupClaims], pod: Key, uid: str, group: str | None, use: DeviceUse) -> User:
    """For whom a claim of a pod is reserved, `groups` being those that have claims (D18)."""
    theirs = groups.get(Key(pod.namespace, group)) if group else None
    named = "" if use.template else use.claim
    if theirs is not None and group is not None and (use.entry, named, use.template) in theirs.entries:
        return User("podgroups", group, theirs.uid)
    return User("pods", pod.name, uid)


NO_DEVICES = Devices()
MOST_USERS = 256
"""Pods and groups that one claim may be reserved for (D13)."""
