"""The table of kinds, the calls built from it, and errors and paths."""

from __future__ import annotations

import pytest

from muster.api import catalog, writes
from muster.api.gates import FeatureGates
from muster.api.object import Object
from muster.api.validation import FieldError, Path


@pytest.mark.parametrize("kind", catalog.KINDS, ids=lambda kind: kind.kind)
def test_every_kind_is_found_by_each_of_its_names(kind: catalog.Kind) -> None:
    assert catalog.by_resource(kind.plural) is kind
    assert catalog.by_path(kind.group, kind.version, kind.plural) is kind
    assert catalog.by_kind(kind.api_version, kind.kind) is kind
    for name in (kind.plural, kind.singular, kind.kind, kind.kind.upper(), *kind.short_names):
        assert catalog.named(name) is kind


@pytest.mark.parametrize("kind", catalog.KINDS, ids=lambda kind: kind.kind)
def test_the_typed_view_of_an_empty_object_has_its_defaults(kind: catalog.Kind) -> None:
    assert Object({"metadata": {"name": "x"}}).view(kind.struct).metadata.name == "x"  # type: ignore[attr-defined]


def test_group_kinds_are_served_only_with_their_gates() -> None:
    assert not catalog.POD_GROUP.served(FeatureGates())
    assert catalog.POD_GROUP.served(FeatureGates.of("GenericWorkload"))
    assert not catalog.COMPOSITE_POD_GROUP.served(FeatureGates.of("GenericWorkload"))
    assert catalog.POD.served(FeatureGates())


def test_unknown_names_are_refused_with_those_there_are() -> None:
    with pytest.raises(ValueError, match=r"served as apiVersion scheduling.k8s.io/v1beta1, not 'v1'"):
        catalog.by_kind("v1", "PodGroup")
    with pytest.raises(ValueError, match=r"no kind 'Gadget'.*PodGroup"):
        catalog.by_kind("v1", "Gadget")
    with pytest.raises(ValueError, match=r"unknown resource 'gadgets'.*podgroups"):
        catalog.named("gadgets")


def test_unknown_fields_survive_beside_the_typed_view() -> None:
    raw = {"metadata": {"name": "p"}, "spec": {"containers": [], "futureField": {"x": [1]}}}
    pod = Object(raw)
    assert pod.view(catalog.POD.struct)
    assert pod.raw["spec"]["futureField"] == {"x": [1]}


def test_calls_go_to_the_paths_of_the_kubernetes_api() -> None:
    group = {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "ns"},
    }
    made = [
        (writes.create(group), ("POST", "/apis/scheduling.k8s.io/v1beta1/namespaces/ns/podgroups")),
        (writes.update(group), ("PUT", "/apis/scheduling.k8s.io/v1beta1/namespaces/ns/podgroups/g")),
        (writes.status(group), ("PUT", "/apis/scheduling.k8s.io/v1beta1/namespaces/ns/podgroups/g/status")),
        (writes.get("pods", "ns", "p"), ("GET", "/api/v1/namespaces/ns/pods/p")),
        (writes.get("Node", "ns", "n"), ("GET", "/api/v1/nodes/n")),
        (writes.list_all("jobs"), ("GET", "/apis/batch/v1/jobs")),
        (writes.patch_status("pods", "ns", "p", {}), ("PATCH", "/api/v1/namespaces/ns/pods/p/status")),
        (writes.bind("ns", "p", "u", "n"), ("POST", "/api/v1/namespaces/ns/pods/p/binding")),
        (writes.evict("ns", "p"), ("POST", "/api/v1/namespaces/ns/pods/p/eviction")),
        (writes.delete("pods", "ns", "p"), ("DELETE", "/api/v1/namespaces/ns/pods/p")),
    ]
    for request, expected in made:
        assert (request.method, request.path) == expected


def test_a_deletion_says_which_incarnation_and_how_long_to_wait() -> None:
    request = writes.delete("pods", "ns", "p", uid="u", revision="7", grace_seconds=0, propagation="Orphan")
    assert request.body["preconditions"] == {"uid": "u", "resourceVersion": "7"}
    assert (request.body["gracePeriodSeconds"], request.body["propagationPolicy"]) == (0, "Orphan")
    assert "gracePeriodSeconds" not in writes.delete("pods", "ns", "p").body


def test_paths_are_written_as_kubernetes_writes_them() -> None:
    path = Path("spec") / "containers" // 0 / "resources" / "requests"
    assert str(path.key("cpu")) == "spec.containers[0].resources.requests[cpu]"
    assert str(Path() / "handler") == "handler"
    assert str(Path() // 3 / "x") == "[3].x"


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (Path("a").required(), "a: Required value"),
        (Path("a").required("say it"), "a: Required value: say it"),
        (Path("a").invalid("x", "no"), 'a: Invalid value: "x": no'),
        (Path("a").forbidden("no"), "a: Forbidden: no"),
        (Path("a").duplicate("x"), 'a: Duplicate value: "x"'),
        (Path("a").too_many(9, 8), "a: Too many: 9: must have at most 8 items"),
        (Path("a").too_long(63), "a: Too long: may not be more than 63 bytes"),
        (Path("a").not_supported("x", ("b", "c")), 'a: Unsupported value: "x": supported values: "b", "c"'),
        (FieldError("", "Forbidden", "no"), "Forbidden: no"),
    ],
)
def test_errors_read_as_those_of_kubernetes(error: FieldError, text: str) -> None:
    assert str(error) == text
    assert error.reason == f"FieldValue{error.type}"


def test_a_huge_value_is_shown_in_part() -> None:
    assert len(str(Path("a").invalid("x" * 10_000, "too much"))) < 300
