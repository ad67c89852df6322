"""Real kubectl against the embedded server, without any option that a real cluster would not need.

One server and one discovery cache for the whole file: what a call of kubectl costs is kubectl.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from muster.api import writes
from muster.testing.builders import gang_manifest, node_manifest, pod_manifest
from served import serving

KUBECTL = shutil.which("kubectl")
pytestmark = pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed")

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "a", "labels": {"app": "x"}},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}
JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "train"},
    "spec": {"parallelism": 2, "completions": 2, "template": {"spec": POD["spec"] | {"restartPolicy": "Never"}}},
}


class Kubectl:
    """Calls of kubectl: they must succeed, or must fail."""

    def __init__(self, bare, home) -> None:
        self.bare = bare
        self._base = [KUBECTL, "--server", bare.url, "--cache-dir", str(home / "cache")]
        self._environment = {"HOME": str(home), "PATH": "/usr/bin:/bin", "KUBECONFIG": str(home / "none")}

    def run(self, *words, given=None):
        text = None if given is None else given if isinstance(given, str) else yaml.safe_dump(given)
        command = [*self._base, *(word for part in words for word in part.split(" ")), *(["-f", "-"] if text else [])]
        return subprocess.run(
            command, input=text, capture_output=True, text=True, env=self._environment, timeout=60, check=False
        )

    def __call__(self, *words, given=None):
        """What it prints. With `given`, a manifest, it reads that."""
        done = self.run(*words, given=given)
        assert done.returncode == 0, done.stderr + done.stdout
        return done.stdout

    def refused(self, *words, given=None):
        done = self.run(*words, given=given)
        assert done.returncode != 0, done.stdout
        return done.stderr

    def read(self, *words):
        return json.loads(self("get", *words, "-o json"))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory, start):
    server, thread = start()
    server.on_loop(lambda: [server.handle(writes.create(node_manifest(name))) for name in ("n1", "n2")])
    yield Kubectl(server, tmp_path_factory.mktemp("kubectl"))
    server.stop()
    thread.join(timeout=10)


@pytest.fixture
def kubectl(cluster):
    yield cluster
    cluster.bare.on_loop(lambda: _emptied(cluster.bare))


def _emptied(bare):
    for plural in ("pods", "jobs", "podgroups"):
        for raw in list(bare.api.store.all(plural)):
            bare.api.store.remove(plural, raw["metadata"]["namespace"], raw["metadata"]["name"])


def test_typed_commands_create_what_they_say(kubectl):
    assert kubectl("create namespace team") == "namespace/team created\n"
    kubectl("create job once --image=a -n team -- sleep 1")
    assert kubectl.read("job once -n team")["spec"]["template"]["spec"]["containers"][0]["command"] == ["sleep", "1"]
    kubectl("create priorityclass high --value=5 --preemption-policy=Never --description=x")
    assert kubectl.read("pc high")["preemptionPolicy"] == "Never"
    kubectl("create poddisruptionbudget half --selector=app=x --min-available=50% -n team")
    assert kubectl.read("pdb half -n team")["spec"]["minAvailable"] == "50%"
    kubectl("run one --image=b --labels=app=y")
    assert kubectl.read("pod one")["metadata"]["labels"] == {"app": "y"}
    kubectl("delete namespace team")


def test_apply_needs_no_option_and_knows_what_has_not_changed(kubectl):
    assert kubectl("apply", given=JOB) == "job.batch/train created\n"
    assert kubectl("apply", given=JOB) == "job.batch/train unchanged\n"
    changed = JOB | {"spec": JOB["spec"] | {"parallelism": 1}}
    done = kubectl.run("diff", given=changed)
    assert done.returncode == 1 and "+  parallelism: 1" in done.stdout, done.stderr
    assert "dry run" in kubectl("apply --dry-run=server", given=changed)
    assert kubectl.read("job train")["spec"]["parallelism"] == 2
    assert kubectl("apply", given=changed) == "job.batch/train configured\n"
    assert kubectl.read("job train")["spec"]["parallelism"] == 1
    assert "parallelism: 1" in kubectl("apply view-last-applied job/train")
    assert kubectl("replace", given=JOB) == "job.batch/train replaced\n"


def test_apply_merges_fields_that_this_kubectl_has_never_heard_of(kubectl):
    job = json.loads(json.dumps(JOB))
    job["spec"]["scheduling"] = {"enabled": True}
    kubectl("apply --validate=warn", given=JOB)
    done = kubectl.run("apply --validate=strict", given=job)
    assert "scheduling" in done.stderr or done.returncode == 0
    gang = gang_manifest("g", 2)
    assert kubectl("apply", given=gang) == "podgroup.scheduling.k8s.io/g created\n"
    gang["spec"]["schedulingPolicy"]["gang"]["minCount"] = 3
    assert kubectl("apply", given=gang) == "podgroup.scheduling.k8s.io/g configured\n"
    assert kubectl.read("pg g")["spec"]["schedulingPolicy"]["gang"]["minCount"] == 3


def test_unknown_fields_are_refused_warned_of_or_ignored(kubectl):
    bad = json.loads(json.dumps(POD))
    bad["spec"]["colour"] = "red"
    said = 'Pod in version "v1" cannot be handled as a Pod: strict decoding error: unknown field "spec.colour"'
    assert said in kubectl.refused("create", given=bad)
    done = kubectl.run("create --validate=warn", given=bad)
    assert done.returncode == 0 and 'Warning: unknown field "spec.colour"' in done.stderr
    kubectl("delete pod a --now")
    done = kubectl.run("create --validate=ignore", given=bad)
    assert done.returncode == 0 and not done.stderr


def test_tables_show_what_matters(kubectl):
    kubectl("create", given=POD)
    kubectl("create", given=gang_manifest("g", 2))
    kubectl("create", given=pod_manifest("m", group="g"))
    header, row = (line.split() for line in kubectl("get pod a").splitlines())
    assert header == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"] and row[:4] == ["a", "0/1", "Pending", "0"]
    wide = kubectl("get pods -o wide -A").splitlines()[0]
    assert " ".join(wide.split()) == "NAMESPACE NAME READY STATUS RESTARTS AGE IP NODE NOMINATED NODE READINESS GATES"
    header, row = (line.split() for line in kubectl("get pg").splitlines())
    assert header == ["NAME", "MIN", "MEMBERS", "BOUND", "STATUS", "AGE"] and row[:5] == ["g", "2", "1", "0", "Pending"]
    assert kubectl("get nodes").splitlines()[1].split()[:3] == ["n1", "Ready", "<none>"]
    assert "pod/a" in kubectl("get all")
    assert kubectl("get pods -l app=x -o name --chunk-size=1") == "pod/a\n"
    assert kubectl("get pods --field-selector metadata.name=m -o jsonpath={.items[*].metadata.name}") == "m"
    assert kubectl("get pods --sort-by=.metadata.name -o custom-columns=N:.metadata.name").split() == ["N", "a", "m"]


def test_watching_prints_a_line_for_each_change(kubectl):
    kubectl("create", given=POD)
    watch = subprocess.Popen(
        [*kubectl._base, "get", "pods", "-w"], stdout=subprocess.PIPE, text=True, env=kubectl._environment
    )
    try:
        assert watch.stdout.readline().split()[0] == "NAME"
        assert watch.stdout.readline().split()[0] == "a"
        kubectl("label pod a seen=yes")
        assert watch.stdout.readline().split()[0] == "a"
        kubectl("delete pod a --now")
        assert watch.stdout.readline().split()[0] == "a"
    finally:
        watch.kill()
        watch.communicate()


def test_what_is_served_can_be_asked_for(kubectl):
    assert "podgroups" in kubectl("api-resources --api-group=scheduling.k8s.io")
    assert {"v1", "batch/v1", "scheduling.k8s.io/v1beta1"} <= set(kubectl("api-versions").split())
    assert "Server Version: v1.37" in kubectl("version")
    assert "schedulingPolicy" in kubectl("explain podgroup.spec")
    assert "<[]Container>" in kubectl("explain pod.spec.containers")
    assert "minCount\t<integer>" in kubectl("explain podgroup --recursive")
    assert "image\t<string>" in kubectl("explain pod.spec.containers --output=plaintext-openapiv2")


def test_labels_annotations_taints_and_patches(kubectl):
    kubectl("create", given=POD)
    kubectl("label pod a tier=one")
    assert "already has a value" in kubectl.refused("label pod a tier=two")
    kubectl("label pod a tier=two --overwrite")
    kubectl("annotate pod a note=here")
    kubectl("label pod a app-")
    meta = kubectl.read("pod a")["metadata"]
    assert meta["labels"] == {"tier": "two"} and meta["annotations"]["note"] == "here"
    kubectl("patch pod a --type=json -p", '[{"op":"test","path":"/metadata/name","value":"a"},{"op":"copy",'
            '"from":"/metadata/labels/tier","path":"/metadata/labels/copied"},{"op":"move",'
            '"from":"/metadata/labels/tier","path":"/metadata/labels/moved"}]')  # fmt: skip
    assert kubectl.read("pod a")["metadata"]["labels"] == {"copied": "two", "moved": "two"}
    kubectl("patch pod a --type=merge -p", '{"metadata":{"labels":{"moved":null}}}')
    kubectl("patch pod a -p", '{"spec":{"tolerations":[{"key":"k","operator":"Exists"}]}}')
    assert kubectl.read("pod a")["metadata"]["labels"] == {"copied": "two"}
    kubectl("patch node n1 --subresource=status --type=merge -p", '{"status":{"capacity":{"example.com/x":"1"}}}')
    assert kubectl.read("node n1")["status"]["capacity"]["example.com/x"] == "1"
    kubectl("taint node n1 k=v:NoSchedule")
    assert kubectl.read("node n1")["spec"]["taints"] == [{"key": "k", "value": "v", "effect": "NoSchedule"}]
    kubectl("taint node n1 k-")


def test_nodes_are_cordoned_and_drained(kubectl):
    kubectl("create", given=POD)
    kubectl.bare.on_loop(lambda: kubectl.bare.handle(writes.bind("default", "a", "", "n2")))
    assert "Unschedulable" not in kubectl("cordon n2")
    assert "SchedulingDisabled" in kubectl("get node n2")
    assert "declare no controller" in kubectl.refused("drain n2")
    kubectl("drain n2 --force --grace-period=0")
    assert "NotFound" in kubectl.refused("get pod a")
    kubectl("uncordon n2")


def test_deleting_with_grace_cascade_and_finalizers(kubectl):
    kubectl("create", given=POD)
    kubectl.bare.on_loop(lambda: kubectl.bare.handle(writes.bind("default", "a", "", "n1")))
    kubectl("delete pod a --wait=false --grace-period=30")
    assert "Terminating" in kubectl("get pod a")
    kubectl("delete pod a --grace-period=0 --force")
    kubectl("create", given=JOB | {"metadata": {"name": "held", "finalizers": ["example.com/hold"]}})
    kubectl("delete job held --wait=false --cascade=foreground")
    assert "foregroundDeletion" in kubectl.read("job held")["metadata"]["finalizers"]
    kubectl("patch job held --type=merge -p", '{"metadata":{"finalizers":null}}')
    assert "NotFound" in kubectl.refused("get job held")


def test_waiting_and_describing(kubectl):
    kubectl("create", given=POD)
    kubectl("wait --for=condition=Ready node/n1 --timeout=10s")
    kubectl("wait --for=jsonpath={.status.phase}=Pending pod/a --timeout=10s")
    for words, said in (("pod a", "Status:       Pending"), ("node n1", "Unschedulable:      false")):
        assert said in kubectl("describe", words)
    kubectl("create", given=gang_manifest("g", 2))
    assert "Min Count:  2" in kubectl("describe pg g")
    kubectl("create", given=JOB)
    assert "Parallelism:      2" in kubectl("describe job train")


def test_a_gang_that_runs_its_workload_and_its_nodes_are_described(tmp_path):
    with serving() as served:
        kubectl = Kubectl(served, tmp_path)
        tree = Path(__file__).resolve().parents[2] / "examples" / "tree.yaml"
        kubectl(f"apply -f {tree}")
        kubectl("wait --for=condition=PodGroupInitiallyScheduled pg --all --timeout=20s")
        kubectl("wait --for=condition=CompositePodGroupInitiallyScheduled cpg/replica --timeout=20s")
        kubectl("wait --for=condition=Ready pod --all --timeout=20s")
        rows = [line.split()[:5] for line in kubectl("get cpg,pg --no-headers").splitlines() if line]
        assert [row[1:] for row in rows] == [["2", "2", "2", "Scheduled"]] * 3
        for words, said in (
            ("cpg replica", "Min Group Count:  2"),
            ("pg replica-decode", "Reason:                Scheduled"),
            ("pod replica-decode-0", "Successfully assigned default/replica-decode-0 to"),
        ):
            assert said in kubectl("describe", words)
        node = kubectl("get pod replica-decode-0 -o jsonpath={.spec.nodeName}")
        described = kubectl(f"describe node {node}")
        assert "Kubelet Version:            v1.37" in described and "replica-decode-0" in described
        assert kubectl(f"get node {node} --no-headers").split()[4] == "v1.37.0"
        workload = {
            "apiVersion": "scheduling.k8s.io/v1beta1", "kind": "Workload", "metadata": {"name": "w"},
            "spec": {"podGroupTemplates": [{"name": "t", "schedulingPolicy": {"gang": {"minCount": 3}}}]},
        }  # fmt: skip
        kubectl("create", given=workload)
        assert "Min Count:  3" in kubectl("describe wl w")
        assert "Scheduled" in kubectl("events --for pod/replica-decode-0")


def test_pods_that_a_job_leaves_behind_can_be_deleted(tmp_path):
    with serving() as served:
        kubectl = Kubectl(served, tmp_path)
        kubectl("create", given=JOB)
        kubectl("wait --for=jsonpath={.status.active}=2 job/train --timeout=20s")
        kubectl("delete job train --cascade=orphan")
        assert len(kubectl("get pods -o name").split()) == 2
        kubectl("delete pods --all --timeout=20s")


def test_every_output_says_the_same(kubectl):
    kubectl("create", given=POD)
    assert kubectl("get pod a -o name") == "pod/a\n"
    assert yaml.safe_load(kubectl("get pod a -o yaml")) == kubectl.read("pod a")
    assert [one["metadata"]["name"] for one in kubectl.read("pods -A")["items"]] == ["a"]
    assert kubectl("get pod a -o jsonpath={.spec.containers[0].image}") == "i"
    assert kubectl("get pod a -o go-template={{.kind}}") == "Pod"
    assert kubectl("get pods -o custom-columns=N:.metadata.name,I:.spec.containers[*].image").split()[2:] == ["a", "i"]
    assert kubectl("get pod a --show-labels --no-headers").split()[-1] == "app=x"
    assert kubectl("get pod a -L app --no-headers").split()[-1] == "x"
    assert kubectl("get pods -n team") == ""
    assert 'pods "b" not found' in kubectl.refused("get pod b")
    assert 'doesn\'t have a resource type "pds"' in kubectl.refused("get pds")


def test_subresources_are_read_and_patched_on_their_own(kubectl):
    kubectl("create", given=POD | {"spec": POD["spec"] | {"containers": [
        {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]}})  # fmt: skip
    body = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]}}
    kubectl("patch pod a --subresource=resize -p", json.dumps(body).replace(" ", ""))
    assert kubectl.read("pod a")["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "2"
    kubectl("patch pod a --subresource=status -p", '{"status":{"message":"hi"}}')
    assert kubectl.read("pod a --subresource=status")["status"]["message"] == "hi"
    template = {"metadata": {"labels": {"app": "x"}}, "spec": POD["spec"]}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "x"}}, "template": template}
    manifest = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "s"}, "spec": spec}
    kubectl("apply --server-side --field-manager=owner", given=manifest)
    kubectl("patch rs s --subresource=scale -p", '{"spec":{"replicas":3}}')
    kubectl("scale rs s --replicas=4")
    said = kubectl.refused("apply --server-side --field-manager=owner", given=manifest)
    assert 'conflict with "kubectl" with subresource "scale" using apps/v1' in said and ".spec.replicas" in said
    kubectl("apply --server-side --field-manager=owner --force-conflicts", given=manifest)
    assert kubectl.read("rs s")["spec"]["replicas"] == 2
    kubectl("delete rs s")


def test_replacing_by_force_and_deleting_by_file(kubectl):
    kubectl("create", given=POD)
    before = kubectl.read("pod a")["metadata"]["uid"]
    assert "pod/a replaced" in kubectl("replace --force", given=POD)
    assert kubectl.read("pod a")["metadata"]["uid"] != before
    assert kubectl("delete", given=POD).startswith('pod "a"')
    assert "not found" in kubectl.refused("delete", given=POD)
    assert kubectl("delete --ignore-not-found", given=POD) == ""


@pytest.mark.parametrize("words", ["logs a", "exec a -- ls", "attach a", "cp a:/x /dev/null"])
def test_what_needs_a_kubelet_says_that_there_is_none(kubectl, words):
    kubectl("create", given=POD)
    assert "not served by hollow nodes" in kubectl.refused(words)


def test_port_forward_says_so_too(kubectl):
    kubectl("create", given=POD)
    kubectl("patch pod a --subresource=status --type=merge -p", '{"status":{"phase":"Running"}}')
    assert "not served by hollow nodes" in kubectl.refused("port-forward pod/a 0:80")


def labelled(**labels):
    return POD | {"metadata": {"name": "a", "labels": labels}}


def test_server_side_apply_with_conflicts_and_force(kubectl):
    assert "serverside-applied" in kubectl("apply --server-side", given=labelled(a="1"))
    assert "serverside-applied" in kubectl("apply --server-side --field-manager=other", given=labelled(a="1", b="1"))
    said = kubectl.refused("apply --server-side --field-manager=third", given=labelled(a="2"))
    assert "Apply failed with 2 conflicts" in said and "- .metadata.labels.a" in said and "--force-conflicts" in said
    kubectl("apply --server-side --field-manager=third --force-conflicts", given=labelled(a="2"))
    managers = {
        entry["manager"]: entry for entry in kubectl.read("pod a --show-managed-fields")["metadata"]["managedFields"]
    }
    assert "f:a" in managers["third"]["fieldsV1"]["f:metadata"]["f:labels"]
    assert managers["other"]["fieldsV1"]["f:metadata"]["f:labels"] == {"f:b": {}}
    kubectl("apply --server-side --field-manager=other", given=labelled())
    assert kubectl.read("pod a")["metadata"]["labels"] == {"a": "2"}
    assert "managedFields" not in kubectl.read("pod a")["metadata"]


def test_from_client_side_to_server_side_apply(kubectl):
    kubectl("apply", given=labelled(a="1", b="1"))
    kubectl("apply --server-side", given=labelled(a="2"))
    meta = kubectl.read("pod a --show-managed-fields")["metadata"]
    assert meta["labels"] == {"a": "2"}
    managers = {(entry["manager"], entry["operation"]) for entry in meta["managedFields"]}
    assert managers == {("kubectl", "Apply"), ("kubectl-last-applied", "Apply")}


def test_differences_by_server_side_apply(kubectl):
    kubectl("apply --server-side", given=labelled(a="1"))
    done = kubectl.run("diff --server-side", given=labelled(a="2"))
    assert done.returncode == 1 and '+    a: "2"' in done.stdout, done.stdout + done.stderr
    assert kubectl.run("diff --server-side", given=labelled(a="1")).returncode == 0


def test_editing_in_an_editor(kubectl, tmp_path):
    kubectl("create", given=labelled(a="1"))
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nsed -i \'s/a: "1"/a: "2"/\' "$1"\n')
    editor.chmod(0o755)
    done = subprocess.run(
        [*kubectl._base, "edit", "pod", "a"],
        env=kubectl._environment | {"KUBE_EDITOR": str(editor)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "pod/a edited" in done.stdout, done.stderr
    assert kubectl.read("pod a")["metadata"]["labels"] == {"a": "2"}


def test_scaling_and_rollouts(kubectl):
    template = {"metadata": {"labels": {"app": "x"}}, "spec": POD["spec"]}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "x"}}, "template": template}
    meta = {"name": "r"}
    kubectl("create", given={"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": meta, "spec": spec})
    kubectl("scale rs/r --replicas=3")
    assert kubectl("get rs r --no-headers").split()[:4] == ["r", "3", "0", "0"]
    assert "Expected replicas to be 7" in kubectl.refused("scale rs/r --replicas=4 --current-replicas=7")
    assert kubectl.read("rs r --subresource=scale")["spec"]["replicas"] == 3
    spec |= {"serviceName": "s", "updateStrategy": {"type": "RollingUpdate"}}
    kubectl("create", given={"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": meta, "spec": spec})
    counts = dict.fromkeys(("replicas", "readyReplicas", "updatedReplicas", "currentReplicas", "observedGeneration"), 1)
    kubectl("patch sts r --subresource=status --type=merge -p", json.dumps({"status": counts}).replace(" ", ""))
    assert "complete" in kubectl("rollout status sts/r --timeout=10s")
    kubectl("rollout restart sts/r")
    assert "restartedAt" in str(kubectl.read("sts r")["spec"]["template"]["metadata"]["annotations"])
    kubectl("delete rs,sts r")


@pytest.mark.parametrize(
    "words",
    [
        "label pod a x=y", "annotate pod a x=y", "taint node n1 k=v:NoSchedule", "cordon n1", "delete pod a",
        "delete pods --all", "set image pod/a c=j", "run b --image=i", "create namespace dry", "drain n2 --force",
        "patch pod a --type=merge -p {\"metadata\":{\"labels\":{\"x\":\"y\"}}}",
    ],
)  # fmt: skip
def test_a_dry_run_writes_nothing(kubectl, words):
    kubectl.bare.on_loop(lambda: kubectl.bare.handle(writes.create(pod_manifest("a"))))
    kubectl.bare.on_loop(lambda: kubectl.bare.handle(writes.bind("default", "a", "", "n2")))
    before = kubectl.bare.api.revision
    words = words.replace("c=j", "main=j")
    kubectl(f"{words} --dry-run=server")
    assert kubectl.bare.api.revision == before
