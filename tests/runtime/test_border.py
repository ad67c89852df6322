"""What a server offers is found out, and objects of its versions are converted without loss of meaning."""

from __future__ import annotations

import pytest

from muster.api import catalog, writes
from muster.api.calls import Request, Response
from muster.api.object import Object
from muster.api.scheduling import DisruptionMode, PodGroup, WorkloadReference
from muster.engine.profile import Profile
from muster.plugins import default_profile
from muster.runtime.remote.border import Border
from muster.runtime.remote.discovery import Offer, offered, questions, unusable
from muster.runtime.remote.session import Duty, wanted_resources

PROFILE: Profile = default_profile()
RESOURCES = wanted_resources(Duty({"muster": PROFILE}))
NAMES = {
    "/api/v1": (
        "nodes", "namespaces", "pods", "pods/status", "services", "replicationcontrollers",
        "persistentvolumes", "persistentvolumeclaims",
    ),
    "/apis/apps/v1": ("replicasets", "statefulsets"),
    "/apis/policy/v1": ("poddisruptionbudgets",),
    "/apis/storage.k8s.io/v1": (
        "storageclasses", "csidrivers", "csinodes", "csistoragecapacities", "volumeattachments"
    ),
    "/apis/resource.k8s.io/v1": ("resourceclaims", "resourceclaimtemplates", "resourceslices", "deviceclasses"),
    "/apis/scheduling.k8s.io/v1beta1": ("workloads", "podgroups"),
    "/apis/scheduling.k8s.io/v1alpha3": ("workloads", "podgroups", "compositepodgroups"),
}  # fmt: skip


def server(minor: str, served: dict[str, tuple[str, ...]]) -> Offer:
    answers = {
        request.path: Response(200, {"resources": [{"name": n, "verbs": ["list"]} for n in served[request.path]]})
        if request.path in served
        else Response(404, {})
        for request in questions(RESOURCES)
    }
    answers["/version"] = Response(200, {"major": "1", "minor": minor, "gitVersion": f"v1.{minor}.2"})
    return offered(RESOURCES, answers)


def without(*paths: str) -> dict[str, tuple[str, ...]]:
    return {path: names for path, names in NAMES.items() if path not in paths}


def test_a_server_of_1_37_with_everything_is_used_without_a_remark():
    offer = server("37", NAMES)
    assert offer.remarks(RESOURCES) == []
    assert offer.versions["podgroups"] == "v1beta1" and offer.versions["compositepodgroups"] == "v1alpha3"


def test_a_server_without_the_beta_is_asked_in_the_alpha():
    offer = server("37", without("/apis/scheduling.k8s.io/v1beta1"))
    assert offer.versions["podgroups"] == "v1alpha3"
    assert Border(offer.versions).path("podgroups") == "/apis/scheduling.k8s.io/v1alpha3/podgroups"


def test_a_server_of_1_36_is_asked_in_its_alpha_and_hierarchies_are_not_looked_for():
    alpha = {"/apis/scheduling.k8s.io/v1alpha2": ("workloads", "podgroups")}
    served = without("/apis/scheduling.k8s.io/v1beta1", "/apis/scheduling.k8s.io/v1alpha3") | alpha
    offer = server("36+", served)
    assert offer.versions["podgroups"] == "v1alpha2"
    (remark,) = offer.remarks(RESOURCES)
    assert "1.37" in remark and "CompositePodGroup" in remark
    assert "compositepodgroups" not in offer.versions


@pytest.mark.parametrize(("minor", "version"), [("37", "v1beta1"), ("36", "v1alpha2")])
def test_a_server_without_groups_is_told_by_which_flags_it_gets_them(minor, version):
    offer = server(minor, without("/apis/scheduling.k8s.io/v1beta1", "/apis/scheduling.k8s.io/v1alpha3"))
    (remark,) = offer.remarks(RESOURCES)
    assert "--feature-gates=GenericWorkload=true" in remark
    assert f"--runtime-config=scheduling.k8s.io/{version}=true" in remark
    assert not unusable(offer)


def test_whatever_else_is_missing_is_named_with_its_group_and_the_rest_is_used():
    offer = server("37", without("/apis/storage.k8s.io/v1"))
    (remark,) = offer.remarks(RESOURCES)
    assert remark.startswith("storageclasses, csidrivers, ") and "storage.k8s.io/v1=true" in remark


def test_something_that_serves_no_pods_is_no_api_server():
    assert "nodes, pods" in unusable(server("37", without("/api/v1")))


def test_a_group_of_1_36_is_read_as_one_of_1_37():
    border = Border({"podgroups": "v1alpha2"})
    raw = {
        "metadata": {"name": "g", "namespace": "d", "managedFields": [{"manager": "x"}]},
        "spec": {
            "schedulingPolicy": {"gang": {"minCount": 3}},
            "podGroupTemplateRef": {"workload": {"workloadName": "w", "podGroupTemplateName": "t"}},
            "schedulingConstraints": {"topology": [{"key": "rack"}]},
            "disruptionMode": "PodGroup",
            "priority": 7,
        },
    }
    made = Object(border.incoming("podgroups", raw))
    group = made.view(PodGroup)
    assert made.raw["apiVersion"] == "scheduling.k8s.io/v1beta1" and made.kind == "PodGroup"
    assert "managedFields" not in made.meta
    assert group.spec.workload_ref == WorkloadReference("w", "t")
    assert group.spec.disruption_mode is not None and group.spec.disruption_mode != DisruptionMode()
    assert group.spec.disruption_mode.all is not None and group.spec.priority == 7
    assert group.spec.scheduling_policy.gang is not None and group.spec.scheduling_policy.gang.min_count == 3


@pytest.mark.parametrize(("word", "member"), [("Pod", "single"), ("PodGroup", "all")])
def test_a_group_comes_back_as_it_went_out(word, member):
    border = Border({"podgroups": "v1alpha2"})
    ours = {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "d"},
        "spec": {
            "workloadRef": {"workloadName": "w", "templateName": "t"},
            "schedulingPolicy": {"basic": {}},
            "disruptionMode": {member: {}},
        },
    }
    out = border.outgoing(writes.create(ours))
    assert out.path == "/apis/scheduling.k8s.io/v1alpha2/namespaces/d/podgroups"
    assert out.body["apiVersion"] == "scheduling.k8s.io/v1alpha2" and out.body["spec"]["disruptionMode"] == word
    assert border.incoming("podgroups", dict(out.body)) == ours


def test_patches_and_subresources_go_to_the_servers_version_and_others_are_left_alone():
    border = Border({"podgroups": "v1alpha2", "resourceclaims": "v1beta2"})
    status = writes.patch_status("podgroups", "default", "g", {"conditions": []})
    assert border.outgoing(status).path == "/apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups/g/status"
    claim = Request("PUT", catalog.RESOURCE_CLAIM.path("d", "c", "status"), body={"apiVersion": "resource.k8s.io/v1"})
    out = border.outgoing(claim)
    assert out.path == "/apis/resource.k8s.io/v1beta2/namespaces/d/resourceclaims/c/status"
    assert out.body["apiVersion"] == "resource.k8s.io/v1beta2"
    for request in (writes.bind("d", "p", "u", "n"), writes.delete("pods", "d", "podgroups")):
        assert border.outgoing(request) is request
    lease = Request("PUT", "/apis/coordination.k8s.io/v1/namespaces/podgroups/leases/podgroups")
    assert border.outgoing(lease) is lease
