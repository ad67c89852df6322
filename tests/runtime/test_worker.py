from __future__ import annotations

import threading
import time
from queue import SimpleQueue

import pytest

from muster.engine.work import Work
from muster.model.decision import Decision
from muster.plugins import default_profile
from muster.runtime import worker as module
from muster.runtime.worker import Outcome, Worker
from muster.scheduler.effects import Decide
from muster.testing.builders import entry, node, pod, snapshot


def asked(ticket: int) -> Decide:
    return Decide(ticket, snapshot([node("n1")]), [entry(pod("p1"))], default_profile(), Work())


def outcomes(worker: Worker, *tickets: int) -> list[tuple[int, Outcome]]:
    told: SimpleQueue[tuple[int, Outcome]] = SimpleQueue()
    for ticket in tickets:
        worker.submit(asked(ticket), 0, lambda decide, outcome, _: told.put((decide.ticket, outcome)))
    return [told.get(timeout=5) for _ in tickets]


def test_decisions_come_back_in_the_order_in_which_they_were_asked_for() -> None:
    worker = Worker()
    found = outcomes(worker, 1, 2, 3)
    worker.close()
    assert [ticket for ticket, _ in found] == [1, 2, 3]
    decision = found[0][1]
    assert isinstance(decision, Decision)
    assert [bind.node for bind in decision.plans[0].binds] == ["n1"]


def test_a_decision_that_fails_is_an_outcome_and_the_next_one_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = Worker()

    def fails(*_: object, **__: object) -> Decision:
        raise ZeroDivisionError("a bug")

    with monkeypatch.context() as patched:
        patched.setattr(module, "decide", fails)
        [(_, failure)] = outcomes(worker, 1)
    [(_, decision)] = outcomes(worker, 2)
    worker.close()
    assert isinstance(failure, ZeroDivisionError) and isinstance(decision, Decision)


def test_closing_does_not_wait_for_a_search_that_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def searches(*_: object, **__: object) -> Decision:
        begun.set()
        go_on.wait(10)
        raise ZeroDivisionError

    monkeypatch.setattr(module, "decide", searches)
    worker = Worker()
    worker.submit(asked(1), 0, lambda *_: None)
    assert begun.wait(5)
    before = time.monotonic()
    worker.close()
    assert time.monotonic() - before < 0.5
    assert all(thread.daemon for thread in threading.enumerate() if thread.name == "decide")
    go_on.set()
