"""Real kubectl rolls Deployments out, back, on and off, on a whole cluster: scheduler, controllers, hollow nodes."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest
import yaml

from served import serving

KUBECTL = shutil.which("kubectl")
pytestmark = pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed")


class Kubectl:
    """Calls of kubectl that must succeed, or must fail."""

    def __init__(self, url, home) -> None:
        self._base = [KUBECTL, "--server", url, "--cache-dir", str(home / "cache")]
        self._environment = {"HOME": str(home), "PATH": "/usr/bin:/bin", "KUBECONFIG": str(home / "none")}

    def run(self, words, given=None):
        command = [*self._base, *words.split(" "), *([] if given is None else ["-f", "-"])]
        text = None if given is None else yaml.safe_dump(given)
        return subprocess.run(
            command, input=text, capture_output=True, text=True, env=self._environment, timeout=60, check=False
        )

    def __call__(self, words, given=None):
        done = self.run(words, given)
        assert done.returncode == 0, done.stderr + done.stdout
        return done.stdout

    def read(self, words):
        return json.loads(self(f"get {words} -o json"))

    def table(self, words):
        header, *rows = self(f"get {words}").splitlines()
        return header.split(), [row.split() for row in rows]


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory):
    with serving() as served:
        yield Kubectl(served.url, tmp_path_factory.mktemp("kubectl"))


@pytest.fixture
def web(kubectl):
    kubectl("create deployment web --image=nginx:1 --replicas=3 --port=80")
    kubectl("rollout status deployment/web --timeout=30s")
    yield kubectl
    kubectl("delete deployment web --ignore-not-found --cascade=foreground")
    assert kubectl("get rs,pods -l app=web -o name") == ""


def images(kubectl):
    """Of the pods that are not about to go."""
    pods = [each for each in kubectl.read("pods -l app=web")["items"] if "deletionTimestamp" not in each["metadata"]]
    return {each["spec"]["containers"][0]["image"] for each in pods}


def names(kubectl):
    return {each["metadata"]["name"] for each in kubectl.read("pods -l app=web")["items"]}


def test_it_is_made_and_shown(web):
    header, (row,) = web.table("deploy web")
    assert header == ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"]
    assert row[:4] == ["web", "3/3", "3", "3"]
    header, (row,) = web.table("deploy web -o wide")
    assert header[5:] == ["CONTAINERS", "IMAGES", "SELECTOR"]
    assert row[5:] == ["nginx", "nginx:1", "app=web"]
    header, (row,) = web.table("rs -l app=web -o wide")
    assert header == ["NAME", "DESIRED", "CURRENT", "READY", "AGE", "CONTAINERS", "IMAGES", "SELECTOR"]
    assert row[1:4] == ["3", "3", "3"]
    assert all(each["spec"]["nodeName"] for each in web.read("pods -l app=web")["items"])


def test_a_new_image_is_rolled_out_listed_and_undone(web):
    web("set image deployment/web nginx=nginx:2")
    assert "successfully rolled out" in web("rollout status deployment/web --timeout=30s")
    assert images(web) == {"nginx:2"}
    web("annotate deployment/web kubernetes.io/change-cause=newer")
    history = web("rollout history deployment/web")
    assert [line.split()[0] for line in history.splitlines()[2:4]] == ["1", "2"]
    assert "nginx:1" in web("rollout history deployment/web --revision=1")
    assert web("rollout undo deployment/web") == "deployment.apps/web rolled back\n"
    web("rollout status deployment/web --timeout=30s")
    assert images(web) == {"nginx:1"}
    assert web.read("deploy web")["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "3"
    web("rollout undo deployment/web --to-revision=2")
    web("rollout status deployment/web --timeout=30s")
    assert images(web) == {"nginx:2"}


def test_it_restarts_pauses_and_goes_on(web):
    before = web("get pods -l app=web -o name").split()
    web("rollout restart deployment/web")
    web("rollout status deployment/web --timeout=30s")
    web(f"wait --for=delete {' '.join(before)} --timeout=30s")
    assert len(names(web)) == 3
    web("rollout pause deployment/web")
    web("set image deployment/web nginx=nginx:3")
    assert "DeploymentPaused" in web("describe deployment web")
    assert "nginx:3" not in images(web)
    web("rollout resume deployment/web")
    web("rollout status deployment/web --timeout=30s")
    assert images(web) == {"nginx:3"}


def test_it_is_scaled_and_waited_for(web):
    assert web("scale deployment web --replicas=5 --current-replicas=3") == "deployment.apps/web scaled\n"
    web("rollout status deployment/web --timeout=30s")
    web("wait --for=condition=Available deployment/web --timeout=10s")
    web("wait --for=jsonpath={.status.readyReplicas}=5 deployment/web --timeout=10s")
    assert web.run("scale deployment web --replicas=1 --current-replicas=3").returncode != 0
    web("scale deployment web --replicas=0")
    web("wait --for=delete pod -l app=web --timeout=30s")
    assert web.table("deploy web")[1][0][1] == "0/0"


def test_it_describes_itself_its_versions_and_what_it_did(web):
    web("set image deployment/web nginx=nginx:2")
    web("rollout status deployment/web --timeout=30s")
    said = web("describe deployment web")
    for part in (
        "3 desired | 3 updated | 3 total | 3 available | 0 unavailable",
        "25% max unavailable, 25% max surge",
        "Available      True    MinimumReplicasAvailable",
        "Progressing    True    NewReplicaSetAvailable",
        "OldReplicaSets:  web-",
        "(0/0 replicas created)",
        "(3/3 replicas created)",
        "ScalingReplicaSet",
    ):
        assert part in said, said
    name = web("get rs -l app=web -o jsonpath={.items[?(@.spec.replicas==3)].metadata.name}")
    said = web(f"describe rs {name}")
    assert "Controlled By:  Deployment/web" in said
    assert "3 Running / 0 Waiting / 0 Succeeded / 0 Failed" in said
    assert "SuccessfulCreate" in said


def test_pods_are_orphaned_and_found_again(web):
    before = names(web)
    web("delete deployment web --cascade=orphan")
    web("delete rs -l app=web --cascade=orphan")
    web("wait --for=delete rs -l app=web --timeout=20s")
    assert names(web) == before
    web("create deployment web --image=nginx:1 --replicas=3 --port=80")
    web("rollout status deployment/web --timeout=30s")
    assert len([each for each in web.read("pods -l app=web")["items"] if each["metadata"].get("ownerReferences")]) >= 3


def test_what_is_wrong_is_said(kubectl):
    labels = {"app": "x"}
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
    bad = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "bad"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": {"app": "z"}}, "spec": pod},
            "strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}},
        },
    }
    done = kubectl.run("create", bad)
    assert done.returncode != 0
    for part in ("`selector` does not match template `labels`", "restartPolicy", "may not be 0 when `maxSurge` is 0"):
        assert part in done.stderr, done.stderr
