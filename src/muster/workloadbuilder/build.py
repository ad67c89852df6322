"""From a tree of items to a Workload (B5-B10)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

from muster.api.validation import FieldError, Type
from muster.workloadbuilder import materialize
from muster.workloadbuilder.items import Block, BuildOptions, SchedulingConfig, UserBlock, WorkloadItem
from muster.workloadbuilder.materialize import BuildError
from muster.workloadbuilder.validate import validate_tree

DEEPEST = 4
"""Levels of a tree, the leaf included (V15)."""
MOST_CHILDREN = 8
"""Templates of one kind below one template (V15)."""
_SCHEDULING = (  # attribute of the configuration and of the user's input, field of a template
    ("policy", "schedulingPolicy"),
    ("constraints", "schedulingConstraints"),
    ("disruption_mode", "disruptionMode"),
    ("resource_claims", "resourceClaims"),
)


class Builder:
    """Makes one Workload from a tree of items, and groups from its templates. Changes nothing that it is given.

    `existing` (instead of an item) is a Workload that someone else has written: groups can be made from it, but it is
    neither built nor validated.
    """

    def __init__(self, item: WorkloadItem | None, options: BuildOptions, *, existing: Block | None = None) -> None:
        self._item = item
        self._options = options
        self._existing = existing
        self._built: dict[str, Any] | None = None

    @classmethod
    def from_existing_workload(cls, workload: Block, options: BuildOptions) -> Builder:
        return cls(None, options, existing=workload)

    def build_workload(self) -> dict[str, Any]:
        """The Workload; built once, then the same.

        Raises:
            BuildError: the first thing that is wrong with the tree or its options (B8).
        """
        if self._existing is not None:
            raise BuildError("this builder was made from an existing Workload; there is nothing to build")
        if self._built is None:
            self._built = _build(self._item, self._options)
        return self._built

    def new_pod_group(self, name: str, template: str) -> dict[str, Any]:
        """A PodGroup from a leaf template.

        Raises:
            BuildError: the Workload cannot be built, or has no such template.
        """
        return materialize.new_pod_group(self._workload(), name, template, self._options.owner)

    def new_composite_pod_group(self, name: str, template: str) -> dict[str, Any]:
        """A CompositePodGroup from a composite template; its parent's name is for the caller to set.

        Raises:
            BuildError: the Workload cannot be built, or has no such template.
        """
        return materialize.new_composite_pod_group(self._workload(), name, template, self._options.owner)

    def validate(self, root_path: str, *, old: WorkloadItem | None = None) -> list[FieldError]:
        """What is wrong with the user's blocks, at the user's own paths (B13-B17).

        Args:
            root_path: path of the user's scheduling block, for example `spec.scheduling`.
            old: the tree before an update.
        """
        if self._existing is not None:
            return [FieldError(root_path, Type.INTERNAL, "a builder made from an existing Workload validates nothing")]
        return validate_tree(self._item, self._options, root_path, old)

    def _workload(self) -> Block:
        return self._existing if self._existing is not None else self.build_workload()


def _build(item: WorkloadItem | None, options: BuildOptions) -> dict[str, Any]:
    if item is None:
        raise BuildError("there is no root item")
    owner = options.owner
    if not owner:
        raise BuildError("no owner is given: a Workload must be owned by its controller, or nobody would collect it")
    group = _group_of(owner.get("apiVersion", ""))
    _check_tree(item)
    kind = "compositePodGroupTemplates" if item.composite else "podGroupTemplates"
    reference = {"kind": owner.get("kind", ""), "name": owner.get("name", "")}
    return {
        "apiVersion": materialize.WORKLOAD_API,
        "kind": "Workload",
        "metadata": {
            "name": options.name,
            "namespace": options.namespace,
            "ownerReferences": [materialize.controller_of(owner)],
        },
        "spec": {"controllerRef": {"apiGroup": group, **reference} if group else reference, kind: [_template(item)]},
    }


def _group_of(api_version: str) -> str:
    """The API group; "" for core."""
    parts = api_version.split("/")
    if len(parts) > 2 or not all(parts):
        raise BuildError(f"the owner's apiVersion {api_version!r} is neither <version> nor <group>/<version>")
    return parts[0] if len(parts) == 2 else ""


def _check_tree(root: WorkloadItem) -> None:
    seen: set[str] = set()
    for item, depth in _walk(root, 1):
        if not item.name:
            raise BuildError("an item has no name")
        if item.name in seen:
            raise BuildError(f"two items are named {item.name!r}; names are unique in the whole tree")
        if depth > DEEPEST:
            raise BuildError(f"item {item.name!r} is on level {depth}; a tree has at most {DEEPEST}, the leaf included")
        for composite, what in ((False, "leaves"), (True, "composites")):
            if sum(child is not None and child.composite is composite for child in item.children) > MOST_CHILDREN:
                raise BuildError(f"item {item.name!r} has more than {MOST_CHILDREN} {what} as children")
        seen.add(item.name)
        _check_blocks(item)


def _walk(item: WorkloadItem, depth: int) -> Iterator[tuple[WorkloadItem, int]]:
    yield item, depth
    for child in item.children:
        if child is None:
            raise BuildError(f"item {item.name!r} has an empty child")
        yield from _walk(child, depth + 1)


def _check_blocks(item: WorkloadItem) -> None:
    for attribute, field in _SCHEDULING:
        block: UserBlock | None = getattr(item.user, attribute)
        if block is None:
            continue
        wrong = block.leaf if item.composite else block.composite
        if wrong is not None:
            has, needs = ("children", "composite") if item.composite else ("no children", "leaf")
            raise BuildError(f"item {item.name!r} has {has}: its {field} must be given as a {needs} block")
    if item.composite and item.default.resource_claims:
        raise BuildError(f"item {item.name!r} has children: only leaves have resource claims")


def _template(item: WorkloadItem) -> dict[str, Any]:
    config = _resolve(item)
    template: dict[str, Any] = {"name": item.name}
    for attribute, field in _SCHEDULING:
        value = getattr(config, attribute)
        if value:
            template[field] = deepcopy(_composite_policy(value) if item.composite and attribute == "policy" else value)
    if config.priority_class_name:
        template["priorityClassName"] = config.priority_class_name
    for child in item.children:
        assert child is not None
        kind = "compositePodGroupTemplates" if child.composite else "podGroupTemplates"
        template.setdefault(kind, []).append(_template(child))
    return template


def _resolve(item: WorkloadItem) -> SchedulingConfig:
    """The user's blocks over the default, then the callbacks, then basic if there is still no policy (B6, B7)."""
    given = _given(item)
    merged = SchedulingConfig(
        given.policy or item.default.policy,
        given.constraints or item.default.constraints,
        given.disruption_mode or item.default.disruption_mode,
        given.resource_claims or item.default.resource_claims,
        item.default.priority_class_name,
    )
    for callback in item.callbacks:
        merged = callback(merged)
    for attribute, field in _SCHEDULING:
        user = getattr(given, attribute)
        if user and not _keeps(user, getattr(merged, attribute)):
            raise BuildError(f"a callback of item {item.name!r} changes the {field} that the user gave")
    if not merged.policy:
        merged = SchedulingConfig(
            {"basic": {}},
            merged.constraints,
            merged.disruption_mode,
            merged.resource_claims,
            merged.priority_class_name,
        )
    gang = (merged.policy or {}).get("gang")
    if gang is not None and not gang.get("minCount"):
        count = "minGroupCount" if item.composite else "minCount"
        raise BuildError(f"item {item.name!r} is a gang without {count}: neither the user nor the controller gives one")
    return merged


def _given(item: WorkloadItem) -> SchedulingConfig:
    """The user's blocks in the terms of a configuration, where a composite's count is a minCount too."""
    found: dict[str, Any] = {}
    for attribute, _ in _SCHEDULING:
        block: UserBlock | None = getattr(item.user, attribute)
        found[attribute] = None if block is None else block.composite if item.composite else block.leaf
    policy = found["policy"]
    if item.composite and policy and policy.get("gang") is not None:
        found["policy"] = {"gang": _renamed(policy["gang"], "minGroupCount", "minCount")}
    return SchedulingConfig(**found)


def _composite_policy(policy: Block) -> Block:
    gang = policy.get("gang")
    return policy if gang is None else {"gang": _renamed(gang, "minCount", "minGroupCount")}


def _renamed(block: Block, old: str, new: str) -> dict[str, Any]:
    return {new if key == old else key: value for key, value in block.items()}


def _keeps(given: Any, result: Any) -> bool:
    """Whether everything that was given is still there; what was left open may have been filled."""
    if given is None:
        return True
    if isinstance(given, Mapping):
        return isinstance(result, Mapping) and all(_keeps(value, result.get(key)) for key, value in given.items())
    return bool(given == result)
