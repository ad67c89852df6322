"""Real kubectl with a kind that a user has defined: the example of the documentation."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

KUBECTL = shutil.which("kubectl")
pytestmark = pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed")

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "training"
DEFINITION, RUN = EXAMPLES / "definition.yaml", EXAMPLES / "run.yaml"


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory, start):
    server, thread = start()
    home = tmp_path_factory.mktemp("kubectl")
    base = [KUBECTL, "--server", server.url, "--cache-dir", str(home / "cache")]
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
    server.stop()
    thread.join(timeout=10)


def test_kubectl_walks_through_a_kind_of_a_users_own(kubectl):
    run = yaml.safe_load(RUN.read_text())
    assert kubectl(f"apply -f {DEFINITION}") == (
        "customresourcedefinition.apiextensions.k8s.io/trainingruns.ml.example.com created\n"
    )
    kubectl("wait --for=condition=Established crd/trainingruns.ml.example.com --timeout=5s")
    assert "trainingruns" in kubectl("api-resources --api-group=ml.example.com")
    assert "ml.example.com/v1" in kubectl("api-versions")
    explained = kubectl("explain trainingrun.spec.checkpoint")
    assert "Where the run can go on from." in explained and "every" in explained

    assert kubectl(f"apply -f {RUN}") == "trainingrun.ml.example.com/llama created\n"
    assert kubectl(f"apply -f {RUN}") == "trainingrun.ml.example.com/llama unchanged\n"
    stored = json.loads(kubectl("get tr llama -o json"))
    assert stored["spec"] == run["spec"] | {"gpusPerWorker": 8, "mode": "sync"}
    shown = kubectl("get trainingruns").splitlines()
    assert shown[0].split() == ["NAME", "WORKERS", "READY", "PHASE", "AGE"]
    assert shown[1].split()[:2] == ["llama", "4"]
    assert "IMAGE" in kubectl("get tr -o wide").splitlines()[0]
    assert "llama" in kubectl("get ml") and "llama" in kubectl("get tr --field-selector=spec.mode=sync")
    assert kubectl("get tr --field-selector=spec.mode=async -o name") == ""

    more = run | {"spec": run["spec"] | {"workers": 0}}
    said = kubectl("apply", given=more, fails=True)
    assert "spec.workers: Invalid value: 0: spec.workers in body should be greater than or equal to 1" in said
    said = kubectl("apply", given=run | {"spec": run["spec"] | {"wrokers": 5}}, fails=True)
    assert 'unknown field "spec.wrokers"' in said

    kubectl("scale tr/llama --replicas=6")
    assert kubectl("get tr llama -o jsonpath={.spec.workers}/{.metadata.generation}") == "6/2"
    kubectl('patch tr llama --subresource=status --type=merge -p {"status":{"phase":"Running","ready":6}}')
    assert kubectl("get tr llama -o jsonpath={.status.phase}/{.metadata.generation}") == "Running/2"
    kubectl("label tr llama team=a")
    assert "llama" in kubectl("get tr -l team=a") and "Spec:" in kubectl("describe tr llama")

    mine = run | {"spec": {"image": "registry.example.com/train:2", "env": [{"name": "DEBUG", "value": "1"}]}}
    said = kubectl("apply --server-side --field-manager=ops", given=mine, fails=True)
    assert "conflict with" in said and ".spec.image" in said
    kubectl("apply --server-side --field-manager=ops --force-conflicts", given=mine)
    env = json.loads(kubectl("get tr llama -o json"))["spec"]["env"]
    assert env == [{"name": "DEBUG", "value": "1"}]  # kubectl gives what its apply on the client owned to the new one
    more = {**mine, "spec": {"env": [{"name": "TRACE", "value": "1"}]}}
    kubectl("apply --server-side --field-manager=more --validate=false", given=more)
    env = json.loads(kubectl("get tr llama -o json"))["spec"]["env"]
    assert {entry["name"] for entry in env} == {"DEBUG", "TRACE"}
    said = kubectl('patch tr llama --type=strategic -p {"spec":{"workers":2}}', fails=True)
    assert "415" in said or "media type" in said or "unsupported" in said.lower()

    kubectl("delete crd trainingruns.ml.example.com")
    assert "trainingrun" in kubectl("get tr", fails=True)
