"""What is under way: from the request until the watch has shown its result."""

from __future__ import annotations

from muster.api.calls import Response
from muster.controllers.writing import Pending, with_condition


def answer(revision: str) -> Response:
    return Response(200, {"metadata": {"resourceVersion": revision}})


def test_a_write_is_under_way_until_the_watch_shows_its_revision():
    pending = Pending()
    pending.begin("a", "1")
    assert pending.written("a", answer("3")) is False
    pending.observed("a", "2")
    assert "a" in pending
    pending.observed("a", "3")
    assert "a" not in pending


def test_the_watch_may_be_faster_than_the_answer():
    pending = Pending()
    pending.begin("a", "1")
    pending.observed("a", "3")
    assert "a" in pending
    assert pending.written("a", answer("3")) is True
    assert "a" not in pending


def test_a_write_that_changed_nothing_is_over_with_its_answer():
    pending = Pending()
    pending.begin("a", "1")
    assert pending.written("a", answer("1")) is True


def test_an_answer_without_a_revision_is_followed_by_any_event():
    pending = Pending()
    pending.begin("a", "1")
    assert pending.written("a", Response(200, {"kind": "Status"})) is False
    pending.observed("a", "9")
    assert "a" not in pending


def test_a_list_ends_what_was_answered_and_nothing_else():
    pending = Pending()
    pending.begin("answered", "1")
    pending.written("answered", answer("2"))
    pending.begin("sent", "1")
    pending.listed()
    assert ("answered" in pending, "sent" in pending) == (False, True)


def test_after_a_list_any_answer_will_do_since_its_revision_may_never_be_shown_alone():
    pending = Pending()
    pending.begin("a", "1")
    pending.listed()
    pending.observed("a", "7")
    assert pending.written("a", answer("5")) is True
    assert "a" not in pending


def test_what_is_not_under_way_is_nobodys_business():
    pending = Pending()
    assert pending.written("a", answer("1")) is False
    pending.observed("a", "1")
    pending.forget("a")
    assert len(pending) == 0


def test_the_transition_time_of_a_condition_moves_only_with_its_status():
    first = with_condition((), "Ready", "True", 0)
    same = with_condition(first, "Ready", "True", 9_000_000, reason="Still")
    other = with_condition(same, "Ready", "False", 9_000_000)
    times = [each[0]["lastTransitionTime"] for each in (first, same, other)]
    assert times == ["1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "1970-01-01T00:00:09Z"]
