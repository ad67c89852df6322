"""Pods go where their device claims are allocated, or where devices can be found for them (D1-D11, D22)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from muster.devices.offers import Combo, Offers
from muster.devices.stock import Stock
from muster.engine.extension import Counter, Relations, Relaxation, Rows, View
from muster.model.diagnosis import Reason, Shortfall
from muster.model.matching import any_term
from muster.model.records import PodClass
from muster.model.snapshot import Snapshot

DETAIL = "devices"


@dataclass(frozen=True, slots=True)
class DeviceClaims:
    """Rejects every node for a class whose claims have a flaw (`devices.ClaimFlaw`); the first one is told (D14)."""

    name: str = "device_claims"
    reason: Reason = Reason.DEVICE_CLAIM

    def filter_key(self, pod_class: PodClass) -> Hashable | None:
        return pod_class.claims.flaw if pod_class.claims is not None else None

    def filter(self, pod_class: PodClass, view: View) -> np.ndarray:
        return np.zeros(len(view.nodes), dtype=bool)

    def details(self, pod_class: PodClass, view: View) -> Iterable[tuple[str, np.ndarray]]:
        if pod_class.claims is not None and pod_class.claims.flaw is not None:
            flaw, name = pod_class.claims.flaw
            yield f"{flaw.value}/{name}", np.ones(len(view.nodes), dtype=bool)

    def relaxations(self, pod_class: PodClass, view: View) -> Iterable[Relaxation]:
        return ()


@dataclass(frozen=True, slots=True)
class DeviceReach:
    """Rejects nodes from which a device that one of the claims has cannot be used (D15)."""

    name: str = "device_reach"
    reason: Reason = Reason.DEVICE_AWAY

    def filter_key(self, pod_class: PodClass) -> Hashable | None:
        return (pod_class.claims.pinned or None) if pod_class.claims is not None else None

    def filter(self, pod_class: PodClass, view: View) -> np.ndarray:
        passes = np.ones(len(view.nodes), dtype=bool)
        for selector in pod_class.claims.pinned if pod_class.claims is not None else ():
            passes &= any_term(view.nodes, selector)
        return passes

    def details(self, pod_class: PodClass, view: View) -> Iterable[tuple[str, np.ndarray]]:
        return ()

    def relaxations(self, pod_class: PodClass, view: View) -> Iterable[Relaxation]:
        return ()


@dataclass(frozen=True, slots=True)
class Devices:
    """Devices for claims that are not allocated.

    Where all pods of a decision that need devices need the same, and no device or claim ties nodes together, how many
    of them a node can serve is a number, found by allocating for one more until it fails: it is counted like any
    resource. Otherwise what a node can serve depends on what is placed, there or on nodes tied to it, and is searched
    for.
    """

    name: str = "devices"
    reason: Reason = Reason.NO_DEVICES

    def rows(self, snapshot: Snapshot, classes: Sequence[PodClass]) -> Rows:
        offers = _offers(snapshot, classes)
        nodes = len(snapshot.nodes)
        if offers is None or not offers.simple:
            none = np.zeros((0, nodes), dtype=np.int64)
            return Rows((), none, none, np.zeros((len(classes), 0), dtype=np.int64))
        capacity = offers.most()[None, :]
        amounts = np.array([[_combo(one) is not None] for one in classes], dtype=np.int64).reshape(len(classes), 1)
        return Rows((DETAIL,), capacity, np.zeros_like(capacity), amounts)

    def nearest(self, snapshot: Snapshot, pod_class: PodClass, usable: np.ndarray) -> Shortfall | None:
        combo = _combo(pod_class)
        if combo is None:
            return None
        lack = _offered(snapshot, (combo,)).nearest(usable)
        return Shortfall("devices", lack.needed - lack.found, lack.node, devices=lack) if lack is not None else None

    def relate(self, snapshot: Snapshot, classes: Sequence[PodClass]) -> Relations:
        offers = _offers(snapshot, classes)
        if offers is None or offers.simple:
            return Relations()
        spots = np.arange(len(snapshot.nodes), dtype=np.int32)
        every = np.ones(len(spots), dtype=bool)
        counters = tuple(
            Counter(
                spots,
                every,
                np.zeros(len(spots) + 1, dtype=np.int64),
                np.array([_combo(one) == combo for one in classes], dtype=np.int64),
            )
            for combo in offers.combos
        )
        places = {combo: k for k, combo in enumerate(offers.combos)}
        rules = {c: _Served(offers, places[mine]) for c, one in enumerate(classes) if (mine := _combo(one)) is not None}
        return Relations(counters, rules)


@dataclass(frozen=True, slots=True)
class _Served:
    """One more pod of a combo has to be served beside what is placed."""

    offers: Offers
    combo: int
    known: dict[bytes, np.ndarray] = field(default_factory=dict, compare=False)
    filters: bool = True
    opens: bool = False
    scores: bool = False

    def rejected(self, counts: Sequence[np.ndarray]) -> Iterable[tuple[Reason, np.ndarray]]:
        key = b"".join(some.tobytes() for some in counts)
        found = self.known.get(key)
        if found is None:
            self.known.clear()
            found = self.known[key] = self.offers.rejected(self.combo, [some[:-1] for some in counts])
        yield Reason.NO_DEVICES, found

    def score(self, counts: Sequence[np.ndarray], feasible: np.ndarray) -> np.ndarray:
        return np.zeros(len(feasible), dtype=np.int64)


def _combo(pod_class: PodClass) -> Combo | None:
    """What is to be allocated for a pod of the class; None: nothing."""
    claims = pod_class.claims
    if claims is None or not (claims.own or claims.joint or claims.extended):
        return None
    return Combo(claims.own, claims.joint, claims.extended)


def _offers(snapshot: Snapshot, classes: Sequence[PodClass]) -> Offers | None:
    """What the nodes offer to these classes; None: none of them needs devices. Made once for a snapshot."""
    combos = tuple(dict.fromkeys(combo for one in classes if (combo := _combo(one)) is not None))
    return _offered(snapshot, combos) if combos else None


def _offered(snapshot: Snapshot, combos: tuple[Combo, ...]) -> Offers:
    nodes, known = snapshot.nodes, snapshot.devices
    made = nodes.cache.get("offers")
    if not isinstance(made, tuple) or made[0] is not known:
        made = nodes.cache["offers"] = (known, {})
    offers: dict[tuple[Combo, ...], Offers] = made[1]
    if combos not in offers:
        offers[combos] = Offers(Stock.of(nodes, known.offered), known, combos)
    return offers[combos]
