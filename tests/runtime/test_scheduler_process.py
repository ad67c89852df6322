"""`muster scheduler` in a process of its own, on a server in another: it binds, survives cuts, takes over, ends."""

from __future__ import annotations

import subprocess
import sys

import pytest
from scheduling_apart import Road, apart, ask, gang, kubeconfig, pod, scheduler, until

from muster.api.gates import FeatureGates

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
def test_what_cannot_work_is_refused_with_the_option(arguments, why, monkeypatch):
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    command = [sys.executable, "-m", "muster.cli", "scheduler", "--port", "0", *arguments]
    ended = subprocess.run(command, check=False, capture_output=True, text=True, timeout=20)
    assert ended.returncode != 0 and ended.stderr.startswith("muster: ") and why in ended.stderr


def test_a_server_that_answers_something_else_is_named(tmp_path):
    with apart() as served, scheduler(tmp_path, served.url) as process:
        other = kubeconfig(tmp_path, process.url)
        command = [sys.executable, "-m", "muster.cli", "scheduler", "--port", "0", "--kubeconfig", str(other)]
        ended = subprocess.run(command, check=False, capture_output=True, text=True, timeout=20)
        assert ended.returncode == 1 and "is it a Kubernetes API server?" in ended.stderr
