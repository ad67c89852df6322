"""Which nodes are to have a pod of a DaemonSet, and how such a pod gets to its node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from muster.api.core import NodeSelector
from muster.api.object import Object
from muster.controllers.pod_status import node_of
from muster.controllers.taints import NO_EXECUTE, NO_SCHEDULE, NOT_READY, UNREACHABLE, UNSCHEDULABLE, tolerates
from muster.controllers.volumes.matching import admits

Raw = Mapping[str, Any]
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_NAME = "metadata.name"
_ALWAYS = (
    (NOT_READY, NO_EXECUTE),
    (UNREACHABLE, NO_EXECUTE),
    ("node.kubernetes.io/disk-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/memory-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/pid-pressure", NO_SCHEDULE),
    (UNSCHEDULABLE, NO_SCHEDULE),
)
_ON_THE_HOST = ("node.kubernetes.io/network-unavailable", NO_SCHEDULE)


class Verdict(NamedTuple):
    """`wanted`: the node is to have a pod. `kept`: a pod that is there may stay."""

    wanted: bool
    kept: bool


NOWHERE = Verdict(False, False)


class Eligible:
    """The nodes that the template of a DaemonSet admits."""

    def __init__(self, template: Raw) -> None:
        spec = template.get("spec") or {}
        self._node = spec.get("nodeName") or ""
        self._labels: Raw = spec.get("nodeSelector") or {}
        required = _required(spec)
        self._selector = msgspec.convert(required, NodeSelector, strict=False) if required else None
        self._tolerations = tolerations(spec)

    def on(self, node: Object) -> Verdict:
        labels = node.meta.get("labels") or {}
        if self._node and self._node != node.name:
            return NOWHERE
        if any(labels.get(key) != value for key, value in self._labels.items()):
            return NOWHERE
        if self._selector is not None and not admits(self._selector, node):
            return NOWHERE
        effects = {
            taint.get("effect")
            for taint in (node.raw.get("spec") or {}).get("taints") or ()
            if not any(tolerates(each, taint) for each in self._tolerations)
        }
        return Verdict(not effects & {NO_SCHEDULE, NO_EXECUTE}, NO_EXECUTE not in effects)


def _required(spec: Raw) -> Raw:
    return ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(_REQUIRED) or {}


def tolerations(spec: Raw) -> list[Raw]:
    """Those of the template, and those of every daemon: it stays on nodes that are in trouble, and starts there."""
    found: list[Raw] = list(spec.get("tolerations") or ())
    for key, effect in (*_ALWAYS, *((_ON_THE_HOST,) if spec.get("hostNetwork") else ())):
        mine = {"key": key, "operator": "Exists", "effect": effect}
        if mine not in found:
            found.append(mine)
    return found


def on_node(spec: Raw, node: str) -> dict[str, Any]:
    """A pod's spec by which the scheduler binds it to this node and no other."""
    affinity = spec.get("affinity") or {}
    of_node = affinity.get("nodeAffinity") or {}
    field = {"key": _NAME, "operator": "In", "values": [node]}
    terms: Sequence[Raw] = _required(spec).get("nodeSelectorTerms") or ({},)
    required = {"nodeSelectorTerms": [{**term, "matchFields": [field]} for term in terms]}
    return {
        **spec,
        "affinity": {**affinity, "nodeAffinity": {**of_node, _REQUIRED: required}},
        "tolerations": tolerations(spec),
    }


def target_of(pod: Object) -> str:
    """The node that a daemon's pod is on or is meant for; "" if it says none."""
    bound = node_of(pod)
    if bound:
        return bound
    for term in _required(pod.raw.get("spec") or {}).get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            if field.get("key") == _NAME and field.get("operator") == "In" and len(field.get("values") or ()) == 1:
                return str(field["values"][0])
    return ""
