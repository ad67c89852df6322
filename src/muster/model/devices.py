"""What the scheduler knows of devices, and what claims ask of them, without any Kubernetes shape in it.

Amounts are whole billionths (a quantity of 1 is 10**9), so that every quantity that Kubernetes can express is exact.
Names of attributes and capacities are complete: "domain/name", with the driver's own name for the domain where the
object gave none (D5).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from muster.model.terms import Term

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
