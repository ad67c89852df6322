"""Pods are resized by the official Python client and by real kubectl, on a whole cluster over HTTP."""

from __future__ import annotations

import json
import shutil
import subprocess

import kubernetes
import pytest
from kubernetes import client, watch
from kubernetes.client.exceptions import ApiException

from muster.api.gates import FeatureGates
from muster.cli.explain import explain
from muster.controllers.fleet import Shape
from served import serving

NAMESPACE = "default"
KUBECTL = shutil.which("kubectl")


@pytest.fixture
def served():
    gates = FeatureGates.of("InPlacePodVerticalScalingSchedulerPreemption", "GenericWorkload")
    with serving(gates=gates, fleet=Shape(zones=1, racks=1, nodes=1, gpus=0)) as found:
        yield found


@pytest.fixture
def core(served):
    with kubernetes.client.ApiClient(kubernetes.client.Configuration(host=served.url)) as made:
        yield client.CoreV1Api(made)


def pod(name, cpu, priority_class=None):
    resources = client.V1ResourceRequirements(requests={"cpu": cpu})
    container = client.V1Container(name="main", image="i", resources=resources)
    spec = client.V1PodSpec(
        containers=[container], priority_class_name=priority_class, termination_grace_period_seconds=0
    )
    return client.V1Pod(metadata=client.V1ObjectMeta(name=name), spec=spec)


def until(core, name, there):
    """Watches one pod until `there` holds of it."""
    stream = watch.Watch()
    selected = f"metadata.name={name}"
    for event in stream.stream(core.list_namespaced_pod, NAMESPACE, field_selector=selected, timeout_seconds=20):
        if there(event["object"]):
            stream.stop()
            return event["object"]
    raise AssertionError(f"{name} did not get there")


def crowded(core):
    """A node of which an important pod has half and a lesser one the other half; its size in cores."""
    cores = int(core.list_node().items[0].status.allocatable["cpu"])
    api = client.SchedulingV1Api(core.api_client)
    api.create_priority_class(client.V1PriorityClass(metadata=client.V1ObjectMeta(name="urgent"), value=1000))
    core.create_namespaced_pod(NAMESPACE, pod("grow", str(cores // 2), "urgent"))
    core.create_namespaced_pod(NAMESPACE, pod("low", str(cores // 2)))
    for name in ("grow", "low"):
        until(core, name, lambda found: found.status.phase == "Running")
    return cores


def size(found):
    return found.status.container_statuses[0].resources.requests["cpu"]


def wish(cpu):
    return {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]}}


def test_the_python_client_resizes_a_pod_which_evicts_a_lesser_one(core):
    wanted = str(crowded(core) // 2 + 1)
    core.patch_namespaced_pod_resize("grow", NAMESPACE, wish(wanted))
    grown = until(core, "grow", lambda found: size(found) == wanted)
    assert grown.status.container_statuses[0].allocated_resources["cpu"] == wanted
    assert [each.metadata.name for each in core.list_namespaced_pod(NAMESPACE).items] == ["grow"]


def test_the_python_client_replaces_the_size_and_is_told_what_may_not_change(core):
    crowded(core)
    found = core.read_namespaced_pod("low", NAMESPACE)
    found.spec.containers[0].resources.requests["cpu"] = "1"
    core.replace_namespaced_pod_resize("low", NAMESPACE, found)
    until(core, "low", lambda found: size(found) == "1")
    both = {"requests": {"cpu": "1", "memory": "1Mi"}, "limits": {"cpu": "1", "memory": "1Mi"}}
    with pytest.raises(ApiException) as refused:
        guaranteed = {"spec": {"containers": [{"name": "main", "resources": both}]}}
        core.patch_namespaced_pod_resize("low", NAMESPACE, guaranteed)
    assert refused.value.status == 422 and "QOS Class" in json.loads(refused.value.body)["message"]


def test_muster_explain_says_why_a_resize_waits_and_what_would_change_it(core, served, capsys):
    cores = crowded(core)
    core.patch_namespaced_pod_resize("low", NAMESPACE, wish(str(cores)))
    until(core, "low", lambda found: any(c.type == "PodResizePending" for c in found.status.conditions))
    said = ""
    for _ in range(500):  # until the scheduler has looked at it
        if "lacks" in said:
            break
        explain("pod/low", None, None, False, served.url)
        said = capsys.readouterr().out
    assert said.startswith(f"Pod default/low waits to be resized: it lacks {cores // 2} cpu on ")
    assert "no pod of lower priority runs there; free that much" in said
    core.patch_namespaced_pod_resize("low", NAMESPACE, wish(str(cores + 1)))
    until(core, "low", lambda found: any(c.reason == "Infeasible" for c in found.status.conditions))
    explain("pod/low", None, None, False, served.url)
    assert "its resize cannot be done there" in capsys.readouterr().out


@pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed")
def test_kubectl_patches_the_subresource(core, served, tmp_path):
    wanted = str(crowded(core) // 2 + 1)
    command = [
        KUBECTL, "--server", served.url, "--cache-dir", str(tmp_path / "cache"), "patch", "pod", "grow",
        "--subresource", "resize", "--patch", json.dumps(wish(wanted)),
    ]  # fmt: skip
    environment = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "KUBECONFIG": str(tmp_path / "none")}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    until(core, "grow", lambda found: size(found) == wanted)
