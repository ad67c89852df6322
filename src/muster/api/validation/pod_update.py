"""What may change in a pod's spec: images, a deadline, more tolerations, fewer gates; while gated, where it may run.

Everything else is refused, also fields Muster does not read. `resize` has its own rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from muster.api.core import Affinity, NodeAffinity, NodeSelectorTerm, Pod, PodSpec, Toleration
from muster.api.gates import FeatureGates
from muster.api.qos import qos_class
from muster.api.validation import checks, containers
from muster.api.validation.checks import Errors
from muster.api.validation.field import SPEC, FieldError, Path

Json = dict[str, Any]

_MAY_CHANGE = ("activeDeadlineSeconds", "tolerations", "schedulingGates", "schedulingGroup")
_WHILE_GATED = ("nodeSelector", "affinity")
_FIELDS_TEXT = (
    "pod updates may not change fields other than spec.containers[*].image, spec.initContainers[*].image, "
    "spec.activeDeadlineSeconds, spec.tolerations (only additions), spec.schedulingGates (only removals)"
)


def changes(new_raw: Mapping[str, Any], old_raw: Mapping[str, Any], new: PodSpec, old: PodSpec) -> Errors:
    """Errors of an update of a pod's spec, beyond those of the new spec itself."""
    errors = _group(new, old) + _gates(new, old) + _tolerations(new, old) + _deadline(new, old)
    for field, before, after in (
        ("initContainers", old.init_containers, new.init_containers),
        ("containers", old.containers, new.containers),
    ):
        if len(before) != len(after):
            return [*errors, (SPEC / field).forbidden("pod updates may not add or remove containers")]
    if old.scheduling_gates:
        errors += _node_selector(new, old) + _affinity(new, old)
    return errors + _the_rest(new_raw, old_raw, gated=bool(old.scheduling_gates))


def _the_rest(new: Mapping[str, Any], old: Mapping[str, Any], *, gated: bool) -> Errors:
    ignored = {*_MAY_CHANGE, *(_WHILE_GATED if gated else ())}
    changed = sorted(
        field
        for field in new.keys() | old.keys()
        if field not in ignored and not _same(_compared(field, new), _compared(field, old))
    )
    if not changed:
        return []
    if changed == ["nodeName"]:
        return [(SPEC / "nodeName").forbidden("is set by the scheduler through pods/binding, and never changed")]
    hint = " (requests and limits change through pods/resize)" if changed == ["containers"] else ""
    return [SPEC.forbidden(f"{_FIELDS_TEXT}; changed: {', '.join(f'spec.{field}' for field in changed)}{hint}")]


def _same(new: Any, old: Any) -> bool:
    """Equal, where absent and empty are the same."""
    return bool(new == old) or (not new and not old and new in (None, {}, [], "") and old in (None, {}, [], ""))


def _compared(field: str, spec: Mapping[str, Any]) -> Any:
    """The value of a field; containers without their images."""
    value = spec.get(field)
    if field not in ("containers", "initContainers") or not isinstance(value, list):
        return value
    return [{key: entry for key, entry in container.items() if key != "image"} for container in value]


def _group(new: PodSpec, old: PodSpec) -> Errors:
    """The group is set on create and stays (V31)."""
    return checks.unchanged(new.scheduling_group, old.scheduling_group, SPEC / "schedulingGroup")


def _gates(new: PodSpec, old: PodSpec) -> Errors:
    known = {gate.name for gate in old.scheduling_gates}
    return [
        (SPEC / "schedulingGates" // i / "name").forbidden(
            f"only deletion is allowed, but found new gate {gate.name!r}"
        )
        for i, gate in enumerate(new.scheduling_gates)
        if gate.name not in known
    ]


def _tolerations(new: PodSpec, old: PodSpec) -> Errors:
    """Tolerations may be added, and change their tolerationSeconds."""
    if new.tolerations == old.tolerations:
        return []
    present = {_identity(toleration) for toleration in new.tolerations}
    if all(_identity(toleration) in present for toleration in old.tolerations):
        return []
    message = "existing tolerations can not be removed or modified except their tolerationSeconds"
    return [(SPEC / "tolerations").forbidden(message)]


def _identity(toleration: Toleration) -> tuple[str, str, str, str]:
    return toleration.key, toleration.operator, toleration.value, toleration.effect


def _deadline(new: PodSpec, old: PodSpec) -> Errors:
    """It may be set once, and come closer."""
    after, before = new.active_deadline_seconds, old.active_deadline_seconds
    at = SPEC / "activeDeadlineSeconds"
    if before is None or after == before:
        return []
    if after is None:
        return [at.invalid(after, "must not update from a positive integer to nil value")]
    return [at.invalid(after, f"must be less than or equal to previous value {before}")] if after > before else []


# --- while gated -------------------------------------------------------------------------------------------------


def _node_selector(new: PodSpec, old: PodSpec) -> Errors:
    if all(new.node_selector.get(key) == value for key, value in old.node_selector.items()):
        return []
    message = "only additions are allowed while the pod has scheduling gates (no mutations or deletions)"
    return [(SPEC / "nodeSelector").invalid(new.node_selector, message)]


def _affinity(new: PodSpec, old: PodSpec) -> Errors:
    """Required node affinity may only get narrower; preferred node affinity is free; the rest stays."""
    after, before = new.affinity, old.affinity
    if after == before:
        return []
    at = SPEC / "affinity"
    after, before = after or Affinity(), before or Affinity()
    errors = checks.immutable_fields(after, before, at, ("pod_affinity", "pod_anti_affinity"))
    return errors + _required(after.node_affinity, before.node_affinity, at / "nodeAffinity")


def _required(new: NodeAffinity | None, old: NodeAffinity | None, path: Path) -> Errors:
    before = old.required.node_selector_terms if old and old.required else ()
    if not before:
        return []
    after = new.required.node_selector_terms if new and new.required else ()
    at = path / "requiredDuringSchedulingIgnoredDuringExecution" / "nodeSelectorTerms"
    if len(after) != len(before):
        return [at.invalid(len(after), "no terms may be added or removed while the pod has scheduling gates")]
    return [
        (at // i).invalid(term, "only additions are allowed (no mutations or deletions)")
        for i, (term, was) in enumerate(zip(after, before, strict=True))
        if not _narrows(term, was)
    ]


def _narrows(term: NodeSelectorTerm, was: NodeSelectorTerm) -> bool:
    if not was.match_expressions and not was.match_fields:
        # An empty term matches nothing; anything added would match more.
        return term == was
    return set(was.match_expressions) <= set(term.match_expressions) and set(was.match_fields) <= set(term.match_fields)


# --- resize ------------------------------------------------------------------------------------------------------

_RESIZED = ("resources", "resizePolicy")


def resize(new: Mapping[str, Any], old: Mapping[str, Any], gates: FeatureGates) -> Errors:
    """`pods/resize` may change the cpu and memory of containers (and of the pod), and not its QoS class (KEP-1287)."""
    view, before = checks.typed(new, Pod), checks.typed(old, Pod)
    for side in (view, before):
        if isinstance(side, FieldError):
            return [side]
    assert isinstance(view, Pod) and isinstance(before, Pod)
    errors = _resizable(view, before)
    if errors:
        return errors
    if not _same(_without_amounts(new.get("spec", {})), _without_amounts(old.get("spec", {}))):
        return [SPEC.forbidden("only cpu and memory of resources may be changed through pods/resize")]
    errors = containers.containers(view.spec, SPEC) or _kept_amounts(view.spec, before.spec) or _fixed_inits(new, old)
    if errors:
        return errors
    if qos_class(view.spec) != qos_class(before.spec):
        now, then = qos_class(before.spec), qos_class(view.spec)
        message = f"Pod QOS Class may not change as a result of resizing: it would, from {now} to {then}"
        errors.append(SPEC.invalid(qos_class(view.spec), message))
    return errors


def resized(given: Mapping[str, Any], old: Mapping[str, Any]) -> Mapping[str, Any]:
    """The old spec with the resources and resize policies of a new one; the new one itself if it has other containers,
    for `resize` to say so. As kube-apiserver does it, other changes are no error: they are left out."""
    made: Json = {key: value for key, value in old.items() if key != "resources"}
    if "resources" in given:
        made["resources"] = given["resources"]
    for field in ("containers", "initContainers"):
        new, before = given.get(field) or [], old.get(field) or []
        if [one.get("name") for one in new] != [one.get("name") for one in before]:
            return given
        if field in old:
            made[field] = [_with_resources(one, was) for one, was in zip(new, before, strict=True)]
    return made


def _with_resources(container: Mapping[str, Any], old: Mapping[str, Any]) -> Json:
    kept = {key: value for key, value in old.items() if key not in _RESIZED}
    return kept | {key: container[key] for key in _RESIZED if key in container}


def _resizable(new: Pod, old: Pod) -> Errors:
    """Pods that can never be resized: mirrors of static pods, those that have ended, those of nodes that cannot."""
    if "kubernetes.io/config.mirror" in old.metadata.annotations:
        return [FieldError("metadata", "Forbidden", "static pods cannot be resized")]
    if old.status.phase in ("Succeeded", "Failed"):
        return [FieldError("metadata", "Forbidden", f"the pod has ended ({old.status.phase}) and cannot be resized")]
    told = old.status.container_statuses
    if old.status.phase == "Running" and any(entry.resources is None for entry in told):
        message = "Pod running on node without support for resize: its status does not tell the resources of containers"
        return [FieldError("metadata", "Forbidden", message)]
    return []


def _fixed_inits(new: Mapping[str, Any], old: Mapping[str, Any]) -> Errors:
    """Only those init containers that go on running can be resized."""
    pairs = zip(new["spec"].get("initContainers") or (), old["spec"].get("initContainers") or (), strict=True)
    return [
        (SPEC / "initContainers" // i / "resources").forbidden("resources of non-sidecar init containers are immutable")
        for i, (after, before) in enumerate(pairs)
        if after.get("restartPolicy") != "Always" and not _same(after.get("resources"), before.get("resources"))
    ]


def _kept_amounts(new: PodSpec, old: PodSpec) -> Errors:
    """Requests and limits may change, but not be taken away."""
    errors: Errors = []
    for field, after, before in (
        ("containers", new.containers, old.containers),
        ("initContainers", new.init_containers, old.init_containers),
    ):
        for i, (container, was) in enumerate(zip(after, before, strict=True)):
            for what in ("requests", "limits"):
                gone = getattr(was.resources, what).keys() - getattr(container.resources, what).keys()
                if gone:
                    at = SPEC / field // i / "resources" / what
                    errors.append(at.forbidden(f"resource {what} cannot be removed: {', '.join(sorted(gone))}"))
    return errors


def _without_amounts(spec: Mapping[str, Any]) -> Json:
    """The spec without what a resize may change."""
    rest = {key: value for key, value in spec.items() if key not in ("containers", "initContainers", "resources")}
    for field in ("containers", "initContainers"):
        rest[field] = [
            {
                **{key: value for key, value in container.items() if key != "resizePolicy"},
                "resources": _fixed(container),
            }
            for container in spec.get(field, [])
        ]
    rest["resources"] = _fixed(spec)
    return rest


def _fixed(holder: Mapping[str, Any]) -> Json:
    resources = holder.get("resources") or {}
    return {
        what: {name: value for name, value in (resources.get(what) or {}).items() if name not in ("cpu", "memory")}
        for what in ("requests", "limits")
    } | {"claims": resources.get("claims") or []}
