"""What every adapter makes of an object: a tree of items, the groups to be made from it, and why each is as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from muster.api.validation import FieldError, Path
from muster.workloadbuilder.build import Builder
from muster.workloadbuilder.items import Block, BuildOptions, UserBlock, WorkloadItem
from muster.workloadbuilder.names import pod_group_name, workload_name

UNKNOWN_UID = "00000000-0000-0000-0000-000000000000"
"""Stands for the uid of an object that no server has seen yet."""


@dataclass(frozen=True, slots=True)
class Group:
    """One group to be made from a template.

    Attributes:
        index: which of several groups of one template; None where there is one only.
        parent: template and index of the group that it is a child of.
        pods: the label selector of its pods; None of a group of groups.
        why: one sentence on why it is as it is.
    """

    template: str
    why: str
    pods: Block | None = None
    index: int | None = None
    parent: tuple[str, int | None] | None = None


@dataclass(frozen=True, slots=True)
class View:
    """An object as the builder sees it.

    Attributes:
        item: None where nothing is to be made; `nothing` says why.
        groups: parents before their children.
        notes: what is so for the whole object and should be known.
        root: path below which the paths of the user's blocks stand.
    """

    item: WorkloadItem | None
    groups: Sequence[Group] = ()
    notes: Sequence[str] = ()
    nothing: str = ""
    root: str = ""


@dataclass(frozen=True, slots=True)
class Made:
    """A scheduling object, the pods that belong to it (if it is a group of pods), and why it is as it is."""

    body: Mapping[str, Any]
    why: str
    pods: Block | None = None


@dataclass(frozen=True, slots=True)
class Compiled:
    """What comes of one object. With errors, nothing is made."""

    made: Sequence[Made] = ()
    errors: Sequence[FieldError] = ()
    notes: Sequence[str] = ()
    nothing: str = ""

    @property
    def objects(self) -> list[Mapping[str, Any]]:
        return [made.body for made in self.made]


@dataclass(slots=True)
class Owner:
    """The object that everything is made for."""

    api_version: str
    kind: str
    name: str
    uid: str
    namespace: str
    reference: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        named = {"apiVersion": self.api_version, "kind": self.kind, "name": self.name, "uid": self.uid}
        self.reference = {**named, "controller": True, "blockOwnerDeletion": True}


def compile_view(view: View, owner: Owner) -> Compiled:
    """The Workload and its groups, or what is wrong with the user's blocks.

    Raises:
        BuildError: the tree itself is wrong, which is the adapter's fault.
    """
    if view.item is None:
        return Compiled(notes=view.notes, nothing=view.nothing)
    workload = workload_name(owner.name, owner.uid)
    builder = Builder(view.item, BuildOptions(workload, owner.namespace, owner.reference))
    errors = [*builder.validate(view.root), *_child_errors(view.item)]
    if errors:
        return Compiled(errors=errors)
    why = f"{owner.kind} {owner.name} is scheduled as {_shape(view.item)}"
    made = [Made(builder.build_workload(), why)]
    for group in view.groups:
        name = name_of(workload, group.template, group.index)
        new = builder.new_composite_pod_group if group.pods is None else builder.new_pod_group
        body = new(name, group.template)
        if group.parent is not None:
            body["spec"]["parentCompositePodGroupName"] = name_of(workload, *group.parent)
        made.append(Made(body, group.why, group.pods))
    return Compiled(made, notes=view.notes)


def name_of(workload: str, template: str, index: int | None) -> str:
    """Name of a group. The dot keeps `a` number 0 apart from a template `a-0`: templates have no dots."""
    return pod_group_name(workload, template if index is None else f"{template}.{index}")


def _child_errors(item: WorkloadItem) -> list[FieldError]:
    """A gang of groups has no basic child, and one that is evicted whole none that is evicted singly (from 1.38)."""
    errors: list[FieldError] = []
    for child in item.children:
        assert child is not None
        for attribute, above, below in (("policy", "gang", "basic"), ("disruption_mode", "all", "single")):
            block: UserBlock | None = getattr(child.user, attribute)
            if block is not None and above in _chosen(item, attribute) and below in _chosen(child, attribute):
                path = Path("")
                for step in block.path:
                    path = path / step
                errors.append(path.invalid(below, f"the group above it is {above}; then its parts cannot be {below}"))
        errors += _child_errors(child)
    return errors


def _chosen(item: WorkloadItem, attribute: str) -> Block:
    block: UserBlock | None = getattr(item.user, attribute)
    given = None if block is None else block.composite if item.composite else block.leaf
    return given or getattr(item.default, attribute) or {}


def _shape(item: WorkloadItem) -> str:
    if not item.composite:
        return "one kind of group"
    return f"a tree of {', '.join(child.name for child in item.children if child is not None)}"
