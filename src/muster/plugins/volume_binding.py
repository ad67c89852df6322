"""Pods go where their volumes can be reached, and where those that they still lack can be found or made."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from muster.engine.extension import Ceiling, Counter, Relations, Relaxation, Rows, View
from muster.model.diagnosis import Reason
from muster.model.records import PodClass
from muster.model.snapshot import NodeColumns, Snapshot
from muster.model.supply import PLENTY, Supply, Want, is_enough, reach
from muster.model.volumes import ClaimKind, Storage, Volumes

MOST_ROWS = 64
"""Rows that one storage class may need; beyond it its claims are told off one against the other, pod by pod."""


@dataclass(frozen=True, slots=True)
class VolumeBinding:
    """Static: node affinities of volumes, and nodes for which volumes are being made already.

    Claims that lack a volume compete for the free ones. Where each of these is reached from one node only, rows count
    them: by Hall's theorem the claims on a node can be served if of every set of kinds there are no more than volumes
    that suit any of these kinds. The same goes for room on a node to make volumes. Where several nodes share volumes or
    room, whether there is enough depends on what is placed in the whole domain (W3-W7).
    """

    name: str = "volume_binding"
    reason: Reason = Reason.VOLUME_AFFINITY

    # -- static

    def filter_key(self, pod_class: PodClass) -> Hashable | None:
        one = pod_class.storage
        return (one.reached, one.nodes) if one is not None and (one.reached or one.nodes) else None

    def filter(self, pod_class: PodClass, view: View) -> np.ndarray:
        assert pod_class.storage is not None
        passes = np.ones(len(view.nodes), dtype=bool)
        for affinity in pod_class.storage.reached:
            passes &= reach(view.nodes, affinity)
        for name in pod_class.storage.nodes:
            only = np.zeros(len(view.nodes), dtype=bool)
            if name in view.nodes.index:
                only[view.nodes.index[name]] = True
            passes &= only
        return passes

    def details(self, pod_class: PodClass, view: View) -> Iterable[tuple[str, np.ndarray]]:
        return ()

    def relaxations(self, pod_class: PodClass, view: View) -> Iterable[Relaxation]:
        return ()

    # -- counted

    def rows(self, snapshot: Snapshot, classes: Sequence[PodClass]) -> Rows:
        found: list[_Row] = []
        for market in _markets(snapshot, classes):
            found += market.rows() or ()
        nodes = len(snapshot.nodes)
        amounts = np.zeros((len(classes), len(found)), dtype=np.int64)
        reasons: dict[tuple[int, int], Reason] = {}
        for i, row in enumerate(found):
            for c, pod_class in enumerate(classes):
                amounts[c, i] = sum(row.asks.get(kind, 0) * n for kind, n in _late(pod_class))
                reasons[c, i] = row.reason
        capacity = np.array([row.capacity for row in found], dtype=np.int64).reshape(len(found), nodes)
        return Rows(tuple(row.detail for row in found), capacity, np.zeros_like(capacity), amounts, reasons)

    # -- dependent

    def relate(self, snapshot: Snapshot, classes: Sequence[PodClass]) -> Relations:
        counters: list[Counter] = []
        ceilings: list[Ceiling] = []
        rules: dict[int, list[_Served]] = {}
        for market in _markets(snapshot, classes):
            if market.rows() is None:
                board = _Board(market, classes, len(counters))
                counters += board.counters
                ceilings += _ceilings(market.supply, classes)
                for c, pod_class in enumerate(classes):
                    if (rule := board.rule(pod_class)) is not None:
                        rules.setdefault(c, []).append(rule)
        return Relations(tuple(counters), {c: _AllServed(tuple(some)) for c, some in rules.items()}, tuple(ceilings))


def _late(pod_class: PodClass) -> tuple[tuple[ClaimKind, int], ...]:
    return pod_class.storage.late if pod_class.storage is not None else ()


def _joint(one: Storage | None) -> tuple[tuple[object, ClaimKind], ...]:
    return one.joint if one is not None else ()


def _ceilings(supply: Supply, classes: Sequence[PodClass]) -> Iterator[Ceiling]:
    """How many claims of a size or more there can be, and how many bytes, if no node counted: what is free, and what
    stores have room for."""
    stores = {int(s) for s in np.unique(supply.store) if s >= 0}
    if supply.made.any():
        return
    least = min(kind.size for kind in supply.kinds)
    given = [
        (max(kind.size for kind, suits in zip(supply.kinds, lot.kinds, strict=True) if suits), lot)
        for lot in supply.lots
    ]
    for size in {kind.size for kind in supply.kinds}:
        amounts = np.array([sum(n for kind, n in _late(one) if kind.size >= size) for one in classes], dtype=np.int64)
        most = sum(len(lot.volumes) for largest, lot in given if largest >= size)
        yield Ceiling(amounts, most + sum(int(supply.room[s]) // max(size, 1) for s in stores))
    if least:
        amounts = np.array([sum(kind.size * n for kind, n in _late(one)) for one in classes], dtype=object)
        most = sum(largest * len(lot.volumes) for largest, lot in given)
        yield Ceiling(amounts, most + sum(int(supply.room[s]) for s in stores))


@dataclass(frozen=True, slots=True)
class _Row:
    detail: str
    capacity: np.ndarray
    """int64[N]"""
    asks: Mapping[ClaimKind, int]
    """What a claim of each kind takes of it."""
    reason: Reason


def _markets(snapshot: Snapshot, classes: Sequence[PodClass]) -> Iterator[_Market]:
    """One for each storage class of which claims lack volumes."""
    kinds: dict[str, set[ClaimKind]] = {}
    joint: set[str] = set()
    for pod_class in classes:
        for kind, _ in _late(pod_class):
            kinds.setdefault(kind.class_name, set()).add(kind)
        for _, kind in _joint(pod_class.storage):
            kinds.setdefault(kind.class_name, set()).add(kind)
            joint.add(kind.class_name)
    for name in sorted(kinds):
        supply = _supply(snapshot.nodes, snapshot.volumes, name, tuple(sorted(kinds[name])))
        held = tuple(_held(snapshot, supply))
        yield _Market(name, supply, name in joint, held)


def _held(snapshot: Snapshot, supply: Supply) -> Iterator[Want]:
    """What nominated pods will have to be served with: a claim that several of them use counts once."""
    index, seen = snapshot.nodes.index, set[object]()
    for name, storage in snapshot.volumes.held:
        node = index[name]
        yield from (Want(supply.place[kind], node, n) for kind, n in storage.late if kind in supply.place)
        for key, kind in storage.joint:
            if kind in supply.place and key not in seen:
                seen.add(key)
                yield Want(supply.place[kind], node, 1)


def _supply(nodes: NodeColumns, known: Volumes, name: str, kinds: tuple[ClaimKind, ...]) -> Supply:
    """Made once for a snapshot: rows and relations both ask for it."""
    made = nodes.cache.get("supply")
    if not isinstance(made, tuple) or made[0] is not known:
        made = nodes.cache["supply"] = (known, {})
    supplies: dict[object, Supply] = made[1]
    if (name, kinds) not in supplies:
        supplies[name, kinds] = Supply(nodes, known, name, kinds)
    return supplies[name, kinds]


@dataclass(frozen=True, slots=True)
class _Market:
    """The volumes of one class, and who competes for them."""

    name: str
    supply: Supply
    joint: bool
    """Some claims are used by several pods of the decision."""
    held: tuple[Want, ...]

    def rows(self) -> list[_Row] | None:
        """What can be counted node by node; None: that is not enough."""
        supply = self.supply
        if self.joint:
            return None
        if supply.tracked:
            return None if supply.lots else self._room()
        if bool(supply.allowed.all()):
            return []
        if any(np.count_nonzero(lot.nodes & ~supply.allowed) > 1 for lot in supply.lots):
            return None
        return self._sets()

    def _room(self) -> list[_Row] | None:
        """Rows where every store serves one node: whether the class may be made there, and the bytes."""
        supply = self.supply
        stores = supply.store.max(axis=0, initial=-1)
        if bool(((supply.store >= 0) & (supply.store != stores)).any()):
            return None
        _, served = np.unique(stores[stores >= 0], return_counts=True)
        if bool((served > 1).any()):
            return None
        rows = [
            _Row(self.name, np.where(supply.allowed, PLENTY, 0), dict.fromkeys(supply.kinds, 1), Reason.NO_VOLUMES),
            *(
                _Row(self.name, np.where(supply.store[k] >= 0, PLENTY, 0), {kind: 1}, Reason.NO_STORAGE)
                for k, kind in enumerate(supply.kinds)
            ),
        ]
        room = np.where(stores >= 0, np.append(supply.room, 0)[stores], 0)
        sizes = {kind: kind.size for kind in supply.kinds}
        return [*rows, _Row(self.name, room, sizes, Reason.NO_STORAGE)]

    def _sets(self) -> list[_Row] | None:
        """One row for each set of volumes that is a union of what suits some kinds."""
        supply = self.supply
        lots = [lot for lot in supply.lots if bool((lot.nodes & ~supply.allowed).any())]
        suits = [frozenset(i for i, lot in enumerate(lots) if lot.kinds[k]) for k in range(len(supply.kinds))]
        unions = set(suits)
        for one in set(suits):
            unions |= {one | other for other in unions}
            if len(unions) > MOST_ROWS:
                return None
        rows = []
        for union in sorted(unions, key=sorted):
            capacity = np.where(supply.allowed, PLENTY, 0)
            for i in union:
                capacity[lots[i].nodes & ~supply.allowed] += len(lots[i].volumes)
            asks = {kind: 1 for k, kind in enumerate(supply.kinds) if suits[k] <= union}
            rows.append(_Row(self.name, capacity, asks, Reason.NO_VOLUMES))
        return rows


class _Board:
    """Counters of claims that are to be served, by kind and by what their nodes see of the supply."""

    def __init__(self, market: _Market, classes: Sequence[PodClass], start: int) -> None:
        supply = self._supply = market.supply
        self._held = market.held
        self.start = start
        sees = np.vstack((supply.reached, supply.made, supply.store, supply.allowed[None]))
        _, first, codes = np.unique(sees, axis=1, return_index=True, return_inverse=True)
        self._codes = codes.ravel().astype(np.int32)
        self._sample = first
        stores = [one.storage for one in classes]
        self._shared = tuple(
            sorted({key: kind for one in stores for key, kind in _joint(one) if kind in supply.place}.items(), key=repr)
        )
        every = np.ones(len(self._codes), dtype=bool)
        # Domains see other volumes, so they must differ in their counts, or they would be taken for alike.
        self._base = (np.arange(len(first), dtype=np.int64) + 1) << 24
        self.counters: list[Counter] = []
        for kind in supply.kinds:
            adds = np.array([dict(_late(one)).get(kind, 0) for one in classes], dtype=np.int64)
            self.counters.append(Counter(self._codes, every, np.append(self._base, 0), adds))
        spots = np.arange(len(self._codes), dtype=np.int32)
        for key, _ in self._shared:
            adds = np.array([key in dict(_joint(one)) for one in stores], dtype=np.int64)
            self.counters.append(Counter(spots, every, np.zeros(len(spots) + 1, dtype=np.int64), adds))

    def rule(self, pod_class: PodClass) -> _Served | None:
        place = self._supply.place
        own = tuple((place[kind], n) for kind, n in _late(pod_class) if kind in place)
        keys = dict(_joint(pod_class.storage))
        joint = tuple(i for i, (key, _) in enumerate(self._shared) if key in keys)
        return _Served(self, own, joint) if own or joint else None

    def rejected(
        self, own: tuple[tuple[int, int], ...], joint: tuple[int, ...], counts: Sequence[np.ndarray]
    ) -> np.ndarray:
        """bool[N]: one more pod with these claims could not be served there."""
        after = self.start + len(self._supply.kinds)
        users = [counts[after + i][:-1] for i in range(len(self._shared))]
        wants = self._wants(counts, users)
        asked = dict(own)
        away = np.zeros(len(self._codes), dtype=bool)
        for i in joint:
            if users[i].any():
                away |= users[i] == 0  # The claim's volume is to be where its first pod is.
            else:
                k = self._supply.place[self._shared[i][1]]
                asked[k] = asked.get(k, 0) + 1
        short = [
            not is_enough(self._supply, [*wants, *(Want(k, int(node), n) for k, n in asked.items())])
            for node in self._sample.tolist()
        ]
        found: np.ndarray = away | np.array(short, dtype=bool)[self._codes]
        return found

    def _wants(self, counts: Sequence[np.ndarray], users: Sequence[np.ndarray]) -> list[Want]:
        """What pods that are placed have to be served with."""
        wants = list(self._held)
        for k in range(len(self._supply.kinds)):
            placed = counts[self.start + k][:-1] - self._base
            for domain in np.flatnonzero(placed).tolist():
                wants.append(Want(k, int(self._sample[domain]), int(placed[domain])))
        for (_, kind), there in zip(self._shared, users, strict=True):
            wants += [Want(self._supply.place[kind], int(node), 1) for node in np.flatnonzero(there)[:1]]
        return wants

    @property
    def reason(self) -> Reason:
        return Reason.NO_STORAGE if self._supply.tracked else Reason.NO_VOLUMES


@dataclass(frozen=True, slots=True)
class _Served:
    """Claims of a class (kind, number), and those that it uses together with others, out of one supply."""

    board: _Board
    own: tuple[tuple[int, int], ...]
    joint: tuple[int, ...]
    known: dict[bytes, np.ndarray] = field(default_factory=dict, compare=False)

    def rejected(self, counts: Sequence[np.ndarray]) -> np.ndarray:
        mine = counts[self.board.start : self.board.start + len(self.board.counters)]
        key = b"".join(some.tobytes() for some in mine)
        found = self.known.get(key)
        if found is None:
            if len(self.known) > MOST_ROWS:
                self.known.clear()
            found = self.known[key] = self.board.rejected(self.own, self.joint, counts)
        return found


@dataclass(frozen=True, slots=True)
class _AllServed:
    parts: tuple[_Served, ...]
    filters: bool = True
    opens: bool = False
    scores: bool = False

    def rejected(self, counts: Sequence[np.ndarray]) -> Iterable[tuple[Reason, np.ndarray]]:
        for part in self.parts:
            yield part.board.reason, part.rejected(counts)

    def score(self, counts: Sequence[np.ndarray], feasible: np.ndarray) -> np.ndarray:
        return np.zeros(len(feasible), dtype=np.int64)
