"""Every adapter on realistic manifests: which groups come of them, of which pods, and what is wrong with wrong ones."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from muster.api import writes
from muster.api.gates import WORKLOAD_AWARE, FeatureGates
from muster.api.instant import SECOND
from muster.apiserver.server import ApiServer
from muster.workloadbuilder.adapters.known import ADAPTERS, Changes, adapter_of, changes, compile_manifest
from muster.workloadbuilder.adapters.view import Compiled, Made

CASES = list(yaml.safe_load_all(Path(__file__).with_name("golden.yaml").read_text()))


def compiled(case: dict[str, Any]) -> Compiled:
    objects = case["objects"]
    [subject] = [each for each in objects if adapter_of(each)]
    return compile_manifest(subject, objects)


def told(made: Made, by_name: dict[str, Made]) -> str:
    """A group in the words of the golden cases."""
    spec = made.body["spec"]
    text = spec["workloadRef"]["templateName"]
    if made.pods is not None:
        values = list(made.pods.get("matchLabels", {}).values())
        values += [f"!{value}" for each in made.pods.get("matchExpressions", ()) for value in each["values"]]
        text += f"{{{','.join(values)}}}"
    if parent := spec.get("parentCompositePodGroupName"):
        text += f" < {by_name[parent].body['spec']['workloadRef']['templateName']}"
    [(policy, inside)] = spec["schedulingPolicy"].items()
    text += f": {policy}" + "".join(f" {count}" for count in inside.values())
    for constraint in spec.get("schedulingConstraints", {}).get("topology", ()):
        text += f" @{constraint['key']}"
    return text + (" all" if "all" in spec.get("disruptionMode", {}) else "")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["about"])
def test_case(case: dict[str, Any]) -> None:
    before = deepcopy(case)
    result = compiled(case)
    assert case == before, "the input is not changed"
    assert sorted(error.field for error in result.errors) == case.get("errors", [])
    by_name = {made.body["metadata"]["name"]: made for made in result.made}
    assert [told(made, by_name) for made in result.made[1:]] == case.get("groups", [])
    assert case.get("nothing", "") in result.nothing
    assert bool(result.nothing) == ("nothing" in case)
    assert len(by_name) == len(result.made), "every name is another one"


@pytest.mark.parametrize("case", [case for case in CASES if "groups" in case], ids=lambda case: case["about"])
def test_a_server_takes_everything_that_is_made(case: dict[str, Any]) -> None:
    uids = iter(range(1000))
    server = ApiServer(
        FeatureGates.of(*WORKLOAD_AWARE), new_uid=lambda: f"uid-{next(uids):08}", priority_admission=False
    )
    for body in compiled(case).objects:
        answer = server.handle(writes.create(body), SECOND)
        assert answer.status == 201, (answer.body, body)


def test_every_adapter_has_a_right_and_a_wrong_case() -> None:
    def kinds(what: str) -> set[str]:
        return {each["kind"] for case in CASES if what in case for each in case["objects"] if adapter_of(each)}

    assert kinds("groups") == {kind for _, kind in ADAPTERS}
    assert kinds("errors") == {kind for _, kind in ADAPTERS}


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of everything below a value."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for key, each in entries for found in ((*path, key), *places(each, (*path, key)))]


@pytest.mark.parametrize("case", [case for case in CASES if "groups" in case], ids=lambda case: case["about"])
def test_whatever_stands_in_a_field_is_an_error_and_no_exception(case: dict[str, Any]) -> None:
    for path in places(case["objects"]):
        if path[1:] in ((), ("apiVersion",), ("kind",)):
            continue
        for wrong in ("x y", 5, -1, 0, True, None, [], [None], {}, {"a": None}):
            changed = deepcopy(case["objects"])
            inner = changed
            for step in path[:-1]:
                inner = inner[step]
            inner[path[-1]] = wrong
            result = compiled({"objects": changed})
            assert all(error.message or error.type == "Required" for error in result.errors), (path, wrong)


# --- what follows from a change

LWS: dict[str, Any] = next(case for case in CASES if case["about"].startswith("vLLM"))["objects"][0]
RAY: dict[str, Any] = next(case for case in CASES if "4 to 10" in case["about"])["objects"][0]
JOBSET: dict[str, Any] = next(case for case in CASES if "two roles" in case["about"])["objects"][0]


def change(old: dict[str, Any], **spec: Any) -> Changes:
    new = {**old, "spec": {**old["spec"], **spec}}
    return changes(compile_manifest(old), compile_manifest(new))


def test_more_replicas_are_more_groups_and_nothing_else() -> None:
    found = change(LWS, replicas=4)
    assert [len(each) for each in found] == [2, 0, 0, 0]


def test_fewer_replicas_are_fewer_groups() -> None:
    found = change(LWS, replicas=1)
    assert [len(each) for each in found] == [0, 0, 0, 1]


def test_another_minimum_is_an_update_of_the_group_and_its_workload() -> None:
    workers = deepcopy(RAY["spec"]["workerGroupSpecs"])
    workers[0]["minReplicas"] = 5
    found = change(RAY, workerGroupSpecs=workers)
    assert [each["kind"] for each in found.updated] == ["Workload", "PodGroup"]
    assert not found.created and not found.replaced and not found.deleted


def test_another_worker_group_changes_what_cannot_be_changed() -> None:
    workers = [*RAY["spec"]["workerGroupSpecs"], {"groupName": "more", "minReplicas": 1, "template": {}}]
    found = change(RAY, workerGroupSpecs=workers)
    assert [each["kind"] for each in found.replaced] == ["Workload", "CompositePodGroup"]
    assert [each["kind"] for each in found.created] == ["PodGroup"]


def test_suspending_removes_the_children_first_and_resuming_brings_all_back() -> None:
    suspended = change(JOBSET, suspend=True)
    kinds = ["PodGroup", "PodGroup", "CompositePodGroup", "Workload"]
    assert [each["kind"] for each in suspended.deleted] == kinds
    resumed = changes(
        compile_manifest({**JOBSET, "spec": {**JOBSET["spec"], "suspend": True}}), compile_manifest(JOBSET)
    )
    assert [each["kind"] for each in resumed.created] == kinds[::-1]


def test_a_restart_changes_nothing_and_completion_removes_all() -> None:
    restarted = changes(compile_manifest(JOBSET), compile_manifest({**JOBSET, "status": {"restarts": 1}}))
    assert not any(restarted)
    ended = changes(compile_manifest(JOBSET), compile_manifest({**JOBSET, "status": {"terminalState": "Failed"}}))
    assert len(ended.deleted) == 4


def test_a_change_to_something_wrong_does_nothing() -> None:
    assert not any(change(LWS, replicas=-1))


def test_a_kind_that_nobody_knows_is_a_key_error() -> None:
    with pytest.raises(KeyError, match="Pod"):
        compile_manifest({"apiVersion": "v1", "kind": "Pod"})


def test_a_role_called_like_a_numbered_one_has_another_group() -> None:
    def job(name: str, replicas: int) -> dict[str, Any]:
        return {"name": name, "replicas": replicas, "template": {"spec": {"template": {}}}}

    jobs = [job("a", 2), job("a-0", 1)]
    made = compile_manifest({**JOBSET, "spec": {"replicatedJobs": jobs}}).objects
    assert len({each["metadata"]["name"] for each in made}) == 5


def test_a_job_that_delegates_has_a_group_of_its_controllers_workload_and_no_workload_of_its_own() -> None:
    case = deepcopy(next(case for case in CASES if case["about"] == "a Job that delegates has a wrong template"))
    annotations = case["objects"][1]["metadata"]["annotations"]
    annotations["scheduling.k8s.io/group-template-name"] = "step"
    annotations["scheduling.k8s.io/parent-composite-podgroup"] = "whole"
    [group] = compiled(case).objects
    assert group["spec"]["workloadRef"] == {"workloadName": "pipeline-wl", "templateName": "step"}
    assert group["spec"]["schedulingPolicy"] == {"gang": {"minCount": 2}}
    assert group["spec"]["parentCompositePodGroupName"] == "whole"
    assert group["metadata"]["ownerReferences"][0]["name"] == "step-1"
