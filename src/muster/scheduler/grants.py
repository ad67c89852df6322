"""Which devices the claims of decided pods get, and how that is written down."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any
from uuid import NAMESPACE_OID, uuid5

import numpy as np

from muster.api.quantity import NANOS
from muster.api.resource import DELETE_PROTECTION
from muster.devices.offers import Combo, Offers
from muster.devices.stock import Stock
from muster.model import granting
from muster.model.devices import (
    EVERYWHERE,
    Allotment,
    Choice,
    DeviceClaim,
    DeviceRecord,
    Devices,
    DeviceToleration,
    Grant,
    Reach,
)
from muster.model.keys import Key
from muster.model.matching import any_term
from muster.model.records import PodRecord
from muster.model.snapshot import NodeColumns
from muster.model.terms import Requirement, Term

Raw = Mapping[str, Any]


def reaches(reach: Reach, nodes: NodeColumns, name: str) -> bool:
    """Whether what has this reach can be used from a node."""
    at = nodes.index.get(name)
    if at is None or reach.everywhere:
        return at is not None
    if reach.node:
        return reach.node == name
    known = nodes.cache.get(("reach", reach.terms))
    if not isinstance(known, np.ndarray):
        known = nodes.cache["reach", reach.terms] = any_term(nodes, reach.terms or ())
    return bool(known[at])


class _Plan:
    """Placed pods by what is to be allocated for them: combo, node, and the claims of each."""

    def __init__(self) -> None:
        self.combos: dict[Combo, int] = {}
        self.own: dict[tuple[int, int], list[tuple[list[Key], Key]]] = {}
        """(node, combo) -> by pod the claims that are its own, and the one for its extended resources."""
        self.users: dict[Key, set[int]] = {}
        """Shared claim -> the nodes of its pods."""

    def parts(self, *, together: bool) -> Iterator[Mapping[int, tuple[int, ...]]]:
        """How many pods of each combo are on which node; one node at a time unless they bear on each other."""
        placed: dict[int, list[int]] = {}
        for (node, k), some in self.own.items():
            placed.setdefault(node, [0] * len(self.combos))[k] = len(some)
        counts = {node: tuple(some) for node, some in sorted(placed.items())}
        if together:
            yield counts
        else:
            yield from ({node: some} for node, some in counts.items())

    def claims(
        self, offers: Offers, names: Sequence[Key | None], part: Mapping[int, tuple[int, ...]]
    ) -> Iterator[tuple[Key, int]]:
        """The claims that an allocation is about, in its order, each with a node that it is used from; that for
        extended resources once for each of them."""
        yield from ((key, min(self.users[key] & part.keys())) for key in names if key is not None)
        for node in sorted(part):
            for k, combo in enumerate(self.combos):
                extended = len(offers.own(k, node)) - len(combo.own)
                for own, made in self.own.get((node, k), ()):
                    yield from ((key, node) for key in [*own, *([made] * extended)])


def chosen_for(
    known: Devices, nodes: NodeColumns, placements: Sequence[tuple[PodRecord, str]]
) -> Mapping[Key, Allotment] | None:
    """What each claim of these pods gets that has nothing, so that all can be served on their nodes; None: they cannot,
    or a claim of theirs keeps them from there."""
    plan = _plan(known, nodes, placements)
    if plan is None or not plan.combos:
        return None if plan is None else {}
    offers = Offers(Stock.of(nodes, known.offered), known, tuple(plan.combos))
    together = bool(offers.wide) or any(len(at) > 1 for at in plan.users.values())
    found: dict[Key, Allotment] = {}
    for part in plan.parts(together=together):
        names, allocation = offers.allocation(part)
        if allocation.grants is None:
            return None
        given: dict[tuple[Key, int], tuple[Grant, ...]] = {}
        for about, grants in zip(plan.claims(offers, names, part), allocation.grants, strict=True):
            given[about] = (*given.get(about, ()), *grants)
        for (key, node), grants in given.items():
            found[key] = Allotment(grants, _reach(offers.stock, grants, nodes.names[node]))
    bound = all(reaches(found[key].reach, nodes, nodes.names[at]) for key, some in plan.users.items() for at in some)
    return found if bound else None


def _plan(known: Devices, nodes: NodeColumns, placements: Sequence[tuple[PodRecord, str]]) -> _Plan | None:
    pods = [record for record, _ in placements]
    crowd = granting.crowd_of(pods)
    if granting.beyond(pods, known, crowd):
        return None
    plan = _Plan()
    for record, name in placements:
        at, claims = nodes.index.get(name), granting.claims_of(record, known, crowd)
        if at is None or claims.flaw is not None:
            return None
        if not all(reaches(Reach(terms=selector), nodes, name) for selector in claims.pinned):
            return None
        if claims.own or claims.joint or claims.extended:
            k = plan.combos.setdefault(Combo(claims.own, claims.joint, claims.extended), len(plan.combos))
            own = granting.own_claims(record, known, crowd), granting.extended_key(record)
            plan.own.setdefault((at, k), []).append(own)
        for key, _ in claims.joint:
            plan.users.setdefault(key, set()).add(at)
    return plan


def _reach(stock: Stock, grants: Sequence[Grant], node: str) -> Reach:
    """From where all of these devices can be used (D2)."""
    alternatives: list[tuple[Term, ...]] = []
    for grant in grants:
        device = stock.inventory.device(grant.device)
        if device is None or device.record.binds_to_node or device.reach.node:
            return Reach(node)
        if device.reach.terms is not None and device.reach.terms not in alternatives:
            alternatives.append(device.reach.terms)
    if not alternatives:
        return EVERYWHERE
    return Reach(
        terms=tuple(Term(tuple(r for term in some for r in term.requirements)) for some in product(*alternatives))
    )


# -- as it is written


def made_for(record: PodRecord, key: Key, allotment: Allotment, classes: Mapping[str, str]) -> dict[str, Any]:
    """The ResourceClaim for the extended resources of a pod that it was given devices for (D12); `classes`: the device
    class that serves each."""
    given = {grant.request for grant in allotment.grants}
    requests = [
        {"name": one.request, "exactly": {**_exactly(one.amount), "deviceClassName": classes[one.resource]}}
        for one in record.cls.extended
        if one.request in given and one.resource in classes
    ]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": record.key.name, "uid": record.uid, "controller": True}
    meta = {
        "name": key.name,
        "namespace": key.namespace,
        "annotations": {"resource.kubernetes.io/extended-resource-claim": "true"},
        "ownerReferences": [owner],
        "finalizers": [DELETE_PROTECTION],
    }
    spec = {"devices": {"requests": requests}}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": meta, "spec": spec}


def _exactly(count: int) -> Raw:
    return {"allocationMode": "ExactCount", "count": count}


def told(record: PodRecord, key: Key, allotment: Allotment) -> Raw:
    """`status.extendedResourceClaimStatus` of a pod."""
    given = {grant.request for grant in allotment.grants}
    mappings = [
        {"containerName": one.container, "resourceName": one.resource, "requestName": one.request}
        for one in record.cls.extended
        if one.request in given
    ]
    return {"resourceClaimName": key.name, "requestMappings": mappings}


def written(claim: DeviceClaim, allotment: Allotment, known: Devices) -> Raw:
    """`status.allocation` of a ResourceClaim."""
    choices = {choice.name: choice for request in claim.shape.requests for choice in request}
    inventory = known.offered.cache.get("inventory")
    results = [
        _result(claim, k, grant, choices[grant.request], _record(inventory, grant))
        for k, grant in enumerate(allotment.grants)
    ]
    selector = allotment.reach.selector
    where = {"nodeSelector": {"nodeSelectorTerms": [_term(term) for term in selector]}} if selector is not None else {}
    return {"devices": {"results": results}, **where}


def _record(inventory: Any, grant: Grant) -> DeviceRecord | None:
    device = inventory.device(grant.device) if inventory is not None else None
    return device.record if device is not None else None


def _result(claim: DeviceClaim, k: int, grant: Grant, choice: Choice, record: DeviceRecord | None) -> Raw:
    driver, pool, device = grant.device
    found: dict[str, Any] = {"request": grant.request, "driver": driver, "pool": pool, "device": device}
    if grant.admin:
        found["adminAccess"] = True
    if choice.tolerations:
        found["tolerations"] = [_toleration(one) for one in choice.tolerations]
    if record is not None and record.conditions:
        found["bindingConditions"] = list(record.conditions)
        found["bindingFailureConditions"] = list(record.failures)
    if record is not None and record.shared:
        found["shareID"] = str(uuid5(NAMESPACE_OID, f"{claim.uid}/{claim.version}/{k}"))
        found["consumedCapacity"] = {
            name.removeprefix(f"{driver}/"): _quantity(amount) for name, amount in grant.consumed
        }
    return found


def _toleration(toleration: DeviceToleration) -> Raw:
    pairs = {"key": toleration.key, "operator": toleration.operator, "value": toleration.value}
    return {name: value for name, value in {**pairs, "effect": toleration.effect}.items() if value}


def _quantity(amount: int) -> str:
    return str(amount // NANOS) if amount % NANOS == 0 else f"{amount}n"


def _term(term: Term) -> Raw:
    fields = [_requirement("metadata.name", r) for r in term.requirements if r.key is None]
    labels = [_requirement(r.key, r) for r in term.requirements if r.key is not None]
    return {**({"matchExpressions": labels} if labels else {}), **({"matchFields": fields} if fields else {})}


def _requirement(key: str, requirement: Requirement) -> Raw:
    values = {"values": list(requirement.values)} if requirement.values else {}
    return {"key": key, "operator": requirement.operator, **values}
