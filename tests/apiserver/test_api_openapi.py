"""OpenAPI documents: complete, closed, the same text under the same address."""

from __future__ import annotations

import json

import msgspec

from muster.api import catalog
from muster.api.calls import Request
from muster.api.gates import FeatureGates


def read(api, path):
    answer = api.server.handle(Request("GET", path), api.now)
    assert answer.status == 200, answer.body
    return json.loads(msgspec.json.encode(answer.body))


def documents(api):
    for root, entry in read(api, "/openapi/v3")["paths"].items():
        yield root, read(api, entry["serverRelativeURL"].partition("?")[0])


def references(value):
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for inner in value.values():
            yield from references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from references(inner)


def test_every_served_kind_has_a_schema_and_says_that_fields_are_validated(api):
    found, patched = set(), set()
    for _, document in documents(api):
        for schema in document["components"]["schemas"].values():
            found |= {tuple(gvk.values()) for gvk in schema.get("x-kubernetes-group-version-kind", ())}
        for item in document["paths"].values():
            patch = item.get("patch")
            if patch and "fieldValidation" in {parameter["name"] for parameter in patch["parameters"]}:
                patched.add(tuple(patch["x-kubernetes-group-version-kind"].values()))
    wanted = {(kind.group, kind.version, kind.kind) for kind in catalog.SERVED}
    assert found == wanted
    assert patched >= {(kind.group, kind.version, kind.kind) for kind in catalog.SERVED if not kind.asked}


def test_everything_that_is_referred_to_is_there(api):
    for root, document in documents(api):
        there = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
        assert set(references(document)) <= there, root
    document = read(api, "/openapi/v2")
    assert set(references(document)) <= {f"#/definitions/{name}" for name in document["definitions"]}


def test_the_address_changes_with_the_content(api, new_api):
    paths = read(api, "/openapi/v3")["paths"]
    assert paths == read(new_api(), "/openapi/v3")["paths"]
    without = read(new_api(FeatureGates()), "/openapi/v3")["paths"]
    assert "apis/scheduling.k8s.io/v1beta1" not in without and without["api/v1"] == paths["api/v1"]


def test_lists_say_how_they_are_merged(api):
    document = dict(documents(api))["api/v1"]
    containers = document["components"]["schemas"]["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"]
    assert containers["x-kubernetes-patch-merge-key"] == "name"
    assert containers["x-kubernetes-list-map-keys"] == ["name"]


def test_what_may_be_an_integer_or_text_says_so(api):
    document = dict(documents(api))["apis/policy/v1"]
    spec = document["components"]["schemas"]["io.k8s.api.policy.v1.PodDisruptionBudgetSpec"]
    least = (
        spec["properties"]["minAvailable"]["allOf"][0]["$ref"]
        if "allOf" in spec["properties"]["minAvailable"]
        else (spec["properties"]["minAvailable"]["$ref"])
    )
    assert document["components"]["schemas"][least.rpartition("/")[2]]["format"] == "int-or-string"


def test_the_older_document_is_also_served_as_kubectl_wants_it(api):
    accept = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
    answer = api.server.handle(Request("GET", "/openapi/v2", accept=accept), api.now)
    assert answer.status == 200 and answer.headers["Content-Type"] == accept.replace("@", ".")
    assert answer.body[:5] == b"\n\x032.0" and b"io.k8s.api.core.v1.PodSpec" in answer.body
    assert api.server.handle(Request("GET", "/openapi/v3", accept=accept), api.now).status == 406
