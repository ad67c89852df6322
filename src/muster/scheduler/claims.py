"""From API objects to what the scheduler knows of devices: slices, classes, claims, taint rules, and claims of groups.

Raw JSON in, records out, as `storage` is for volumes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from muster.api.cel.devices import DeviceFacts, DeviceProgram, Version, device_program
from muster.api.cel.programs import CompileError, EvaluationError
from muster.api.quantity import nanos
from muster.api.resource import DELETE_PROTECTION
from muster.model.devices import (
    EVERYWHERE,
    Allotment,
    Attribute,
    Choice,
    ClaimShape,
    Constraint,
    DeviceCapacity,
    DeviceClaim,
    DeviceKey,
    DeviceRecord,
    DeviceTaint,
    DeviceToleration,
    DeviceUse,
    Draw,
    Failure,
    Grant,
    GroupClaims,
    PoolKey,
    Range,
    Reach,
    SliceRecord,
    TaintRule,
    User,
)
from muster.model.keys import Key
from muster.scheduler.storage import terms_of

Raw = Mapping[str, Any]
IMPLICIT = "deviceclass.resource.kubernetes.io"
"""Domain of the extended resources that are named after a device class."""
_NOTHING: Raw = {}
_KINDS = (
    ("int", "ints", "int"),
    ("bool", "bools", "bool"),
    ("string", "strings", "string"),
    ("version", "versions", "version"),
)


# -- of pods and groups


def uses_of(spec: Raw, status: Raw) -> tuple[DeviceUse, ...]:
    """The claims of a pod; names of those that were made for it, or for its group, come from its status."""
    raw = spec.get("resourceClaims")
    if not raw:
        return ()
    made = {one.get("name"): one.get("resourceClaimName") or "" for one in status.get("resourceClaimStatuses") or ()}
    return tuple(_use(entry, made) for entry in raw)


def _use(entry: Raw, made: Mapping[Any, str]) -> DeviceUse:
    name, template = entry["name"], entry.get("resourceClaimTemplateName") or ""
    return DeviceUse(name, made.get(name, "") if template else entry["resourceClaimName"], template)


def extended_claim(status: Raw) -> str:
    """The claim for the extended resources of a pod, as its status says (D12)."""
    return str(status["extendedResourceClaimStatus"].get("resourceClaimName") or "")


def claims_of_group(raw: Raw) -> GroupClaims | None:
    """What a PodGroup says of claims; None: nothing."""
    entries = frozenset(
        (one["name"], one.get("resourceClaimName") or "", one.get("resourceClaimTemplateName") or "")
        for one in (raw.get("spec") or _NOTHING).get("resourceClaims") or ()
    )
    return GroupClaims(raw["metadata"]["uid"], entries) if entries else None


# -- claims


def claim(raw: Raw) -> DeviceClaim:
    """A ResourceClaim."""
    meta, status = raw["metadata"], raw.get("status") or _NOTHING
    owners = (owner["uid"] for owner in meta.get("ownerReferences") or () if owner.get("controller"))
    allocation = status.get("allocation")
    return DeviceClaim(
        key=Key(meta["namespace"], meta["name"]),
        uid=meta["uid"],
        shape=shape(raw.get("spec") or _NOTHING),
        version=str(meta.get("resourceVersion", "")),
        allotment=_allotment(allocation) if allocation is not None else None,
        users=tuple(User(u["resource"], u["name"], u["uid"]) for u in status.get("reservedFor") or ()),
        owner=next(owners, ""),
        terminating="deletionTimestamp" in meta,
        protected=DELETE_PROTECTION in (meta.get("finalizers") or ()),
        **_reported(status, allocation) if allocation is not None else {},
    )


def _reported(status: Raw, allocation: Raw) -> dict[str, Any]:
    """What drivers are still to report of the devices of a claim before its pods may be bound, or that it will not
    come."""
    told: dict[tuple[Any, ...], set[str]] = {}
    for one in status.get("devices") or ():
        device = one.get("driver"), one.get("pool"), one.get("device")
        true = {c.get("type") for c in one.get("conditions") or () if c.get("status") == "True"}
        told.setdefault(device, set()).update(true)
    awaited: list[str] = []
    failed = ""
    for result in (allocation.get("devices") or _NOTHING).get("results") or ():
        device = result["driver"], result["pool"], result["device"]
        there = told.get(device, set())
        name = "/".join(device)
        awaited += [f"{name}: {kind}" for kind in result.get("bindingConditions") or () if kind not in there]
        wrong = [kind for kind in result.get("bindingFailureConditions") or () if kind in there]
        failed = failed or (f"{name}: {wrong[0]}" if wrong else "")
    return {"awaited": tuple(awaited), "failed": failed}


def shape(spec: Raw) -> ClaimShape:
    """What a claim asks for."""
    devices = spec.get("devices") or _NOTHING
    requests = tuple(tuple(_choices(request)) for request in devices.get("requests") or ())
    return ClaimShape(requests, tuple(_constraint(one) for one in devices.get("constraints") or ()))


def _choices(request: Raw) -> Iterator[Choice]:
    name = request["name"]
    if (exactly := request.get("exactly")) is not None:
        yield _choice(name, exactly)
    for one in request.get("firstAvailable") or ():
        yield _choice(f"{name}/{one['name']}", one)


def _choice(name: str, raw: Raw) -> Choice:
    asked = (raw.get("capacity") or _NOTHING).get("requests") or _NOTHING
    return Choice(
        name,
        raw["deviceClassName"],
        tuple(_expressions(raw)),
        None if raw.get("allocationMode") == "All" else raw.get("count") or 1,
        bool(raw.get("adminAccess")),
        tuple(_toleration(one) for one in raw.get("tolerations") or ()),
        tuple(sorted((what, nanos(amount)) for what, amount in asked.items())),
    )


def _expressions(raw: Raw) -> Iterator[str]:
    for selector in raw.get("selectors") or ():
        if (cel := selector.get("cel")) is not None:
            yield cel["expression"]


def _toleration(raw: Raw) -> DeviceToleration:
    return DeviceToleration(
        raw.get("key") or "", raw.get("operator") or "Equal", raw.get("value") or "", raw.get("effect") or ""
    )


def _constraint(raw: Raw) -> Constraint:
    distinct = raw.get("distinctAttribute")
    return Constraint(distinct or raw["matchAttribute"], bool(distinct), tuple(raw.get("requests") or ()))


def _allotment(raw: Raw) -> Allotment:
    results = (raw.get("devices") or _NOTHING).get("results") or ()
    selector = raw.get("nodeSelector")
    return Allotment(tuple(map(_grant, results)), Reach(terms=terms_of(selector)) if selector else EVERYWHERE)


def _grant(raw: Raw) -> Grant:
    key = DeviceKey(raw["driver"], raw["pool"], raw["device"])
    consumed = {_complete(name, key.driver): nanos(q) for name, q in (raw.get("consumedCapacity") or _NOTHING).items()}
    return Grant(raw["request"], key, bool(raw.get("adminAccess")), tuple(sorted(consumed.items())))


# -- devices


class ClassRecord(NamedTuple):
    """A DeviceClass."""

    expressions: tuple[str, ...] = ()
    resource: str = ""
    """The extended resource that its devices serve (D12)."""
    created: str = ""


def device_class(raw: Raw) -> ClassRecord:
    """A DeviceClass."""
    spec = raw.get("spec") or _NOTHING
    created = raw["metadata"].get("creationTimestamp") or ""
    return ClassRecord(tuple(_expressions(spec)), spec.get("extendedResourceName") or "", created)


def resource_slice(raw: Raw) -> SliceRecord:
    """A ResourceSlice."""
    spec = raw["spec"]
    driver, pool = spec["driver"], spec["pool"]
    own = bool(spec.get("perDeviceNodeSelection"))
    counters = {
        (one["name"], name): nanos(counter["value"])
        for one in spec.get("sharedCounters") or ()
        for name, counter in (one.get("counters") or _NOTHING).items()
    }
    return SliceRecord(
        raw["metadata"]["name"],
        PoolKey(driver, pool["name"]),
        pool["generation"],
        pool["resourceSliceCount"],
        EVERYWHERE if own else _reach(spec),
        tuple(_device(one, driver, own) for one in spec.get("devices") or ()),
        counters,
    )


def _device(raw: Raw, driver: str, own: bool) -> DeviceRecord:
    draws = (
        Draw(one["counterSet"], name, nanos(counter["value"]))
        for one in raw.get("consumesCounters") or ()
        for name, counter in (one.get("counters") or _NOTHING).items()
    )
    return DeviceRecord(
        raw["name"],
        _named(((name, _attribute(value)) for name, value in (raw.get("attributes") or _NOTHING).items()), driver),
        _named(((name, _capacity(value)) for name, value in (raw.get("capacity") or _NOTHING).items()), driver),
        tuple(sorted(draws)),
        tuple(taint(one) for one in raw.get("taints") or ()),
        bool(raw.get("allowMultipleAllocations")),
        _reach(raw) if own else None,
        bool(raw.get("bindsToNode")),
        tuple(raw.get("bindingConditions") or ()),
        tuple(raw.get("bindingFailureConditions") or ()),
    )


def _named(pairs: Iterable[tuple[str, Any]], driver: str) -> Mapping[str, Any]:
    """By complete name; what names the driver itself goes before what leaves it out."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        complete = _complete(name, driver)
        if complete == name or complete not in found:
            found[complete] = value
    return found


def _complete(name: str, driver: str) -> str:
    return name if "/" in name else f"{driver}/{name}"


def _attribute(raw: Raw) -> Attribute:
    for one, many, kind in _KINDS:
        if raw.get(one) is not None:
            return Attribute(kind, (raw[one],))
        if raw.get(many) is not None:
            return Attribute(kind, tuple(raw[many]), listed=True)
    return Attribute("", ())


def _capacity(raw: Raw) -> DeviceCapacity:
    policy = raw.get("requestPolicy") or _NOTHING
    within = policy.get("validRange")
    return DeviceCapacity(
        nanos(raw["value"]),
        _amount(policy.get("default")),
        tuple(sorted(nanos(value) for value in policy.get("validValues") or ())),
        Range(_amount(within.get("min")) or 0, _amount(within.get("max")), _amount(within.get("step")))
        if within is not None
        else None,
    )


def _amount(quantity: Any) -> int | None:
    return None if quantity is None else nanos(quantity)


def _reach(raw: Raw) -> Reach:
    if raw.get("nodeName"):
        return Reach(raw["nodeName"])
    selector = raw.get("nodeSelector")
    return Reach(terms=terms_of(selector)) if selector is not None else EVERYWHERE


def taint(raw: Raw) -> DeviceTaint:
    return DeviceTaint(raw["key"], raw.get("value") or "", raw["effect"])


def taint_rule(raw: Raw) -> TaintRule:
    """A DeviceTaintRule."""
    spec = raw["spec"]
    means = spec.get("deviceSelector") or _NOTHING
    return TaintRule(
        taint(spec["taint"]), means.get("driver") or "", means.get("pool") or "", means.get("device") or ""
    )


# -- expressions


@dataclass(frozen=True, slots=True)
class Expression:
    """A matcher (`model.devices.Matcher`) that runs a program."""

    program: DeviceProgram

    @property
    def reads(self) -> frozenset[str] | None:
        return self.program.reads

    def __call__(self, driver: str, device: DeviceRecord) -> bool | Failure:
        facts = DeviceFacts(
            driver,
            {_split(name): _said(attribute) for name, attribute in device.attributes.items()},
            {_split(name): capacity.value for name, capacity in device.capacity.items()},
            device.shared,
        )
        try:
            return self.program.matches(facts)
        except EvaluationError as failure:
            return Failure(failure)


@dataclass(frozen=True, slots=True)
class Broken:
    """A matcher for an expression that cannot be compiled: it selects nothing, and says why."""

    why: str
    reads: frozenset[str] | None = frozenset()

    def __call__(self, driver: str, device: DeviceRecord) -> bool | Failure:
        return Failure(self.why)


def matcher(text: str) -> Expression | Broken:
    """What carries out an expression."""
    try:
        return Expression(device_program(text))
    except CompileError as failure:
        return Broken(str(failure))


def _split(name: str) -> tuple[str, str]:
    domain, _, rest = name.partition("/")
    return domain, rest


def _said(attribute: Attribute) -> Any:
    values = [Version(value) if attribute.kind == "version" else value for value in attribute.values]
    return values if attribute.listed else values[0] if values else None
