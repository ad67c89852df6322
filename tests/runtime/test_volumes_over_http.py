"""Volumes from a client's side: made for pods that a real server runs, and gone with them."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from muster.runtime.documents import read
from served import Served, serving

EXAMPLE = Path(__file__).parents[2] / "examples" / "volumes.yaml"
CORE, CLAIMS, VOLUMES = "/api/v1/namespaces/default", "persistentvolumeclaims", "/api/v1/persistentvolumes"
PATHS = {
    "StorageClass": "/apis/storage.k8s.io/v1/storageclasses",
    "PersistentVolumeClaim": f"{CORE}/{CLAIMS}",
    "PodGroup": "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups",
    "Pod": f"{CORE}/pods",
}


@pytest.fixture
def served() -> Iterator[Served]:
    with serving() as server:
        yield server


def ask(served: Served, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    connection = http.client.HTTPConnection(urlsplit(served.url).netloc, timeout=10)
    try:
        text = None if body is None else json.dumps(body)
        connection.request(method, path, text, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def items(served: Served, path: str) -> list[dict[str, Any]]:
    return list(ask(served, "GET", path)[1]["items"])


def reaches(served: Served, condition: Callable[[], bool]) -> bool:
    """Whether it comes true within ten seconds of real time."""
    end = time.monotonic() + 10
    while not condition():
        if time.monotonic() > end:
            return False
        served.settle()
    return True


def test_the_example_runs_with_its_disks_and_what_was_made_for_its_pods_goes_with_them(served: Served) -> None:
    for document in read(EXAMPLE):
        status, answer = ask(served, "POST", PATHS[document.value["kind"]], document.value)
        assert status == 201, answer

    def phases(path: str) -> list[str]:
        return [each["status"].get("phase", "") for each in items(served, path)]

    assert reaches(served, lambda: phases(PATHS["Pod"]) == ["Running"] * 2)
    assert phases(f"{CORE}/{CLAIMS}") == phases(VOLUMES) == ["Bound"] * 4
    for name in ("database-0", "database-1"):
        assert ask(served, "DELETE", f"{CORE}/pods/{name}?gracePeriodSeconds=0")[0] == 200
    assert reaches(served, lambda: len(items(served, VOLUMES)) == 2)
    assert {each["metadata"]["name"] for each in items(served, f"{CORE}/{CLAIMS}")} == {"disk-0", "disk-1"}


def test_a_namespace_with_claims_goes_and_takes_what_was_made_for_them_along(served: Served) -> None:
    for document in read(EXAMPLE):
        if document.value["kind"] == "StorageClass":
            body = {**document.value, "volumeBindingMode": "Immediate"}
            assert ask(served, "POST", PATHS["StorageClass"], body)[0] == 201
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}
    assert ask(served, "POST", "/api/v1/namespaces", space)[0] == 201
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c"}, "spec": spec}
    assert ask(served, "POST", f"/api/v1/namespaces/team/{CLAIMS}", claim)[0] == 201
    assert reaches(served, lambda: len(items(served, VOLUMES)) == 1)
    assert ask(served, "DELETE", "/api/v1/namespaces/team")[0] == 200
    assert reaches(served, lambda: ask(served, "GET", "/api/v1/namespaces/team")[0] == 404)
    assert reaches(served, lambda: items(served, VOLUMES) == [])
