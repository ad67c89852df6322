"""Label keys become requirements of selectors on create; what a pod with a user namespace of its own may share."""

from __future__ import annotations

import pytest

from muster.api.gates import FeatureGates
from muster.api.object import Object
from muster.scheduler.ingest import Ingest
from muster.testing.builders import pod_manifest

UNMERGED = FeatureGates.parse("MatchLabelKeysInPodTopologySpreadSelectorMerge=false")
LABELS = {"app": "web", "version": "1", "tenant": "a"}
WEB = {"matchLabels": {"app": "web"}}
VERSION_IS_1 = {"key": "version", "operator": "In", "values": ["1"]}
TENANT_IS_NOT_A = {"key": "tenant", "operator": "NotIn", "values": ["a"]}
MERGED = {**WEB, "matchExpressions": [VERSION_IS_1]}


def spread(**fields):
    return {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", **fields}


def web(**spec):
    return pod_manifest("p", labels=LABELS, **spec)


def spread_pod(**fields):
    return web(topologySpreadConstraints=[spread(**fields)])


def affinity_pod(kind, *, preferred=False, **fields):
    term = {"topologyKey": "zone", **fields}
    if preferred:
        wish = {"weight": 1, "podAffinityTerm": term}
        return web(affinity={kind: {"preferredDuringSchedulingIgnoredDuringExecution": [wish]}})
    return web(affinity={kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}})


@pytest.mark.parametrize(
    ("fields", "expressions"),
    [
        ({"matchLabelKeys": ["version"]}, [VERSION_IS_1]),
        ({"matchLabelKeys": ["version", "lacking"]}, [VERSION_IS_1]),
        ({"matchLabelKeys": ["lacking"]}, None),
        ({}, None),
    ],
)
def test_keys_of_a_spread_constraint_are_put_behind_its_own_expressions(new_api, fields, expressions):
    own = {"key": "app", "operator": "Exists"}
    made = new_api(FeatureGates()).made(spread_pod(labelSelector={"matchExpressions": [own]}, **fields))
    (constraint,) = made["spec"]["topologySpreadConstraints"]
    assert constraint["labelSelector"]["matchExpressions"] == [own, *(expressions or [])]
    assert constraint.get("matchLabelKeys") == fields.get("matchLabelKeys")


@pytest.mark.parametrize("kind", ["podAffinity", "podAntiAffinity"])
@pytest.mark.parametrize("preferred", [False, True])
def test_keys_of_every_affinity_term_are_merged(new_api, kind, preferred):
    keys = {"matchLabelKeys": ["version"], "mismatchLabelKeys": ["tenant"]}
    made = new_api(UNMERGED).made(affinity_pod(kind, preferred=preferred, labelSelector=WEB, **keys))
    ((entry,),) = made["spec"]["affinity"][kind].values()
    term = entry["podAffinityTerm"] if preferred else entry
    assert term["labelSelector"] == {**WEB, "matchExpressions": [VERSION_IS_1, TENANT_IS_NOT_A]}


def test_with_the_gate_off_the_constraint_stays_and_the_scheduler_counts_the_same(new_api):
    pod = spread_pod(labelSelector=WEB, matchLabelKeys=["version"])
    merged, left = new_api(FeatureGates()).made(pod), new_api(UNMERGED).made(pod)
    assert left["spec"]["topologySpreadConstraints"][0]["labelSelector"] == WEB
    assert merged["spec"]["topologySpreadConstraints"][0]["labelSelector"] == MERGED
    assert Ingest().pod(Object(merged)).cls.demands == Ingest().pod(Object(left)).cls.demands


def test_a_pod_that_is_relabelled_keeps_the_values_of_its_creation(new_api):
    made = new_api(FeatureGates()).made(spread_pod(labelSelector=WEB, matchLabelKeys=["version"]))
    relabelled = {**made, "metadata": {**made["metadata"], "labels": {**LABELS, "version": "2"}}}
    assert Ingest().pod(Object(relabelled)).cls.demands == Ingest().pod(Object(made)).cls.demands


def test_the_manifest_that_was_sent_is_not_changed_and_an_update_adds_nothing(new_api):
    api, pod = new_api(FeatureGates()), spread_pod(labelSelector=WEB, matchLabelKeys=["version"])
    made = api.made(pod)
    assert pod["spec"]["topologySpreadConstraints"][0]["labelSelector"] == WEB
    made["metadata"] = {**made["metadata"], "labels": {**LABELS, "more": "yes"}}
    answer = api.call("PUT", api.path("pods", "p"), made)
    assert answer.status == 200
    assert answer.body["spec"]["topologySpreadConstraints"] == made["spec"]["topologySpreadConstraints"]


VERSION_TWICE = {"matchLabels": {"app": "web", "version": "1"}}
AT = "spec.topologySpreadConstraints[0]"
NEAR = "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]"


@pytest.mark.parametrize(
    ("gates", "pod", "field"),
    [
        (FeatureGates(), spread_pod(matchLabelKeys=["version"]), f"{AT}.matchLabelKeys"),
        (UNMERGED, spread_pod(matchLabelKeys=["version"]), f"{AT}.matchLabelKeys"),
        (FeatureGates(), spread_pod(labelSelector=VERSION_TWICE, matchLabelKeys=["version"]), f"{AT}[0]"),
        (FeatureGates(), spread_pod(labelSelector=MERGED, matchLabelKeys=["version"]), f"{AT}[0]"),
        (UNMERGED, spread_pod(labelSelector=VERSION_TWICE, matchLabelKeys=["version"]), f"{AT}.matchLabelKeys[0]"),
        (UNMERGED, spread_pod(labelSelector=MERGED, matchLabelKeys=["version"]), f"{AT}.matchLabelKeys[0]"),
        (UNMERGED, affinity_pod("podAffinity", labelSelector=MERGED, matchLabelKeys=["version"]), f"{NEAR}[0]"),
        (
            UNMERGED,
            affinity_pod("podAffinity", labelSelector=WEB, matchLabelKeys=["x"], mismatchLabelKeys=["x"]),
            f"{NEAR}.matchLabelKeys[0]",
        ),
        (UNMERGED, affinity_pod("podAffinity", mismatchLabelKeys=["tenant"]), f"{NEAR}.mismatchLabelKeys"),
    ],
)
def test_keys_that_the_selector_has_already_and_keys_without_a_selector_are_refused(new_api, gates, pod, field):
    answer = new_api(gates).create(pod)
    assert answer.status == 422
    assert [cause["field"] for cause in answer.body["details"]["causes"]] == [field]


def test_a_key_to_mismatch_may_be_in_the_selector_too(new_api):
    term = {"labelSelector": {"matchExpressions": [TENANT_IS_NOT_A]}, "mismatchLabelKeys": ["tenant"]}
    assert new_api(FeatureGates()).create(affinity_pod("podAntiAffinity", **term)).status == 201


HOST_NETWORK = "UserNamespacesHostNetworkSupport"


@pytest.mark.parametrize(
    ("gates", "spec", "refused"),
    [
        (FeatureGates(), {"hostNetwork": True, "hostUsers": False}, ["spec.hostNetwork"]),
        (FeatureGates.of(HOST_NETWORK), {"hostNetwork": True, "hostUsers": False}, []),
        (FeatureGates(), {"hostNetwork": True, "hostUsers": True}, []),
        (FeatureGates(), {"hostNetwork": True}, []),
        (FeatureGates(), {"hostUsers": False}, []),
        (
            FeatureGates.of(HOST_NETWORK),
            {"hostPID": True, "hostIPC": True, "hostUsers": False},
            ["spec.hostPID", "spec.hostIPC"],
        ),
    ],
)
def test_a_pod_with_its_own_users_shares_no_namespace_of_its_node(new_api, gates, spec, refused):
    answer = new_api(gates).create(pod_manifest("p", **spec))
    causes = answer.body["details"]["causes"] if answer.status == 422 else []
    assert answer.status == (422 if refused else 201)
    assert [cause["field"] for cause in causes] == refused
