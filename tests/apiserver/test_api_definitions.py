"""CustomResourceDefinitions: what they may say, what the server says of them, what becomes of their objects."""

from __future__ import annotations

import copy

import pytest
from custom import DEFINITIONS, GROUP, NAME, PATH, SPEC, definition, run, version

from muster.api.calls import MERGE_PATCH


def conditions(raw):
    return {entry["type"]: (entry["status"], entry["reason"]) for entry in raw["status"]["conditions"]}


def causes(answer):
    assert answer.status == 422, answer.body
    return {cause["field"]: (cause["reason"], cause["message"]) for cause in answer.body["details"]["causes"]}


def test_a_definition_is_established_at_once(api):
    made = api.made(definition())
    assert conditions(made) == {
        "NamesAccepted": ("True", "NoConflicts"),
        "Established": ("True", "InitialNamesAccepted"),
    }
    assert made["status"]["storedVersions"] == ["v1"]
    assert made["status"]["acceptedNames"]["singular"] == "trainingrun"
    assert made["spec"]["names"]["listKind"] == "TrainingRunList"
    assert made["spec"]["conversion"] == {"strategy": "None"}
    assert made["metadata"]["generation"] == 1


@pytest.mark.parametrize(
    ("change", "field", "reason"),
    [
        (lambda crd: crd["metadata"].update(name="other.example.com"), "metadata.name", "FieldValueInvalid"),
        (lambda crd: crd["spec"].update(group="single"), "spec.group", "FieldValueInvalid"),
        (lambda crd: crd["spec"].update(scope="Galaxy"), "spec.scope", "FieldValueNotSupported"),
        (lambda crd: crd["spec"].pop("scope"), "spec.scope", "FieldValueRequired"),
        (lambda crd: crd["spec"].update(versions=[]), "spec.versions", "FieldValueRequired"),
        (lambda crd: crd["spec"]["versions"][0].update(storage=False), "spec.versions", "FieldValueInvalid"),
        (
            lambda crd: crd["spec"]["versions"].append(version("v1", storage=False)),
            "spec.versions",
            "FieldValueInvalid",
        ),
        (lambda crd: crd["spec"]["versions"][0].update(name="V_1"), "spec.versions[0].name", "FieldValueInvalid"),
        (lambda crd: crd["spec"]["names"].update(kind="-"), "spec.names.kind", "FieldValueInvalid"),
        (lambda crd: crd["spec"]["names"].update(listKind="TrainingRun"), "spec.names.listKind", "FieldValueInvalid"),
        (lambda crd: crd["spec"]["names"].update(shortNames=["A"]), "spec.names.shortNames[0]", "FieldValueInvalid"),
        (
            lambda crd: crd["spec"]["versions"][0].pop("schema"),
            "spec.versions[0].schema.openAPIV3Schema",
            "FieldValueRequired",
        ),
        (
            lambda crd: crd["spec"].update(conversion={"strategy": "Webhook"}),
            "spec.conversion.strategy",
            "FieldValueForbidden",
        ),
        (lambda crd: crd["spec"].update(preserveUnknownFields=True), "spec.preserveUnknownFields", "FieldValueInvalid"),
        (
            lambda crd: crd["spec"]["versions"][0].update(
                additionalPrinterColumns=[{"name": "A", "type": "text", "jsonPath": ".a"}]
            ),
            "spec.versions[0].additionalPrinterColumns[0].type",
            "FieldValueInvalid",
        ),
        (
            lambda crd: crd["spec"]["versions"][0]["subresources"]["scale"].update(specReplicasPath=".status.x"),
            "spec.versions[0].subresources.scale.specReplicasPath",
            "FieldValueInvalid",
        ),
        (
            lambda crd: crd["spec"]["versions"][0].update(selectableFields=[{"jsonPath": ".spec.env"}]),
            "spec.versions[0].selectableFields[0].jsonPath",
            "FieldValueInvalid",
        ),
        (
            lambda crd: crd["spec"].update(group="a.k8s.io") or crd["metadata"].update(name="trainingruns.a.k8s.io"),
            "metadata.annotations[api-approved.kubernetes.io]",
            "FieldValueRequired",
        ),
    ],
)
def test_a_definition_says_which_field_is_wrong(api, change, field, reason):
    crd = copy.deepcopy(definition())
    change(crd)
    assert causes(api.create(crd))[field][0] == reason


AT = "spec.versions[0].schema.openAPIV3Schema"


@pytest.mark.parametrize(
    ("spec", "field", "reason"),
    [
        ({}, "type", "FieldValueRequired"),
        ({"type": "text"}, "type", "FieldValueNotSupported"),
        ({"type": "array"}, "items", "FieldValueRequired"),
        ({"type": "object", "$ref": "#/x"}, "$ref", "FieldValueForbidden"),
        ({"type": "object", "additionalProperties": False}, "additionalProperties", "FieldValueForbidden"),
        (
            {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "string"}},
            "additionalProperties",
            "FieldValueForbidden",
        ),
        ({"type": "array", "items": {"type": "string"}, "uniqueItems": True}, "uniqueItems", "FieldValueForbidden"),
        ({"type": "string", "pattern": "("}, "pattern", "FieldValueInvalid"),
        ({"type": "string", "x-kubernetes-int-or-string": True}, "type", "FieldValueInvalid"),
        (
            {"type": "object", "x-kubernetes-preserve-unknown-fields": False},
            "x-kubernetes-preserve-unknown-fields",
            "FieldValueInvalid",
        ),
        ({"type": "object", "x-kubernetes-embedded-resource": True}, "properties", "FieldValueRequired"),
        (
            {"type": "array", "x-kubernetes-list-type": "map", "items": {"type": "object"}},
            "x-kubernetes-list-map-keys",
            "FieldValueRequired",
        ),
        (
            {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
                "items": {"type": "object", "properties": {"name": {"type": "string"}}},
            },
            "items.properties[name].default",
            "FieldValueRequired",
        ),
        ({"type": "integer", "default": "x"}, "default", "FieldValueTypeInvalid"),
        ({"type": "integer", "maximum": 3, "default": 4}, "default", "FieldValueInvalid"),
        ({"type": "object", "anyOf": [{"type": "object"}]}, "anyOf[0].type", "FieldValueForbidden"),
        (
            {"type": "object", "anyOf": [{"properties": {"a": {"minLength": 1}}}]},
            "properties[a]",
            "FieldValueRequired",
        ),
        (
            {"type": "object", "x-kubernetes-validations": [{"rule": "self.a >"}]},
            "x-kubernetes-validations[0].rule",
            "FieldValueInvalid",
        ),
    ],
)
def test_a_schema_must_be_structural(api, spec, field, reason):
    found = causes(api.create(definition(version(spec=spec, subresources={}))))
    assert found[f"{AT}.properties[spec].{field}"][0] == reason


def test_what_identifies_an_established_definition_stays(api):
    api.made(definition())
    answer = api.call("PATCH", f"{DEFINITIONS}/{NAME}", {"spec": {"scope": "Cluster"}}, {}, MERGE_PATCH)
    assert causes(answer)["spec.scope"] == ("FieldValueInvalid", 'Invalid value: "Cluster": field is immutable')


def test_a_version_in_which_objects_may_be_stored_stays(api):
    api.made(definition())
    changed = {"spec": {"versions": [version("v2")]}}
    answer = api.call("PATCH", f"{DEFINITIONS}/{NAME}", changed, {}, MERGE_PATCH)
    assert "v1 was previously a storage version" in causes(answer)["status.storedVersions[0]"][1]
    both = {"spec": {"versions": [version("v2"), version("v1", storage=False)]}}
    answer = api.call("PATCH", f"{DEFINITIONS}/{NAME}", both, {}, MERGE_PATCH)
    assert answer.status == 200 and answer.body["status"]["storedVersions"] == ["v1", "v2"]
    answer = api.call("PATCH", f"{DEFINITIONS}/{NAME}/status", {"status": {"storedVersions": ["v2"]}}, {}, MERGE_PATCH)
    assert answer.status == 200, answer.body
    assert api.call("PATCH", f"{DEFINITIONS}/{NAME}", changed, {}, MERGE_PATCH).status == 200


def test_a_kind_whose_names_are_taken_is_served_once_they_are_free(api):
    api.made(definition())
    other = api.made(definition(plural="others", names={"plural": "others"}))
    assert conditions(other) == {
        "NamesAccepted": ("False", "ShortNamesConflict"),
        "Established": ("False", "NotAccepted"),
    }
    assert api.call("GET", f"/apis/{GROUP}/v1/others").status == 404
    assert api.call("DELETE", f"{DEFINITIONS}/{NAME}").status == 200
    other = api.call("GET", f"{DEFINITIONS}/others.{GROUP}").body
    assert conditions(other)["Established"] == ("True", "InitialNamesAccepted")
    assert api.call("GET", f"/apis/{GROUP}/v1/others").status == 200


def test_a_name_of_a_built_in_kind_is_taken_in_its_group(api):
    crd = definition(
        group="scheduling.k8s.io",
        names={"plural": "podgroups", "singular": "podgroup", "kind": "Pack", "shortNames": []},
    )
    crd["metadata"]["annotations"] = {"api-approved.kubernetes.io": "unapproved, for a test"}
    made = api.made(crd)
    assert conditions(made)["NamesAccepted"][0] == "False"


def test_a_kind_may_have_the_plural_of_a_built_in_one_in_another_group(api):
    crd = definition(group="batch.example.com", names={"plural": "jobs", "singular": "job", "kind": "Job"})
    crd["metadata"]["name"] = "jobs.batch.example.com"
    api.made(crd)
    mine = {"apiVersion": "batch.example.com/v1", "kind": "Job", "metadata": {"name": "a"}, "spec": {"image": "x"}}
    path = "/apis/batch.example.com/v1/namespaces/default/jobs"
    assert api.call("POST", path, mine).status == 201
    assert api.names("jobs") == [] and len(api.call("GET", path).body["items"]) == 1


def test_discovery_and_documents_have_the_kind(api):
    api.made(definition(version(), version("v2alpha1", storage=False), version("v3", storage=False, served=False)))
    group = api.call("GET", f"/apis/{GROUP}").body
    assert [entry["version"] for entry in group["versions"]] == ["v1", "v2alpha1"]
    resources = api.call("GET", f"/apis/{GROUP}/v1").body["resources"]
    assert [entry["name"] for entry in resources] == ["trainingruns", "trainingruns/status", "trainingruns/scale"]
    assert resources[0]["shortNames"] == ["tr"] and resources[0]["categories"] == ["all"]
    assert f"apis/{GROUP}/v1" in api.call("GET", "/openapi/v3").body["paths"]
    assert api.call("GET", f"/apis/{GROUP}/v3/trainingruns").status == 404
    v2 = api.call("GET", "/openapi/v2").body["definitions"]["com.example.ml.v1.TrainingRun"]
    assert v2["properties"]["spec"]["properties"]["workers"]["maximum"] == 64


def test_deleting_a_definition_deletes_its_objects_and_waits_for_their_finalizers(api):
    api.made(definition())
    held = run("held")
    held["metadata"]["finalizers"] = ["example.com/hold"]
    assert api.call("POST", PATH, held).status == api.call("POST", PATH, run("free")).status == 201
    gone = api.call("DELETE", f"{DEFINITIONS}/{NAME}")
    assert gone.status == 200 and gone.body["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    assert conditions(gone.body)["Terminating"] == ("True", "InstanceDeletionInProgress")
    assert [item["metadata"]["name"] for item in api.call("GET", PATH).body["items"]] == ["held"]
    refused = api.call("POST", PATH, run("late"))
    assert refused.status == 405 and "terminating" in refused.body["message"]
    api.call("PATCH", f"{PATH}/held", {"metadata": {"finalizers": None}}, {}, MERGE_PATCH)
    assert api.call("GET", f"{DEFINITIONS}/{NAME}").status == 404
    assert api.call("GET", PATH).status == 404


def test_a_dry_run_defines_nothing(api):
    answer = api.create(definition(), dryRun="All")
    assert answer.status == 201 and conditions(answer.body)["Established"][0] == "True"
    assert api.call("GET", PATH).status == 404


def test_the_schema_of_the_tests_is_structural_as_it_is_written(api):
    made = api.made(definition())
    assert made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] == SPEC
