"""What the cells of a table are made with: columns, ages, and counts that need other objects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from muster.api.instant import SECOND, Instant, from_time
from muster.apiserver.log import Raw
from muster.apiserver.storage import Store

UNKNOWN = "<unknown>"
NONE = "<none>"
UNSET = "<unset>"
_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400
_YEAR = 365 * _DAY


@dataclass(slots=True)
class Sheet:
    """One table being made. Counts of members are made on first use, once for each namespace."""

    store: Store
    now: Instant
    _members: dict[str, Counter[tuple[str, bool]]] = field(default_factory=dict)
    _children: dict[str, Counter[tuple[str, bool]]] = field(default_factory=dict)

    def age(self, time: str | None) -> str:
        """How long ago a time was, as kubectl writes it."""
        if not time:
            return UNKNOWN
        return duration((self.now - from_time(time)) // SECOND)

    def pods_of(self, namespace: str, group: str, *, bound: bool) -> int:
        """Pods of a group that are not over; with `bound` only those that have a node."""
        found = self._members.get(namespace)
        if found is None:
            found = self._members[namespace] = Counter()
            for pod in self.store.all("pods", namespace):
                name = (pod["spec"].get("schedulingGroup") or {}).get("podGroupName")
                if name and pod.get("status", {}).get("phase") not in ("Succeeded", "Failed"):
                    found[name, bool(pod["spec"].get("nodeName"))] += 1
        return found[group, True] + (0 if bound else found[group, False])

    def groups_of(self, namespace: str, parent: str, *, bound: bool) -> int:
        """Child groups of a composite group; with `bound` only those that were scheduled."""
        found = self._children.get(namespace)
        if found is None:
            found = self._children[namespace] = Counter()
            for plural in ("podgroups", "compositepodgroups"):
                for group in self.store.all(plural, namespace):
                    name = group.get("spec", {}).get("parentCompositePodGroupName")
                    if name:
                        found[name, scheduled(group) == "True"] += 1
        return found[parent, True] + (0 if bound else found[parent, False])


@dataclass(frozen=True, slots=True)
class Column:
    """One column. Those with a priority above 0 are shown with `-o wide`."""

    name: str
    cell: Callable[[Raw, Sheet], Any]
    type: str = "string"
    priority: int = 0
    description: str = ""
    format: str = ""


def duration(seconds: int) -> str:
    """A span of time in at most two units, as kubectl writes it."""
    if seconds < 0:
        return "<invalid>" if seconds < -1 else "0s"
    if seconds < 2 * _MINUTE:
        return f"{seconds}s"
    if seconds < 10 * _MINUTE:
        return _two(seconds, _MINUTE, "m", 1, "s")
    if seconds < 3 * _HOUR:
        return f"{seconds // _MINUTE}m"
    if seconds < 8 * _HOUR:
        return _two(seconds, _HOUR, "h", _MINUTE, "m")
    if seconds < 2 * _DAY:
        return f"{seconds // _HOUR}h"
    if seconds < 8 * _DAY:
        return _two(seconds, _DAY, "d", _HOUR, "h")
    if seconds < 2 * _YEAR:
        return f"{seconds // _DAY}d"
    if seconds < 8 * _YEAR:
        return _two(seconds, _YEAR, "y", _DAY, "d")
    return f"{seconds // _YEAR}y"


def _two(seconds: int, large: int, large_name: str, small: int, small_name: str) -> str:
    rest = seconds % large // small
    return f"{seconds // large}{large_name}" + (f"{rest}{small_name}" if rest else "")


def condition(raw: Raw, kind: str) -> Raw:
    """The condition of a type; empty if there is none."""
    for entry in raw.get("status", {}).get("conditions", ()):
        if entry.get("type") == kind:
            found: Raw = entry
            return found
    return {}


def scheduled(group: Raw) -> str:
    """The status of the condition that says whether a group was scheduled; "" without one."""
    status: str = condition(group, f"{group['kind']}InitiallyScheduled").get("status", "")
    return status


def selector(given: Raw | None) -> str:
    """A label selector as one text."""
    if not given:
        return NONE
    said = [f"{key}={value}" for key, value in sorted(given.get("matchLabels", {}).items())]
    for entry in given.get("matchExpressions", ()):
        operator, key = entry.get("operator"), entry.get("key")
        values = ",".join(entry.get("values", ()))
        said.append({"Exists": key, "DoesNotExist": f"!{key}"}.get(operator, f"{key} {operator.lower()} ({values})"))
    return ",".join(said) or NONE
