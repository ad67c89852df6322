"""The world with a machine of our own in it, so that every rule of delivery can be seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import pytest

from muster.api import writes
from muster.api.gates import FeatureGates
from muster.api.instant import MINUTE, SECOND
from muster.api.machine import Listed, Observed, Refused, WakeAt, Woken, Write, Written
from muster.apiserver.server import ApiServer
from muster.sim.cluster import uids
from muster.sim.faults import CALM, Faults, Rates
from muster.sim.world import START, BusyLoop, World
from muster.testing.builders import pod_manifest

Answer = Callable[[Any, int], Sequence[Any]]


class Recorder:
    """Writes down what it is told and when, and answers as it is told to."""

    def __init__(self, answer: Answer = lambda event, now: (), resources: tuple[str, ...] = ("pods",)) -> None:
        self.resources = resources
        self.told: list[tuple[int, Any]] = []
        self._answer = answer

    def handle(self, event: Any, now: int) -> Sequence[Any]:
        self.told.append((now - START, event))
        return self._answer(event, now)

    def names(self) -> list[str]:
        """What it was told, in short: the resource of a list, the change and name of an observation."""
        return [_short(event) for _, event in self.told]


def _short(event: Any) -> str:
    if isinstance(event, Listed):
        return f"listed {len(event.objects)}"
    if isinstance(event, Observed):
        return f"{event.change} {event.object.name}"
    return f"{type(event).__name__} {event.tag}"


def world_of(*recorders: Recorder, rates: Rates = CALM, seed: int = 0) -> World:
    server = ApiServer(FeatureGates(), new_uid=uids(Random(seed)), started=START)
    makers = {f"m{number}": (lambda recorder=recorder: recorder) for number, recorder in enumerate(recorders)}
    return World(server, makers, Faults(Random(seed), rates))


def create(world: World, name: str) -> None:
    assert world.call(writes.create(pod_manifest(name))).ok


def test_a_machine_is_first_listed_what_there_is_and_then_told_every_change():
    seen = Recorder()
    world = world_of(seen)
    create(world, "before")
    world.settle()
    create(world, "after")
    world.call(writes.delete("pods", "default", "before"))
    world.settle()
    assert seen.names() == ["listed 1", "ADDED after", "DELETED before"]


def test_a_write_is_carried_out_and_its_outcome_comes_back_under_its_tag():
    def answer(event: Any, now: int) -> Sequence[Any]:
        if isinstance(event, Listed):
            return [
                Write(writes.create(pod_manifest("mine")), "first"),
                Write(writes.create(pod_manifest("mine")), "again"),
            ]
        return ()

    seen = Recorder(answer)
    world_of(seen).settle()
    outcomes = [event for _, event in seen.told if isinstance(event, Written | Refused)]
    assert [(type(event).__name__, event.tag, event.response.status) for event in outcomes] == [
        ("Written", "first", 201),
        ("Refused", "again", 409),
    ]
    assert "ADDED mine" in seen.names()


def test_a_write_without_a_tag_reports_nothing():
    seen = Recorder(
        lambda event, now: [Write(writes.delete("pods", "default", "nobody"))] if event[0] == "pods" else ()
    )
    world_of(seen).settle()
    assert seen.names() == ["listed 0"]


def timed(*waits: int) -> Recorder:
    def answer(event: Any, now: int) -> Sequence[Any]:
        return [WakeAt(now + wait, wait) for wait in waits] if isinstance(event, Listed) else ()

    return Recorder(answer)


def test_advance_stops_at_every_timer_on_the_way():
    seen = timed(30 * SECOND, 5 * SECOND, 2 * MINUTE)
    world = world_of(seen)
    world.advance(MINUTE)
    woken = [(at, event.tag) for at, event in seen.told if isinstance(event, Woken)]
    assert woken == [(5 * SECOND, 5 * SECOND), (30 * SECOND, 30 * SECOND)]
    assert world.now == START + MINUTE


def test_settle_moves_no_clock():
    seen = timed(SECOND)
    world = world_of(seen)
    world.settle()
    assert world.now == START and seen.names() == ["listed 0"]


def test_quiesce_lets_backoffs_end_and_leaves_longer_timers_alone():
    seen = timed(3 * SECOND, 9 * SECOND, 11 * SECOND)
    world = world_of(seen)
    world.quiesce()
    assert [event.tag for _, event in seen.told[1:]] == [3 * SECOND, 9 * SECOND]
    assert world.now == START + 9 * SECOND


def test_a_long_timer_that_became_due_by_ticks_waits_for_advance():
    seen = timed(MINUTE)
    world = world_of(seen)
    world.settle()
    world.tick(2 * MINUTE)
    world.quiesce()
    assert seen.names() == ["listed 0"]
    world.advance(0)
    assert seen.names() == ["listed 0", f"Woken {MINUTE}"]


def test_quiesce_ends_although_a_machine_sets_its_timer_again_and_again():
    def answer(event: Any, now: int) -> Sequence[Any]:
        return [WakeAt(now + SECOND, "tick")]

    seen = Recorder(answer, resources=())
    world = world_of(seen)
    world._carry_out(world._clients["m0"], [WakeAt(START + SECOND, "tick")])
    world.quiesce()
    assert len(seen.told) == 10


def test_a_busy_loop_is_reported_and_not_run_for_ever():
    seen = Recorder(lambda event, now: [WakeAt(now, "again")])
    world = world_of(seen)
    world.most = 100
    with pytest.raises(BusyLoop, match="more than 100 steps"):
        world.settle()


def test_a_restarted_machine_is_listed_anew_and_its_timers_and_answers_are_gone():
    lives: list[Recorder] = []

    def make() -> Recorder:
        lives.append(timed(5 * SECOND))
        return lives[-1]

    server = ApiServer(FeatureGates(), new_uid=uids(Random(0)), started=START)
    world = World(server, {"m": make})
    world.settle()
    world.restart("m")
    create(world, "p")
    world.advance(MINUTE)
    assert lives[0].names() == ["listed 0"]
    assert lives[1].names() == ["listed 1", f"Woken {5 * SECOND}"]


def test_after_a_lost_watch_the_machine_is_listed_and_misses_nothing():
    seen = Recorder()
    world = world_of(seen, rates=Rates(lost_watch=1.0))
    world.settle()
    create(world, "p")
    world.settle()
    assert seen.names() == ["listed 0", "listed 1"]


def test_an_expired_watch_is_listed_anew():
    seen = Recorder()
    world = world_of(seen)
    world.settle()
    create(world, "p")
    world.server.compact()
    world.settle()
    assert seen.names() == ["listed 0", "listed 1"]


def test_late_events_of_one_resource_keep_their_order():
    seen = Recorder()
    world = world_of(seen, rates=Rates(late=0.5), seed=3)
    world.settle()
    for number in range(20):
        create(world, f"p{number}")
        world.settle()
    world.advance(MINUTE)
    assert seen.names()[1:] == [f"ADDED p{number}" for number in range(20)]
    assert len({at for at, _ in seen.told}) > 1


def test_a_conflict_is_answered_and_nothing_is_written():
    def answer(event: Any, now: int) -> Sequence[Any]:
        if isinstance(event, Listed):
            return [Write(writes.patch("pods", "default", "p", {"metadata": {"labels": {"a": "b"}}}), "patch")]
        return ()

    seen = Recorder(answer)
    world = world_of(seen, rates=Rates(conflict=1.0))
    create(world, "p")
    world.settle()
    (outcome,) = (event for _, event in seen.told if isinstance(event, Refused))
    assert outcome.conflict
    assert (
        "labels" not in world.call(writes.get("pods", "default", "p")).body["metadata"]
        or not world.call(writes.get("pods", "default", "p")).body["metadata"]["labels"]
    )


def test_a_lost_answer_comes_as_a_refusal_of_status_zero_although_the_write_was_carried_out():
    seen = Recorder(lambda e, now: [Write(writes.create(pod_manifest("p")), "make")] if isinstance(e, Listed) else ())
    world = world_of(seen, rates=Rates(unanswered=1.0))
    world.settle()
    (outcome,) = (event for _, event in seen.told if isinstance(event, Refused))
    assert outcome.response.status == 0
    assert world.call(writes.get("pods", "default", "p")).ok


def test_the_same_seed_gives_the_same_run_and_another_seed_another():
    def run(seed: int) -> list[tuple[int, str]]:
        seen = Recorder()
        world = world_of(seen, rates=Rates(late=0.5, lost_watch=0.2), seed=seed)
        for number in range(20):
            create(world, f"p{number}")
            world.settle()
        world.advance(MINUTE)
        return [(at, _short(event)) for at, event in seen.told]

    assert run(1) == run(1)
    assert run(1) != run(2)
