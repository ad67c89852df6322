"""`muster build`: objects that can be applied, reasons, and errors at the line that caused them."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
import yaml

from muster.cli.app import run

EXAMPLES = Path(__file__).parents[2] / "examples"
WRONG = """\
# a comment before it
apiVersion: v1
kind: ConfigMap
metadata: {name: x}
---
apiVersion: ray.io/v1
kind: RayCluster
metadata:
  name: upside
  annotations:
    muster.dev/min-count: "many"
spec:
  headGroupSpec: {template: {}}
  workerGroupSpecs:
  - groupName: w
    minReplicas: 5
    maxReplicas: 2
"""


def said(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> tuple[str, str]:
    assert run(["build", *arguments]) == code
    found = capsys.readouterr()
    return found.out, found.err


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("job", ["Workload", "PodGroup"]),
        ("frameworks/jobset", ["Workload", "CompositePodGroup", "PodGroup", "PodGroup"]),
        ("frameworks/vllm", ["Workload", "PodGroup", "PodGroup"]),
        ("frameworks/raycluster", ["Workload", "CompositePodGroup", "PodGroup", "PodGroup", "PodGroup"]),
        ("frameworks/trainjob", ["Workload", "PodGroup"]),
    ],
)
def test_every_example_is_built(name: str, kinds: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    out, err = said(capsys, "-f", str(EXAMPLES / f"{name}.yaml"))
    assert [each["kind"] for each in yaml.safe_load_all(out)] == kinds
    assert not err
    out, _ = said(capsys, "-f", str(EXAMPLES / f"{name}.yaml"), "-o", "json")
    assert [each["kind"] for each in json.loads(out)["items"]] == kinds


def test_errors_point_at_line_and_field(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text(WRONG)
    out, err = said(capsys, "-f", str(file), code=1)
    assert not out
    assert sorted(line.split(": ")[1:3] for line in err.splitlines()) == [
        [f"{file}:11", "metadata.annotations[muster.dev/min-count]"],
        [f"{file}:16", "spec.workerGroupSpecs[0].minReplicas"],
    ]


def test_a_list_from_standard_input_has_lines_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"parallelism": "two"}}
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [job]}, indent=1)
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    _, err = said(capsys, "-f", "-", code=1)
    line = next(number for number, each in enumerate(text.splitlines(), 1) if "two" in each)
    assert f"standard input:{line}: items[0].spec.parallelism" in err


def test_reasons_are_comments_so_that_the_output_can_be_applied(capsys: pytest.CaptureFixture[str]) -> None:
    file = str(EXAMPLES / "frameworks" / "jobset.yaml")
    plain, _ = said(capsys, "-f", file)
    out, _ = said(capsys, "-f", file, "--explain")
    assert list(yaml.safe_load_all(out)) == list(yaml.safe_load_all(plain))
    assert "# all 2 jobs start together, or none does" in out
    assert "no uid yet" in out
    assert '"jobset.sigs.k8s.io/replicatedjob-name": "actor"' in out
    listed, reasons = said(capsys, "-f", file, "--explain", "-o", "json")
    assert len(json.loads(listed)["items"]) == 4
    assert "all 2 jobs start together, or none does" in reasons


def test_why_there_is_nothing_is_said_without_asking(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "web.yaml"
    file.write_text("{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {}}")
    out, _ = said(capsys, "-f", str(file))
    assert list(yaml.safe_load_all(out)) in ([], [None])
    assert "Deployment web: no groups: it asks for none" in out


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{apiVersion: v1, kind: Pod, metadata: {name: p}}", ["supported kinds", "JobSet"]),
        ("[1, 2]", ["apiVersion"]),
        ("{apiVersion: batch/v1, kind: Job, metadata: [x], spec: {}}", ["metadata", "must be a mapping"]),
        ("{apiVersion: batch/v1, kind: Job, metadata: {name: 5}, spec: {}}", ["metadata.name", "must be text"]),
        ("{apiVersion: batch/v1, kind: Job, metadata: {name: j}}", ["spec", "Required"]),
        ("{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {template: []}}", ["spec.template"]),
        ("a: [", ["wrong.yaml"]),
    ],
)
def test_what_cannot_be_built_is_told_in_one_message(
    text: str, words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text(text)
    out, err = said(capsys, "-f", str(file), code=1)
    assert not out
    assert all(word in err for word in words), err


def test_a_wrong_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert "-f FILE is missing" in said(capsys, code=2)[1]
    assert "neither yaml nor json" in said(capsys, "-f", "x", "-o", "text", code=2)[1]
    assert "no such file" in said(capsys, "-f", "gone.yaml", code=1)[1]
