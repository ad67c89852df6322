"""Names and namespaces that are no path segments never reach the server, least of all as a collection."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from muster.api import catalog
from muster.cli.app import run
from muster.cli.failure import FAILED, USAGE
from muster.testing.builders import pod_manifest
from served import Served, serving

NO_SEGMENTS = ("", ".", "..", "a/b", "/", "a%2Fb", "a\nb", "\udcff")
"""What Kubernetes refuses as a segment of a path, and arguments that cannot be printed."""
ODD = ("a b", "é", "a?dryRun=All", "a#b", "a&b", "a;b", "a:b")


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving() as server:
        for name in ("a", "b"):
            assert server.cluster.create(pod_manifest(name)).ok
        yield server


@pytest.fixture(autouse=True)
def here(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUSTER_SERVER", served.url)


def refused(captured: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """Exit code and message of a command line that must fail and print nothing."""
    captured.readouterr()
    code = run(list(arguments))
    out, err = captured.readouterr()
    assert code != 0 and out == "", out
    assert "Traceback" not in err
    return code, err


def pods(captured: pytest.CaptureFixture[str]) -> list[str]:
    captured.readouterr()
    assert run(["get", "pods", "-o", "name"]) == 0
    return captured.readouterr().out.split()


@pytest.mark.parametrize("kind", ["pods", "namespaces"])
@pytest.mark.parametrize("name", NO_SEGMENTS)
def test_a_name_that_is_no_path_segment_is_a_usage_error_and_nothing_is_deleted(
    kind: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said = refused(capsys, "delete", kind, name)
    assert code == USAGE and "NAME" in said
    assert refused(capsys, "delete", kind, "missing", name)[0] == USAGE
    assert refused(capsys, "get", kind, name)[0] == USAGE
    assert refused(capsys, "explain", "pod", name)[0] == USAGE
    assert pods(capsys) == ["pod/a", "pod/b"]


@pytest.mark.parametrize("namespace", NO_SEGMENTS)
def test_a_namespace_that_is_no_path_segment_is_a_usage_error_and_nothing_is_deleted(
    namespace: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "pod.yaml").write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: a}\n")
    for command in (
        ["delete", "pods", "a"],
        ["get", "pods"],
        ["explain", "pod/a"],
        ["explain"],
        ["delete", "-f", str(tmp_path / "pod.yaml")],
        ["apply", "-f", str(tmp_path / "pod.yaml")],
    ):
        code, said = refused(capsys, *command, "-n", namespace)
        assert code == USAGE and "--namespace" in said
    assert pods(capsys) == ["pod/a", "pod/b"]


@pytest.mark.parametrize("name", ODD)
def test_an_odd_name_is_looked_for_as_it_is(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["get", "pod", name], ["delete", "pod", name]):
        code, said = refused(capsys, *command)
        assert code == FAILED and "not found" in said and "cannot reach" not in said
    assert refused(capsys, "get", "pod", "a", "-n", name)[0] == FAILED
    assert "no podgroup, job or pod" in refused(capsys, "explain", name)[1]
    assert pods(capsys) == ["pod/a", "pod/b"]


def test_a_manifest_that_asks_for_a_generated_name_is_not_deleted_by_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "pod.yaml"
    file.write_text("apiVersion: v1\nkind: Pod\nmetadata: {generateName: a-}\n")
    said = refused(capsys, "delete", "-f", str(file))[1]
    assert f"{file}:1: metadata.name: missing" in said and "muster delete pod NAME" in said
    assert pods(capsys) == ["pod/a", "pod/b"]


@pytest.mark.parametrize("name", [name for name in NO_SEGMENTS if name.isprintable() and name])
def test_a_manifest_whose_name_or_namespace_is_no_path_segment_is_refused(
    name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "pod.yaml"
    for field, meta in (("name", f"{{name: '{name}'}}"), ("namespace", f"{{name: a, namespace: '{name}'}}")):
        file.write_text(f"apiVersion: v1\nkind: Pod\nmetadata: {meta}\nspec: {{containers: [{{name: c, image: i}}]}}\n")
        for command in ("apply", "delete"):
            assert f"{file}:1: metadata.{field}: " in refused(capsys, command, "-f", str(file))[1]
    assert pods(capsys) == ["pod/a", "pod/b"]


def test_a_path_is_never_built_from_an_empty_name_or_namespace() -> None:
    with pytest.raises(ValueError, match="empty name"):
        catalog.POD.path("default", "")
    with pytest.raises(ValueError, match="empty namespace"):
        catalog.POD.path("", "a")
    assert catalog.NODE.path("", "n1") == "/api/v1/nodes/n1"
