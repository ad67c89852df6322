from __future__ import annotations

import gzip
import runpy
from pathlib import Path

import pytest

from muster.api import catalog
from muster.api.gates import WORKLOAD_AWARE, FeatureGates
from muster.apiserver.ownership import dressed
from muster.apiserver.schema import member, resolved, schema
from muster.testing.builders import gang_manifest, node_manifest, pod_manifest

GENERATOR = Path(__file__).parents[2] / "tools" / "make_schema.py"


@pytest.mark.parametrize("kind", catalog.KINDS, ids=lambda kind: kind.kind)
def test_every_kind_has_a_schema(kind):
    fields = resolved(schema(kind.api_version, kind.kind).root)["properties"]
    assert {"apiVersion", "kind", "metadata"} <= fields.keys()
    assert ("status" in fields) >= kind.has_status


def test_a_kind_without_a_schema_is_a_mistake_that_is_noticed():
    with pytest.raises(KeyError):
        schema("apps/v1", "Odd")


def test_the_file_is_what_the_generator_makes():
    pytest.importorskip("kubernetes_validate")
    made = runpy.run_path(str(GENERATOR))
    assert gzip.decompress(made["make"]()) == gzip.decompress(made["TARGET"].read_bytes())


@pytest.mark.parametrize(
    "manifest", [pod_manifest("a", gpus=1, group="pg"), gang_manifest("pg", 2), node_manifest("n", gpus=8)]
)
def test_good_manifests_fit_and_are_changed_by_nothing(manifest):
    found = schema(manifest["apiVersion"], manifest["kind"])
    assert found.fits(manifest)
    cleaned, findings = found.clean(manifest)
    assert cleaned == manifest and not findings.unknown and not findings.wrong


def test_stored_objects_fit_as_they_are(new_api):
    api = new_api(FeatureGates.of(*WORKLOAD_AWARE))
    api.made(pod_manifest("a"))
    api.bind("a", "n1")
    api.delete("pods", "a")
    assert schema("v1", "Pod").fits(dressed(api.get("pods", "a")))


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("2026-01-01T01:00:00+01:00", "2026-01-01T00:00:00Z"),
        ("2026-01-01T00:00:00.999999Z", "2026-01-01T00:00:00Z"),
        ("2026-01-01 00:00:00Z", "2026-01-01T00:00:00Z"),
        ("0001-01-01T00:00:00+00:00", "0001-01-01T00:00:00Z"),
    ],
)
def test_times_are_stored_in_one_form(given, stored):
    pod = {"status": {"startTime": given}}
    cleaned, findings = schema("v1", "Pod").clean(pod)
    assert not findings.wrong and cleaned["status"]["startTime"] == stored
    assert schema("v1", "Pod").fits(cleaned)


def test_times_with_microseconds_keep_them():
    cleaned, _ = schema("coordination.k8s.io/v1", "Lease").clean({"spec": {"renewTime": "2026-01-01T00:00:00.5Z"}})
    assert cleaned["spec"]["renewTime"] == "2026-01-01T00:00:00.500000Z"


@pytest.mark.parametrize(
    "text",
    ["", "now", "2026-13-01T00:00:00Z", "2026-01-01T00:00:00", "0001-01-01T00:00:00+10:00", "9999-99-99T00:00:00Z"],
)
def test_what_is_no_time_is_refused(text):
    pod = {"status": {"startTime": text}}
    assert not schema("v1", "Pod").fits(pod)
    _, findings = schema("v1", "Pod").clean(pod)
    assert [str(wrong).split(":")[0] for wrong in findings.wrong] == ["status.startTime"]


def test_lists_know_how_they_are_merged():
    spec = member(schema("v1", "Pod").root, "spec")
    containers = resolved(member(spec, "containers"))
    assert containers["x-kubernetes-patch-merge-key"] == "name"
    assert "x-kubernetes-patch-merge-key" not in resolved(member(spec, "tolerations"))
    labels = member(member(schema("v1", "Pod").root, "metadata"), "labels")
    assert resolved(member(labels, "any"))["type"] == "string"
