"""Which pods belong together by their Services and controllers: what pods without spread constraints are spread by.

As kube-scheduler's default selector: the selectors of all Services that select the pod, and that of the
ReplicationController, ReplicaSet or StatefulSet that controls it. A pod with neither is not spread, and costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from muster.model.keys import Key
from muster.model.neighbours import LabelRequirement, PodDemands, PodSelector, SpreadConstraint
from muster.model.records import PodClass, PodRecord

Raw = Mapping[str, Any]
Requirements = tuple[LabelRequirement, ...]

SERVICES = "services"
CONTROLLERS: Mapping[tuple[str, str], str] = {
    ("v1", "ReplicationController"): "replicationcontrollers",
    ("apps/v1", "ReplicaSet"): "replicasets",
    ("apps/v1", "StatefulSet"): "statefulsets",
}
"""apiVersion and kind -> resource."""
FAMILIES: tuple[str, ...] = (SERVICES, *CONTROLLERS.values())
_MOST = 50_000


def controller_of(meta: Raw) -> tuple[str, str] | None:
    """Resource and name of the controller of a pod, if it is one of CONTROLLERS."""
    for owner in meta.get("ownerReferences") or ():
        if owner.get("controller"):
            resource = CONTROLLERS.get((owner.get("apiVersion", ""), owner.get("kind", "")))
            return (resource, owner["name"]) if resource is not None else None
    return None


def selector_of(resource: str, raw: Raw) -> Requirements:
    """What a Service or controller selects, sorted; nothing for one without a selector.

    Raises:
        TypeError, KeyError, AttributeError: the selector is malformed.
    """
    given = raw["spec"].get("selector") or {}
    plain = resource in (SERVICES, "replicationcontrollers")
    labels = given if plain else given.get("matchLabels") or {}
    expressions = () if plain else given.get("matchExpressions") or ()
    if not all(isinstance(value, str) for pair in labels.items() for value in pair):
        raise TypeError("spec.selector holds something that is no text")
    return _requirements(labels, expressions)


def selector_requirements(selector: Raw) -> Requirements:
    """What a label selector asks for, sorted.

    Raises:
        TypeError, KeyError, AttributeError: the selector is malformed.
    """
    return _requirements(selector.get("matchLabels") or {}, selector.get("matchExpressions") or ())


def _requirements(labels: Raw, expressions: Any) -> Requirements:
    return _sorted(
        *(LabelRequirement(key, "In", (value,)) for key, value in labels.items()),
        *(LabelRequirement(e["key"], e["operator"], tuple(sorted(e.get("values") or ()))) for e in expressions),
    )


class Families:
    """Keeps Services and controllers, and gives pods the constraints that follow from them."""

    def __init__(self, constraints: tuple[SpreadConstraint, ...]) -> None:
        self.constraints = constraints
        self._services: dict[str, dict[str, Requirements]] = {}
        self._controllers: dict[tuple[str, Key], Requirements] = {}
        self._made: dict[tuple[PodClass, str, Requirements], PodClass] = {}
        self._plain: dict[PodClass, PodClass] = {}

    @property
    def empty(self) -> bool:
        return not self._services and not self._controllers

    def put(self, resource: str, key: Key, selector: Requirements | None) -> bool:
        """Whether that changes whom it selects; None: it is gone."""
        if resource != SERVICES:
            old = self._controllers.pop((resource, key), None)
            if selector is not None:
                self._controllers[resource, key] = selector
            return old != selector
        there = self._services.setdefault(key.namespace, {})
        was = there.pop(key.name, None)
        if selector:
            there[key.name] = selector
        if not there:
            del self._services[key.namespace]
        return (was or None) != (selector or None)

    def applied(self, record: PodRecord) -> PodRecord:
        """The pod with the constraints that its family calls for now, and without those of an earlier call."""
        plain = self._plain.get(record.cls, record.cls)
        if plain.demands is not None and plain.demands.spread:
            return record
        selector = self._selector(record)
        cls = self._with(plain, record.key.namespace, selector) if selector else plain
        return record if cls is record.cls else replace(record, cls=cls)

    def _selector(self, record: PodRecord) -> Requirements:
        labels = dict(record.labels)
        found: list[LabelRequirement] = []
        for selector in self._services.get(record.key.namespace, {}).values():
            if all(requirement.holds(labels) for requirement in selector):
                found += selector
        if record.controller is not None:
            resource, name = record.controller
            found += self._controllers.get((resource, Key(record.key.namespace, name)), ())
        return _sorted(*found)

    def _with(self, plain: PodClass, namespace: str, selector: Requirements) -> PodClass:
        """Alike pods of one family share a class."""
        known = self._made.get((plain, namespace, selector))
        if known is None:
            if len(self._made) >= _MOST:
                self._made.clear()
                self._plain.clear()
            alike = PodSelector(selector, (namespace,))
            spread = tuple(constraint._replace(selector=alike) for constraint in self.constraints)
            demands = (plain.demands or PodDemands())._replace(spread=spread)
            known = self._made[plain, namespace, selector] = replace(plain, demands=demands)
            self._plain[known] = plain
        return known


def _sorted(*requirements: LabelRequirement) -> Requirements:
    return tuple(sorted(set(requirements)))
