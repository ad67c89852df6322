"""A hierarchy of groups as the objects in the API show it: who has its members, and in which domain each level is.

It reads plain JSON objects, not a scheduler: what it says is what any client of the API can see.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

Raw = Mapping[str, Any]
COMPOSITE, LEAF = "CompositePodGroup", "PodGroup"
_COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
_LAST_NUMBER = re.compile(r"(\d+)\Z")


class Objects(NamedTuple):
    """What a namespace holds, as it was listed."""

    composites: Sequence[Raw]
    groups: Sequence[Raw]
    pods: Sequence[Raw]
    nodes: Sequence[Raw]


@dataclass(frozen=True, slots=True)
class Branch:
    """One group of a hierarchy."""

    kind: str
    name: str
    depth: int
    minimum: int
    """How many members or child groups it needs."""
    there: int
    """Pods that have a node or ended well; child groups that have their minimum."""
    known: int
    """Pods, or child groups, that exist."""
    key: str = ""
    """The label key of its topology constraint."""
    domains: tuple[str, ...] = ()
    """Values of `key` on the nodes of the pods below it, "" for a missing label; more than one: they are apart."""
    hosts: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Of a PodGroup: nodes, each with the pods on it, in the order of their ranks."""
    waiting: tuple[str, ...] = ()
    """Of a PodGroup: pods without a node, in the order of their ranks."""
    trouble: str = ""
    """Of the first of a hierarchy: why nothing is above it."""

    @property
    def satisfied(self) -> bool:
        return self.there >= self.minimum


def tree(objects: Objects, kind: str, name: str) -> tuple[Branch, ...]:
    """The group of this kind and name and all below it, parents before children; empty if there is none."""
    read = _Reading(objects)
    found = read.records.get((kind, name))
    return () if found is None else tuple(read.branches(found, 0, frozenset()))


def forest(objects: Objects) -> tuple[Branch, ...]:
    """Every hierarchy with a composite group, one after the other; those without a root at their highest group."""
    read = _Reading(objects)
    shown: list[Branch] = []
    for composite in objects.composites:
        parent = _parent(composite)
        if parent is None or (COMPOSITE, parent) not in read.records:
            shown += read.branches(composite, 0, frozenset())
    seen = {(branch.kind, branch.name) for branch in shown}
    for composite in objects.composites:
        if (COMPOSITE, _name(composite)) not in seen:
            shown += (more := read.branches(composite, 0, frozenset()))
            seen |= {(branch.kind, branch.name) for branch in more}
    return tuple(shown)


class _Reading:
    """The objects by what hangs on what."""

    def __init__(self, objects: Objects) -> None:
        self.records = {(kind, _name(raw)): raw for kind, raws in _kinds(objects) for raw in raws}
        self._children: dict[str, list[tuple[str, Raw]]] = {}
        for (kind, _), raw in sorted(self.records.items(), key=lambda item: _age(item[1])):
            parent = _parent(raw)
            if parent is not None:
                self._children.setdefault(parent, []).append((kind, raw))
        self._pods: dict[str, list[Raw]] = {}
        for pod in sorted(objects.pods, key=_rank):
            group = (pod["spec"].get("schedulingGroup") or {}).get("podGroupName")
            if group is not None and _counts(pod):
                self._pods.setdefault(group, []).append(pod)
        self._labels = {_name(node): node["metadata"].get("labels") or {} for node in objects.nodes}

    def branches(self, raw: Raw, depth: int, above: frozenset[str]) -> list[Branch]:
        """This group first. A group that is above itself is not followed."""
        name = _name(raw)
        policy = raw["spec"].get("schedulingPolicy") or {}
        if self.records.get((LEAF, name)) is raw:
            return [self._leaf(raw, depth, (policy.get("gang") or {}).get("minCount", 1))]
        children: list[list[Branch]] = []
        if name not in above:
            for kind, child in self._children.get(name, ()):
                if kind == LEAF or _name(child) not in above | {name}:
                    children.append(self.branches(child, depth + 1, above | {name}))
        below = [branch for child in children for branch in child]
        nodes = [node for branch in below for node, _ in branch.hosts]
        own = Branch(
            COMPOSITE,
            name,
            depth,
            (policy.get("gang") or {}).get("minGroupCount", 1),
            sum(child[0].satisfied for child in children),
            len(children),
            _key(raw),
            self._domains(_key(raw), nodes),
            trouble=self._trouble(raw) if depth == 0 else "",
        )
        return [own, *below]

    def _leaf(self, raw: Raw, depth: int, minimum: int) -> Branch:
        pods = self._pods.get(_name(raw), [])
        hosts: dict[str, list[str]] = {}
        for pod in pods:
            if pod["spec"].get("nodeName"):
                hosts.setdefault(pod["spec"]["nodeName"], []).append(_name(pod))
        waiting = tuple(_name(pod) for pod in pods if not pod["spec"].get("nodeName"))
        return Branch(
            LEAF,
            _name(raw),
            depth,
            minimum,
            len(pods) - len(waiting),
            len(pods),
            _key(raw),
            self._domains(_key(raw), hosts),
            tuple((node, tuple(names)) for node, names in hosts.items()),
            waiting,
            self._trouble(raw) if depth == 0 else "",
        )

    def _domains(self, key: str, nodes: Iterable[str]) -> tuple[str, ...]:
        return tuple(sorted({self._labels.get(node, {}).get(key, "") for node in nodes})) if key else ()

    def _trouble(self, raw: Raw) -> str:
        """Why the way up from a group does not end at a root."""
        passed = {_name(raw)}
        parent = _parent(raw)
        while parent is not None:
            if parent in passed and (COMPOSITE, parent) in self.records:
                return "its parents form a cycle"
            passed.add(parent)
            record = self.records.get((COMPOSITE, parent))
            if record is None:
                return f"its parent {parent} does not exist"
            parent = _parent(record)
        return ""


def _kinds(objects: Objects) -> Iterator[tuple[str, Sequence[Raw]]]:
    yield COMPOSITE, objects.composites
    yield LEAF, objects.groups


def _name(raw: Raw) -> str:
    name: str = raw["metadata"]["name"]
    return name


def _parent(raw: Raw) -> str | None:
    return raw["spec"].get("parentCompositePodGroupName") or None


def _key(raw: Raw) -> str:
    topology = (raw["spec"].get("schedulingConstraints") or {}).get("topology") or [{}]
    key: str = topology[0].get("key", "")
    return key


def _counts(pod: Raw) -> bool:
    return "deletionTimestamp" not in pod["metadata"] and (pod.get("status") or {}).get("phase") != "Failed"


def _age(raw: Raw) -> tuple[str, str]:
    return raw["metadata"].get("creationTimestamp") or "", raw["metadata"]["name"]


def _rank(pod: Raw) -> tuple[int, str]:
    """By the completion index, else by the number at the end of the name."""
    meta = pod["metadata"]
    given = (meta.get("labels") or {}).get(_COMPLETION_INDEX, "")
    found = _LAST_NUMBER.search(given if given.isdecimal() else meta["name"])
    return (int(found[1][-9:]) if found else 0, meta["name"])
