"""Real kubectl with quotas, limits, events of both groups, devices and questions about access, on a whole cluster."""

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


class Kubectl:
    def __init__(self, served, home) -> None:
        self.served = served
        self._base = [KUBECTL, "--server", served.url, "--cache-dir", str(home / "cache")]
        self._environment = {"HOME": str(home), "PATH": "/usr/bin:/bin", "KUBECONFIG": str(home / "none")}

    def __call__(self, words, given=None, fails=False):
        text = None if given is None else yaml.safe_dump(given)
        command = [*self._base, *words.split(" "), *(["-f", "-"] if text else [])]
        done = subprocess.run(
            command, input=text, capture_output=True, text=True, env=self._environment, timeout=60, check=False
        )
        assert (done.returncode != 0) is fails, done.stderr + done.stdout
        return done.stderr if fails else done.stdout

    def read(self, what):
        return json.loads(self(f"get {what} -o json"))


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory):
    with serving(fleet=Shape(zones=1, racks=1, nodes=2, gpus=8)) as served:
        yield Kubectl(served, tmp_path_factory.mktemp("kubectl"))


def rows(text):
    return [line.split() for line in text.splitlines()]


def job(name, pods, **resources):
    container = {"name": "main", "image": "i", "resources": resources}
    template = {"spec": {"restartPolicy": "Never", "containers": [container], "terminationGracePeriodSeconds": 0}}
    spec = {"parallelism": pods, "completions": pods, "template": template}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": "team"}, "spec": spec}


def test_a_team_lives_within_its_quota(kubectl):
    kubectl("create namespace team")
    kubectl("create quota compute --hard=pods=3,requests.cpu=2,limits.memory=4Gi -n team")
    assert kubectl("get quota -n team").splitlines()[1].split()[:2] == ["compute", "pods:"]
    limit = {"type": "Container", "default": {"memory": "1Gi"}, "defaultRequest": {"cpu": "500m"}, "max": {"cpu": "1"}}
    limits = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "usual", "namespace": "team"}}
    kubectl("apply", given={**limits, "spec": {"limits": [limit]}})
    described = kubectl("describe limits usual -n team")
    assert "Container   cpu" in described and "500m" in described and "1Gi" in described
    kubectl("run one --image=i -n team")
    made = kubectl.read("pod one -n team")
    assert made["spec"]["containers"][0]["resources"] == {
        "requests": {"cpu": "500m", "memory": "1Gi"},
        "limits": {"cpu": "1", "memory": "1Gi"},
    }
    assert "LimitRanger plugin set" in made["metadata"]["annotations"]["kubernetes.io/limit-ranger"]
    described = rows(kubectl("describe quota compute -n team"))
    assert ["requests.cpu", "500m", "2"] in described and ["limits.memory", "1Gi", "4Gi"] in described
    assert ["pods", "1", "3"] in rows(kubectl("describe namespace team"))
    said = kubectl("run big --image=i -n team --dry-run=server", fails=False)
    assert "created (server dry run)" in said
    kubectl("delete pod one -n team --grace-period=0 --force")
    assert kubectl.read("quota compute -n team")["status"]["used"]["pods"] == "0"


def test_a_job_waits_for_room_in_the_quota_and_says_so(kubectl):
    kubectl("create", given=job("wide", 4, requests={"cpu": "500m"}))
    kubectl.served.settle()
    kubectl("wait --for=jsonpath={.status.active}=3 job/wide -n team --timeout=20s")
    assert len(kubectl.read("pods -n team -l job-name=wide")["items"]) == 3
    told = kubectl("events -n team --for job/wide")
    assert (
        "FailedCreate" in told and "exceeded quota: compute, requested: pods=1, used: pods=3, limited: pods=3" in told
    )
    assert "exceeded quota: compute" in kubectl("run more --image=i -n team", fails=True)
    kubectl('patch quota compute -n team -p {"spec":{"hard":{"pods":"9"}}}')
    kubectl("wait --for=jsonpath={.status.active}=4 job/wide -n team --timeout=30s")
    kubectl("delete job wide -n team --cascade=background")
    kubectl("wait --for=delete pod -l job-name=wide -n team --timeout=20s")
    assert kubectl.read("quota compute -n team")["status"]["used"]["pods"] == "0"


def test_a_quota_may_be_about_one_priority(kubectl):
    kubectl("create namespace scoped")
    kubectl("create quota best --hard=pods=0 --scopes=BestEffort -n scoped")
    assert "exceeded quota: best" in kubectl("run a --image=i -n scoped", fails=True)
    kubectl('run b --image=i -n scoped --overrides={"spec":{"containers":[{"name":"b","image":"i","resources":'
            '{"requests":{"cpu":"1"}}}]}}')  # fmt: skip
    assert "BestEffort" in kubectl("describe quota best -n scoped")
    kubectl("delete namespace scoped")


def test_events_are_seen_through_both_groups(kubectl):
    kubectl("run told --image=i")
    kubectl("wait --for=condition=Ready pod/told --timeout=20s")
    old = {event["metadata"]["name"]: event for event in kubectl.read("events")["items"]}
    new = {event["metadata"]["name"]: event for event in kubectl.read("events.events.k8s.io")["items"]}
    assert old.keys() == new.keys() and old
    for name, event in old.items():
        assert event["message"] == new[name]["note"] and event["involvedObject"] == new[name]["regarding"]
    assert rows(kubectl("get events.events.k8s.io"))[0] == rows(kubectl("get events"))[0]
    assert "told" in kubectl("events --for pod/told")
    selected = kubectl("get events.events.k8s.io --field-selector regarding.name=told -o name")
    assert selected.startswith("event.events.k8s.io/told.")
    kubectl("delete pod told --grace-period=0 --force")


def test_devices_are_listed_and_described(kubectl):
    kinds = {line[0]: line[-1] for line in rows(kubectl("api-resources --api-group=resource.k8s.io"))[1:]}
    assert kinds["resourceslices"] == "ResourceSlice" and kinds["devicetaintrules"] == "DeviceTaintRule"
    pool = {"name": "p1", "generation": 1, "resourceSliceCount": 1}
    devices = [{"name": "gpu-0", "attributes": {"model": {"string": "H200"}}}]
    spec = {"driver": "gpu.example.com", "pool": pool, "allNodes": True, "devices": devices}
    api = "resource.k8s.io/v1"
    kubectl("create", given={"apiVersion": api, "kind": "ResourceSlice", "metadata": {"name": "own"}, "spec": spec})
    assert next(line[:4] for line in rows(kubectl("get resourceslices")) if line[0] == "own") == [
        "own",
        "<none>",
        "gpu.example.com",
        "p1",
    ]
    taint = {"taint": {"key": "broken", "effect": "NoSchedule"}, "deviceSelector": {"driver": "gpu.example.com"}}
    rule = {"apiVersion": api, "kind": "DeviceTaintRule", "metadata": {"name": "r"}, "spec": taint}
    assert kubectl("apply", given=rule) == "devicetaintrule.resource.k8s.io/r created\n"
    assert "gpu.example.com" in kubectl("describe devicetaintrules r")
    assert "H200" in kubectl("describe resourceslices own")
    assert "timeAdded" in kubectl("explain devicetaintrule.spec.taint")
    wrong = {**spec, "nodeName": "n1"}
    said = kubectl(
        "create",
        given={"apiVersion": api, "kind": "ResourceSlice", "metadata": {"name": "w"}, "spec": wrong},
        fails=True,
    )
    assert "exactly one of `nodeName`" in said
    kubectl("delete devicetaintrule r")
    kubectl("delete resourceslice own")


def test_questions_about_access_are_answered(kubectl):
    assert kubectl("auth can-i create pods") == "yes\n"
    assert "*.*" in kubectl("auth can-i --list")
    assert "muster:user" in kubectl("auth whoami")


def test_metrics_are_not_served_and_kubectl_says_so(kubectl):
    assert "Metrics API not available" in kubectl("top nodes", fails=True)
    assert "Metrics API not available" in kubectl("top pods", fails=True)
