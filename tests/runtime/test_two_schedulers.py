"""Two schedulers on one server, whatever is cut and whoever stands still: one writes at a time, gangs stay whole."""

from __future__ import annotations

import signal
import threading
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any

import pytest
from scheduling_apart import Apart, Process, Road, apart, gang, scheduler, until

from muster.controllers.fleet import Shape

SHORT = """\
apiVersion: muster.dev/v1
kind: SchedulerConfiguration
leaderElection: {leaseDuration: 2s, renewDeadline: 1200ms, retryPeriod: 300ms}
"""
PODS = "/api/v1/namespaces/default/pods"


class Pair:
    """Two schedulers, each on a road of its own through a door of its own."""

    def __init__(self, served: Apart, folder: Path, stack: ExitStack) -> None:
        self.served, self.folder, self.stack = served, folder, stack
        self.config = folder / "scheduler.yaml"
        self.config.write_text(SHORT)
        self.roads = [Road(int(door.rpartition(":")[2])) for door in served.doors]
        self.processes: list[Process] = [self._start(number) for number in range(2)]
        for road in self.roads:
            stack.callback(road.close)

    def _start(self, number: int) -> Process:
        return self.stack.enter_context(
            scheduler(self.folder, self.roads[number].url, "--config", str(self.config))
        )  # fmt: skip

    def leader(self) -> int | None:
        holder = self.served.lease().get("holderIdentity")
        return next((door for door, name in self.served.identities.items() if name and name == holder), None)

    def other_leads(self, than: int | None) -> float:
        return until(lambda: self.leader() not in (None, than), "the other one leads")

    def cut_the_leader(self) -> float:
        leader = self.leader()
        if leader is None:
            return 0.0
        self.roads[leader].cut()
        took = self.other_leads(leader)
        self.roads[leader].mend()
        return took

    def stop_the_leader(self) -> float:
        """It stands still for longer than its lease, and goes on as if nothing had been."""
        leader = self.leader()
        if leader is None:
            return 0.0
        self.processes[leader].popen.send_signal(signal.SIGSTOP)
        took = self.other_leads(leader)
        self.processes[leader].popen.send_signal(signal.SIGCONT)
        return took

    def kill_the_leader(self) -> float:
        leader = self.leader()
        if leader is None:
            return 0.0
        self.processes[leader].end(signal.SIGKILL)
        took = self.other_leads(leader)
        self.processes[leader] = self._start(leader)
        return took

    def shake(self) -> float:
        for road in self.roads:
            road.shake()
        return 0.0


def rounds(tmp_path: Path, count: int, seed: int) -> dict[str, Any]:
    """So many rounds of a gang that comes while something happens; what was seen."""
    random, times = Random(seed), list[float]()
    with apart(fleet=Shape(zones=1, racks=2, nodes=3, gpus=8), doors=2) as served, ExitStack() as stack:
        pair = Pair(served, tmp_path, stack)
        until(lambda: pair.leader() is not None, "somebody leads")
        sizes: dict[str, int] = {}
        for number in range(count):
            name = f"gang-{number}"
            sizes[name] = random.randrange(1, 4)
            gang(served, name, sizes[name])
            threading.Event().wait(random.random() * 0.1)
            acts = (pair.shake, pair.shake, pair.cut_the_leader, pair.stop_the_leader, pair.kill_the_leader)
            times.append(random.choice(acts)())
            for old in random.sample(sorted(sizes), max(0, len(sizes) - 2)):
                for member in range(sizes.pop(old)):
                    served.ask("DELETE", f"{PODS}/{old}-{member}", {"gracePeriodSeconds": 0})
        until(lambda: all(served.bound(name) == size for name, size in sizes.items()), "all that are left are whole")
        assert served.stray == [], "one writes at a time"
        until(lambda: all(process.ready() for process in pair.processes), "both are well")
        for process in pair.processes:
            assert "Traceback" not in process.said()
    taken = sorted(taken for taken in times if taken)
    return {"rounds": count, "take-overs": len(taken), "longest": taken[-1:] and round(taken[-1], 1)}


def test_a_few_rounds(tmp_path):
    rounds(tmp_path, 4, seed=7)


@pytest.mark.soak
@pytest.mark.parametrize("number", range(4))
def test_fifty_rounds(tmp_path, number):
    seen = rounds(tmp_path, 50, number)
    assert seen["take-overs"] > 10
    print(seen)
