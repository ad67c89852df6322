"""From API objects to records: the only place where `api` meets `model` on the way in.

It reads raw JSON and decodes a typed view only for a class of pods not seen before, since it runs for every event.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, cast

from muster.api.instant import from_time
from muster.api.object import Object
from muster.api.quantity import amount
from muster.model.devices import GroupClaims
from muster.model.keys import Key
from muster.model.neighbours import Labels
from muster.model.records import CompositeRecord, GroupRecord, NodeRecord, Phase, PodRecord, Policy, Taint
from muster.scheduler.claims import claims_of_group, extended_claim, uses_of
from muster.scheduler.classes import Classes, Taken, growth_of, image_name, is_infeasible
from muster.scheduler.demands import labels_of
from muster.scheduler.families import Requirements, controller_of, selector_of
from muster.scheduler.storage import pod_volumes

Raw = Mapping[str, Any]

COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
MIRROR = "kubernetes.io/config.mirror"
INITIALLY_SCHEDULED = "PodGroupInitiallyScheduled"
COMPOSITE_INITIALLY_SCHEDULED = "CompositePodGroupInitiallyScheduled"
DEFAULT_SCHEDULER = "default-scheduler"

_CORDON = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
"""Says the same as spec.unschedulable, which a controller copies into it, later: one of the two is enough."""
_NOTHING: Raw = {}
_NOTHING_TAKEN = Taken((), None)
_MOST_LABELS = 50_000
_LONG = 10
"""No completion index has so many digits."""
_ENDED = {"Succeeded": Phase.SUCCEEDED, "Failed": Phase.FAILED}


class Malformed(Exception):
    """An object that cannot be understood; the message says what is wrong with it. It is skipped."""


class Ingest:
    """Makes records. Keeps what it has interned: classes, and the strings that many pods share.

    Args:
        groups: whether `schedulingGroup` counts (GenericWorkload); off, every pod is a single pod.
        features: whether pods need nodes that declare features (NodeDeclaredFeatures).
        topology: whether a group's topology constraint counts (TopologyAwareWorkloadScheduling, statement 2).
        shares: whether groups have claims for devices (DRAWorkloadResourceClaims, D26).
    """

    __slots__ = ("_classes", "_groups", "_labels", "_shares", "_strings", "_topology")

    def __init__(
        self, *, groups: bool = True, topology: bool = False, features: bool = True, shares: bool = False
    ) -> None:
        self._shares = shares
        self._classes = Classes(features=features)
        self._groups = groups
        self._topology = topology
        self._strings: dict[str, str] = {}
        self._labels: dict[Labels, Labels] = {}

    def pod(self, obj: Object) -> PodRecord:
        """
        Raises:
            Malformed: a field has another type than the API says, or a quantity is none.
        """
        try:
            return self._pod(obj.raw)
        except _WRONG as error:
            raise Malformed(_described(error)) from error

    def node(self, obj: Object) -> NodeRecord:
        """
        Raises:
            Malformed: as for `pod`.
        """
        try:
            return _node(obj.raw)
        except _WRONG as error:
            raise Malformed(_described(error)) from error

    def namespace(self, obj: Object) -> Mapping[str, str]:
        """Its labels.

        Raises:
            Malformed: as for `pod`.
        """
        try:
            return dict(labels_of(obj.raw["metadata"]))
        except _WRONG as error:
            raise Malformed(_described(error)) from error

    def storage(self, obj: Object, read: Callable[[Raw], Any]) -> Any:
        """What `read` (of `storage`) makes of it.

        Raises:
            Malformed: as for `pod`.
        """
        try:
            return read(obj.raw)
        except _WRONG as error:
            raise Malformed(_described(error)) from error

    def family(self, resource: str, obj: Object) -> Requirements:
        """What a Service or a controller of pods selects.

        Raises:
            Malformed: as for `pod`.
        """
        try:
            return selector_of(resource, obj.raw)
        except _WRONG as error:
            raise Malformed(_described(error)) from error

    def group(self, obj: Object) -> GroupRecord:
        """
        Raises:
            Malformed: as for `pod`, or a policy that is neither basic nor gang.
        """
        try:
            return self._group(obj.raw)
        except _WRONG as error:
            raise Malformed(_described(error)) from error

    def claims_of_group(self, obj: Object) -> GroupClaims | None:
        """What a PodGroup says of claims for devices; None: nothing.

        Raises:
            Malformed: as for `pod`.
        """
        try:
            return claims_of_group(obj.raw) if self._shares else None
        except _WRONG as error:
            raise Malformed(_described(error)) from error

    def composite(self, obj: Object) -> CompositeRecord:
        """
        Raises:
            Malformed: as for `group`.
        """
        try:
            return self._composite(obj.raw)
        except _WRONG as error:
            raise Malformed(_described(error)) from error

    def _pod(self, raw: Raw) -> PodRecord:
        meta, spec = raw["metadata"], raw["spec"]
        status: Raw = raw.get("status") or _NOTHING
        shared = self._shared
        cls = self._classes.of(raw, spec)
        node = spec.get("nodeName") or None
        phase = _ENDED.get(status.get("phase", "")) or (Phase.BOUND if node else Phase.PENDING)
        gates = spec.get("schedulingGates")
        started = status.get("startTime")
        taken = self._classes.taken(raw, spec, status, cls) if phase is Phase.BOUND else _NOTHING_TAKEN
        return PodRecord(
            key=Key(shared(meta["namespace"]), meta["name"]),
            uid=meta["uid"],
            cls=cls,
            priority=_integer(spec.get("priority") or 0, "spec.priority"),
            created=_instant(meta.get("creationTimestamp")),
            scheduler_name=shared(spec.get("schedulerName") or DEFAULT_SCHEDULER),
            phase=phase,
            node=shared(node) if node else None,
            usage=taken.usage,
            allocated=taken.allocated,
            growth=growth_of(spec, status) if phase is Phase.BOUND and "conditions" in status else None,
            mirror=MIRROR in (meta.get("annotations") or ()),
            infeasible=taken.usage is not cls.requests and is_infeasible(status),
            group=self._group_name(spec),
            terminating="deletionTimestamp" in meta,
            gates=tuple(gate["name"] for gate in gates) if gates else (),
            nominated_node=status.get("nominatedNodeName") or None,
            preemption_policy=shared(spec.get("preemptionPolicy") or "PreemptLowerPriority"),
            started=_instant(started) if started and status.get("phase") != "Pending" else 0,
            rank=_rank(meta),
            generation=meta.get("generation") or 0,
            labels=self._labels_of(meta),
            controller=controller_of(meta) if "ownerReferences" in meta else None,
            volumes=pod_volumes(meta["name"], spec) if "volumes" in spec else None,
            devices=uses_of(spec, status) if "resourceClaims" in spec else (),
            extended_claim=extended_claim(status) if "extendedResourceClaimStatus" in status else "",
        )

    def _labels_of(self, meta: Raw) -> Labels:
        """One instance for alike pods."""
        labels = labels_of(meta)
        if len(self._labels) >= _MOST_LABELS:
            self._labels.clear()
        return self._labels.setdefault(labels, labels)

    def _group_name(self, spec: Raw) -> str | None:
        group = spec.get("schedulingGroup") if self._groups else None
        name = group.get("podGroupName") if group else None
        return self._shared(name) if name else None

    def _shared(self, text: str) -> str:
        """One instance of equal strings: namespaces, nodes and groups are named by every one of their pods."""
        return self._strings.setdefault(text, text)

    def _group(self, raw: Raw) -> GroupRecord:
        return GroupRecord(**self._common(raw, "minCount", INITIALLY_SCHEDULED))

    def _composite(self, raw: Raw) -> CompositeRecord:
        return CompositeRecord(**self._common(raw, "minGroupCount", COMPOSITE_INITIALLY_SCHEDULED))

    def _common(self, raw: Raw, minimum: str, scheduled: str) -> dict[str, Any]:
        """The fields of a group of either kind; `minimum` and `scheduled` are the names of its own."""
        meta, spec = raw["metadata"], raw["spec"]
        policy = spec.get("schedulingPolicy") or _NOTHING
        gang = policy.get("gang")
        if gang is None and "basic" not in policy:
            raise ValueError("spec.schedulingPolicy has neither basic nor gang")
        mode = spec.get("disruptionMode") or _NOTHING
        return {
            "key": Key(self._shared(meta["namespace"]), self._shared(meta["name"])),
            "uid": meta["uid"],
            "generation": meta.get("generation") or 0,
            "policy": Policy.BASIC if gang is None else Policy.GANG,
            "min_count": 1 if gang is None else _integer(gang[minimum], f"spec.schedulingPolicy.gang.{minimum}"),
            "priority": _integer(spec.get("priority") or 0, "spec.priority"),
            "created": _instant(meta.get("creationTimestamp")),
            "topology_key": self._topology_key(spec),
            "disruption_all": mode.get("all") is not None,
            "parent": spec.get("parentCompositePodGroupName") or None,
            "preemption_policy": spec.get("preemptionPolicy") or None,
            "terminating": "deletionTimestamp" in meta,
            "scheduled": _is_true(raw, scheduled),
            "workload": self._shared((spec.get("workloadRef") or _NOTHING).get("workloadName") or ""),
        }

    def _topology_key(self, spec: Raw) -> str | None:
        constraints = (spec.get("schedulingConstraints") or _NOTHING).get("topology") if self._topology else None
        return constraints[0]["key"] if constraints else None


_WRONG = (ValueError, TypeError, KeyError, AttributeError, IndexError)


def _described(error: Exception) -> str:
    return f"{error.args[0]} is missing" if isinstance(error, KeyError) else str(error)


def _is_true(raw: Raw, kind: str) -> bool:
    conditions = (raw.get("status") or _NOTHING).get("conditions") or ()
    return any(c.get("type") == kind and c.get("status") == "True" for c in conditions)


def _integer(value: Any, field: str) -> int:
    if type(value) is not int:
        raise TypeError(f"{field} is {value!r}, which is no integer")
    return value


@lru_cache(maxsize=4096)
def _instant(text: str | None) -> int:
    return from_time(text) if text else 0


def _rank(meta: Raw) -> int | None:
    """The completion index; it is advice, so nonsense is none."""
    for kind in ("labels", "annotations"):
        index = (meta.get(kind) or _NOTHING).get(COMPLETION_INDEX)
        if isinstance(index, str) and index.isdecimal() and len(index) < _LONG:
            return int(index)
    return None


def _node(raw: Raw) -> NodeRecord:
    meta, spec, status = raw["metadata"], raw.get("spec") or _NOTHING, raw.get("status") or _NOTHING
    given = {name: amount(name, quantity) for name, quantity in (status.get("allocatable") or _NOTHING).items()}
    taints = {Taint(t["key"], t.get("value") or "", t["effect"]) for t in spec.get("taints") or ()}
    return NodeRecord(
        name=meta["name"],
        uid=meta["uid"],
        allocatable=tuple(sorted((name, value) for name, value in given.items() if value > 0)),
        labels=cast("Mapping[str, str]", meta.get("labels") or _NOTHING),
        taints=tuple(sorted(taints - {_CORDON})),
        unschedulable=bool(spec.get("unschedulable")) or _CORDON in taints,
        images={
            image_name(name): int(image.get("sizeBytes") or 0)
            for image in status.get("images") or ()
            for name in image.get("names") or ()
        },
        features=tuple(sorted(set(status.get("declaredFeatures") or ()))),
        resize_owners=tuple((spec.get("podPreemptionPolicy") or _NOTHING).get("disableResizePreemption") or ()),
    )
