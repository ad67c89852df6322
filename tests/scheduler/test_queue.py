"""Order, states and waking, on a cache filled by hand and decisions made up."""

from __future__ import annotations

from dataclasses import replace

import pytest

from muster.api.instant import MINUTE, SECOND
from muster.model.diagnosis import Diagnosis, PodVerdict, Reason, Rejection, Verdict
from muster.model.keys import Key
from muster.model.records import EntryKey, EntryKind, Phase
from muster.plugins import default_profile
from muster.scheduler.broken import deficit
from muster.scheduler.cache import Cache
from muster.scheduler.entries import News, Seen, State, backoff
from muster.scheduler.queue import Queue
from muster.testing import builders

NOW = 1_000 * SECOND
SHORT = Rejection(Reason.INSUFFICIENT, 1, "nvidia.com/gpu")
DEDICATED = builders.taint("dedicated")
TAINTED = Rejection(Reason.NODE_TAINTED, 1, "dedicated")


class Waiting:
    """A queue over a cache with one node of 8 accelerators."""

    def __init__(self):
        self.cache = Cache()
        self.queue = Queue(self.cache, builders.DEFAULT_SCHEDULER, default_profile())
        self.cache.put_node(builders.node("n1", gpus=8))
        self.cache.snapshot()
        self.cache.take_touched()

    def add(self, *pods, now=NOW, group=None):
        """Takes in pods as the machine does."""
        if group is not None:
            self.cache.put_group(group)
        for pod in pods:
            self.cache.put_pod(pod)
            self.queue.refresh(owner(pod), now, News.CURE, Seen(now, pod.created))

    def heads(self):
        return [head.key.key.name for _, head in self.queue.heads()]

    def fail(self, *rejections, now=NOW, placed=0):
        """Decides everything active with a failure for these reasons."""
        for entry, head in self.queue.heads():
            self.queue.failed(entry, head, diagnosis(head, rejections, placed), now, retry=False)

    def freed(self, pod, now=NOW):
        self.cache.drop_pod(pod.key)
        self.queue.wake(self.cache.take_touched(), now)

    def change(self, **fields):
        """The node is now one of 8 accelerators with these fields, an hour later."""
        self.cache.put_node(builders.node("n1", **{"gpus": 8, **fields}))
        self.queue.wake(self.cache.take_touched(), NOW + 60 * MINUTE)

    def state(self, name, kind=EntryKind.POD):
        return self.queue.entries[EntryKey(kind, Key("default", name))].state


def owner(pod):
    kind, name = (EntryKind.POD_GROUP, pod.group) if pod.group else (EntryKind.POD, pod.key.name)
    return EntryKey(kind, Key("default", name))


def diagnosis(head, rejections, placed=0):
    verdict = PodVerdict(tuple(rejections), 1)
    return Diagnosis(
        head.key,
        head.uid,
        Verdict.UNSCHEDULABLE,
        1,
        min_count=head.group.min_count if head.group else 1,
        pending=len(head.pods),
        placed=placed,
        rejections=tuple(rejections),
        pods=dict.fromkeys((pod.key for pod in head.pods), verdict),
        nodes=1,
    )


def test_higher_priority_goes_first_then_the_older_then_by_name():
    waiting = Waiting()
    waiting.add(builders.pod("b", created=5), builders.pod("a", created=5), now=NOW)
    waiting.add(builders.pod("late", priority=1), now=NOW + 2)
    waiting.add(builders.pod("young", created=1), now=NOW + 1)
    assert waiting.heads() == ["late", "a", "b", "young"]


def test_equal_age_is_broken_by_creation_whatever_the_order_of_arrival():
    waiting = Waiting()
    waiting.add(builders.pod("a", created=9), builders.pod("b", created=3))
    assert waiting.heads() == ["b", "a"]


def test_a_group_takes_its_groups_priority_and_the_age_of_its_first_member():
    waiting = Waiting()
    waiting.add(builders.pod("m1", group="g", priority=9), now=NOW - 5, group=builders.group("g", 2))
    waiting.add(builders.pod("single"), now=NOW)
    waiting.add(builders.pod("m2", group="g"), now=NOW + 5)
    assert waiting.heads() == ["g", "single"]


def test_a_running_group_below_its_minimum_goes_before_older_equals_and_not_before_higher_ones():
    waiting = Waiting()
    waiting.add(builders.pod("old"), now=NOW - 9)
    waiting.add(builders.pod("high", priority=1))
    waiting.add(builders.pod("g1", group="g", node="n1"), builders.pod("g2", group="g"), group=builders.group("g", 2))
    assert waiting.heads() == ["high", "g", "old"]


def test_a_broken_group_does_not_sit_out_its_backoff_while_equals_take_what_it_needs():
    members = [builders.pod("g1", group="g", node="n1", gpus=4), builders.pod("g2", group="g", gpus=8)]
    waiting = Waiting()
    waiting.add(*members, group=builders.group("g", 2))
    waiting.fail(SHORT)
    waiting.cache.put_node(builders.node("n2", gpus=8))
    waiting.queue.wake(waiting.cache.take_touched(), NOW)
    assert waiting.heads() == ["g"]


def test_a_broken_group_with_surplus_is_decided_alone_and_only_for_its_deficit():
    waiting = Waiting()
    waiting.add(builders.pod("single"))
    members = [builders.pod("g1", group="g", node="n1"), *builders.pods("w", 3, group="g")]
    waiting.add(*members, group=builders.group("g", 2))
    ((entry, head),) = waiting.queue.heads()
    assert (head.key.key.name, len(head.pods), deficit(waiting.cache, entry.key)) == ("g", 3, 1)


@pytest.mark.parametrize(
    ("group", "pods", "reason"),
    [
        (None, [builders.pod("p", group="g")], Reason.GROUP_MISSING),
        (builders.group("g", 3), list(builders.pods("p", 2, group="g")), Reason.MEMBERS_MISSING),
        (builders.group("g", 1, parent="c"), [builders.pod("p", group="g")], Reason.PARENT_MISSING),
        (
            builders.group("g", 1),
            [builders.pod("p", group="g"), builders.pod("q", group="g", gates=["hold"])],
            Reason.GATED,
        ),
    ],
)
def test_groups_are_held_before_any_attempt(group, pods, reason):
    waiting = Waiting()
    waiting.add(*pods, group=group)
    entry = waiting.queue.entries[EntryKey(EntryKind.POD_GROUP, Key("default", "g"))]
    assert entry.state is State.HELD
    assert [rejection.reason for rejection in entry.hold.reasons] == [reason]
    assert waiting.heads() == []


def test_members_that_succeeded_count_and_failed_or_leaving_ones_do_not():
    waiting = Waiting()
    done = replace(builders.pod("done", group="g", node="n1"), phase=Phase.SUCCEEDED)
    crashed = replace(builders.pod("crashed", group="g", node="n1"), phase=Phase.FAILED)
    leaving = replace(builders.pod("leaving", group="g", node="n1"), terminating=True)
    waiting.add(done, crashed, leaving, builders.pod("p", group="g"), group=builders.group("g", 3))
    assert waiting.state("g", EntryKind.POD_GROUP) is State.HELD
    waiting.add(builders.pod("q", group="g"))
    ((_, head),) = waiting.queue.heads()
    assert (head.needed, [pod.key.name for pod in head.pods]) == (2, ["p", "q"])


def test_pods_of_other_schedulers_are_no_entries_and_stand_in_a_group_of_ours_for_the_mismatch():
    waiting = Waiting()
    waiting.add(builders.pod("theirs", scheduler_name="other"))
    waiting.add(builders.pod("f", group="f", scheduler_name="other"), group=builders.group("f", 1))
    mixed = [builders.pod("a", group="g"), builders.pod("b", group="g", scheduler_name="other")]
    waiting.add(*mixed, group=builders.group("g", 1))
    ((_, head),) = waiting.queue.heads()
    assert [pod.key.name for pod in head.pods] == ["a", "b"]


def test_many_entries_share_a_decision_up_to_its_size_and_a_large_group_goes_alone():
    waiting = Waiting()
    waiting.add(*builders.pods("big", 600, group="big"), group=builders.group("big", 600), now=NOW - 3)
    waiting.add(*builders.pods("s", 600), now=NOW)
    sizes = []
    while heads := waiting.queue.heads():
        sizes.append((len(heads), sum(len(head.pods) for _, head in heads)))
    assert sizes == [(1, 600), (512, 512), (88, 88)]


def test_a_decision_takes_at_most_64_groups():
    waiting = Waiting()
    for number in range(70):
        waiting.add(builders.pod(f"p{number}", group=f"g{number}"), group=builders.group(f"g{number}", 1))
    assert [len(waiting.queue.heads()), len(waiting.queue.heads())] == [64, 6]


def test_backoff_doubles_from_one_second_to_ten():
    assert [backoff(attempts) // SECOND for attempts in (1, 2, 3, 4, 5, 90)] == [1, 2, 4, 8, 10, 10]


def test_freed_room_wakes_what_it_suffices_for_after_its_backoff():
    waiting = Waiting()
    large, small = builders.pod("large", gpus=4, node="n1"), builders.pod("small", gpus=2, node="n1")
    waiting.add(large, small, builders.pod("filler", gpus=2, node="n1"), builders.pod("p", gpus=4))
    waiting.fail(SHORT)
    waiting.freed(small)
    assert waiting.state("p") is State.WAITING
    waiting.freed(large)
    assert (waiting.state("p"), waiting.queue.backoff_due()) == (State.BACKOFF, NOW + SECOND)
    waiting.queue.end_backoffs(NOW + SECOND)
    assert waiting.heads() == ["p"]


def test_room_does_not_wake_what_waits_for_a_node_of_another_kind():
    waiting = Waiting()
    guest = builders.pod("guest", gpus=1, node="n1")
    waiting.change(taints=[DEDICATED])
    waiting.add(guest, builders.pod("p", gpus=1))
    waiting.fail(TAINTED)
    waiting.freed(guest)
    assert waiting.state("p") is State.WAITING
    waiting.change()
    assert waiting.state("p") is State.ACTIVE


@pytest.mark.parametrize(
    "change",
    [
        {"labels": {"new": ""}, "taints": [DEDICATED]},
        {"taints": [DEDICATED, builders.taint("more")]},
        {"taints": [], "unschedulable": True},
        {"gpus": 9, "taints": [DEDICATED]},
    ],
)
def test_a_node_that_changes_and_still_admits_no_such_pod_wakes_nothing(change):
    waiting = Waiting()
    waiting.change(taints=[DEDICATED])
    waiting.add(builders.pod("p", gpus=1))
    waiting.fail(TAINTED)
    waiting.change(**change)
    assert waiting.state("p") is State.WAITING


def test_unrelated_labels_wake_nothing_and_more_of_what_is_short_does():
    waiting = Waiting()
    waiting.add(*builders.pods("p", 9, group="g", gpus=1), group=builders.group("g", 9))
    waiting.fail(SHORT, placed=8)
    waiting.change(labels={"new": ""})
    assert waiting.state("g", EntryKind.POD_GROUP) is State.WAITING
    waiting.change(gpus=9)
    assert waiting.state("g", EntryKind.POD_GROUP) is State.ACTIVE


def test_room_on_a_node_that_became_the_right_kind_while_it_was_full_does_wake():
    waiting = Waiting()
    guest = builders.pod("guest", gpus=8, node="n1")
    waiting.change(taints=[DEDICATED])
    waiting.add(guest, builders.pod("p", gpus=1))
    waiting.fail(TAINTED)
    waiting.change()
    assert waiting.state("p") is State.WAITING
    waiting.freed(guest, NOW + MINUTE)
    assert waiting.state("p") is State.ACTIVE


def test_a_group_of_one_class_is_woken_when_the_slots_it_lacks_are_there():
    waiting = Waiting()
    guests = builders.pods("guest", 8, gpus=1, node="n1")
    waiting.add(*guests)
    waiting.add(*builders.pods("p", 3, group="g", gpus=1), group=builders.group("g", 3))
    waiting.fail(SHORT)
    for guest in guests[:2]:
        waiting.freed(guest, NOW + MINUTE)
    assert waiting.state("g", EntryKind.POD_GROUP) is State.WAITING
    waiting.freed(guests[2], NOW + MINUTE)
    assert waiting.state("g", EntryKind.POD_GROUP) is State.ACTIVE


def test_a_group_of_unlike_members_is_woken_by_room_for_any_of_them():
    waiting = Waiting()
    guest, filler = builders.pod("guest", gpus=1, node="n1"), builders.pod("filler", gpus=7, node="n1")
    waiting.add(guest, filler)
    members = [builders.pod("large", group="g", gpus=8), builders.pod("little", group="g", gpus=1)]
    waiting.add(*members, group=builders.group("g", 2))
    waiting.fail(SHORT)
    waiting.freed(guest, NOW + MINUTE)
    assert waiting.state("g", EntryKind.POD_GROUP) is State.ACTIVE


def test_a_freed_slot_wakes_only_the_first_of_alike_pods_and_one_that_is_placed_wakes_the_next():
    waiting = Waiting()
    guest = builders.pod("guest", gpus=1, node="n1")
    waiting.add(guest, builders.pod("filler", gpus=7, node="n1"), *builders.pods("p", 3, gpus=1))
    waiting.fail(SHORT)
    waiting.freed(guest, NOW + MINUTE)
    ((entry, head),) = waiting.queue.heads()
    assert head.key.key.name == "p1"
    waiting.cache.assume(head.pods[0], "n1")
    waiting.queue.placed(entry, head, diagnosis(head, ()), NOW + MINUTE)
    assert waiting.heads() == ["p2"]


def test_a_woken_pod_that_fails_leaves_those_behind_it_asleep():
    waiting = Waiting()
    guest = builders.pod("guest", gpus=1, node="n1")
    waiting.add(guest, *builders.pods("p", 3, gpus=1))
    waiting.fail(SHORT)
    waiting.freed(guest, NOW + MINUTE)
    waiting.fail(SHORT, now=NOW + MINUTE)
    assert waiting.heads() == []


def test_a_woken_pod_that_is_deleted_hands_its_turn_on():
    waiting = Waiting()
    guest = builders.pod("guest", gpus=1, node="n1")
    waiting.add(guest, builders.pod("filler", gpus=7, node="n1"), *builders.pods("p", 3, gpus=1))
    waiting.fail(SHORT)
    waiting.freed(guest, NOW + MINUTE)
    waiting.cache.drop_pod(Key("default", "p1"))
    waiting.queue.refresh(EntryKey(EntryKind.POD, Key("default", "p1")), NOW + MINUTE)
    assert waiting.heads() == ["p2"]


def test_a_freed_host_port_wakes_though_no_more_pods_fit_by_their_amounts():
    waiting = Waiting()
    guest = builders.pod("guest", ports=[80], node="n1")
    waiting.add(guest, builders.pod("p", gpus=1, ports=[80]))
    waiting.fail(Rejection(Reason.HOST_PORTS, 1))
    waiting.freed(guest, NOW + MINUTE)
    assert waiting.state("p") is State.ACTIVE


def test_a_dropped_nomination_wakes_what_it_kept_out():
    waiting = Waiting()
    nominee = builders.pod("nominee", gpus=8, nominated="n1", gates=["hold"], priority=1)
    waiting.add(nominee, builders.pod("p", gpus=8))
    waiting.fail(Rejection(Reason.NOMINATED_AWAY, 1, "nvidia.com/gpu"))
    waiting.freed(nominee, NOW + MINUTE)
    assert waiting.state("p") is State.ACTIVE


def test_waiting_entries_are_tried_again_after_five_minutes_whatever_happened():
    waiting = Waiting()
    waiting.add(builders.pod("p", gpus=9))
    waiting.fail(SHORT)
    assert waiting.queue.safety_due() == NOW + 5 * MINUTE
    waiting.queue.retry_long_waiting(NOW + 5 * MINUTE - 1)
    assert waiting.state("p") is State.WAITING
    waiting.queue.retry_long_waiting(NOW + 5 * MINUTE)
    assert waiting.heads() == ["p"]


def test_a_new_member_wakes_its_group_and_one_that_came_meanwhile_forms_the_next_attempt():
    waiting = Waiting()
    waiting.add(builders.pod("p1", group="g", gpus=9), group=builders.group("g", 1))
    ((entry, head),) = waiting.queue.heads()
    waiting.add(builders.pod("p2", group="g"))
    waiting.queue.failed(entry, head, diagnosis(head, (SHORT,)), NOW, retry=False)
    assert entry.state is State.BACKOFF
    waiting.queue.end_backoffs(NOW + SECOND)
    ((_, head),) = waiting.queue.heads()
    assert [pod.key.name for pod in head.pods] == ["p1", "p2"]


def test_what_a_success_leaves_over_waits_and_keeps_its_place():
    waiting = Waiting()
    members = builders.pods("p", 2, group="g", gpus=5)
    waiting.add(*members, group=builders.group("g", 1))
    ((entry, head),) = waiting.queue.heads()
    waiting.cache.assume(members[0], "n1")
    waiting.queue.placed(entry, head, diagnosis(head, (SHORT,)), NOW)
    assert (entry.state, entry.seen.since, entry.attempts) == (State.WAITING, NOW, 0)
    waiting.freed(members[0], NOW)
    assert entry.state is State.ACTIVE


def test_a_stale_plan_is_retried_at_once_twice_and_then_with_backoff():
    waiting = Waiting()
    waiting.add(builders.pod("p", gpus=1))
    states = []
    for _ in range(3):
        ((entry, _),) = waiting.queue.heads()
        waiting.queue.again(entry, NOW, stale=True)
        states.append(entry.state)
    assert states == [State.ACTIVE, State.ACTIVE, State.BACKOFF]


def test_a_group_made_anew_under_its_name_starts_over_and_keeps_its_age():
    waiting = Waiting()
    waiting.add(builders.pod("p", group="g", gpus=9), group=builders.group("g", 1))
    waiting.fail(SHORT)
    key = EntryKey(EntryKind.POD_GROUP, Key("default", "g"))
    old = waiting.queue.entries[key]
    waiting.cache.put_group(builders.group("g", 1, uid="second"))
    waiting.queue.refresh(key, NOW + MINUTE)
    new = waiting.queue.entries[key]
    assert (new is old, new.uid, new.seen, new.state) == (False, "second", old.seen, State.ACTIVE)


def test_siblings_of_one_age_stand_in_the_order_of_their_completion_index():
    waiting = Waiting()
    pods = [replace(builders.pod(f"p-{rank}", group="g"), rank=rank) for rank in (10, 2, 1)]
    waiting.add(*pods, group=builders.group("g", 3))
    members = waiting.queue.pending(EntryKey(EntryKind.POD_GROUP, Key("default", "g")))
    assert [pod.rank for pod in members] == [1, 2, 10]
