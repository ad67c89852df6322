"""The part `topologySpread` of a profile file: what pods are spread by that have no constraint of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from muster.api.validation import names
from muster.engine.profile import SYSTEM_SPREAD, ProfileError
from muster.model.neighbours import PodSelector, SpreadConstraint

_TYPES = ("System", "List")
_WHEN = ("DoNotSchedule", "ScheduleAnyway")
_POLICIES = ("Honor", "Ignore")
_FIELDS = ("maxSkew", "topologyKey", "whenUnsatisfiable", "minDomains", "nodeAffinityPolicy", "nodeTaintsPolicy")
_DEDUCED = ("labelSelector", "matchLabelKeys")


def spread_defaults(value: Any, field: str) -> tuple[SpreadConstraint, ...]:
    """The constraints that `topologySpread` says; without `defaultingType` those of the system.

    Raises:
        ProfileError: names the field, as `where: topologySpread.defaultConstraints[1].maxSkew: ...`.
    """
    if not isinstance(value, Mapping):
        raise ProfileError(f"{field}: must be a mapping, for example {{defaultingType: List, defaultConstraints: []}}")
    for key in value:
        if key not in ("defaultingType", "defaultConstraints"):
            raise ProfileError(f"{field}.{key}: unknown field; there are defaultingType, defaultConstraints")
    kind, given = value.get("defaultingType", "System"), value.get("defaultConstraints", [])
    if kind not in _TYPES:
        raise ProfileError(f"{field}.defaultingType: {kind!r} is unknown; want System or List")
    at = f"{field}.defaultConstraints"
    if not isinstance(given, list):
        raise ProfileError(f"{at}: must be a list of {{maxSkew, topologyKey, whenUnsatisfiable}}")
    if kind == "System":
        if given:
            raise ProfileError(f"{at}: only with defaultingType List; System has constraints of its own")
        return SYSTEM_SPREAD
    made: dict[tuple[str, bool], SpreadConstraint] = {}
    for number, entry in enumerate(given):
        constraint = _constraint(entry, f"{at}[{number}]")
        pair = (constraint.topology_key, constraint.hard)
        if pair in made:
            raise ProfileError(f"{at}[{number}]: the same topologyKey and whenUnsatisfiable as an entry before it")
        made[pair] = constraint
    return tuple(made.values())


def _constraint(entry: Any, field: str) -> SpreadConstraint:
    if not isinstance(entry, Mapping):
        raise ProfileError(f"{field}: must be a mapping, as {{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ...}}")
    for key in entry:
        if key in _DEDUCED:
            raise ProfileError(f"{field}.{key}: remove it; whom to count follows from a pod's Services and controller")
        if key not in _FIELDS:
            raise ProfileError(f"{field}.{key}: unknown field; there are {', '.join(_FIELDS)}")
    when = _one_of(entry, "whenUnsatisfiable", _WHEN, None, field)
    minimum = _whole(entry, "minDomains", 1, field)
    if "minDomains" in entry and when != "DoNotSchedule":
        raise ProfileError(f"{field}.minDomains: only with whenUnsatisfiable DoNotSchedule")
    return SpreadConstraint(
        PodSelector(None),
        _key(entry.get("topologyKey"), f"{field}.topologyKey"),
        _whole(entry, "maxSkew", None, field),
        when == "DoNotSchedule",
        minimum,
        _one_of(entry, "nodeAffinityPolicy", _POLICIES, "Honor", field) == "Honor",
        _one_of(entry, "nodeTaintsPolicy", _POLICIES, "Ignore", field) == "Honor",
    )


def _key(value: Any, field: str) -> str:
    if not isinstance(value, str) or not value:
        raise ProfileError(f"{field}: missing; name a node label, as topology.kubernetes.io/zone")
    if fault := names.label_key(value):
        raise ProfileError(f"{field}: {value!r} is no label key: {fault}")
    return value


def _whole(entry: Mapping[str, Any], name: str, default: int | None, field: str) -> int:
    value = entry.get(name, default)
    if type(value) is not int or value < 1:
        raise ProfileError(f"{field}.{name}: {'missing' if value is None else repr(value)}; give a whole number from 1")
    return value


def _one_of(entry: Mapping[str, Any], name: str, known: tuple[str, ...], default: str | None, field: str) -> str:
    value = entry.get(name, default)
    if value not in known:
        raise ProfileError(f"{field}.{name}: {'missing' if value is None else repr(value)}; want {' or '.join(known)}")
    return str(value)
