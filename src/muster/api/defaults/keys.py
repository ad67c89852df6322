"""The label keys of pod affinity terms and spread constraints, merged into their selectors when a pod is created."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from muster.api.defaults.parts import Json, Raw
from muster.api.gates import FeatureGates

_OPERATORS = (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))


def merged(spec: Json, labels: Any, gates: FeatureGates) -> None:
    """Puts the pod's own values of the keys into each selector, in place of `spec`'s parts, which stay as they were.

    Keys that the pod lacks and terms without a selector change nothing. A key that the selector has already is in there
    twice then: validation refuses it.
    """
    if not isinstance(labels, Mapping):
        return
    if gates.merges_spread_keys and isinstance(spec.get("topologySpreadConstraints"), list):
        spec["topologySpreadConstraints"] = [
            _term(one, labels, _OPERATORS[:1]) for one in spec["topologySpreadConstraints"]
        ]
    affinity = spec.get("affinity")
    if isinstance(affinity, Mapping):
        kinds = {kind: _kind(affinity[kind], labels) for kind in ("podAffinity", "podAntiAffinity") if kind in affinity}
        if kinds:
            spec["affinity"] = {**affinity, **kinds}


def _kind(given: Any, labels: Raw) -> Any:
    if not isinstance(given, Mapping):
        return given
    return {
        field: [_wish(term, labels) for term in terms] if isinstance(terms, list) else terms
        for field, terms in given.items()
    }


def _wish(given: Any, labels: Raw) -> Any:
    if isinstance(given, Mapping) and "podAffinityTerm" in given:
        return {**given, "podAffinityTerm": _term(given["podAffinityTerm"], labels, _OPERATORS)}
    return _term(given, labels, _OPERATORS)


def _term(given: Any, labels: Raw, operators: tuple[tuple[str, str], ...]) -> Any:
    if not isinstance(given, Mapping) or not isinstance(given.get("labelSelector"), Mapping):
        return given
    selector = given["labelSelector"]
    known = selector.get("matchExpressions") or []
    if not isinstance(known, list):
        return given
    more: list[Json] = []
    for field, operator in operators:
        keys = given.get(field)
        for key in keys if isinstance(keys, list) else ():
            if isinstance(key, str) and key in labels:
                more.append({"key": key, "operator": operator, "values": [labels[key]]})
    if not more:
        return given
    return {**given, "labelSelector": {**selector, "matchExpressions": [*known, *more]}}
