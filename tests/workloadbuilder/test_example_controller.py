"""The example controller on an embedded cluster: runs start whole, grow, and leave nothing behind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes import client

from muster.cli.app import run as muster
from served import Served, serving

EXAMPLE = Path(__file__).parents[2] / "examples" / "training"
RUNS = ("ml.example.com", "v1", "default", "trainingruns")
GROUPS = ("scheduling.k8s.io", "v1beta1", "default")


@pytest.fixture
def served() -> Iterator[Served]:
    with serving() as server:
        yield server


def test_a_run_starts_whole_grows_and_leaves_nothing_behind(served: Served) -> None:
    source = (EXAMPLE / "controller.py").read_text()
    assert len(source.splitlines()) < 120
    example: dict[str, Any] = {"__name__": "example"}
    exec(compile(source, "controller.py", "exec"), example)
    api = client.ApiClient(client.Configuration(host=served.url))
    custom, core = client.CustomObjectsApi(api), client.CoreV1Api(api)
    controller = example["Controller"](api)
    assert muster(["apply", "--server", served.url, "-f", str(EXAMPLE / "definition.yaml")]) == 0
    run = yaml.safe_load((EXAMPLE / "run.yaml").read_text())
    custom.create_namespaced_custom_object(*RUNS, run)

    def bound() -> list[bool]:
        served.settle()
        return [bool(pod.spec.node_name) for pod in core.list_namespaced_pod("default").items]

    for workers in (4, 6):
        custom.patch_namespaced_custom_object(*RUNS, "llama", {"spec": {"workers": workers}})
        controller.once()
        controller.once()
        assert bound() == [True] * workers
        [group] = custom.list_namespaced_custom_object(*GROUPS, "podgroups")["items"]
        assert group["spec"]["schedulingPolicy"] == {"gang": {"minCount": workers}}

    custom.delete_namespaced_custom_object(*RUNS, "llama")
    controller.once()
    assert bound() == []
    for plural in ("podgroups", "workloads"):
        assert custom.list_namespaced_custom_object(*GROUPS, plural)["items"] == []
