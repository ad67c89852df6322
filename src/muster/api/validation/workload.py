"""Rules for Workload (V15-V22, V26, V28)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from muster.api.gates import FeatureGates
from muster.api.scheduling import (
    CompositePodGroupTemplate,
    ControllerReference,
    PodGroupTemplate,
    Workload,
    WorkloadSpec,
)
from muster.api.validation import checks, groups, meta, names
from muster.api.validation.checks import Errors
from muster.api.validation.field import SPEC, FieldError, Path

TEMPLATES = 8
DEPTH = 4
"""Levels of a tree, the leaf included (V15)."""

Template = PodGroupTemplate | CompositePodGroupTemplate

_LEAVES = "podGroupTemplates"
_COMPOSITES = "compositePodGroupTemplates"
_FIXED = ("scheduling_constraints", "disruption_mode", "priority_class_name", "priority", "preemption_policy")


def workload(new: Mapping[str, Any], old: Mapping[str, Any] | None, gates: FeatureGates) -> Errors:
    """Every error of a Workload, on create or (with `old`) on update."""
    view = checks.typed(new, Workload)
    if isinstance(view, FieldError):
        return [view]
    before = checks.typed(old, Workload) if old is not None else None
    stored = before if isinstance(before, Workload) else None
    errors = meta.metadata(view.metadata, stored.metadata if stored else None)
    if deep := _too_deep(view.spec):
        return [*errors, *deep]
    errors += _spec(view.spec, stored.spec if stored else None, gates)
    if stored is not None:
        errors += _update(view.spec, stored.spec)
    return errors


# --- the tree ----------------------------------------------------------------------------------------------------


def _templates(spec: WorkloadSpec | CompositePodGroupTemplate, path: Path) -> Iterator[tuple[Path, Template]]:
    """Every template of a tree with its path: parents before children, in the order of the lists."""
    for i, leaf in enumerate(spec.pod_group_templates):
        yield path / _LEAVES // i, leaf
    for i, composite in enumerate(spec.composite_pod_group_templates):
        yield path / _COMPOSITES // i, composite
        yield from _templates(composite, path / _COMPOSITES // i)


def _too_deep(spec: WorkloadSpec) -> Errors:
    """Reported at the root template whose tree is too deep; such a tree is not looked at any further."""
    message = f"the tree may have at most {DEPTH} levels, the leaves included"
    return [
        (SPEC / _COMPOSITES // i).invalid(root.name, message)
        for i, root in enumerate(spec.composite_pod_group_templates)
        if _deeper_than(root, DEPTH - 1)
    ]


def _deeper_than(composite: CompositePodGroupTemplate, levels: int) -> bool:
    """Whether the composites of this tree take more than `levels` levels, which leaves none for a leaf."""
    if levels == 0:
        return True
    return any(_deeper_than(child, levels - 1) for child in composite.composite_pod_group_templates)


# --- create ------------------------------------------------------------------------------------------------------


def _spec(spec: WorkloadSpec, old: WorkloadSpec | None, gates: FeatureGates) -> Errors:
    errors: Errors = []
    if spec.controller_ref is not None:
        errors += _controller(spec.controller_ref, SPEC / "controllerRef")
    kept = old is not None and old.composite_pod_group_templates
    if spec.composite_pod_group_templates and not gates.composite_pod_group and not kept:
        return [*errors, groups.gate_off(SPEC / _COMPOSITES, "CompositePodGroup")]
    if bool(spec.pod_group_templates) == bool(spec.composite_pod_group_templates):
        given = [_LEAVES, _COMPOSITES] if spec.pod_group_templates else []
        errors.append(SPEC.invalid(given, f"must specify exactly one of {_LEAVES}, {_COMPOSITES}"))
    known = {template.name: template for _, template in _templates(old, SPEC)} if old else {}
    errors += _lists(spec, SPEC, known, gates)
    errors += _repeated_names(spec)
    return errors + _one_priority(spec)


def _controller(reference: ControllerReference, path: Path) -> Errors:
    errors: Errors = []
    if reference.api_group:
        errors += checks.formatted(reference.api_group, path / "apiGroup", names.dns_subdomain)
    errors += checks.text(reference.kind, path / "kind", names.path_segment)
    return errors + checks.text(reference.name, path / "name", names.path_segment)


def _lists(
    owner: WorkloadSpec | CompositePodGroupTemplate, path: Path, old: Mapping[str, Template], gates: FeatureGates
) -> Errors:
    """Both template lists of a spec or a composite template, with everything below."""
    errors: Errors = []
    lists: tuple[tuple[str, Sequence[Template]], ...] = (
        (_LEAVES, owner.pod_group_templates),
        (_COMPOSITES, owner.composite_pod_group_templates),
    )
    for field, templates in lists:
        if len(templates) > TEMPLATES:
            errors.append((path / field).too_many(len(templates), TEMPLATES))
            continue
        for i, template in enumerate(templates):
            errors += _template(template, path / field // i, old, gates)
    return errors


def _template(template: Template, path: Path, old: Mapping[str, Template], gates: FeatureGates) -> Errors:
    errors = checks.text(template.name, path / "name", names.dns_label)
    errors += groups.common(template, old.get(template.name), path, gates)
    if isinstance(template, PodGroupTemplate):
        errors += groups.policy(template.scheduling_policy, path / "schedulingPolicy")
        return errors + groups.claims(template.resource_claims, path / "resourceClaims")
    errors += groups.composite_policy(template.scheduling_policy, path / "schedulingPolicy")
    if not template.pod_group_templates and not template.composite_pod_group_templates:
        errors.append(path.invalid(template.name, f"must have at least one of {_LEAVES}, {_COMPOSITES}"))
    return errors + _lists(template, path, old, gates)


def _repeated_names(spec: WorkloadSpec) -> Errors:
    """Names are unique in the whole Workload (V20): within a list the entry is the duplicate, elsewhere its name is."""
    errors: Errors = []
    lists: dict[str, set[str]] = {}
    seen: set[str] = set()
    for path, template in _templates(spec, SPEC):
        siblings = lists.setdefault(str(path).rpartition("[")[0], set())
        message = "template names must be unique in the whole Workload"
        if not template.name:
            continue
        if template.name in siblings:
            errors.append(path.duplicate(template.name, message))
        elif template.name in seen:
            errors.append((path / "name").duplicate(template.name, message))
        siblings.add(template.name)
        seen.add(template.name)
    return errors


def _one_priority(spec: WorkloadSpec) -> Errors:
    """One Workload, one priority (V22)."""
    errors: Errors = []
    for field, values in (
        ("priorityClassName", {template.priority_class_name for _, template in _templates(spec, SPEC)}),
        ("priority", {template.priority for _, template in _templates(spec, SPEC)}),
    ):
        if len(values) > 1:
            shown = sorted(values, key=str)
            errors.append(SPEC.invalid(shown, f"all templates, at every level, must have the same {field}"))
    return errors


# --- update ------------------------------------------------------------------------------------------------------


def _update(new: WorkloadSpec, old: WorkloadSpec) -> Errors:
    return checks.unchanged(new.controller_ref, old.controller_ref, SPEC / "controllerRef") + _updated_lists(
        new, old, SPEC
    )


def _updated_lists(
    new: WorkloadSpec | CompositePodGroupTemplate, old: WorkloadSpec | CompositePodGroupTemplate, path: Path
) -> Errors:
    """The set of templates is fixed, their order is not (V28)."""
    errors = _updated_list(new.pod_group_templates, old.pod_group_templates, path / _LEAVES)
    return errors + _updated_list(
        new.composite_pod_group_templates, old.composite_pod_group_templates, path / _COMPOSITES
    )


def _updated_list(new: tuple[Template, ...], old: tuple[Template, ...], path: Path) -> Errors:
    errors: Errors = []
    before = {template.name: template for template in old}
    for i, template in enumerate(new):
        stored = before.get(template.name)
        if stored is None:
            errors.append((path // i).forbidden("templates cannot be added"))
        else:
            errors += _updated_template(template, stored, path // i)
    if removed := sorted(before.keys() - {template.name for template in new}):
        errors.append(path.forbidden(f"templates cannot be removed: {', '.join(removed)}"))
    return errors


def _updated_template(new: Template, old: Template, path: Path) -> Errors:
    """Everything is fixed but the size of a leaf's gang."""
    errors = checks.immutable_fields(new, old, path, _FIXED)
    if isinstance(new, PodGroupTemplate) and isinstance(old, PodGroupTemplate):
        errors += groups.policy_update(new.scheduling_policy, old.scheduling_policy, path / "schedulingPolicy")
        return errors + checks.unchanged(new.resource_claims, old.resource_claims, path / "resourceClaims")
    if isinstance(new, CompositePodGroupTemplate) and isinstance(old, CompositePodGroupTemplate):
        errors += checks.unchanged(new.scheduling_policy, old.scheduling_policy, path / "schedulingPolicy")
        return errors + _updated_lists(new, old, path)
    return errors
