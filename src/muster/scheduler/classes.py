"""Pod classes from raw pod specs: what decides where a pod may run; equal classes are one instance."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from muster.api import core
from muster.api.instant import from_time
from muster.api.qos import BEST_EFFORT, BURSTABLE, GUARANTEED, qos_class
from muster.api.quantity import amount
from muster.api.requests import pod_allocated, pod_requests, pod_usage
from muster.model.devices import ExtendedRequest
from muster.model.records import (
    Amounts,
    Growth,
    HostPort,
    PodClass,
    Preference,
    Requirement,
    Term,
    Toleration,
)
from muster.model.resources import PODS
from muster.scheduler.claims import IMPLICIT
from muster.scheduler.demands import demands_of, looked_at
from muster.scheduler.features import required_features
from muster.scheduler.storage import pod_volumes

_MOST = 50_000
"""Fingerprints kept; when more differ, the oldest knowledge is thrown away as a whole (classes stay interned)."""

_RANKS = {GUARANTEED: 0, BURSTABLE: 1, BEST_EFFORT: 2}
_encode = msgspec.json.Encoder().encode


def amounts(given: Mapping[str, int]) -> Amounts:
    """Sorted, without zeros, and with the pod itself."""
    return tuple(sorted((name, amount) for name, amount in {**given, PODS: 1}.items() if amount > 0))


def image_name(name: str) -> str:
    """With the tag that is meant when none is given, so that a pod's image and a node's compare equal."""
    return name if ":" in name.rsplit("/", 1)[-1] else f"{name}:latest"


class Taken(NamedTuple):
    """What a pod takes from its node, and what of it its kubelet has set aside, where that differs."""

    usage: Amounts
    allocated: Amounts | None


class Classes:
    """Interns pod classes and usages. Two pods with the same relevant parts cost one look-up.

    Args:
        features: whether a class has the features that its node must declare.
    """

    __slots__ = ("_by_content", "_by_fingerprint", "_features", "_usages")

    def __init__(self, *, features: bool = True) -> None:
        self._features = features
        self._by_fingerprint: dict[bytes, PodClass] = {}
        self._by_content: dict[PodClass, PodClass] = {}
        self._usages: dict[bytes, Taken] = {}

    def of(self, raw: Mapping[str, Any], spec: Mapping[str, Any]) -> PodClass:
        """The class of this raw pod.

        Raises:
            ValueError: a field is malformed (msgspec.ValidationError is one).
        """
        stores = "volumes" in spec and pod_volumes("", spec) is not None
        devices = bool(spec.get("resourceClaims"))
        fingerprint = _encode((_relevant(spec), looked_at(raw["metadata"], spec), stores, devices))
        known = self._by_fingerprint.get(fingerprint)
        if known is None:
            if len(self._by_fingerprint) >= _MOST:
                self._by_fingerprint.clear()
            pod = msgspec.convert(raw, core.Pod, strict=False)
            made = pod_class(pod, features=self._features, stores=stores, devices=devices)
            known = self._by_fingerprint[fingerprint] = self._by_content.setdefault(made, made)
        return known

    def taken(self, raw: Mapping[str, Any], spec: Mapping[str, Any], status: Mapping[str, Any], cls: PodClass) -> Taken:
        """What a pod with a node takes from it: the class's own requests unless its status tells of other amounts."""
        told = _told(status)
        if told is None or _as_desired(spec, status):
            return Taken(cls.requests, None)
        fingerprint = _encode((_relevant(spec), told))
        known = self._usages.get(fingerprint)
        if known is None:
            if len(self._usages) >= _MOST:
                self._usages.clear()
            pod = msgspec.convert(raw, core.Pod, strict=False)
            usage, allocated = amounts(pod_usage(pod)), amounts(pod_allocated(pod))
            if usage == cls.requests:
                usage = cls.requests
            known = self._usages[fingerprint] = Taken(usage, None if allocated == usage else allocated)
        return known


def _relevant(spec: Mapping[str, Any]) -> tuple[Any, ...]:
    """The parts of a pod spec that make its class; names, commands and environments do not."""
    get = spec.get
    return (
        [_of_container(c) for c in get("containers") or ()],
        [_of_container(c) for c in get("initContainers") or ()],
        get("nodeSelector"),
        get("affinity"),
        get("tolerations"),
        get("overhead"),
        get("resources"),
        get("hostNetwork"),
        get("hostUsers"),
    )


def _of_container(container: Mapping[str, Any]) -> tuple[Any, ...]:
    get = container.get
    resources = get("resources")
    named = get("name") if resources is not None and _asks_for_extended(resources) else None
    return (get("image"), resources, get("ports"), get("restartPolicy"), get("restartPolicyRules"), named)


def _asks_for_extended(resources: Mapping[str, Any]) -> bool:
    wanted = resources.get("requests") or resources.get("limits")
    return any("/" in name for name in wanted or ())


def _extended(containers: Iterable[core.Container]) -> Iterator[ExtendedRequest]:
    """What each container asks for of resources that only device plugins, or device classes, know (D12)."""
    for i, container in enumerate(containers):
        wanted = {**container.resources.limits, **container.resources.requests}
        names = sorted(name for name in wanted if is_extended(name))
        for j, name in enumerate(names):
            count = amount(name, wanted[name])
            if count > 0:
                yield ExtendedRequest(f"container-{i}-request-{j}", container.name, name, count)


def is_extended(name: str) -> bool:
    """Whether a resource is none of Kubernetes' own; those that are named after a device class are not, either."""
    domain, slash, _ = name.rpartition("/")
    return bool(slash) and (domain == IMPLICIT or not f".{domain}".endswith(".kubernetes.io"))


def _told(status: Mapping[str, Any]) -> Any:
    """The parts of a status that bear on usage; None where there are none."""
    told: list[Any] = []
    for kind in ("containerStatuses", "initContainerStatuses"):
        for entry in status.get(kind) or ():
            if "resources" in entry or "allocatedResources" in entry:
                told.append((entry.get("name"), entry.get("resources"), entry.get("allocatedResources")))
    for kind in ("resources", "allocatedResources"):
        if kind in status:
            told.append((kind, status[kind]))
    if not told:
        return None
    told.extend(c.get("reason") for c in status.get("conditions") or () if c.get("type") == "PodResizePending")
    return told


def _as_desired(spec: Mapping[str, Any], status: Mapping[str, Any]) -> bool:
    """Whether every container has what its spec asks for, which is the rule: no resize is under way."""
    if "resources" in spec or "initContainerStatuses" in status or "initContainers" in spec:
        return False
    wanted = {each.get("name"): (each.get("resources") or {}).get("requests") for each in spec.get("containers") or ()}
    for entry in status.get("containerStatuses") or ():
        desired = wanted.get(entry.get("name"))
        if not desired:
            return False
        if entry.get("allocatedResources", desired) != desired:
            return False
        if (entry.get("resources") or {}).get("requests", desired) != desired:
            return False
    return True


def growth_of(spec: Mapping[str, Any], status: Mapping[str, Any]) -> Growth | None:
    """The resize that waits for room: condition PodResizePending is True with reason Deferred (R1).

    Raises:
        ValueError: a time or a resource is malformed.
    """
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodResizePending":
            if condition.get("status") != "True" or condition.get("reason") != "Deferred":
                return None
            since = condition.get("lastTransitionTime")
            view = msgspec.convert(spec, core.PodSpec, strict=False)
            return Growth(_RANKS[qos_class(view)], from_time(since) if since else 0)
    return None


def is_infeasible(status: Mapping[str, Any]) -> bool:
    """Whether condition PodResizePending is True with reason Infeasible."""
    return any(
        it.get("type") == "PodResizePending" and it.get("status") == "True" and it.get("reason") == "Infeasible"
        for it in status.get("conditions") or ()
    )


def pod_class(pod: core.Pod, *, features: bool = True, stores: bool = False, devices: bool = False) -> PodClass:
    """Everything about a pod that decides where it may run; `stores`: volumes do too; `devices`: claims for them do."""
    spec = pod.spec
    affinity = spec.affinity.node_affinity if spec.affinity else None
    running = (*spec.containers, *(c for c in spec.init_containers if c.sidecar))
    return PodClass(
        requests=amounts(pod_requests(pod)),
        node_selector=tuple(sorted(spec.node_selector.items())),
        required=_required(affinity),
        preferred=tuple(Preference(p.weight, _term(p.preference)) for p in (affinity.preferred if affinity else ())),
        tolerations=tuple(sorted({_toleration(t) for t in spec.tolerations}, key=repr)),
        host_ports=tuple(sorted(set(_host_ports(running, host_network=spec.host_network)))),
        images=tuple(sorted({image_name(c.image) for c in (*spec.containers, *spec.init_containers) if c.image})),
        features=required_features(spec) if features else (),
        demands=demands_of(pod),
        stores=stores,
        devices=devices,
        extended=tuple(_extended((*spec.init_containers, *spec.containers))),
    )


def _required(affinity: core.NodeAffinity | None) -> tuple[Term, ...] | None:
    if affinity is None or affinity.required is None:
        return None
    return tuple(_term(term) for term in affinity.required.node_selector_terms)


def _term(term: core.NodeSelectorTerm) -> Term:
    labels = (Requirement(r.key, r.operator, r.values) for r in term.match_expressions)
    names = (Requirement(None, r.operator, r.values) for r in term.match_fields)
    return Term((*labels, *names))


def _toleration(t: core.Toleration) -> Toleration:
    return Toleration(t.key, t.operator or "Equal", t.value, t.effect, t.toleration_seconds)


def _host_ports(containers: Iterable[core.Container], *, host_network: bool) -> Iterable[HostPort]:
    for container in containers:
        for port in container.ports:
            number = port.host_port or (port.container_port if host_network else 0)
            if number:
                yield HostPort(port.protocol or "TCP", number, port.host_ip or "0.0.0.0")
