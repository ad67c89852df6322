"""Workloads and groups: what the conformance cases leave open."""

from __future__ import annotations

import pytest
from api_manifests import ALL, GONE, Json, composite, errors, inner, leaf, pairs, pod_group, spoiled, workload
from hypothesis import given
from hypothesis import strategies as st

from muster.api import catalog
from muster.api.gates import FeatureGates

GANGS_ONLY = FeatureGates.of("GenericWorkload")


def chain(composites: int, bottom: list[Json]) -> Json:
    """That many composite templates one in another, the last one with `bottom` as leaves."""
    made = inner(f"c{composites}", *bottom)
    for i in reversed(range(1, composites)):
        made = inner(f"c{i}", children=[made])
    return workload(compositePodGroupTemplates=[made])


def test_three_composites_and_a_leaf_are_as_deep_as_a_tree_may_be() -> None:
    assert errors(chain(3, [leaf("a")])) == []
    assert pairs(errors(chain(4, [leaf("a")]))) == [("spec.compositePodGroupTemplates[0]", "Invalid")]


def test_a_tree_of_absurd_depth_is_refused_and_not_walked() -> None:
    assert errors(chain(60, [leaf("a")]))


def test_the_root_that_is_too_deep_is_the_one_reported() -> None:
    deep, flat = chain(4, [leaf("a")])["spec"]["compositePodGroupTemplates"][0], inner("r", leaf("b"))
    assert pairs(errors(workload(compositePodGroupTemplates=[flat, deep]))) == [
        ("spec.compositePodGroupTemplates[1]", "Invalid")
    ]


def test_nine_inner_templates_are_too_many_too() -> None:
    tree = workload(compositePodGroupTemplates=[inner("r", *(leaf(f"l{i}") for i in range(9)))])
    assert pairs(errors(tree)) == [("spec.compositePodGroupTemplates[0].podGroupTemplates", "TooMany")]


@pytest.mark.parametrize("manifest", [workload(podGroupTemplates=[leaf("a")]), pod_group(), composite()])
def test_priorities_down_to_the_least_32_bit_number_pass(manifest: Json) -> None:
    where = "spec.podGroupTemplates[0].priority" if manifest["kind"] == "Workload" else "spec.priority"
    assert errors(spoiled(manifest, where, -(1 << 31))) == []


# --- update of a Workload ----------------------------------------------------------------------------------------

FLAT = workload(
    controllerRef={"apiGroup": "batch", "kind": "Job", "name": "j"},
    podGroupTemplates=[leaf("a", resourceClaims=[{"name": "c", "resourceClaimName": "x"}]), leaf("b")],
)
TREE = workload(compositePodGroupTemplates=[inner("r", leaf("a"), children=[inner("s", leaf("b"))])])
INNER = "spec.compositePodGroupTemplates[0].compositePodGroupTemplates[0]"


def test_reordered_templates_are_no_change() -> None:
    turned = spoiled(FLAT, "spec.podGroupTemplates", FLAT["spec"]["podGroupTemplates"][::-1])
    assert errors(turned, FLAT) == []


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("spec.controllerRef", GONE, [("spec.controllerRef", "Invalid")]),
        ("spec.controllerRef.name", "k", [("spec.controllerRef", "Invalid")]),
        ("spec.podGroupTemplates[0].resourceClaims[0].resourceClaimName", "y",
         [("spec.podGroupTemplates[0].resourceClaims", "Invalid")]),
        ("spec.podGroupTemplates[1].schedulingPolicy.gang.minCount", 9, []),
        ("metadata.labels", {"a": "b"}, []),
        ("metadata.finalizers", ["example.com/keep"], []),
    ],
)  # fmt: skip
def test_of_a_flat_workload_only_sizes_and_metadata_change(
    path: str, value: object, expected: list[tuple[str, str]]
) -> None:
    assert pairs(errors(spoiled(FLAT, path, value), FLAT)) == expected


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        (f"{INNER}.podGroupTemplates[0].schedulingPolicy.gang.minCount", 9, []),
        (f"{INNER}.schedulingPolicy.gang.minGroupCount", 2, [(f"{INNER}.schedulingPolicy", "Invalid")]),
        (f"{INNER}.disruptionMode", {"all": {}}, [(f"{INNER}.disruptionMode", "Invalid")]),
        (f"{INNER}.podGroupTemplates", [leaf("b"), leaf("z")], [(f"{INNER}.podGroupTemplates[1]", "Forbidden")]),
        (f"{INNER}.podGroupTemplates", [leaf("z")],
         [(f"{INNER}.podGroupTemplates[0]", "Forbidden"), (f"{INNER}.podGroupTemplates", "Forbidden")]),
        (f"{INNER}.podGroupTemplates[0].schedulingPolicy", {"basic": {}},
         [(f"{INNER}.podGroupTemplates[0].schedulingPolicy.{member}", "Invalid") for member in ("basic", "gang")]),
    ],
)  # fmt: skip
def test_the_rules_of_updates_hold_at_every_level_of_a_tree(
    path: str, value: object, expected: list[tuple[str, str]]
) -> None:
    assert pairs(errors(spoiled(TREE, path, value), TREE)) == expected


# --- update of groups --------------------------------------------------------------------------------------------

FULL = {
    "parentCompositePodGroupName": "p",
    "workloadRef": {"workloadName": "w", "templateName": "t"},
    "schedulingConstraints": {"topology": [{"key": "rack"}]},
    "disruptionMode": {"all": {}},
    "priorityClassName": "high",
    "priority": 5,
    "preemptionPolicy": "Never",
}
CHANGED = {
    "parentCompositePodGroupName": "q",
    "workloadRef": {"workloadName": "w", "templateName": "u"},
    "schedulingConstraints": {"topology": []},
    "disruptionMode": {"single": {}},
    "priorityClassName": "low",
    "priority": 6,
    "preemptionPolicy": "PreemptLowerPriority",
}


@pytest.mark.parametrize("build", [pod_group, composite])
@pytest.mark.parametrize("field", FULL)
def test_every_field_of_a_group_is_fixed(build: object, field: str) -> None:
    group = build(**FULL)  # type: ignore[operator]
    assert errors(group) == []
    assert pairs(errors(spoiled(group, f"spec.{field}", CHANGED[field]), group)) == [(f"spec.{field}", "Invalid")]


def test_the_claims_of_a_group_are_fixed() -> None:
    group = pod_group(resourceClaims=[{"name": "c", "resourceClaimName": "x"}])
    assert pairs(errors(spoiled(group, "spec.resourceClaims", []), group)) == [("spec.resourceClaims", "Invalid")]


@given(st.integers(1, (1 << 31) - 1), st.integers(1, (1 << 31) - 1))
def test_a_gang_may_change_its_size_both_ways(before: int, after: int) -> None:
    old, new = (pod_group(schedulingPolicy={"gang": {"minCount": size}}) for size in (before, after))
    assert errors(new, old) == []


# --- gates -------------------------------------------------------------------------------------------------------


def test_what_was_stored_while_a_gate_was_on_may_stay_when_it_is_off() -> None:
    group = pod_group(**FULL, resourceClaims=[{"name": "c", "resourceClaimName": "x"}])
    kind = catalog.POD_GROUP
    stored = kind.prepare(group, None, ALL)
    relabelled = kind.prepare(spoiled(group, "metadata.labels", {"a": "b"}), stored, GANGS_ONLY)
    assert kind.validate(relabelled, stored, GANGS_ONLY) == []
    assert relabelled["spec"]["resourceClaims"] == group["spec"]["resourceClaims"]


def test_claims_are_dropped_and_other_fields_refused_while_their_gates_are_off() -> None:
    group = pod_group(**FULL, resourceClaims=[{"name": "c", "resourceClaimName": "x"}])
    prepared = catalog.POD_GROUP.prepare(group, None, GANGS_ONLY)
    assert "resourceClaims" not in prepared["spec"]
    assert set(pairs(catalog.POD_GROUP.validate(prepared, None, GANGS_ONLY))) == {
        ("spec.parentCompositePodGroupName", "Forbidden"),
        ("spec.schedulingConstraints", "Forbidden"),
        ("spec.preemptionPolicy", "Forbidden"),
    }


def test_claims_of_templates_are_dropped_at_every_level_but_for_those_that_are_stored() -> None:
    claims = [{"name": "c", "resourceClaimName": "x"}]
    tree = workload(
        compositePodGroupTemplates=[inner("r", leaf("a", resourceClaims=claims), leaf("b", resourceClaims=claims))]
    )
    leaves = ("compositePodGroupTemplates", "podGroupTemplates")

    def with_claims(made: Json) -> list[str]:
        return [entry["name"] for entry in made["spec"][leaves[0]][0][leaves[1]] if "resourceClaims" in entry]

    stored = spoiled(tree, f"spec.{leaves[0]}[0].{leaves[1]}[1].resourceClaims", GONE)
    assert with_claims(catalog.WORKLOAD.prepare(tree, None, ALL)) == ["a", "b"]
    assert with_claims(catalog.WORKLOAD.prepare(tree, None, GANGS_ONLY)) == []
    assert with_claims(catalog.WORKLOAD.prepare(tree, stored, GANGS_ONLY)) == ["a"]


def test_claim_statuses_have_different_names() -> None:
    group = pod_group(resourceClaims=[{"name": "c", "resourceClaimName": "x"}])
    twice = group | {"status": {"resourceClaimStatuses": [{"name": "c"}, {"name": "c"}]}}
    assert pairs(catalog.POD_GROUP.validate_status(twice, group, ALL)) == [
        ("status.resourceClaimStatuses[1]", "Duplicate")
    ]


def test_an_error_shows_the_value_and_the_rule() -> None:
    (error,) = errors(pod_group(schedulingPolicy={"basic": {}, "gang": {"minCount": 2}}))
    assert str(error) == (
        'spec.schedulingPolicy: Invalid value: {"basic": {}, "gang": {"minCount": 2}}: '
        "must specify exactly one of basic, gang"
    )
