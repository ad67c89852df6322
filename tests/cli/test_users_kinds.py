"""`muster get`, `apply`, `delete` and `explain` with kinds that users have defined."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from muster.cli.app import run
from served import Served, serving

DEFINITION = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: trainingruns.ml.example.com}
spec:
  group: ml.example.com
  scope: Namespaced
  names: {plural: trainingruns, singular: trainingrun, kind: TrainingRun, shortNames: [tr]}
  versions:
    - name: v1
      served: true
      storage: true
      additionalPrinterColumns:
        - {name: Workers, type: integer, jsonPath: .spec.workers}
        - {name: Hidden, type: string, jsonPath: .spec.note, priority: 1}
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              properties: {workers: {type: integer, minimum: 1}, note: {type: string}}
"""
RUN = """\
apiVersion: ml.example.com/v1
kind: TrainingRun
metadata: {name: one}
spec: {workers: 2}
"""


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving() as server:
        yield server


@pytest.fixture(autouse=True)
def here(served: Served, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MUSTER_SERVER", served.url)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "all.yaml").write_text(f"{DEFINITION}---\n{RUN}")
    (tmp_path / "run.yaml").write_text(RUN.replace("workers: 2", "workers: 3"))


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]):
    """What a command prints; what it complains of, where it fails."""

    def call(line: str, code: int = 0) -> str:
        capsys.readouterr()
        assert run(line.split()) == code, capsys.readouterr().err
        out, err = capsys.readouterr()
        return err if code else out

    return call


def test_a_definition_and_its_first_object_come_in_one_file_and_are_worked_with(said):
    assert said("apply -f all.yaml").splitlines() == [
        "customresourcedefinition.apiextensions.k8s.io/trainingruns.ml.example.com created",
        "trainingrun.ml.example.com/one created",
    ]
    assert said("apply -f run.yaml") == "trainingrun.ml.example.com/one configured\n"
    assert said("apply -f run.yaml") == "trainingrun.ml.example.com/one unchanged\n"
    for word in ("tr", "trainingruns", "TrainingRun", "tr.ml.example.com", "trainingrun"):
        assert [line.split()[:2] for line in said(f"get {word}").splitlines()] == [["NAME", "WORKERS"], ["one", "3"]]
    assert said("get tr one -o name") == "trainingrun.ml.example.com/one\n"
    assert "workers: 3" in said("get tr/one -o yaml")
    assert said("get tr -A").split()[:2] == ["NAMESPACE", "NAME"]
    assert said("get tr -l a=b") == "no trainingruns found\n"
    assert "trainingruns are not scheduled" in said("explain tr/one", 2)
    assert said("delete tr one") == "trainingrun.ml.example.com/one deleted\n"
    assert '"one" not found' in said("get tr one", 1)


def test_a_kind_that_muster_has_no_columns_for_is_shown_as_the_server_shows_it(said, tmp_path):
    spec = (
        "{replicas: 0, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: []}}}"
    )
    spec = spec.replace("[]", "[{name: c, image: i}]")
    (tmp_path / "web.yaml").write_text(
        f"apiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: web}}\nspec: {spec}\n"
    )
    said("apply -f web.yaml")
    head, row = said("get deploy").splitlines()
    assert head.split() == ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"] and row.split()[:2] == ["web", "0/0"]
    assert said("get deploy -A").split()[:2] == ["NAMESPACE", "NAME"]
    assert said("delete deploy web")


def test_a_definition_goes_after_the_objects_of_its_kind_that_are_in_the_same_file(said):
    said("apply -f all.yaml")
    assert said("delete -f all.yaml").splitlines() == [
        "trainingrun.ml.example.com/one deleted",
        "customresourcedefinition.apiextensions.k8s.io/trainingruns.ml.example.com deleted",
    ]


def test_another_version_and_another_group_are_none(said, tmp_path):
    said("apply -f all.yaml")
    (tmp_path / "wrong.yaml").write_text(RUN.replace("com/v1", "com/v2"))
    assert "kind TrainingRun is served as apiVersion ml.example.com/v1" in said("apply -f wrong.yaml", 1)
    (tmp_path / "wrong.yaml").write_text(RUN.replace("TrainingRun", "TrainingRuns"))
    assert 'did you mean "TrainingRun"?' in said("apply -f wrong.yaml", 1)
    assert "unknown resource 'tr.other.example.com'" in said("get tr.other.example.com", 2)
    assert 'did you mean "trainingruns"?' in said("get trainingrum", 2)


def test_without_a_server_a_word_that_nobody_knows_is_still_a_wrong_word(said, monkeypatch):
    monkeypatch.setenv("MUSTER_SERVER", "http://127.0.0.1:9")
    assert 'did you mean "pods"?' in said("get pds", 2)
    assert "cannot reach" in said("get pods", 1)
