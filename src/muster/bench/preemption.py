"""The shapes of preemption: full clusters in which something more important makes room for itself, or cannot.

The engine is asked directly, on made-up snapshots that are not in the time: it is that of one decision, the attempt
that fails and the search for victims together. The number of victims stands beside it; its target is the least that
will do, which is known by construction.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from statistics import mean, median

import numpy as np

from muster.bench import fleet
from muster.bench.cluster import Unfinished
from muster.bench.measure import seconds
from muster.engine.decide import decide
from muster.engine.preemption.world import freed
from muster.model.decision import Decision
from muster.model.diagnosis import PreemptionOutcome
from muster.model.plan import Nominate
from muster.model.records import GroupRecord, NodeRecord, Phase, PodRecord, QueueEntry
from muster.model.roster import Roster
from muster.model.running import Running
from muster.model.snapshot import Snapshot
from muster.plugins import default_profile
from muster.testing import builders as b
from muster.testing import evictions
from muster.testing.cheapest import cheapest

NODES = 1_000
GANG = 10
"""Members of a preempting gang, of the gangs it evicts, and of the groups that go as a whole."""
LOW, HIGH = 1, 10
LATER = 10**12
"""When it is decided, in microseconds; pods began before."""
RACK = "rack"
MIXED = 10
"""So many gangs of each kind are held to the optimum."""


class Full:
    """A cluster without room in which entries are decided one by one, each with what came of the earlier ones."""

    def __init__(self, nodes: Iterable[NodeRecord], pods: Sequence[PodRecord], groups: Iterable[GroupRecord] = ()):
        self._profile = default_profile()
        self._roster = Roster(pods)
        self._snapshot = b.snapshot(nodes, pods, groups=groups, levels=(RACK,))
        self.seconds: list[float] = []
        self.victims: list[int] = []

    def decide(self, entry: QueueEntry) -> PreemptionOutcome:
        """What came of the attempt to evict. Victims are gone at once, and the entry is where it was nominated."""
        there, columns = self._roster.seen()
        snapshot = replace(self._snapshot, running=Running(there, kept=columns))
        decision, taken = _timed(snapshot, replace(entry, may_preempt=True), self)
        preemption = decision.diagnoses[0].preemption
        if preemption is None:
            raise Unfinished(f"{entry.key.key.name} was not let preempt")
        self.seconds.append(taken)
        self.victims.append(len(preemption.victims))
        evicted = {victim.uid for victim in preemption.victims}
        gone = [pod for pod in there if pod.uid in evicted]
        members = {pod.uid: pod for pod in entry.pods}
        steps = [step for step in decision.plans[0].steps if isinstance(step, Nominate)]
        come = [_on(members[step.uid], step.node) for step in steps]
        for uid in evicted:
            self._roster.drop(uid)
        for pod in come:
            self._roster.put(pod)
        self._use(freed(snapshot, come) - freed(snapshot, gone))
        return preemption.outcome

    def ask(self, snapshot: Snapshot, entry: QueueEntry) -> Decision:
        return decide(snapshot, [entry], self._profile, now=LATER)

    def _use(self, more: np.ndarray) -> None:
        used = self._snapshot.used + more
        used.flags.writeable = False
        self._snapshot = replace(self._snapshot, used=used)


def _on(pod: PodRecord, node: str) -> PodRecord:
    return replace(pod, phase=Phase.BOUND, node=node, usage=pod.cls.requests, started=LATER)


def _timed(snapshot: Snapshot, entry: QueueEntry, full: Full) -> tuple[Decision, float]:
    found: list[Decision] = []
    taken = seconds(lambda: found.append(full.ask(snapshot, entry)))
    return found[0], taken


def preempt_gang(nodes: int) -> Mapping[str, float]:
    """Gangs of ten whole-node pods, each of which has to evict ten of the single pods that fill the cluster."""
    count = max(GANG, fleet.scaled(NODES, nodes))
    full = Full(_nodes(count), _whole_nodes(range(count), LOW))
    return _preempting("preempt-gang", full, _gangs(fleet.scaled(10, nodes), gpus=fleet.GPUS))


def preempt_gang_gangs(nodes: int) -> Mapping[str, float]:
    """The same where gangs of ten fill half of the cluster, and something more important the other half."""
    count, gangs = max(2 * GANG, fleet.scaled(NODES, nodes)), fleet.scaled(50, nodes)
    split = gangs * GANG
    pods = [
        *(replace(pod, group=f"low-{i // GANG}") for i, pod in enumerate(_whole_nodes(range(split), LOW))),
        *_whole_nodes(range(split, count), HIGH + 1),
    ]
    full = Full(_nodes(count), pods, [b.group(f"low-{i}", GANG, priority=LOW) for i in range(gangs)])
    return _preempting("preempt-gang-gangs", full, _gangs(fleet.scaled(10, nodes), gpus=fleet.GPUS))


def preempt_mode(nodes: int) -> Mapping[str, float]:
    """Gangs of ten small pods against ten times as many in groups of ten that can only go as a whole."""
    count, slots = max(GANG, fleet.scaled(NODES, nodes)), GANG
    cls = b.pod_class(gpus=1)
    pods = [
        b.pod(f"low-{i}", cls, node=f"node-{i % count}", group=f"low-{i // GANG}", priority=LOW, created=i + 1)
        for i in range(slots * count)
    ]
    groups = [b.group(f"low-{i}", GANG, priority=LOW, disruption_all=True) for i in range(count)]
    full = Full(_nodes(count, gpus=slots), pods, groups)
    return _preempting("preempt-mode", full, _gangs(fleet.scaled(100, nodes), gpus=1))


def _preempting(name: str, full: Full, entries: Iterable[QueueEntry]) -> Mapping[str, float]:
    """Milliseconds a preemptor, the median, and victims a preemptor, the mean."""
    for entry in entries:
        if full.decide(entry) is not PreemptionOutcome.FOUND:
            raise Unfinished(f"{entry.key.key.name} found nobody to evict")
    return {name: 1e3 * median(full.seconds), f"{name}-victims": mean(full.victims)}


def preempt_mixed(nodes: int) -> Mapping[str, float]:
    """Gangs of twelve pods of one kind or two in full clusters of 40 nodes, held to the exact optimum in M7's order.

    Milliseconds, the median; how many more pods go than with the best victims, the median; and the share that is best.
    """
    taken, more, best = list[float](), list[int](), list[bool]()
    profile, wanted = default_profile(), max(4, fleet.scaled(MIXED, nodes))
    for kinds in (1, 2):
        for instance in islice(evictions.larger(kinds, nodes=40, pods=200, members=12, kinds=kinds), wanted):
            optimum = cheapest(instance)
            if optimum is None:
                continue
            snapshot, found = instance.snapshot(), list[Decision]()
            ask = partial(decide, snapshot, [instance.entry], profile, now=evictions.NOW)
            taken.append(seconds(lambda ask=ask, found=found: found.append(ask())))  # type: ignore[misc]
            preemption = found[0].diagnoses[0].preemption
            gone = {victim.pod for victim in preemption.victims} if preemption else set()
            cost = evictions.price(instance, [pod for pod in instance.pods if pod.key in gone])[:6]
            more.append((cost[2] >> 31) - (optimum[2] >> 31))
            best.append(cost == optimum)
    return {"preempt-mixed": 1e3 * median(taken), "preempt-gap": median(more), "preempt-best": 100 * mean(best)}


def preempt_rack(nodes: int) -> Mapping[str, float]:
    """Milliseconds of one decision about a gang that needs a rack for itself, where four pods are on each node."""
    nodes = min(nodes, fleet.NODES)
    full, per_rack = _racks(nodes)
    return _preempting("preempt-rack", full, [_gang("wide", per_rack, gpus=fleet.GPUS, key=RACK)])


def unpreemptable(nodes: int) -> Mapping[str, float]:
    """Milliseconds to the verdict that evicting everyone is not enough: a pod more than a rack, or than the cluster.

    The slower of the two, each the median of three.
    """
    nodes = min(nodes, fleet.NODES)
    full, per_rack = _racks(nodes)
    too_large = [
        _gang("rack", per_rack + 1, gpus=fleet.GPUS, key=RACK),
        _gang("cluster", nodes + 1, gpus=fleet.GPUS),
    ]
    for entry in too_large * 3:
        if full.decide(entry) is not PreemptionOutcome.NO_VICTIMS:
            raise Unfinished(f"{entry.key.key.name} evicts for nothing")
    slowest = max(median(full.seconds[kind::2]) for kind in range(2))
    return {"unpreemptable": 1e3 * slowest, "unpreemptable-victims": sum(full.victims)}


def _racks(nodes: int) -> tuple[Full, int]:
    """Fifty racks, four low pods on each node that take a quarter of it; and how many nodes a rack has."""
    per_rack, cls = max(1, nodes // 50), b.pod_class(gpus=fleet.GPUS // 4)
    pods = [b.pod(f"low-{i}", cls, node=f"node-{i % nodes}", priority=LOW, created=i + 1) for i in range(4 * nodes)]
    return Full(_nodes(nodes, per_rack=per_rack), pods), per_rack


def _nodes(count: int, *, gpus: int = fleet.GPUS, per_rack: int = 25) -> list[NodeRecord]:
    return [b.node(f"node-{i}", gpus=gpus, labels={RACK: f"rack-{i // per_rack}"}) for i in range(count)]


def _whole_nodes(numbers: Iterable[int], priority: int) -> list[PodRecord]:
    """On each of these nodes a pod that fills it."""
    cls = b.pod_class(gpus=fleet.GPUS)
    return [b.pod(f"low-{i}", cls, node=f"node-{i}", priority=priority, created=i + 1) for i in numbers]


def _gangs(count: int, *, gpus: int) -> Iterator[QueueEntry]:
    return (_gang(f"high-{number}", GANG, gpus=gpus) for number in range(count))


def _gang(name: str, size: int, *, gpus: int, key: str | None = None) -> QueueEntry:
    group = b.group(name, size, priority=HIGH, topology_key=key)
    return b.entry(*b.pods(f"{name}-", size, gpus=gpus, group=name, priority=HIGH), group=group)
