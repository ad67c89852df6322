from muster.api.instant import MINUTE, SECOND
from muster.sim.timers import Timers


def names(timers: Timers, *, brief_only: bool = False) -> list[object]:
    taken = []
    while (timer := timers.earliest(brief_only=brief_only)) is not None:
        timers.take(timer)
        taken.append(timer.tag)
    return taken


def test_timers_go_off_by_time_and_then_in_the_order_in_which_they_were_set():
    timers = Timers()
    timers.set("a", "late", 20 * SECOND, 0)
    timers.set("a", "first", 5 * SECOND, 0)
    timers.set("b", "second", 5 * SECOND, 0)
    assert names(timers) == ["first", "second", "late"]


def test_setting_a_tag_again_replaces_the_timer_and_none_takes_it_back():
    timers = Timers()
    timers.set("a", "moved", 5 * SECOND, 0)
    timers.set("a", "moved", 9 * SECOND, 0)
    timers.set("a", "gone", 6 * SECOND, 0)
    timers.set("a", "gone", None, 0)
    timer = timers.earliest(brief_only=False)
    assert timer is not None and (timer.tag, timer.at) == ("moved", 9 * SECOND)
    assert names(timers) == ["moved"]


def test_only_timers_of_at_most_ten_seconds_are_brief():
    timers = Timers()
    timers.set("scheduler", "backoff", 10 * SECOND, 0)
    timers.set("scheduler", "safety", 5 * MINUTE, 0)
    assert names(timers, brief_only=True) == ["backoff"]


def test_a_long_timer_stays_long_when_it_is_set_anew_shortly_before_its_end():
    timers = Timers()
    timers.set("scheduler", "safety", 5 * MINUTE, 0)
    timers.set("scheduler", "safety", 5 * MINUTE, 5 * MINUTE - SECOND)
    assert names(timers, brief_only=True) == []


def test_timers_of_patient_machines_are_never_brief():
    timers = Timers(patient=frozenset({"hollow"}))
    timers.set("hollow", "grace", SECOND, 0)
    assert names(timers, brief_only=True) == []
    assert names(timers) == ["grace"]


def test_the_same_tag_of_two_machines_is_two_timers_and_dropping_one_machine_keeps_the_other():
    timers = Timers()
    timers.set("a", "tag", 1 * SECOND, 0)
    timers.set("b", "tag", 2 * SECOND, 0)
    timers.drop("a")
    timer = timers.earliest(brief_only=False)
    assert timer is not None and timer.machine == "b"
