"""What a case does is done, and what goes otherwise than it says is reported with the number of its step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from muster.api import writes
from muster.api.instant import MINUTE, SECOND
from muster.conformance.cases import Case, CaseError
from muster.conformance.drivers import SimDriver
from muster.conformance.run import run_case
from muster.conformance.steps import Run, Unmet, duration, errors_of, same_errors

GANG = {"podgroup": "g", "gang": 2}


def play(*steps: tuple[str, Any], gates: tuple[str, ...] = ("GenericWorkload",)) -> SimDriver:
    case = Case(Path("case.yaml"), "case", "gang", "about", gates=gates, steps=steps)
    driver = SimDriver(case, lambda: 0.0)
    Run(case, driver).steps()
    return driver


def test_created_objects_are_a_second_apart() -> None:
    driver = play(("create", [{"nodes": "n", "count": 3}]))
    stamps = [node["metadata"]["creationTimestamp"] for node in driver.call(writes.list_all("nodes")).body["items"]]
    assert stamps == ["2026-01-01T00:00:01Z", "2026-01-01T00:00:02Z", "2026-01-01T00:00:03Z"]


def test_namespaces_that_are_only_named_are_made() -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "elsewhere"},
        "spec": {"containers": [{"name": "c", "image": "pause"}]},
    }
    play(("create", [pod]), ("expect", {"unbound": ["elsewhere/p"]}))


def test_a_budget_in_short_form_comes_with_its_status() -> None:
    driver = play(
        (
            "create",
            [{"node": "n1", "cpu": "4"}, {"pods": "p", "count": 3, "cpu": "1", "labels": {"app": "a"}, "node": "n1"}],
        ),
        ("create", [{"pdb": "b", "selector": {"app": "a"}, "minAvailable": 2}]),
    )
    status = driver.call(writes.get("poddisruptionbudgets", "default", "b")).body["status"]
    assert (status["currentHealthy"], status["desiredHealthy"], status["disruptionsAllowed"]) == (3, 2, 1)


def test_pods_are_deleted_by_number_and_nodes_by_name() -> None:
    play(
        ("create", [{"node": "n1", "cpu": "4"}, {"pods": "p", "count": 3, "cpu": "1"}]),
        ("expect", {"bound": ["p1", "p2", "p3"]}),
        ("delete", [{"pods": "p", "count": 2, "start": 2}, {"node": "n1"}]),
        ("expect", {"match": [{"kind": "Pod", "name": "p2", "absent": True}]}),
    )


def test_status_goes_to_the_subresource() -> None:
    play(
        ("create", [{"node": "n1", "cpu": "1"}, {"pod": "p", "cpu": "1"}]),
        ("status", [{"kind": "Pod", "name": "p", "merge": {"status": {"phase": "Succeeded"}}}]),
        ("expect", {"match": [{"kind": "Pod", "name": "p", "subset": {"status": {"phase": "Succeeded"}}}]}),
    )


def test_nothing_is_decided_between_pause_and_resume() -> None:
    play(
        ("create", [{"node": "n1", "cpu": "2"}, GANG]),
        ("pause", "scheduler"),
        ("create", [{"pods": "p", "count": 2, "group": "g", "cpu": "1"}]),
        ("advance", "1m"),
        ("expect", {"unbound": ["p1", "p2"]}),
        ("resume", "scheduler"),
        ("expect", {"bound": ["p1", "p2"]}),
    )


UNMET = {
    "step 1: creating Node bad name! was refused": (("create", [{"node": "bad name!"}]),),
    "step 1: deleting Pod p was refused: 404": (("delete", [{"kind": "Pod", "name": "p"}]),),
    "step 2: patching PodGroup g was refused": (
        ("create", [GANG]),
        ("patch", [{"kind": "PodGroup", "name": "g", "merge": {"spec": {"priority": 7}}}]),
    ),
    "step 2: bound: p is not bound": (("create", [{"pod": "p"}]), ("expect", {"bound": ["p"]})),
    "step 1: Node n was accepted": (
        ("reject", {"object": {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}}),
    ),
    "was refused with": (
        (
            "reject",
            {
                "object": {
                    "apiVersion": "scheduling.k8s.io/v1beta1",
                    "kind": "PodGroup",
                    "metadata": {"name": "g"},
                    "spec": {"schedulingPolicy": {}},
                },
                "errors": [{"field": "spec.elsewhere", "type": "Invalid"}],
            },
        ),
    ),
}


@pytest.mark.parametrize("sentence", UNMET)
def test_what_does_not_happen_is_reported(sentence: str) -> None:
    with pytest.raises(Unmet) as unmet:
        play(*UNMET[sentence])
    assert sentence in unmet.value.args[0]


MISTAKES = {
    "no kind 'Pot'": (("create", [{"apiVersion": "v1", "kind": "Pot", "metadata": {"name": "p"}}]),),
    "a duration is a number with ms, s, m or h such as 30s, not 30": (("advance", 30),),
    "want scheduler, not 'kubelet'": (("restart", "kubelet"),),
    "want hold or finish, not 'later'": (("termination", "later"),),
    "refuse wants {bind: [pods]}": (("refuse", {"bind": "m3"}),),
    "reject wants exactly one of object and patch": (("reject", {"errors": []}),),
    "a patch needs merge": (("patch", [{"kind": "Pod", "name": "p"}]),),
    "delete wants kind and name": (("delete", [{"poods": "p"}]),),
    "want a mapping, not 'p1'": (("delete", ["p1"]),),
    "expect wants a mapping": (("expect", ["bound"]),),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_step_that_cannot_be_understood_is_a_mistake_of_the_case(mistake: str) -> None:
    with pytest.raises(CaseError) as error:
        play(*MISTAKES[mistake])
    assert str(error.value).startswith("case.yaml: step 1 (") and mistake in str(error.value)


def test_a_crash_fails_the_case_and_not_the_run() -> None:
    case = Case(Path("case.yaml"), "case", "gang", "about", steps=(("advance", "1s"),))

    def broken() -> SimDriver:
        raise ZeroDivisionError("boom")

    result = run_case(case, broken)
    assert result.failed and "crashed: ZeroDivisionError: boom" in result.sentences[0]


def test_durations() -> None:
    assert [duration(text) for text in ("200ms", "30s", "5m", "1h")] == [200_000, 30 * SECOND, 5 * MINUTE, 60 * MINUTE]


def test_errors_of_a_status_are_its_causes_or_its_reason() -> None:
    causes = [{"field": "spec.a", "reason": "FieldValueRequired", "message": "give it"}]
    assert errors_of({"details": {"causes": causes}}) == [{"field": "spec.a", "type": "Required", "message": "give it"}]
    assert errors_of({"reason": "Forbidden", "message": "no"}) == [{"field": "", "type": "Forbidden", "message": "no"}]


def test_errors_are_compared_as_a_whole_and_in_any_order() -> None:
    one = {"field": "a", "type": "Required", "message": "the first"}
    two = {"field": "b", "type": "Invalid", "message": "the second"}
    assert same_errors([one, two], [{"field": "b", "type": "Invalid"}, {"field": "a", "type": "Required"}])
    assert same_errors([one], [{"field": "a", "type": "Required", "message": "first"}])
    assert not same_errors([one, two], [{"field": "a", "type": "Required"}])
    assert not same_errors([one], [{"field": "a", "type": "Required", "message": "second"}])
    assert not same_errors([one], [{"field": "a", "type": "Required"}, {"field": "a", "type": "Required"}])
