"""The commands against a running server, and what they print."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from muster.cli.app import run
from muster.testing.builders import gang_manifests, pod_manifest
from served import Served, serving

EXAMPLES = Path(__file__).parents[2] / "examples"
CASES = Path(__file__).parents[2] / "conformance" / "cases"


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    with serving() as server:
        monkeypatch.setenv("MUSTER_SERVER", server.url)
        yield server


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What the command prints; it must succeed."""
    capsys.readouterr()
    code = run(list(arguments))
    out, err = capsys.readouterr()
    assert code == 0, err
    return out


def column(table: str, title: str) -> list[str]:
    """The cells of one column of a printed table."""
    head, *rows = table.splitlines()
    start = head.index(title)
    return [row[start:].split("  ")[0] for row in rows]


def test_help_loads_nothing_that_is_slow_to_load() -> None:
    """Most commands want the arrays, the solver or the HTTP stack; the help wants none of them."""
    found = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "muster.cli", "--help"], check=True, capture_output=True, text=True
    )
    loaded = {line.rsplit("|", 1)[-1].strip() for line in found.stderr.splitlines()}
    assert "muster.cli.app" in loaded
    assert not loaded & {"numpy", "highspy", "aiohttp", "asyncio", "msgspec", "yaml", "rich", "sqlite3"}


def test_apply_creates_then_leaves_alone_then_merges(
    served: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "group.yaml"
    group = {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "g"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}},
    }
    file.write_text(yaml.safe_dump(group))
    assert said(capsys, "apply", "-f", str(file)) == "podgroup.scheduling.k8s.io/g created\n"
    served.settle()
    assert said(capsys, "apply", "-f", str(file)) == "podgroup.scheduling.k8s.io/g unchanged\n"
    group["spec"]["schedulingPolicy"]["gang"]["minCount"] = 2  # type: ignore[index]
    file.write_text(yaml.safe_dump(group))
    assert said(capsys, "apply", "-f", str(file)) == "podgroup.scheduling.k8s.io/g configured\n"
    assert column(said(capsys, "get", "pg"), "POLICY") == ["gang 2"]


def test_a_gang_runs_and_is_shown_where(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "apply", "-f", str(EXAMPLES / "gang.yaml")).count(" created") == 5
    served.settle()
    pods = said(capsys, "get", "pods")
    nodes = column(pods, "NODE")
    assert len(set(nodes)) == 4 and "-" not in nodes
    assert column(pods, "GROUP") == ["finetune"] * 4
    assert column(said(capsys, "get", "podgroups"), "SCHEDULED") == ["True (Scheduled)"]
    assert said(capsys, "explain", "podgroup/finetune").startswith("PodGroup default/finetune: waits for nothing; 4")
    assert "runs on" in said(capsys, "explain", "pod/finetune-0")
    assert said(capsys, "explain") == "nothing waits\n"


def test_a_gang_that_waits_is_explained_once_for_the_group_its_job_and_its_pods(
    served: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    said(capsys, "apply", "-f", str(EXAMPLES / "job.yaml"))
    served.settle()
    group = said(capsys, "get", "pg", "-o", "name").strip().split("/")[1]
    by_job, by_group = said(capsys, "explain", "job/pretrain"), said(capsys, "explain", f"pg/{group}")
    assert by_job == by_group == said(capsys, "explain") == said(capsys, "explain", "-n", "default")
    assert by_job == said(capsys, "explain", "job", "pretrain") == said(capsys, "explain", "pretrain")
    assert by_job == said(capsys, "explain", f"podgroup.scheduling.k8s.io/{group}")
    assert said(capsys, "explain", "-n", "kube-system") == "nothing waits\n"
    assert "it needs 20 members at once, 16 can be placed, 4 short" in by_job
    assert "lower minCount to 16" in by_job
    pod = said(capsys, "get", "pods", "-o", "name").splitlines()[0]
    assert by_job.splitlines()[0] in said(capsys, "explain", pod)
    assert f"\n  {pod.replace('/', ' ')}: 0/16 nodes are available" in said(capsys, "explain", pod) or (
        f"\n  {pod.replace('/', ' ')}: minCount (20)" in said(capsys, "explain", pod)
    )
    verdict = json.loads(said(capsys, "explain", "job/pretrain", "--json"))
    assert (verdict["verdict"], verdict["minCount"], verdict["placed"]) == ("Unschedulable", 20, 16)


def test_a_lower_minimum_lets_the_job_start_and_keeps_what_runs(
    served: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    said(capsys, "apply", "-f", str(EXAMPLES / "job.yaml"))
    served.settle()
    assert set(column(said(capsys, "get", "pods"), "NODE")) == {"-"}
    said(capsys, "apply", "-f", str(EXAMPLES / "job-smaller.yaml"))
    served.settle()
    nodes = column(said(capsys, "get", "pods", "-l", "app=pretrain"), "NODE")
    assert nodes.count("-") == 4 and len(nodes) == 20


def test_objects_are_printed_as_yaml_json_and_names(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    name = said(capsys, "get", "nodes", "-o", "name").splitlines()[0].removeprefix("node/")
    from_yaml = yaml.safe_load(said(capsys, "get", f"node/{name}", "-o", "yaml"))
    from_json = json.loads(said(capsys, "get", "node", name, "-o", "json"))
    assert from_yaml["metadata"]["uid"] == from_json["metadata"]["uid"]
    assert len(json.loads(said(capsys, "get", "nodes", "-o", "json"))["items"]) == 16


@pytest.mark.parametrize("output", ["yaml", "json"])
def test_what_get_prints_can_be_applied_again(
    output: str, served: Served, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    said(capsys, "apply", "-f", str(EXAMPLES / "gang.yaml"))
    served.settle()
    printed = {kind: said(capsys, "get", kind, "-o", output) for kind in ("pods", "podgroups", "nodes")}
    assert {yaml.safe_load(text)["kind"] for text in printed.values()} == {"List"}
    for kind, text in printed.items():
        file = tmp_path / f"{kind}.{output}"
        file.write_text(text)
        lines = said(capsys, "apply", "-f", str(file)).splitlines()
        assert lines and all(line.endswith(" unchanged") for line in lines)
    assert said(capsys, "delete", "-f", str(tmp_path / f"podgroups.{output}")).endswith("finetune deleted\n")


def test_a_list_as_the_api_answers_it_is_applied_item_by_item(
    served: Served, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    items: list[object] = [{"metadata": {"name": name}} for name in ("a", "b")]
    file = tmp_path / "spaces.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "NamespaceList", "metadata": {}, "items": items}))
    assert said(capsys, "apply", "-f", str(file)) == "namespace/a created\nnamespace/b created\n"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "NamespaceList", "items": [*items, 5]}))
    assert run(["apply", "-f", str(file)]) == 1
    assert "items[2]" in capsys.readouterr().err


def test_all_namespaces_are_shown_with_their_names(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    space: dict[str, Any] = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}
    assert served.cluster.create(space).ok
    said(capsys, "apply", "-f", str(EXAMPLES / "gang.yaml"))
    said(capsys, "apply", "-f", str(EXAMPLES / "gang.yaml"), "-n", "team")
    assert column(said(capsys, "get", "podgroups", "-A"), "NAMESPACE") == ["default", "team"]
    assert said(capsys, "get", "jobs", "-n", "team") == "no jobs found\n"


def test_a_pod_of_another_scheduler_is_said_to_be_that_schedulers(
    served: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    assert served.cluster.create(pod_manifest("theirs", schedulerName="volcano")).ok
    for manifest in gang_manifests("group", 2, schedulerName="volcano"):
        assert served.cluster.create(manifest).ok
    served.settle()
    assert 'belongs to the scheduler "volcano"' in said(capsys, "explain", "pod/theirs")
    assert 'the others belong to the scheduler "volcano"' in said(capsys, "explain", "pg/group")


def test_a_gang_without_enough_pods_to_wait_is_said_to_be_below_its_minimum(
    served: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    said(capsys, "apply", "-f", str(EXAMPLES / "gang.yaml"))
    served.settle()
    said(capsys, "delete", "pods", "finetune-0")
    assert "3 of its pods have a node, below its minimum of 4" in said(capsys, "explain", "finetune")


def test_several_names_are_printed_together_and_in_their_order(
    served: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    said(capsys, "apply", "-f", str(EXAMPLES / "gang.yaml"))
    assert column(said(capsys, "get", "pods", "finetune-2", "finetune-0"), "NAME") == ["finetune-2", "finetune-0"]
    both = json.loads(said(capsys, "get", "pods", "finetune-2", "finetune-0", "-o", "json"))
    assert (both["kind"], len(both["items"])) == ("List", 2)


def test_what_get_prints_as_a_name_is_taken_as_one(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    said(capsys, "apply", "-f", str(EXAMPLES / "gang.yaml"))
    name = said(capsys, "get", "pg", "-o", "name").strip()
    assert name == "podgroup.scheduling.k8s.io/finetune"
    assert column(said(capsys, "get", name), "NAME") == ["finetune"]
    assert said(capsys, "delete", name) == f"{name} deleted\n"
    assert column(said(capsys, "get", name), "SCHEDULED") == ["Terminating"]


def test_counts_of_nothing_are_zero_and_namespaces_are_as_old_as_the_server(
    served: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    said(capsys, "apply", "-f", str(EXAMPLES / "job.yaml"))
    served.settle()
    assert column(said(capsys, "get", "jobs"), "FAILED") == ["0"]
    ages = column(said(capsys, "get", "ns"), "AGE")
    assert all(age.endswith("s") and int(age[:-1]) < 60 for age in ages)


def test_events_are_shown_with_the_latest_last(capsys: pytest.CaptureFixture[str], served: Served) -> None:
    for name, seen in (("a", "2026-01-01T00:00:02Z"), ("b", "2026-01-01T00:00:01Z")):
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": "default"},
            "involvedObject": {"kind": "Pod", "name": name, "namespace": "default"},
            "lastTimestamp": seen,
        }
        assert served.cluster.create(event).ok
    table = said(capsys, "get", "events")
    assert column(table, "ABOUT") == ["Pod/b", "Pod/a"]
    assert all(seen.endswith("d") for seen in column(table, "SEEN"))


def test_delete_takes_names_and_files(served: Served, capsys: pytest.CaptureFixture[str]) -> None:
    said(capsys, "apply", "-f", str(EXAMPLES / "gang.yaml"))
    served.settle()
    assert (
        said(capsys, "delete", "pods", "finetune-0", "finetune-1") == "pod/finetune-0 deleted\npod/finetune-1 deleted\n"
    )
    said(capsys, "delete", "pg/finetune")
    said(capsys, "apply", "-f", str(EXAMPLES / "job.yaml"))
    served.settle()
    assert said(capsys, "delete", "-f", str(EXAMPLES / "job.yaml")) == "job.batch/pretrain deleted\n"
    served.settle()
    assert said(capsys, "get", "pods", "-l", "app=pretrain") == "no pods found\n"


def test_manifests_come_from_standard_input_and_lists(
    served: Served, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import io

    items = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in ("a", "b")]
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps({"apiVersion": "v1", "kind": "List", "items": items})))
    assert said(capsys, "apply", "-f", "-") == "namespace/a created\nnamespace/b created\n"


def test_conformance_prints_a_line_per_case_and_counts(capsys: pytest.CaptureFixture[str]) -> None:
    case = sorted((CASES / "gang").glob("gang-waits-for-quorum.yaml"))[0]
    lines = said(capsys, "conformance", str(case)).splitlines()
    assert lines[0].startswith("passed") and lines[0].endswith("gang/gang-waits-for-quorum") and " ms " in lines[0]
    assert lines[1:] == ["1 passed, 0 failed, 0 skipped"]
    told = json.loads(said(capsys, "conformance", str(case), "--json"))
    assert (told["passed"], told["cases"][0]["area"]) == (1, "gang")


def test_a_case_that_fails_makes_conformance_fail(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (CASES / "gang" / "gang-waits-for-quorum.yaml").read_text()
    content = yaml.safe_load(text)
    content["name"] = "wrong"
    content["steps"].append({"expect": {"boundCount": {"no-such-group": 1}}})
    (tmp_path / "wrong.yaml").write_text(yaml.safe_dump(content))
    assert run(["conformance", str(tmp_path / "wrong.yaml")]) == 1
    assert "0 passed, 1 failed, 0 skipped" in capsys.readouterr().out


def test_the_version_is_that_of_the_distribution(capsys: pytest.CaptureFixture[str]) -> None:
    assert said(capsys, "version").startswith("muster 0.")
