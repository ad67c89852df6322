"""Real kubectl with StatefulSets and DaemonSets on a whole cluster: their controllers, the scheduler, hollow nodes."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest
import yaml

from muster.controllers.fleet import Shape
from served import serving

KUBECTL = shutil.which("kubectl")
pytestmark = pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed")


def keeper(kind, name, **spec):
    labels = {"app": name}
    container = {"name": "main", "image": "registry.example/app:1"}
    pod = {"containers": [container], "terminationGracePeriodSeconds": 0}
    template = {"metadata": {"labels": labels}, "spec": pod}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": labels}, "template": template, **spec},
    }


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory):
    home = tmp_path_factory.mktemp("kubectl")
    with serving(fleet=Shape(zones=1, racks=1, nodes=3, gpus=0)) as served:
        base = [KUBECTL, "--server", served.url, "--cache-dir", str(home / "cache")]
        environment = {"HOME": str(home), "PATH": "/usr/bin:/bin", "KUBECONFIG": str(home / "none")}

        def run(words, given=None, fails=False):
            text = None if given is None else yaml.safe_dump(given)
            command = [*base, *words.split(" "), *(["-f", "-"] if text else [])]
            done = subprocess.run(
                command, input=text, capture_output=True, text=True, env=environment, timeout=60, check=False
            )
            assert (done.returncode != 0) is fails, done.stderr + done.stdout
            return done.stderr if fails else done.stdout

        yield run


def read(kubectl, what):
    return json.loads(kubectl(f"get {what} -o json"))


def images(kubectl, app):
    pods = read(kubectl, f"pods -l app={app}")["items"]
    return {each["metadata"]["name"]: each["spec"]["containers"][0]["image"].rpartition(":")[2] for each in pods}


def test_a_stateful_set_is_rolled_out_undone_scaled_and_deleted(kubectl):
    kubectl("apply", given=keeper("StatefulSet", "db", replicas=2, serviceName="db"))
    assert "complete" in kubectl("rollout status sts/db --timeout=20s")
    header, row = (line.split() for line in kubectl("get sts db").splitlines())
    assert header == ["NAME", "READY", "AGE"] and row[:2] == ["db", "2/2"]
    assert kubectl("get sts db -o wide --no-headers").split()[3:] == ["main", "registry.example/app:1"]

    kubectl("set image sts/db main=registry.example/app:2")
    assert "complete" in kubectl("rollout status sts/db --timeout=20s")
    assert images(kubectl, "db") == {"db-0": "2", "db-1": "2"}
    header, *rows = (line.split() for line in kubectl("get controllerrevisions -l app=db").splitlines())
    assert header == ["NAME", "CONTROLLER", "REVISION", "AGE"]
    assert [(row[1], row[2]) for row in sorted(rows, key=lambda row: row[2])] == [
        ("statefulset.apps/db", "1"),
        ("statefulset.apps/db", "2"),
    ]
    listed = [line.split()[0] for line in kubectl("rollout history sts/db").splitlines()[2:] if line.strip()]
    assert listed == ["1", "2"]
    assert "registry.example/app:1" in kubectl("rollout history sts/db --revision=1")

    assert kubectl("rollout undo sts/db") == "statefulset.apps/db rolled back\n"
    kubectl("rollout status sts/db --timeout=20s")
    assert set(images(kubectl, "db").values()) == {"1"}
    listed = [line.split()[0] for line in kubectl("rollout history sts/db").splitlines()[2:] if line.strip()]
    assert listed == ["2", "3"]
    kubectl("rollout undo sts/db --to-revision=2")
    kubectl("rollout status sts/db --timeout=20s")
    assert set(images(kubectl, "db").values()) == {"2"}

    before = {each["metadata"]["uid"] for each in read(kubectl, "pods -l app=db")["items"]}
    kubectl("rollout restart sts/db")
    kubectl("rollout status sts/db --timeout=20s")
    assert not before & {each["metadata"]["uid"] for each in read(kubectl, "pods -l app=db")["items"]}
    kubectl("scale sts/db --replicas=3")
    kubectl("wait --for=jsonpath={.status.readyReplicas}=3 sts/db --timeout=20s")
    described = kubectl("describe sts db")
    for line in ("Replicas:           3 desired | 3 total", "Pods Status:        3 Running", "SuccessfulCreate"):
        assert line in described
    refused = kubectl('patch sts db --type=merge -p {"spec":{"serviceName":"other"}}', fails=True)
    assert "spec: Forbidden" in refused
    kubectl("delete sts db --cascade=foreground --timeout=20s")
    assert kubectl("get pods,controllerrevisions -l app=db -o name") == ""


def test_a_daemon_set_is_rolled_out_undone_and_left_alone_by_drains(kubectl):
    kubectl("apply", given=keeper("DaemonSet", "agent"))
    assert "successfully rolled out" in kubectl("rollout status ds/agent --timeout=20s")
    header, row = (line.split() for line in kubectl("get ds agent").splitlines())
    assert header == ["NAME", "DESIRED", "CURRENT", "READY", "UP-TO-DATE", "AVAILABLE", "NODE", "SELECTOR", "AGE"]
    assert row[:7] == ["agent", "3", "3", "3", "3", "3", "<none>"]

    kubectl("set image ds/agent main=registry.example/app:2")
    kubectl("annotate ds/agent kubernetes.io/change-cause=second")
    assert "successfully rolled out" in kubectl("rollout status ds/agent --timeout=20s")
    assert sorted(images(kubectl, "agent").values()) == ["2"] * 3
    rows = [line.split() for line in kubectl("get controllerrevisions -l app=agent --no-headers").splitlines()]
    assert sorted((row[1], row[2]) for row in rows) == [("daemonset.apps/agent", "1"), ("daemonset.apps/agent", "2")]
    listed = [line.split()[0] for line in kubectl("rollout history ds/agent").splitlines()[2:] if line.strip()]
    assert listed == ["1", "2"]
    assert "registry.example/app:1" in kubectl("rollout history ds/agent --revision=1")
    assert kubectl("rollout undo ds/agent") == "daemonset.apps/agent rolled back\n"
    kubectl("rollout status ds/agent --timeout=20s")
    assert sorted(images(kubectl, "agent").values()) == ["1"] * 3

    pod = read(kubectl, "pods -l app=agent")["items"][0]
    node = pod["spec"]["nodeName"]
    assert "DaemonSet" in kubectl(f"drain {node}", fails=True)
    assert "drained" in kubectl(f"drain {node} --ignore-daemonsets")
    assert read(kubectl, f"pod {pod['metadata']['name']}")["metadata"]["uid"] == pod["metadata"]["uid"]
    kubectl(f"uncordon {node}")
    kubectl("rollout restart ds/agent")
    kubectl("rollout status ds/agent --timeout=20s")
    described = kubectl("describe ds agent")
    for line in (
        "Desired Number of Nodes Scheduled: 3",
        "Number of Nodes Scheduled with Up-to-date Pods: 3",
        "Number of Nodes Misscheduled: 0",
        "Pods Status:  3 Running / 0 Waiting / 0 Succeeded / 0 Failed",
        "SuccessfulCreate",
    ):
        assert line in described
    kubectl("delete ds agent --cascade=foreground --timeout=20s")
    assert kubectl("get pods,controllerrevisions -l app=agent -o name") == ""
