"""What every plugin promises, checked: `check_plugin(plugin)` is one line in a plugin author's test.

A plugin is asked about a small cluster in which every feature of a node occurs, about a cluster of one node and about
an empty one. More snapshots and classes can be given where a plugin looks at something of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from muster.engine.extension import BEST, Capacity, Dependent, Filter, Plugin, Relations, Rows, Score, View
from muster.model.diagnosis import Reason
from muster.model.neighbours import (
    LabelRequirement,
    PodDemands,
    PodSelector,
    PodTerm,
    SpreadConstraint,
    WeightedTerm,
)
from muster.model.plan import Bind
from muster.model.records import HostPort, PodClass, Preference
from muster.model.resources import NATIVE
from muster.model.snapshot import NodeColumns, Snapshot
from muster.model.volumes import Flaw, Storage
from muster.testing import builders, oracle
from muster.testing.builders import GIB, node, pod, pod_class, taint, term, tolerate

ZONE = "topology.kubernetes.io/zone"


class LawBroken(AssertionError):
    """A plugin does not keep a promise; the message says which one, for which class."""


def sample_classes() -> tuple[PodClass, ...]:
    """Classes that differ in each field a plugin may read."""
    return (
        pod_class(),
        pod_class(cpu=1000, memory=2 * GIB),
        pod_class(cpu=4000, memory=GIB, gpus=4),
        pod_class(more={"example.com/unknown-to-the-cluster": 1}),
        pod_class(cpu=1000, selector={ZONE: "a"}),
        pod_class(cpu=1000, required=[term((ZONE, "In", ("b",))), term((None, "In", ("n3",)))]),
        pod_class(cpu=1000, required=[]),
        pod_class(preferred=(Preference(10, term((ZONE, "In", ("a",)))), Preference(90, term(("tier", "Gt", ("1",)))))),
        pod_class(tolerations=[tolerate("dedicated", "training")]),
        pod_class(tolerations=[tolerate()]),
        pod_class(tolerations=[tolerate(oracle.CORDON.key), tolerate("spot", effect="PreferNoSchedule")]),
        pod_class(ports=[80]),
        pod_class(cpu=1000, ports=[HostPort("TCP", 80, "10.0.0.1"), HostPort("UDP", 53, "0.0.0.0")]),
        pod_class(images=("registry.example.com/trainer:1", "registry.example.com/side:2")),
        pod_class(cpu=1000, images=("registry.example.com/absent:1",)),
        pod_class(features=("New",)),
        pod_class(cpu=1000, features=("New", "Newer")),
        *_sociable_classes(),
        *_storing_classes(),
    )


def _storing_classes() -> tuple[PodClass, ...]:
    """Classes with volumes that exist, and one with a claim that does not. What is counted of volumes is left out."""
    found = (
        Storage(flaw=(Flaw.MISSING, "data")),
        Storage(reached=((term((ZONE, "In", ("a",))),),), zones=((ZONE, ("a", "b")),)),
        Storage(nodes=("n2",), drivers=("csi.example.com",)),
    )
    return tuple(pod_class(cpu=1000, stores=True, storage=one) for one in found)


def _sociable_classes() -> tuple[PodClass, ...]:
    """Classes that look at other pods; the second is also meant by what the first asks for."""
    web = PodSelector((LabelRequirement("app", "In", ("web",)),), ("default",))
    host, zone = PodTerm(web, builders.HOSTNAME), PodTerm(web, ZONE)
    spread = tuple(SpreadConstraint(web, key, 1, hard) for key in (ZONE, "tier") for hard in (True, False))
    asking = PodDemands((zone,), (host, zone), (WeightedTerm(5, zone), WeightedTerm(-5, host)), spread)
    return (
        pod_class(demands=asking),
        pod_class(demands=asking, matched=((web,),)),
        pod_class(demands=PodDemands(anti_affinity=(host,)), matched=((web,),)),
        pod_class(matched=((web,),)),
    )


def sample_snapshots() -> tuple[Snapshot, ...]:
    """A cluster with a node of each kind and pods on it, one bare node, and nothing at all."""
    nodes = (
        node("n1", gpus=8, labels={ZONE: "a", "tier": "1"}, images={"registry.example.com/trainer:1": 4 * GIB}),
        node(
            "n2",
            gpus=8,
            labels={ZONE: "a", "tier": "2"},
            images={"registry.example.com/trainer:1": GIB // 2},
            features=["New", "Newer"],
        ),
        node("n3", labels={ZONE: "b"}, taints=[taint("dedicated", "training"), taint("spot", "", "PreferNoSchedule")]),
        node("n4", labels={ZONE: "b"}, unschedulable=True, images={"registry.example.com/side:2": GIB}),
        node("n5", cpu=0, memory=GIB, taints=[taint("dedicated", "serving", "NoExecute")]),
        node("n6", cpu=2000, pods=2, labels={"tier": "gold"}, features=["New"]),
    )
    bound = (
        pod("b1", node="n1", cpu=8000, gpus=4, memory=64 * GIB),
        pod("b2", node="n2", ports=[80], gpus=8),
        pod("b3", node="n6", cpu=4000),
        pod("b4", node="n3", ports=[HostPort("TCP", 80, "10.0.0.1")]),
    )
    return builders.snapshot(nodes, bound), builders.snapshot([node("n1")]), builders.snapshot([])


def check_plugin(
    plugin: Plugin, *, snapshots: Sequence[Snapshot] | None = None, classes: Sequence[PodClass] | None = None
) -> None:
    """Asks the plugin everything the engine may ask, twice and on copies.

    Raises:
        LawBroken: the plugin breaks a promise of `engine.extension`.
    """
    asked = _Asked(plugin, tuple(sample_classes() if classes is None else classes))
    asked.law(isinstance(plugin.name, str) and plugin.name != "", "has a name that is text")
    asked.law(_hashable(plugin), "is a frozen record, so it can be hashed")
    asked.law(
        isinstance(plugin, Filter | Capacity | Score | Dependent), "extends something: filter, rows, score or relate"
    )
    for snapshot in sample_snapshots() if snapshots is None else snapshots:
        if isinstance(plugin, Filter):
            _check_filter(asked, plugin, snapshot)
        if isinstance(plugin, Capacity):
            _check_capacity(asked, plugin, snapshot)
        if isinstance(plugin, Score):
            _check_score(asked, plugin, snapshot)
        if isinstance(plugin, Dependent):
            _check_dependent(asked, plugin, snapshot)


@dataclass(frozen=True)
class _Asked:
    """A plugin under examination, with the classes it is asked about."""

    plugin: Plugin
    classes: tuple[PodClass, ...]

    def law(self, kept: object, promise: str, cls: PodClass | None = None) -> None:
        if not kept:
            about = f" (asked about {cls})" if cls is not None else ""
            raise LawBroken(f'plugin "{self.plugin.name}" breaks the law that it {promise}{about}')

    def column(self, answer: object, dtype: type, columns: int, what: str, cls: PodClass) -> np.ndarray:
        """The answer as the array it must be."""
        right = isinstance(answer, np.ndarray) and answer.dtype == dtype and answer.shape == (columns,)
        self.law(right, f"returns {what} as {np.dtype(dtype).name}[{columns}], not {answer!r:.60}", cls)
        assert isinstance(answer, np.ndarray)
        return answer

    def answer(
        self, ask: Callable[[PodClass, View], np.ndarray], view: View, dtype: type, what: str, cls: PodClass
    ) -> np.ndarray:
        """The answer about one class, asked for twice: neither it nor the question may change by that."""
        before = _content(view)
        first = self.column(ask(cls, view), dtype, len(view.feasible), what, cls).copy()
        self.law(_content(view) == before, "leaves its inputs untouched", cls)
        self.law(np.array_equal(first, ask(cls, view)), "is deterministic: the same question has the same answer", cls)
        return first

    def alike(self, key: Callable[[PodClass], object]) -> Iterator[tuple[PodClass, PodClass]]:
        """Pairs of classes that the plugin says it cannot tell apart."""
        keyed = [(key(cls), cls) for cls in self.classes]
        return ((a, b) for (one, a), (other, b) in combinations(keyed, 2) if one is not None and one == other)


def _check_filter(asked: _Asked, plugin: Filter, snapshot: Snapshot) -> None:
    view, busy = whole_view(snapshot, asked.classes), whole_view(snapshot, asked.classes, used=1)
    asked.law(Reason.NONE < plugin.reason < Reason.GATED, "has a reason between 1 and 63")
    for cls in asked.classes:
        asked.law(_hashable(plugin.filter_key(cls)), "has a key that can be hashed", cls)
        if plugin.filter_key(cls) is None:
            continue
        passed = asked.answer(plugin.filter, view, bool, "a filter", cls)
        asked.law(np.array_equal(passed, plugin.filter(cls, busy)), "is static: what is used changes no filter", cls)
        _check_words(asked, plugin, view, cls, passed)
    for one, other in asked.alike(plugin.filter_key):
        same = np.array_equal(plugin.filter(one, view), plugin.filter(other, view))
        asked.law(same, "answers alike for classes of one key", other)


def _check_words(asked: _Asked, plugin: Filter, view: View, cls: PodClass, passed: np.ndarray) -> None:
    """Details and relaxations speak of rejected nodes only."""
    for detail, nodes in plugin.details(cls, view):
        column = asked.column(nodes, bool, len(passed), "the nodes of a detail", cls)
        asked.law(isinstance(detail, str), "names a detail by text", cls)
        asked.law(not (column & passed).any(), "gives details only for nodes that it rejects", cls)
    for relaxation in plugin.relaxations(cls, view):
        column = asked.column(relaxation.nodes, bool, len(passed), "the nodes of a relaxation", cls)
        asked.law(not (column & passed).any(), "relaxes only for nodes that it rejects", cls)


def _check_capacity(asked: _Asked, plugin: Capacity, snapshot: Snapshot) -> None:
    before = snapshot.used.tobytes(), {port: dict(counts) for port, counts in snapshot.ports.items()}
    rows = plugin.rows(snapshot, asked.classes)
    _check_rows(asked, rows, len(snapshot.nodes))
    again = plugin.rows(snapshot, asked.classes)
    same = rows.details == again.details and all(
        np.array_equal(one, other) for one, other in zip(rows[1:4], again[1:4], strict=True)
    )
    asked.law(same, "is deterministic: the same question has the same answer")
    after = snapshot.used.tobytes(), {port: dict(counts) for port, counts in snapshot.ports.items()}
    asked.law(before == after, "leaves its inputs untouched")
    _check_sums(asked, plugin, snapshot, rows)


def _check_rows(asked: _Asked, rows: Rows, size: int) -> None:
    asked.law(all(isinstance(detail, str) for detail in rows.details), "names its rows by text")
    shapes = {"capacity": (len(rows.details), size), "used": (len(rows.details), size)}
    shapes["amounts"] = (len(asked.classes), len(rows.details))
    for name, shape in shapes.items():
        array = getattr(rows, name)
        right = isinstance(array, np.ndarray) and array.dtype == np.int64 and array.shape == shape
        asked.law(right, f"returns {name} as int64{list(shape)}")
    asked.law((rows.amounts >= 0).all(), "asks for no negative amounts")


def _check_sums(asked: _Asked, plugin: Capacity, snapshot: Snapshot, rows: Rows) -> None:
    """Placing a pod and asking anew must come to the same as adding its amounts, as the engine does."""
    for index, cls in enumerate(asked.classes):
        if any(name not in snapshot.axis.row for name, _ in cls.requests):
            continue
        if cls.demands is not None or cls.matched:
            continue  # `after` knows nothing of neighbours.
        for column, name in enumerate(snapshot.nodes.names):
            member = pod("placed", cls)
            placed = oracle.after(snapshot, builders.entry(member), [Bind(member.key, member.uid, name)])
            used = rows.used.copy()
            used[:, column] += rows.amounts[index]
            same = np.array_equal(_slots(rows._replace(used=used)), _slots(plugin.rows(placed, asked.classes)))
            asked.law(same, f"counts amounts that add up (on {name})", cls)


def _slots(rows: Rows) -> np.ndarray:
    """int64[C, N]: how many more pods of each class fit."""
    left, amounts = (rows.capacity - rows.used)[None], rows.amounts[:, :, None]
    most = np.iinfo(np.int64).max
    slots = np.where(amounts == 0, most, left // np.maximum(amounts, 1))
    fewest: np.ndarray = np.maximum(slots.min(axis=1, initial=most), 0)
    return fewest


def _check_score(asked: _Asked, plugin: Score, snapshot: Snapshot) -> None:
    view, busy = whole_view(snapshot, asked.classes), whole_view(snapshot, asked.classes, used=1)
    for cls in asked.classes:
        asked.law(_hashable(plugin.score_key(cls)), "has a key that can be hashed", cls)
        if plugin.score_key(cls) is None:
            continue
        scores = asked.answer(plugin.score, view, np.int64, "scores", cls)
        asked.law(((scores >= 0) & (scores <= BEST)).all(), f"scores from 0 to {BEST}", cls)
        if plugin.dynamic:
            _check_columns(asked, plugin, view, cls)
        else:
            asked.law(np.array_equal(scores, plugin.score(cls, busy)), "is static, so usage changes no score", cls)
    for one, other in asked.alike(plugin.score_key):
        same = np.array_equal(plugin.score(one, view), plugin.score(other, view))
        asked.law(same, "answers alike for classes of one key", other)


def _check_dependent(asked: _Asked, plugin: Dependent, snapshot: Snapshot) -> None:
    """Rules judge by the counts they are given, alike each time, and change nothing."""
    size, relations = len(snapshot.nodes), plugin.relate(snapshot, asked.classes)
    asked.law(_same_relations(relations, plugin.relate(snapshot, asked.classes)), "relates alike when asked again")
    for counter in relations.counters:
        right = counter.codes.shape == counter.counted.shape == (size,) and counter.counted.dtype == bool
        asked.law(right and counter.adds.shape == (len(asked.classes),), "counts over all nodes, for all classes")
        asked.law(counter.counts.dtype == np.int64 and not counter.counts[-1], "counts nothing outside the domains")
        asked.law((counter.codes < len(counter.counts) - 1).all(), "has a count for each domain")
        asked.law((counter.adds >= 0).all() and (counter.codes[counter.counted] >= 0).all(), "counts in domains")
    counts = [counter.counts for counter in relations.counters]
    more = [np.append(some[:-1] + 1, 0) for some in counts]
    for cls, rule in relations.rules.items():
        asked.law(rule.filters or rule.scores, "has no rule without an opinion", asked.classes[cls])
        for some in (counts, more):
            before = [one.tobytes() for one in some]
            for reason, column in rule.rejected(some) if rule.filters else ():
                asked.law(Reason.NONE < reason < Reason.GATED, "has a reason between 1 and 63")
                asked.column(column, bool, size, "the nodes that it rejects", asked.classes[cls])
            if rule.scores:
                scores = rule.score(some, np.ones(size, dtype=bool))
                asked.column(scores, np.int64, size, "scores", asked.classes[cls])
                asked.law(((scores >= 0) & (scores <= BEST)).all(), f"scores from 0 to {BEST}", asked.classes[cls])
            asked.law(before == [one.tobytes() for one in some], "leaves its inputs untouched", asked.classes[cls])


def _same_relations(one: Relations, other: Relations) -> bool:
    return one.rules.keys() == other.rules.keys() and _spelled(one) == _spelled(other)


def _spelled(relations: Relations) -> list[tuple[object, ...]]:
    return [(c.codes.tolist(), c.counted.tolist(), c.counts.tolist(), c.adds.tolist()) for c in relations.counters]


def _check_columns(asked: _Asked, plugin: Score, view: View, cls: PodClass) -> None:
    """A dynamic score treats each column by itself: any selection of columns has the selection of the scores."""
    size = view.used.shape[1]
    chosen = np.array([*range(size - 1, -1, -1), *range(0, size, 2)], dtype=np.intp)
    part = View(view.nodes, view.row, view.alloc[:, chosen], view.used[:, chosen], view.feasible[chosen])
    same = np.array_equal(plugin.score(cls, view)[chosen], plugin.score(cls, part))
    asked.law(same, "looks at each node by itself where it is dynamic", cls)


def whole_view(snapshot: Snapshot, classes: Sequence[PodClass], *, used: int = 0) -> View:
    """All nodes as a plugin sees them, with a row for each resource that a class asks for; `used` is added to all."""
    nodes: NodeColumns = snapshot.nodes
    names = [*snapshot.axis.names]
    names += sorted({name for cls in classes for name, _ in cls.requests} - set(names))
    assert tuple(names[: len(NATIVE)]) == NATIVE
    more = np.zeros((len(names) - len(snapshot.axis), len(nodes)), dtype=np.int64)
    arrays = np.vstack([nodes.alloc, more]), np.vstack([snapshot.used, more]) + used
    for array in arrays:
        array.flags.writeable = False
    feasible = np.ones(len(nodes), dtype=bool)
    return View(nodes, {name: row for row, name in enumerate(names)}, *arrays, feasible)


def _content(view: View) -> tuple[bytes, ...]:
    return view.alloc.tobytes(), view.used.tobytes(), view.feasible.tobytes(), view.nodes.alloc.tobytes()


def _hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True
