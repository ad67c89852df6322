"""What adapters have in common: a role of pods as an item, annotations as the user's input, one priority for all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from muster.api.validation.names import dns_label, label_key
from muster.workloadbuilder.adapters.fields import Field
from muster.workloadbuilder.build import MOST_CHILDREN
from muster.workloadbuilder.items import SchedulingConfig, UserBlock, WorkloadInput, WorkloadItem, default_min_count

POLICY = "muster.dev/scheduling-policy"
"""gang or basic."""
MIN_COUNT = "muster.dev/min-count"
"""The fewest pods (of a whole of several groups: groups) that are of use; implies gang."""
TOPOLOGY = "muster.dev/topology"
"""The node label in one of whose domains all pods must be."""
DISRUPTION = "muster.dev/disruption-mode"
"""single or all."""
MOST_GROUPS = 10_000
"""Groups that are made of one template."""
SCHEDULING = (POLICY, MIN_COUNT, TOPOLOGY, DISRUPTION)


@dataclass(frozen=True, slots=True)
class Wish:
    """How many pods, how they are scheduled if the user says nothing, and where."""

    count: int
    policy: str = "gang"
    topology: str = ""
    priority_class: str = ""


def leaf(name: str, wish: Wish, metadata: Field) -> WorkloadItem:
    """A group of pods; the annotations of this metadata are the user's input."""
    return _item(name, wish, _input(metadata, wish.count, composite=False), ())


def tree(name: str, wish: Wish, metadata: Field, children: Sequence[WorkloadItem]) -> WorkloadItem:
    """A group of groups; `wish.count` counts the groups."""
    return _item(name, wish, _input(metadata, wish.count, composite=True), tuple(children))


def _item(name: str, wish: Wish, user: WorkloadInput, children: tuple[WorkloadItem, ...]) -> WorkloadItem:
    default = SchedulingConfig(
        policy={wish.policy: {}},
        constraints={"topology": [{"key": wish.topology}]} if wish.topology else None,
        priority_class_name=wish.priority_class,
    )
    return WorkloadItem(name, default, user, (default_min_count(max(1, wish.count)),), children)


def _input(metadata: Field, most: int, *, composite: bool) -> WorkloadInput:
    notes = metadata / "annotations"

    def block(key: str, value: Any) -> UserBlock | None:
        if value is None:
            return None
        path = tuple(step for step in (*str(metadata.place).split("."), "annotations", f"[{key}]") if step)
        return UserBlock(path, None if composite else value, value if composite else None)

    minimum = _minimum(notes.entry(MIN_COUNT), most)
    chosen = _choice(notes.entry(POLICY), ("basic", "gang"))
    if minimum is not None and chosen == "basic":
        notes.entry(MIN_COUNT).wrong(f"only a gang has a minimum; leave it out, or set {POLICY}: gang")
    policy: Any = None if not chosen else {chosen: {}}
    if minimum is not None:
        policy = {"gang": {"minGroupCount" if composite else "minCount": minimum}}
    mode = _choice(notes.entry(DISRUPTION), ("single", "all"))
    key = topology_key(notes.entry(TOPOLOGY))
    return WorkloadInput(
        policy=block(POLICY if chosen else MIN_COUNT, policy),
        constraints=block(TOPOLOGY, {"topology": [{"key": key}]} if key else None),
        disruption_mode=block(DISRUPTION, {mode: {}} if mode else None),
    )


def topology_key(where: Field) -> str:
    """A node label that an annotation names; "" if there is none or it is wrong."""
    key = where.text()
    if not where.given or not isinstance(where.value, str):
        return ""
    problem = label_key(key) if key else "name the node label whose values are the domains"
    if problem:
        where.wrong(problem)
    return "" if problem else key


def _choice(where: Field, allowed: tuple[str, ...]) -> str:
    found = where.text()
    if where.given and isinstance(where.value, str) and found not in allowed:
        where.wrong(f"must be {' or '.join(allowed)}")
        return ""
    return found


def _minimum(where: Field, most: int) -> int | None:
    text = where.text()
    if not where.given or not isinstance(where.value, str):
        return None
    if not (text.isascii() and text.isdigit()) or len(text) > 9 or not 1 <= int(text) <= most:
        where.wrong(f"must be a whole number from 1 to {most}, in quotes")
        return None
    return int(text)


def one_priority(templates: Sequence[Field]) -> str:
    """The priority class of all roles; in a tree of groups all have the same (V22)."""
    named = [(template / "spec" / "priorityClassName") for template in templates]
    first = named[0].text() if named else ""
    for other in named[1:]:
        if other.text() != first:
            other.wrong(f"all roles must have the same priority class, and the first has {first or 'none'!r}")
    return first


def check_number(parts: Sequence[object], where: Field) -> None:
    """Leaves of one tree; errors are told at the field that makes them many (V15)."""
    if len(parts) > MOST_CHILDREN:
        where.errors.append(
            where.place.invalid(len(parts), f"makes too many kinds of groups; a Workload has at most {MOST_CHILDREN}")
        )


def own_group(templates: Sequence[Field]) -> str:
    """Where a pod template names a group of its own, why nothing is made; else ""."""
    for template in templates:
        group = template / "spec" / "schedulingGroup" / "podGroupName"
        if group.text():
            return f"{group.place} names the group {group.text()} already"
    return ""


def needs(template: Field) -> Any:
    """Where pods of this template can run: roles that differ in this are groups of their own."""
    spec = template / "spec"
    where = [(spec / name).value or None for name in ("nodeSelector", "affinity", "tolerations")]
    wants = [(container / "resources" / "requests").value or (container / "resources" / "limits").value
             for container in (spec / "containers").items()]  # fmt: skip
    return where, wants


def checked_name(where: Field) -> str:
    """The name of a role, which becomes that of a template."""
    name = where.name()
    problem = dns_label(name) if name else ""
    if problem:
        where.wrong(problem)
    return name


def free_name(wanted: str, taken: Sequence[str]) -> str:
    """`wanted`, or the first of wanted-0, wanted-1, ... that no role has."""
    name, number = wanted, 0
    while name in taken:
        name, number = f"{wanted}-{number}", number + 1
    return name


def unlike(taken: Sequence[str], where: Field, name: str) -> None:
    if name and name in taken:
        where.errors.append(where.place.duplicate(name))
