"""What people type wrong: each answer is one message that names the field and the fix, and never a traceback."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from muster.api.gates import FeatureGates
from muster.cli.app import run
from muster.cli.failure import FAILED, USAGE, Failure
from served import Served, serving


class Line(NamedTuple):
    """A wrong command line, its exit code, and words that its answer must have: first the field, then the fix."""

    arguments: str
    code: int
    words: Sequence[str]


class Wrong(NamedTuple):
    """A wrong manifest, and words that the refusal must have: first the field, then the fix."""

    manifest: str
    words: Sequence[str]


LINES = (
    Line("aply -f x.yaml", USAGE, ["aply", "apply"]),
    Line("--verbos", USAGE, ["--verbos"]),
    Line("up --port high", USAGE, ["--port", "integer"]),
    Line("up --port 70000", USAGE, ["--port", "65535"]),
    Line("up --zones 0", USAGE, ["zones", "1"]),
    Line("up --racks -1", USAGE, ["racks", "1"]),
    Line("up --nodes 0", USAGE, ["nodes", "1"]),
    Line("up --gpus -1", USAGE, ["gpus", "0"]),
    Line("up --fleet gone.yaml", USAGE, ["--fleet", "gone.yaml", "no such file"]),
    Line("up --fleet typo.yaml", USAGE, ["--fleet", "typo.yaml:5", 'unknown field "spec.unscheduleable"']),
    Line("up --fleet twice.yaml", USAGE, ["--fleet", "twice.yaml:5", '"n1" already exists']),
    Line("up --fleet pod.yaml", USAGE, ["--fleet", "pod.yaml:1", "kind", "nodes only"]),
    Line("up --fleet pod.yaml --zones 2", USAGE, ["--fleet", "not both"]),
    Line("up --feature-gates GangScheduling=true", USAGE, ["--feature-gates", "GangScheduling", "GenericWorkload"]),
    Line("up --feature-gates GenericWorkloads=true", USAGE, ["--feature-gates", "did you mean 'GenericWorkload'?"]),
    Line("up --feature-gates GenericWorkload", USAGE, ["--feature-gates", "NAME=true"]),
    Line("up --feature-gates GenericWorkload=maybe", USAGE, ["--feature-gates", "NAME=true"]),
    Line("up --feature-gates GenericWorkload=false", USAGE, ["--feature-gates", "GenericWorkload is needed by"]),
    Line("up --feature-gates GenericWorkload=false", USAGE, ["switch off", "CompositePodGroup=false"]),
    Line("up --feature-gates WorkloadWithJob=true,WorkloadWithJob=false", USAGE, ["WorkloadWithJob", "keep one"]),
    Line("up --feature-gates DRAAdminAccess=false", USAGE, ["--feature-gates", "DRAAdminAccess", "locked"]),
    Line("up --profile gone.yaml", USAGE, ["--profile", "gone.yaml", "no such file"]),
    Line("up --kubeconfig pod.yaml", USAGE, ["--kubeconfig", "pod.yaml", "name a new file"]),
    Line("up --kubeconfig empty.d", USAGE, ["--kubeconfig", "empty.d", "name a new file"]),
    Line("up --kubeconfig gone/config", USAGE, ["--kubeconfig", "gone/config", "no directory gone"]),
    Line("apply", USAGE, ["-f", "manifest file"]),
    Line("apply -f gone.yaml", FAILED, ["gone.yaml", "no such file"]),
    Line("apply -f empty.d", FAILED, ["empty.d", ".yaml"]),
    Line("apply -f pod.yaml --server ftp://somewhere", USAGE, ["--server", "http://127.0.0.1:7077"]),
    Line("apply -f pod.yaml --server http://127.0.0.1:x", USAGE, ["--server", "http://127.0.0.1:7077"]),
    Line("apply -f pod.yaml --server http://127.0.0.1:9", FAILED, ["http://127.0.0.1:9", "muster up"]),
    Line("get", USAGE, ["kind"]),
    Line("get podz", USAGE, ["podz", "pods"]),
    Line("get pod/", USAGE, ["pod/", "pod/NAME"]),
    Line("get pod/a b", USAGE, ["pod/a b", "names two objects"]),
    Line("get pods -o wide", USAGE, ["-o wide", "known: table, yaml, json, name"]),
    Line("get job.scheduling.k8s.io/a", USAGE, ["job.scheduling.k8s.io", "known"]),
    Line("apply -f https://example.org/pod.yaml", FAILED, ["https://example.org/pod.yaml", "curl"]),
    Line("get pods a -l app=a", USAGE, ["-l", "leave it or the name out"]),
    Line("get pods a -A", USAGE, ["-A", "-n"]),
    Line("get pods -l app?a", FAILED, ["app?a"]),
    Line("get pod missing", FAILED, ["missing", "not found"]),
    Line("delete", USAGE, ["KIND NAME", "-f FILE"]),
    Line("delete pods", USAGE, ["NAME", "pods"]),
    Line("delete pod a -f pod.yaml", USAGE, ["either", "not both"]),
    Line("delete pod missing", FAILED, ["missing", "not found"]),
    Line("explain training", FAILED, ["no podgroup, job or pod", "training"]),
    Line("explain pod", USAGE, ["name is missing", "pod/NAME"]),
    Line("explain podz/a", USAGE, ["podz", "pods"]),
    Line("explain node/n1", USAGE, ["node/n1", "podgroup"]),
    Line("explain podgroup/missing", FAILED, ["missing", "not found"]),
    Line("explain job/missing", FAILED, ["missing", "not found"]),
    Line("conformance", USAGE, ["PATH"]),
    Line("conformance gone", USAGE, ["gone"]),
    Line("conformance case.d --area gnag", USAGE, ["gnag", "gang"]),
    Line("conformance case.d --needs jobs", USAGE, ["jobs", "job"]),
    Line("conformance case.d --over smoke", USAGE, ["--over", "http"]),
    Line("bench gang-huge", USAGE, ["gang-huge", "gang-large"]),
    Line("bench gang-small --nodes 0", USAGE, ["--nodes", "1"]),
)

GROUP = "apiVersion: scheduling.k8s.io/v1beta1\nkind: PodGroup\nmetadata: {name: g}\n"
POD = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n"
NODE = "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\n"
GOOD = "spec: {containers: [{name: c, image: i}]}"
JOB = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\n"
TEMPLATE = "template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}"

MANIFESTS = (
    Wrong("kind: Pod", ["apiVersion", "missing"]),
    Wrong("apiVersion: v1", ["kind", "missing"]),
    Wrong("apiVersion: v1\nkind: Pud\nmetadata: {name: p}", ["Pud", 'did you mean "Pod"?']),
    Wrong("apiVersion: v1\nkind: PodGroup\nmetadata: {name: g}", ["PodGroup", "scheduling.k8s.io/v1beta1"]),
    Wrong("apiVersion: v1\nkind: Pod", ["metadata", "name"]),
    Wrong("apiVersion: v1\nkind: Pod\nmetadata: {labels: {}}", ["metadata.name", "generateName"]),
    Wrong("apiVersion: v1\nkind: Pod\nmetadata: {name: 7}", ["metadata.name", "quotes"]),
    Wrong("apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: 7}", ["metadata.namespace", "quotes"]),
    Wrong("apiVersion: v1\nkind: Pod\nmetadata: {name: p\n", [":"]),
    Wrong("apiVersion: v1\napiVersion: v1\nkind: Pod", ['"apiVersion"', "keep one"]),
    Wrong("- a\n- b\n", ["a list", "apiVersion, kind and metadata"]),
    Wrong("# nothing\n", ["no object", "apiVersion"]),
    Wrong(POD, ["spec.containers", "Required value"]),
    Wrong(POD + "spec: {containers: []}", ["spec.containers", "Required value"]),
    Wrong(POD + "spec: {containers: [{image: i}]}", ["spec.containers[0].name", "Required value"]),
    Wrong(POD + "spec: {contaners: [{name: c, image: i}]}", ['unknown field "spec.contaners"']),
    Wrong(
        POD + "spec: {containers: [{name: c, image: i, resources: {requests: {cpu: lots}}}]}",
        ["spec.containers[0].resources.requests", "lots"],
    ),
    Wrong(
        POD + "spec: {containers: [{name: c, image: i, resources: {requests: {cpu: '-1'}}}]}",
        ["spec.containers[0].resources.requests[cpu]", "greater than or equal to 0"],
    ),
    Wrong(
        POD + "spec: {containers: [{name: c, image: i, resources: {requests: {nvidia.com/gpu: '1'}}}]}",
        ["spec.containers[0].resources.limits", "must be set"],
    ),
    Wrong(
        POD + "spec: {containers: [{name: c, image: i}, {name: c, image: i}]}",
        ["spec.containers[1].name", "Duplicate value"],
    ),
    Wrong(POD + "spec: {priorityClassName: huge, containers: [{name: c, image: i}]}", ["huge", "PriorityClass"]),
    Wrong(
        POD + "spec: {tolerations: [{key: k, operator: Is}], containers: [{name: c, image: i}]}",
        ["spec.tolerations[0].operator", "Exists"],
    ),
    Wrong(
        POD + "spec: {schedulingGroup: {}, containers: [{name: c, image: i}]}",
        ["spec.schedulingGroup", "must specify exactly one of podGroupName"],
    ),
    Wrong(POD.replace("p}", "Big_Pod}") + GOOD, ["metadata.name", "lower case"]),
    Wrong(POD.replace("p}", "p, labels: {a: 'b c'}}") + GOOD, ["metadata.labels", "must"]),
    Wrong(POD.replace("p}", "p, namespace: nowhere}") + GOOD, ["nowhere", "not found"]),
    Wrong(GROUP + "spec: {}", ["spec.schedulingPolicy", "must specify exactly one of basic, gang"]),
    Wrong(GROUP + "spec: {schedulingPolicy: {basic: {}, gang: {minCount: 1}}}", ["spec.schedulingPolicy", "one of"]),
    Wrong(GROUP + "spec: {schedulingPolicy: {gang: {}}}", ["spec.schedulingPolicy.gang.minCount", "Required value"]),
    Wrong(
        GROUP + "spec: {schedulingPolicy: {gang: {minCount: 0}}}",
        ["spec.schedulingPolicy.gang.minCount", "at least 1"],
    ),
    Wrong(
        GROUP + "spec: {schedulingPolicy: {gang: {minCount: two}}}",
        ["spec.schedulingPolicy.gang.minCount", "integer"],
    ),
    Wrong(
        GROUP + "spec: {schedulingPolicy: {gang: {minMember: 3}}}",
        ['unknown field "spec.schedulingPolicy.gang.minMember"'],
    ),
    Wrong(
        GROUP + "spec: {schedulingPolicy: {basic: {}}, schedulingConstraints: {topology: [{key: a}, {key: b}]}}",
        ["spec.schedulingConstraints.topology", "at most 1"],
    ),
    Wrong(JOB + "spec: {parallelism: -1, " + TEMPLATE + "}", ["spec.parallelism", "greater than or equal to 0"]),
    Wrong(
        JOB + "spec: {template: {spec: {containers: [{name: c, image: i}]}}}",
        ["spec.template.spec.restartPolicy", "Never"],
    ),
    Wrong(JOB + "spec: {completionMode: Sorted, " + TEMPLATE + "}", ["spec.completionMode", "Indexed"]),
    Wrong(
        JOB + "spec: {scheduling: {schedulingPolicy: {gang: {minCount: 0}}}, " + TEMPLATE + "}",
        ["spec.scheduling.schedulingPolicy.gang.minCount", "greater than or equal to 1"],
    ),
    Wrong(
        "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: c}\nvalue: 2000000000",
        ["value", "1000000000"],
    ),
    Wrong(
        "apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: b}\n"
        "spec: {minAvailable: 1, maxUnavailable: 1, selector: {}}",
        ["spec", "minAvailable and maxUnavailable cannot be both set"],
    ),
)


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving() as server:
        yield server


@pytest.fixture
def folder(served: Served, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Where the commands run: a pod manifest, an empty directory, and one case."""
    monkeypatch.setenv("MUSTER_SERVER", served.url)
    monkeypatch.setattr("muster.cli.up.serve", _nothing_to_serve)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pod.yaml").write_text(POD + GOOD)
    (tmp_path / "typo.yaml").write_text(f"{NODE}---\n{NODE.replace('n1', 'n2')}spec: {{unscheduleable: true}}\n")
    (tmp_path / "twice.yaml").write_text(f"{NODE}---\n{NODE}")
    (tmp_path / "empty.d").mkdir()
    (tmp_path / "case.d").mkdir()
    cases = Path(__file__).parents[2] / "conformance" / "cases"
    case = next(cases.rglob("*.yaml"))
    (tmp_path / "case.d" / case.name).write_text(case.read_text())
    return tmp_path


async def _nothing_to_serve(*_: object) -> None:
    """Instead of waiting for a signal that nobody sends, should a wrong command line be taken."""
    raise Failure("the command line was accepted", code=99)


def check(code: int, wanted: int, words: Sequence[str], captured: pytest.CaptureFixture[str]) -> None:
    out, err = captured.readouterr()
    assert code == wanted, err or out
    for word in words:
        assert word in err, f"{word!r} is not in: {err}"
    assert "Traceback" not in err + out


def test_there_are_at_least_forty_of_them() -> None:
    assert len(LINES) + len(MANIFESTS) >= 40


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.arguments)
def test_a_wrong_command_line_is_answered_with_field_and_fix(
    line: Line, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    check(run(line.arguments.split()), line.code, line.words, capsys)


@pytest.mark.parametrize("wrong", MANIFESTS, ids=lambda wrong: wrong.words[0])
def test_a_wrong_manifest_is_answered_with_field_and_fix(
    wrong: Wrong, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "wrong.yaml").write_text(wrong.manifest)
    check(run(["apply", "-f", "wrong.yaml"]), FAILED, wrong.words, capsys)


def test_a_refusal_names_every_wrong_field_at_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "wrong.yaml").write_text(POD + "spec: {containers: [{image: i}], restartPolicy: Sometimes}")
    check(
        run(["apply", "-f", "wrong.yaml"]), FAILED, ["spec.containers[0].name", "spec.restartPolicy", "Always"], capsys
    )


def test_what_was_right_is_done_though_another_document_is_wrong(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = GROUP.replace("name: g", "name: fine") + "spec: {schedulingPolicy: {basic: {}}}"
    (folder / "mixed.yaml").write_text(f"{POD}\n---\n{good}\n")
    assert run(["apply", "-f", "mixed.yaml"]) == FAILED
    out, err = capsys.readouterr()
    assert out.strip() == "podgroup.scheduling.k8s.io/fine created"
    assert "mixed.yaml:1" in err


def test_with_the_gates_off_a_group_is_refused_by_the_gate_that_it_needs(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "group.yaml").write_text(GROUP + "spec: {schedulingPolicy: {basic: {}}}")
    with serving(FeatureGates()) as plain:
        code = run(["apply", "-f", "group.yaml", "--server", plain.url])
    check(code, FAILED, ["podgroups", "feature gate GenericWorkload"], capsys)
