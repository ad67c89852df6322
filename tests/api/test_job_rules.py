"""Jobs on update, and their scheduling block behind its gate."""

from __future__ import annotations

from typing import Any

import pytest
from api_manifests import GONE, Json, errors, job, pairs, spoiled

from muster.api import catalog
from muster.api.gates import FeatureGates

GANG = {"schedulingPolicy": {"gang": {"minCount": 2}}, "schedulingConstraints": {"topology": [{"key": "rack"}]}}
INDEXED = job(parallelism=3, completions=3, completionMode="Indexed", scheduling=GANG)
SUSPENDED = job(suspend=True)


@pytest.mark.parametrize(
    ("old", "path", "value", "expected"),
    [
        (INDEXED, "spec.parallelism", 1, []),
        (INDEXED, "spec.suspend", True, []),
        (INDEXED, "spec.backoffLimit", 9, []),
        (INDEXED, "spec.scheduling.schedulingPolicy.gang.minCount", 1, []),
        (INDEXED, "spec.completions", 5, [("spec.completions", "Invalid")]),
        (INDEXED, "spec.completionMode", "NonIndexed", [("spec.completionMode", "Invalid")]),
        (INDEXED, "spec.managedBy", "example.com/other", [("spec.managedBy", "Invalid")]),
        (INDEXED, "spec.template.spec.containers[0].image", "x", [("spec.template", "Invalid")]),
        (INDEXED, "spec.template.spec.nodeSelector", {"a": "b"}, [("spec.template", "Invalid")]),
        (INDEXED, "spec.scheduling", GONE, [("spec.scheduling", "Invalid")]),
        (INDEXED, "spec.scheduling.schedulingConstraints", {}, [("spec.scheduling.schedulingConstraints", "Invalid")]),
        (INDEXED, "spec.scheduling.schedulingPolicy", {"basic": {}},
         [(f"spec.scheduling.schedulingPolicy.{member}", "Invalid") for member in ("basic", "gang")]),
        (SUSPENDED, "spec.template.spec.nodeSelector", {"a": "b"}, []),
        (SUSPENDED, "spec.template.metadata.labels", {"a": "b"}, []),
        (SUSPENDED, "spec.template.spec.containers[0].image", "x", [("spec.template", "Invalid")]),
        (job(), "spec.scheduling", {}, [("spec.scheduling", "Invalid")]),
    ],
)  # fmt: skip
def test_a_job_changes_only_in_what_is_no_identity(
    old: Json, path: str, value: Any, expected: list[tuple[str, str]]
) -> None:
    assert pairs(errors(spoiled(old, path, value), old)) == expected


def test_an_indexed_job_grows_when_completions_follow_parallelism() -> None:
    larger = spoiled(spoiled(INDEXED, "spec.parallelism", 5), "spec.completions", 5)
    assert errors(larger, INDEXED) == []


def test_a_started_job_keeps_its_template_even_while_it_is_suspended() -> None:
    stored = catalog.JOB.prepare(SUSPENDED, None, FeatureGates())
    stored["status"] = {"startTime": "2026-01-01T00:00:00Z"}
    new = catalog.JOB.prepare(spoiled(SUSPENDED, "spec.template.spec.nodeSelector", {"a": "b"}), stored, FeatureGates())
    assert ("spec.template", "Invalid") in pairs(catalog.JOB.validate(new, stored, FeatureGates()))


def test_the_scheduling_block_is_forbidden_while_its_gate_is_off() -> None:
    gates = FeatureGates.of("GenericWorkload")
    assert pairs(errors(INDEXED, gates=gates)) == [("spec.scheduling", "Forbidden")]


def test_a_gang_may_leave_its_size_to_the_controller() -> None:
    assert errors(job(scheduling={"schedulingPolicy": {"gang": {}}})) == []


def test_all_together_needs_a_gang() -> None:
    both = {"schedulingPolicy": {"gang": {}}, "disruptionMode": {"all": {}}}
    assert errors(job(scheduling=both)) == []
    basic = both | {"schedulingPolicy": {"basic": {}}}
    assert pairs(errors(job(scheduling=basic))) == [("spec.scheduling.disruptionMode", "Invalid")]
