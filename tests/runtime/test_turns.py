"""Profiles on the same nodes decide one after another, each once it knows what the last has placed; none starves."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st
from scheduling_apart import apart, ask, pod, scheduler, until

from muster.api.instant import MILLISECOND, SECOND
from muster.runtime.remote.turns import LONGEST, SHARE, Turns


@dataclass
class Player:
    work: int = 0
    under_way: int = 0
    paused: bool = True

    @property
    def busy(self) -> bool:
        return self.work > 0

    @property
    def clear(self) -> bool:
        return self.paused and self.under_way == 0

    def pause(self) -> None:
        self.paused = True

    def resume(self) -> None:
        self.paused = False


ACTS = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from(["come", "decide", "told", "wait"]), st.integers(1, 900)), max_size=150
)


@given(acts=ACTS)
@settings(max_examples=200, deadline=None)
def test_never_two_play_and_all_work_is_done_in_the_end(acts):
    players = [Player() for _ in range(3)]
    turns, now = Turns(players, lambda player: None), SECOND
    turns.begin(now)
    for who, act, milliseconds in acts:
        player = players[who]
        if act == "come":
            player.work += 1
        elif act == "decide" and not player.paused and player.work:
            assert all(other.under_way == 0 for other in players if other is not player), "it knows all placements"
            player.work, player.under_way = player.work - 1, player.under_way + 1
        elif act == "told" and player.under_way:
            player.under_way -= 1
        else:
            now += milliseconds * MILLISECOND
        turns.look(now)
        assert sum(not player.paused for player in players) <= 1
    for _ in range(2_000):
        now += SHARE
        turns.look(now)
        for player in players:
            if player.under_way:
                player.under_way -= 1
            elif player.work and not player.paused:
                player.work, player.under_way = player.work - 1, player.under_way + 1
    assert not any(player.work for player in players)


def test_placements_that_are_never_told_hold_the_others_up_for_a_while_only():
    stuck = Player(work=1, under_way=1)
    other = Player(work=1)
    told: list[object] = []
    turns = Turns([stuck, other], told.append)
    turns.begin(0)
    turns.look(SHARE)
    assert stuck.paused and other.paused
    assert turns.look(SHARE + LONGEST - 1) == SHARE + LONGEST
    turns.look(SHARE + LONGEST)
    assert not other.paused and told == [stuck]


def test_two_profiles_in_one_process_share_nodes_without_overfilling_them(tmp_path):
    config = tmp_path / "scheduler.yaml"
    config.write_text(
        "apiVersion: muster.dev/v1\nkind: SchedulerConfiguration\n"
        "profiles: [{schedulerName: red}, {schedulerName: blue}]\n"
    )
    with apart() as served, scheduler(tmp_path, served.url, "--config", str(config)) as process:
        for number in range(8):
            color = ("red", "blue")[number % 2]
            served.create("/api/v1/namespaces/default/pods", pod(f"p-{number}", gpus=4, scheduler_name=color))
        until(lambda: served.bound() == 8, "the cluster is full")
        until(process.ready, "ready")
        for color in ("red", "blue"):
            served.create("/api/v1/namespaces/default/pods", pod(f"late-{color}", gpus=4, scheduler_name=color))
        until(lambda: str(ask(process.url, "GET", "/muster/v1/queue")[1]).count("late-") >= 2, "both know it is full")
        nodes = [node for node in served.nodes_of().values() if node]
        assert sorted(nodes.count(node) for node in set(nodes)) == [2, 2, 2, 2]
        assert process.end() == 0 and "Traceback" not in process.said()
