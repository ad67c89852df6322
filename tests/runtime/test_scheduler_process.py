"""`muster scheduler` in a process of its own, on a server in another: it binds, survives cuts, takes over, ends."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from typing import Any

import pytest
from aiohttp import web
from scheduling_apart import Road, apart, ask, gang, kubeconfig, pod, scheduler, until

from muster.api.gates import FeatureGates
from muster.cli.app import run
from muster.runtime.remote import serve

PODS = "/api/v1/namespaces/default/pods"


def test_a_gang_is_bound_over_http_and_others_pods_are_left_alone_but_counted(tmp_path):
    with apart() as served, scheduler(tmp_path, served.url, "-v") as process:
        until(process.ready, "ready")
        served.create(PODS, pod("foreign", scheduler_name="someone-else"))
        bind = {"metadata": {"name": "foreign"}, "target": {"kind": "Node", "name": "zone-0-rack-0-node-0"}}
        names = [node["metadata"]["name"] for node in served.ask("GET", "/api/v1/nodes")[1]["items"]]
        bind["target"] = {"kind": "Node", "name": names[0]}
        served.create(f"{PODS}/foreign/binding", {"apiVersion": "v1", "kind": "Binding", **bind})
        served.create(PODS, pod("unheeded", scheduler_name="someone-else", gpus=1))
        gang(served, "whole", 3)
        until(lambda: served.bound("whole") == 3, "the gang is bound")
        nodes = served.nodes_of()
        assert names[0] not in nodes["whole-0"] and len({nodes[f"whole-{n}"] for n in range(3)}) == 3
        assert nodes["unheeded"] == ""
        gang(served, "late", 2)
        until(lambda: "late" in str(ask(process.url, "GET", "/muster/v1/queue")[1]), "it says why the other one waits")
        _, metrics = ask(process.url, "GET", "/metrics")
        assert 'scheduler_schedule_attempts_total{result="scheduled",profile="muster"} 3' in metrics
        assert 'leader_election_master_status{name="muster-scheduler"} 1' in metrics
        assert process.end() == 0
        assert process.said().count("INFO muster.leader leading") == 1
        assert served.lease()["holderIdentity"] == "", "it let the lease go"
        assert "ERROR" not in process.said() and "Traceback" not in process.said()


def test_pods_that_come_and_go_while_the_road_is_cut_are_known_afterwards(tmp_path):
    with apart() as served:
        road = Road(int(served.url.rpartition(":")[2]))
        with scheduler(tmp_path, road.url, "--no-leader-elect") as process:
            gang(served, "first", 2)
            until(lambda: served.bound("first") == 2, "the first gang is bound")
            road.cut()
            for number in range(2):
                served.ask("DELETE", f"{PODS}/first-{number}", {"gracePeriodSeconds": 0})
            gang(served, "second", 4)
            until(lambda: not process.ready(), "it says that it is cut off")
            road.mend()
            until(lambda: served.bound("second") == 4, "the whole cluster is used again")
            until(process.ready, "ready again")
            for _ in range(3):
                road.shake()
                until(process.ready, "ready after a shake")
        road.close()


def test_a_standby_takes_over_at_once_from_a_leader_that_ends(tmp_path):
    with apart() as served, scheduler(tmp_path, served.url) as first:
        until(lambda: bool(served.lease()), "somebody leads")
        leader = served.lease()["holderIdentity"]
        with scheduler(tmp_path, served.url) as second:
            until(second.ready, "a standby is ready")
            assert 'leader_election_master_status{name="muster-scheduler"} 0' in ask(second.url, "GET", "/metrics")[1]
            gang(served, "by-the-first", 2)
            until(lambda: served.bound() == 2, "bound by the leader")
            first.end()
            gang(served, "by-the-second", 2)
            seconds = until(lambda: served.bound() == 4, "bound by the other")
            assert seconds < 8, "it need not wait for the lease to run out"
            assert served.lease()["holderIdentity"] not in ("", leader)


def test_without_groups_it_says_which_flag_brings_them_and_schedules_the_rest(tmp_path):
    with apart(FeatureGates()) as served, scheduler(tmp_path, served.url) as process:
        served.create(PODS, pod("single"))
        until(lambda: served.bound() == 1, "a single pod is bound")
        assert process.said().count("--feature-gates=GenericWorkload=true") == 1


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ((), "--kubeconfig FILE"),
        (("--kubeconfig", "/nowhere"), "--kubeconfig: /nowhere: no such file"),
        (("--in-cluster",), "--in-cluster: "),
        (("--in-cluster", "--context", "x"), "--in-cluster: give either"),
        (("--kubeconfig", "/nowhere", "--profile", "/nowhere"), "--profile: "),
    ],
)
def test_what_cannot_work_is_refused_with_the_option(arguments, why, monkeypatch, capsys):
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    assert run(["scheduler", "--port", "0", *arguments]) != 0
    said = capsys.readouterr().err
    assert said.startswith("muster: ") and why in said


def test_whoever_is_not_known_is_told_what_to_renew(tmp_path, capsys):
    async def unknown(_: web.Request) -> web.Response:
        return web.json_response({"kind": "Status", "message": "Unauthorized"}, status=401)

    with answering(unknown) as url:
        assert run(["scheduler", "--port", "0", "--kubeconfig", str(kubeconfig(tmp_path, url))]) == 1
    assert "(401 Unauthorized): renew the credentials" in capsys.readouterr().err


@contextmanager
def answering(handler: Any) -> Iterator[str]:
    """A server that answers everything by `handler`, in a thread."""
    started, loop = Future[int](), asyncio.new_event_loop()

    async def start() -> None:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", handler)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        started.set_result(runner.addresses[0][1])

    def serve() -> None:
        loop.run_until_complete(start())
        loop.run_forever()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{started.result(timeout=10)}"
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(timeout=5)


def test_a_server_that_answers_something_else_is_named(tmp_path, capsys):
    async def nothing(_: web.Request) -> web.Response:
        return web.Response(status=404, text="not here")

    with answering(nothing) as url:
        assert run(["scheduler", "--port", "0", "--kubeconfig", str(kubeconfig(tmp_path, url))]) == 1
    assert "is it a Kubernetes API server?" in capsys.readouterr().err


def test_groups_that_are_served_later_are_found_then(tmp_path, monkeypatch, capsys):
    """In this process: what is offered is looked at again, and everything begins anew with it."""
    found, looks = serve.offers, count()

    async def first_without_groups(duty, transport):
        offer = await found(duty, transport)
        if next(looks) == 0:
            versions = {name: version for name, version in offer.versions.items() if name != "podgroups"}
            return replace(offer, versions=versions)
        return offer

    monkeypatch.setattr(serve, "offers", first_without_groups)
    monkeypatch.setattr(serve, "LOOK_AGAIN", 0.2)
    with apart() as served:
        gang(served, "whole", 3)

        def end() -> None:
            try:
                until(lambda: served.bound() == 3, "the gang is bound")
            finally:
                os.kill(os.getpid(), signal.SIGTERM)

        waiting = threading.Thread(target=end)
        waiting.start()
        file = kubeconfig(tmp_path, served.url)
        assert run(["scheduler", "--port", "0", "--no-leader-elect", "--kubeconfig", str(file)]) == 0
        waiting.join(timeout=5)
        assert served.bound() == 3
    assert "beginning anew" in capsys.readouterr().err
