"""The scheduler killed at random points of random runs, and what must hold afterwards. `--seed N` replays one."""

from __future__ import annotations

from muster.scheduler.recording import Recording
from muster.sim.crashes import Crash


def test_a_scheduler_may_die_at_any_moment(crash: int) -> None:
    """No gang below its minimum for it, no pod bound twice, no victim evicted twice, the cache as if made anew."""
    assert Crash(crash).live() == []


def test_such_lives_reach_what_they_are_about() -> None:
    lives = [Crash(seed) for seed in range(40)]
    assert not any(life.live() for life in lives)
    assert sum(life.kills for life in lives) > 60
    assert sum(life.finished for life in lives) >= 3, "hardly any gang was half bound when the scheduler died"
    assert sum(len(life.ledger.evicted) for life in lives) >= 20


def test_without_recorded_plans_a_crash_does_tear_gangs(monkeypatch) -> None:
    """What is proven above is not true anyway."""
    monkeypatch.setattr(Recording, "needed", lambda *_: False)
    assert any(Crash(seed).live() for seed in range(60))
