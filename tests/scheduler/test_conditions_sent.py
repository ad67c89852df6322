"""Conditions that the server refused are sent again, and one that it took is done with, however answers come."""

from __future__ import annotations

from muster.api.calls import Response
from muster.api.instant import MINUTE
from muster.model.keys import Key
from muster.model.records import GroupRecord, Policy
from muster.scheduler.cache import Cache
from muster.scheduler.reports import Reports

GROUP = GroupRecord(Key("default", "g"), "uid-g", 1, Policy.GANG, min_count=2, priority=0, created=0)
REFUSED, TAKEN = Response(503), Response(200, {})


def test_a_refused_condition_is_sent_again_until_it_is_taken() -> None:
    reports = Reports(Cache(), "default-scheduler", placements=False)
    [first] = reports.scheduled(GROUP, 0)
    reports.answered(first.tag, REFUSED, 0)
    due = reports.repeat_due()
    assert due is not None and 0 < due < MINUTE
    assert list(reports.repeat(due - 1)) == []
    [second] = reports.repeat(due)
    assert second == first
    reports.answered(second.tag, TAKEN, due)
    assert reports.repeat_due() is None


def test_an_answer_that_comes_twice_does_no_harm() -> None:
    reports = Reports(Cache(), "default-scheduler", placements=False)
    [write] = reports.scheduled(GROUP, 0)
    reports.answered(write.tag, REFUSED, 0)
    reports.answered(write.tag, TAKEN, 0)
    assert reports.repeat_due() is None
    assert list(reports.repeat(MINUTE)) == []
