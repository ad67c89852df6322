"""The endpoints by which a conformance driver holds a server: clock, scheduler, faults."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from muster.api import writes
from muster.api.calls import Response
from muster.api.instant import SECOND
from muster.runtime.control import Control
from muster.sim.world import START
from muster.testing.builders import gang_manifest, node_manifest, pod_manifest

GATES = {"GenericWorkload": True}


def held(story: Callable[[Control], Awaitable[None]]) -> None:
    async def run() -> None:
        control = Control()
        try:
            await control.reset({"gates": GATES})
            await asyncio.wait_for(story(control), 20)
        finally:
            await control.close()

    asyncio.run(run())


def create(control: Control, *manifests: Any) -> None:
    for manifest in manifests:
        answer = control.cluster.create(manifest)
        assert answer.ok, answer.body


def node_of(control: Control, pod: str) -> str | None:
    answer = control.handle(writes.get("pods", "default", pod))
    assert isinstance(answer, Response)
    assert answer.ok, answer.body
    node: str | None = answer.body["spec"].get("nodeName")
    return node


def test_settling_lets_a_pod_be_bound_at_the_present_time() -> None:
    async def story(control: Control) -> None:
        create(control, node_manifest("n1"), pod_manifest("p1"))
        await control.settle({})
        assert node_of(control, "p1") == "n1"
        assert control.cluster.local.clock.now() == START
        assert (await control.decisions({}))["count"] == 1

    held(story)


def test_a_paused_scheduler_decides_nothing_even_after_a_restart() -> None:
    async def story(control: Control) -> None:
        await control.pause({})
        create(control, node_manifest("n1"), pod_manifest("p1"))
        await control.quiesce({})
        await control.restart({})
        await control.quiesce({})
        assert node_of(control, "p1") is None
        await control.resume({})
        await control.settle({})
        assert node_of(control, "p1") == "n1"

    held(story)


def test_a_refused_binding_is_tried_again_once_it_is_allowed() -> None:
    async def story(control: Control) -> None:
        await control.refuse({"bind": ["default/p1"]})
        create(control, node_manifest("n1"), pod_manifest("p1"))
        await control.settle({})
        assert node_of(control, "p1") is None
        await control.refuse({"bind": []})
        await control.quiesce({})
        assert node_of(control, "p1") == "n1"

    held(story)


def test_backoffs_end_in_quiesce_and_long_timers_only_in_advance() -> None:
    async def story(control: Control) -> None:
        create(control, gang_manifest("g", 2), pod_manifest("g1", group="g"), pod_manifest("g2", group="g"))
        await control.quiesce({})
        before = control.cluster.local.clock.now()
        assert before <= START + 10 * SECOND
        decided = (await control.decisions({}))["count"]
        await control.advance({"us": 600 * SECOND})
        assert control.cluster.local.clock.now() == before + 600 * SECOND
        assert (await control.decisions({}))["count"] > decided

    held(story)


def test_a_tick_moves_the_clock_and_nothing_else() -> None:
    async def story(control: Control) -> None:
        create(control, gang_manifest("g", 2), pod_manifest("g1", group="g"), pod_manifest("g2", group="g"))
        await control.settle({})
        decided = (await control.decisions({}))["count"]
        await control.tick({"us": 3_600 * SECOND})
        await control.settle({})
        assert control.cluster.local.clock.now() == START + 3_600 * SECOND
        assert (await control.decisions({}))["count"] <= decided + 1

    held(story)


def test_held_terminations_end_when_they_are_let_go() -> None:
    async def story(control: Control) -> None:
        create(control, node_manifest("n1"), pod_manifest("p1"))
        await control.settle({})
        await control.termination({"mode": "hold"})
        control.handle(writes.delete("pods", "default", "p1"))
        await control.settle({})
        assert node_of(control, "p1") == "n1"
        await control.termination({"mode": "finish"})
        await control.settle({})
        answer = control.handle(writes.get("pods", "default", "p1"))
        assert isinstance(answer, Response) and answer.status == 404

    held(story)


def test_reset_begins_again_with_nothing() -> None:
    async def story(control: Control) -> None:
        create(control, node_manifest("n1"), pod_manifest("p1"))
        await control.advance({"us": SECOND})
        await control.reset({"gates": {}})
        answer = control.handle(writes.list_all("pods"))
        assert isinstance(answer, Response) and answer.body["items"] == []
        assert control.cluster.local.clock.now() == START
        assert (await control.decisions({}))["count"] == 0

    held(story)


def test_what_cannot_be_set_up_is_refused() -> None:
    async def story(control: Control) -> None:
        with pytest.raises(ValueError, match="reservation"):
            await control.reset({"reservation": True})
        with pytest.raises(ValueError, match="GenericWorkload"):
            await control.reset({"gates": {"GangScheduling": True}})

    held(story)


def test_the_log_names_each_entry_and_what_came_of_it(caplog: pytest.LogCaptureFixture) -> None:
    async def story(control: Control) -> None:
        create(control, node_manifest("n1"), pod_manifest("p1"), pod_manifest("p2", gpus=1))
        await control.settle({})

    with caplog.at_level(logging.DEBUG, "muster"):
        held(story)
    assert "placed entry=Pod/default/p1 pods=1 nodes=1" in caplog.messages
    refusals = [message for message in caplog.messages if message.startswith("not placed entry=Pod/default/p2 why=")]
    assert len(refusals) == 1 and "1 Insufficient nvidia.com/gpu" in refusals[0]
