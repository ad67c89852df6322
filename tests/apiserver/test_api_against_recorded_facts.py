"""What API servers of Kubernetes answer to calls that fail, and to some that do not: code, reason, message, causes.

Where the wording of a message is not stable, only its stable part is asked for.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
from concurrent.futures import Future
from itertools import count

import pytest

from muster.api.calls import JSON_PATCH, MERGE_PATCH
from muster.api.gates import WORKLOAD_AWARE, FeatureGates
from muster.apiserver.patch import APPLY_PATCH
from muster.apiserver.server import ApiServer
from muster.runtime.changes import Changes
from muster.runtime.clock import SystemClock
from muster.runtime.http import application, listen
from muster.testing.builders import pod_manifest

JSON = "application/json"
NS = "/api/v1/namespaces"
PODS = f"{NS}/default/pods"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
OTHER_UID = "11111111-2222-3333-4444-555555555555"
CREATE, UPDATE, PATCH, DELETE = (
    f'{verb}Options.meta.k8s.io "" is invalid: ' for verb in ("Create", "Update", "Patch", "Delete")
)
LONG = "m" * 129


def pod(name="a", **meta):
    made = pod_manifest(name)
    made["metadata"] = {**made["metadata"], **meta}
    return made


def nameless(**meta):
    made = pod_manifest("x")
    made["metadata"] = meta
    return made


def binding(**meta):
    return {"apiVersion": "v1", "kind": "Binding", "metadata": meta, "target": {"kind": "Node", "name": "n2"}}


def eviction(name):
    return {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": "default"}}


def priority_class(value):
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": value}


BAD, INVALID, GONE = (400, "BadRequest"), (422, "Invalid"), (410, "Expired")
MISSING, CONFLICT, THERE = (404, "NotFound"), (409, "Conflict"), (409, "AlreadyExists")
FINE = (200, None)

# name: (method, path, body, media type, (code, reason), part of the message, causes as (reason, field))
FACTS = {
    "create what exists": ("POST", PODS, pod(), JSON, THERE, 'pods "a" already exists', ()),
    "create a namespace that exists": (
        "POST", NS, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}, JSON, THERE,
        'namespaces "default" already exists', ()),
    "create a class that exists": (
        "POST", CLASSES, priority_class(7), JSON, THERE, 'priorityclasses.scheduling.k8s.io "high" already exists', ()),
    "generateName": ("POST", PODS, nameless(generateName="g-"), JSON, (201, None), "", ()),
    "create without a name": (
        "POST", PODS, nameless(), JSON, INVALID,
        'Pod "" is invalid: metadata.name: Required value: name or generateName is required',
        [("FieldValueRequired", "metadata.name")]),
    "create with a bad name": (
        "POST", PODS, pod("A_b"), JSON, INVALID, 'Pod "A_b" is invalid: metadata.name: Invalid value: "A_b"',
        [("FieldValueInvalid", "metadata.name")]),
    "create with a bad label key": (
        "POST", PODS, pod("b", labels={"a b": "c"}), JSON, INVALID, "metadata.labels: Invalid value",
        [("FieldValueInvalid", "metadata.labels")]),
    "create in a namespace that is missing": (
        "POST", f"{NS}/nowhere/pods", nameless(name="a"), JSON, MISSING, 'namespaces "nowhere" not found', ()),
    "create for another namespace": (
        "POST", PODS, pod("b", namespace="other"), JSON, BAD,
        "the namespace of the provided object does not match the namespace sent on the request", ()),
    "create of another version": ("POST", PODS, pod("b") | {"apiVersion": "apps/v1"}, JSON, BAD, "apps/v1", ()),
    "create of another kind": ("POST", PODS, pod("b") | {"kind": "Node"}, JSON, BAD, "", ()),
    "create without containers": (
        "POST", PODS, {"metadata": {"name": "b"}, "spec": {"containers": []}}, JSON, INVALID,
        "spec.containers: Required value", [("FieldValueRequired", "spec.containers")]),
    "create with a field of the wrong type": (
        "POST", PODS, {"metadata": {"name": "b"}, "spec": {"containers": 3}}, JSON, BAD, "", ()),
    "malformed JSON": ("POST", PODS, b'{"a":', JSON, BAD, "", ()),
    "a list as the body": ("POST", PODS, b"[]", JSON, BAD, "", ()),
    "no body": ("POST", PODS, b"", JSON, BAD, "", ()),
    "a body too large": (
        "POST", PODS, b" " * (3 * 1024 * 1024 + 1), JSON, (413, "RequestEntityTooLarge"),
        "Request entity too large: limit is 3145728", ()),
    "a body that is no JSON": ("POST", PODS, b"a", "text/plain", (415, "UnsupportedMediaType"),
        "the body of the request was in an unknown format - accepted media types include: ", ()),
    "a patch that is none": ("PATCH", f"{PODS}/a", {}, JSON, (415, "UnsupportedMediaType"),
        "the body of the request was in an unknown format - accepted media types include: ", ()),
    "a resource that is missing": (
        "GET", "/api/v1/nothings", None, JSON, MISSING, "the server could not find the requested resource", ()),
    "a pod that is missing": ("GET", f"{PODS}/none", None, JSON, MISSING, 'pods "none" not found', ()),
    "a node that is missing": ("GET", "/api/v1/nodes/none", None, JSON, MISSING, 'nodes "none" not found', ()),
    "a class that is missing": (
        "GET", f"{CLASSES}/none", None, JSON, MISSING, 'priorityclasses.scheduling.k8s.io "none" not found', ()),
    "delete what is missing": ("DELETE", f"{PODS}/none", None, JSON, MISSING, 'pods "none" not found', ()),
    "patch what is missing": ("PATCH", f"{PODS}/none", {}, MERGE_PATCH, MISSING, 'pods "none" not found', ()),
    "update what is missing": ("PUT", f"{PODS}/none", pod("none"), JSON, MISSING, 'pods "none" not found', ()),
    "status of what is missing": (
        "PUT", f"{PODS}/none/status", pod("none"), JSON, MISSING, 'pods "none" not found', ()),
    "an empty list of a namespace that is missing": ("GET", f"{NS}/nowhere/pods", None, JSON, FINE, "", ()),
    "PUT of a collection": ("PUT", PODS, pod(), JSON, (405, "MethodNotAllowed"), "", ()),
    "PATCH of a collection": ("PATCH", PODS, {}, MERGE_PATCH, (405, "MethodNotAllowed"), "", ()),
    "POST to an object": ("POST", f"{PODS}/a", pod(), JSON, (405, "MethodNotAllowed"), "", ()),
    "POST to all namespaces": ("POST", "/api/v1/pods", pod("b"), JSON, (405, "MethodNotAllowed"), "", ()),
    "DELETE of all namespaces": ("DELETE", NS, None, JSON, (405, "MethodNotAllowed"), "", ()),
    "GET of a binding": ("GET", f"{PODS}/a/binding", None, JSON, (405, "MethodNotAllowed"), "", ()),
    "DELETE of a status": ("DELETE", f"{PODS}/a/status", None, JSON, (405, "MethodNotAllowed"), "", ()),
    "update of an old version": (
        "PUT", f"{PODS}/a", pod(resourceVersion="1"), JSON, CONFLICT,
        'Operation cannot be fulfilled on pods "a": the object has been modified; '
        "please apply your changes to the latest version and try again", ()),
    "update of another uid": (
        "PUT", f"{PODS}/a", pod(uid=OTHER_UID), JSON, CONFLICT,
        f"Precondition failed: UID in precondition: {OTHER_UID}, UID in object meta: ", ()),
    "update under another name": (
        "PUT", f"{PODS}/a", pod("b"), JSON, BAD,
        "the name of the object (b) does not match the name on the URL (a)", ()),
    "patch of an old version": (
        "PATCH", f"{PODS}/a", {"metadata": {"resourceVersion": "1"}}, MERGE_PATCH, CONFLICT,
        "the object has been modified", ()),
    "status of an old version": (
        "PUT", f"{PODS}/a/status", pod(resourceVersion="1"), JSON, CONFLICT, "the object has been modified", ()),
    "status by patch": (
        "PATCH", f"{PODS}/a/status", {"status": {"phase": "Pending"}}, MERGE_PATCH, FINE, "", ()),
    "a test that fails": (
        "PATCH", f"{PODS}/a", [{"op": "test", "path": "/metadata/name", "value": "z"}], JSON_PATCH, INVALID, "", ()),
    "remove what is not there": (
        "PATCH", f"{PODS}/a", [{"op": "remove", "path": "/spec/nothing"}], JSON_PATCH, INVALID, "", ()),
    "a JSON patch that is an object": ("PATCH", f"{PODS}/a", {"a": 1}, JSON_PATCH, BAD, "", ()),
    "a merge patch that is no JSON": ("PATCH", f"{PODS}/a", b"{", MERGE_PATCH, BAD, "", ()),
    "change of a pod's host name": (
        "PATCH", f"{PODS}/bound", {"spec": {"hostname": "n9"}}, MERGE_PATCH, INVALID,
        "pod updates may not change fields other than", [("FieldValueForbidden", "spec")]),
    "change of a class's value": (
        "PUT", f"{CLASSES}/high", priority_class(8), JSON, INVALID, "may not be changed in an update",
        [("FieldValueForbidden", "value")]),
    "delete of another uid": (
        "DELETE", f"{PODS}/a", {"preconditions": {"uid": OTHER_UID}}, JSON, CONFLICT,
        f'Operation cannot be fulfilled on Pod "a": the UID in the precondition ({OTHER_UID}) does not match ', ()),
    "delete of an old version": (
        "DELETE", f"{PODS}/a", {"preconditions": {"resourceVersion": "1"}}, JSON, CONFLICT,
        "the ResourceVersion in the precondition (1) does not match the ResourceVersion in record (", ()),
    "delete with an unknown policy": (
        "DELETE", f"{PODS}/a?propagationPolicy=Some", None, JSON, INVALID,
        f"{DELETE}propagationPolicy: Unsupported value", [("FieldValueNotSupported", "propagationPolicy")]),
    "delete with policy and orphans": (
        "DELETE", f"{PODS}/a", {"propagationPolicy": "Orphan", "orphanDependents": True}, JSON, INVALID,
        f"{DELETE}propagationPolicy: Invalid value", [("FieldValueInvalid", "propagationPolicy")]),
    "delete as a dry run": ("DELETE", f"{PODS}/a?dryRun=All", None, JSON, FINE, "", ()),
    "delete a collection as a dry run": ("DELETE", f"{PODS}?dryRun=All", None, JSON, FINE, "", ()),
    "a system class may not go": (
        "DELETE", f"{CLASSES}/system-node-critical", None, JSON, (403, "Forbidden"),
        "this is a system priority class and cannot be deleted", ()),
    "dryRun unknown at create": (
        "POST", f"{PODS}?dryRun=Some", pod("b"), JSON, INVALID, f"{CREATE}dryRun: Unsupported value",
        [("FieldValueNotSupported", "dryRun")]),
    "dryRun unknown at update": (
        "PUT", f"{PODS}/a?dryRun=Some", pod(), JSON, INVALID, f"{UPDATE}dryRun: Unsupported value",
        [("FieldValueNotSupported", "dryRun")]),
    "dryRun unknown at patch": (
        "PATCH", f"{PODS}/a?dryRun=Some", {}, MERGE_PATCH, INVALID, f"{PATCH}dryRun: Unsupported value",
        [("FieldValueNotSupported", "dryRun")]),
    "dryRun unknown at delete": (
        "DELETE", f"{PODS}/a?dryRun=Some", None, JSON, INVALID, f"{DELETE}dryRun: Unsupported value",
        [("FieldValueNotSupported", "dryRun")]),
    "fieldManager too long at create": (
        "POST", f"{PODS}?fieldManager={LONG}", pod("b"), JSON, INVALID, f"{CREATE}fieldManager: Too long",
        [("FieldValueTooLong", "fieldManager")]),
    "fieldManager too long at patch": (
        "PATCH", f"{PODS}/a?fieldManager={LONG}", {}, MERGE_PATCH, INVALID, f"{PATCH}fieldManager: Too long",
        [("FieldValueTooLong", "fieldManager")]),
    "fieldManager unprintable": (
        "PUT", f"{PODS}/a?fieldManager=a%07", pod(), JSON, INVALID, f"{UPDATE}fieldManager: Invalid value",
        [("FieldValueInvalid", "fieldManager")]),
    "fieldValidation unknown at create": (
        "POST", f"{PODS}?fieldValidation=Some", pod("b"), JSON, INVALID, f"{CREATE}fieldValidation: Unsupported value",
        [("FieldValueNotSupported", "fieldValidation")]),
    "fieldValidation unknown at patch": (
        "PATCH", f"{PODS}/a?fieldValidation=Some", {}, MERGE_PATCH, INVALID,
        f"{PATCH}fieldValidation: Unsupported value", [("FieldValueNotSupported", "fieldValidation")]),
    "an unknown field, strictly": (
        "POST", f"{PODS}?fieldValidation=Strict", pod("b") | {"more": 1}, JSON, BAD,
        'strict decoding error: unknown field "more"', ()),
    "apply without a manager": (
        "PATCH", f"{PODS}/a", pod(), APPLY_PATCH, INVALID,
        f"{PATCH}fieldManager: Required value: is required for apply patch", [("FieldValueRequired", "fieldManager")]),
    "force without apply": (
        "PATCH", f"{PODS}/a?force=true", {}, MERGE_PATCH, INVALID,
        f"{PATCH}force: Forbidden: may not be specified for non-apply patch", [("FieldValueForbidden", "force")]),
    "apply of managed fields": (
        "PATCH", f"{PODS}/a?fieldManager=m", pod(managedFields=[{"manager": "x"}]), APPLY_PATCH, BAD,
        "metadata.managedFields must be nil", ()),
    "a field selector that there is not": (
        "GET", f"{PODS}?fieldSelector=spec.more%3D1", None, JSON, BAD, "field label not supported", ()),
    "a label selector that cannot be read": ("GET", f"{PODS}?labelSelector=a%20in%20(", None, JSON, BAD, "", ()),
    "a continue that is none": (
        "GET", f"{PODS}?limit=1&continue=zzz", None, JSON, BAD,
        "invalid continue token: continue key is not valid", ()),
    "match without a version": (
        "GET", f"{PODS}?resourceVersionMatch=Exact", None, JSON, INVALID,
        'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden',
        [("FieldValueForbidden", "resourceVersionMatch")]),
    "a list of a forgotten version": (
        "GET", f"{PODS}?resourceVersion=1&resourceVersionMatch=Exact", None, JSON, GONE, "", ()),
    "bind what is bound": (
        "POST", f"{PODS}/bound/binding", binding(name="bound"), JSON, CONFLICT,
        'Operation cannot be fulfilled on pods/binding "bound": pod bound is already assigned to node "n1"', ()),
    "bind another uid": (
        "POST", f"{PODS}/a/binding", binding(name="a", uid=OTHER_UID), JSON, CONFLICT,
        f"Precondition failed: UID in precondition: {OTHER_UID}, UID in object meta: ", ()),
    "bind what is missing": (
        "POST", f"{PODS}/none/binding", binding(name="none"), JSON, MISSING, 'pods "none" not found', ()),
    "bind under another name": ("POST", f"{PODS}/a/binding", binding(name="b"), JSON, BAD, "", ()),
    "evict against a budget": (
        "POST", f"{PODS}/bound/eviction", eviction("bound"), JSON, (429, "TooManyRequests"),
        "Cannot evict pod as it would violate the pod's disruption budget.", [("DisruptionBudget", None)]),
    "evict what is missing": (
        "POST", f"{PODS}/none/eviction", eviction("none"), JSON, MISSING, 'pods "none" not found', ()),
    "evict under another name": ("POST", f"{PODS}/a/eviction", eviction("b"), JSON, BAD, "", ()),
}  # fmt: skip

STAGING = "staging/src/k8s.io"
HANDLERS, REST = f"{STAGING}/apiserver/pkg/endpoints/handlers", f"{STAGING}/apiserver/pkg/registry/rest"
ERRORS = f"{STAGING}/apimachinery/pkg/api/errors/errors.go"
OPTIONS = f"{STAGING}/apimachinery/pkg/apis/meta/v1/validation/validation.go"
OBJECT_META = f"{STAGING}/apimachinery/pkg/api/validation/objectmeta.go"
STORE = f"{STAGING}/apiserver/pkg/registry/generic/registry/store.go"
ROUTES = f"{STAGING}/apiserver/pkg/server/handler.go"
POD_REST, POD_RULES = "pkg/registry/core/pod/storage", "pkg/apis/core/validation/validation.go"
# Where kubernetes/kubernetes says so: what answers, and the words of it. A row belongs to the first text in its name.
SOURCES = {
    "create a namespace that exists": f"{STORE} (Create), {ERRORS} (NewAlreadyExists)",
    "create a class that exists": f"{STORE} (Create), {ERRORS} (NewAlreadyExists)",
    "create what exists": f"{STORE} (Create), {ERRORS} (NewAlreadyExists)",
    "generateName": f"{REST}/create.go (BeforeCreate)",
    "create without a name": f"{OBJECT_META} (name or generateName is required)",
    "bad name": f"{OBJECT_META}",
    "bad label key": f"{STAGING}/apimachinery/pkg/apis/meta/v1/validation/validation.go (ValidateLabels)",
    "in a namespace that is missing": f"{STAGING}/apiserver/pkg/admission/plugin/namespace/lifecycle/admission.go",
    "an empty list of a namespace": f"{STORE} (List)",
    "for another namespace": f"{REST}/meta.go (EnsureObjectNamespaceMatchesRequestNamespace)",
    "of another version": f"{HANDLERS}/create.go (decoding)",
    "of another kind": f"{HANDLERS}/create.go (decoding)",
    "without containers": f"{POD_RULES} (validateContainers)",
    "wrong type": f"{HANDLERS}/rest.go (transformDecodeError)",
    "malformed JSON": f"{HANDLERS}/rest.go (transformDecodeError)",
    "a list as the body": f"{HANDLERS}/rest.go (transformDecodeError)",
    "no body": f"{HANDLERS}/rest.go (transformDecodeError)",
    "a body too large": f"{HANDLERS}/rest.go (limitedReadBody), {ERRORS} (NewRequestEntityTooLargeError)",
    "a body that is no JSON": f"{HANDLERS}/negotiation/errors.go",
    "a patch that is none": f"{HANDLERS}/patch.go, {HANDLERS}/negotiation/errors.go",
    "a resource that is missing": f"{ROUTES} (serviceErrorHandler), {ERRORS} (NewGenericServerResponse, 404)",
    "a pod that is missing": f"{STORE} (Get), {ERRORS} (NewNotFound)",
    "a node that is missing": f"{STORE} (Get), {ERRORS} (NewNotFound)",
    "a class that is missing": f"{STORE} (Get), {ERRORS} (NewNotFound)",
    "bind what is missing": f"{POD_REST}/storage.go (BindingREST.assignPod)",
    "evict what is missing": f"{POD_REST}/eviction.go (Create)",
    "what is missing": f"{STORE} (Update, Delete), {ERRORS} (NewNotFound)",
    "of a collection": f"{ROUTES} (serviceErrorHandler), {ERRORS} (NewGenericServerResponse, 405)",
    "POST to": f"{ROUTES} (serviceErrorHandler), {ERRORS} (NewGenericServerResponse, 405)",
    "DELETE of": f"{ROUTES} (serviceErrorHandler), {ERRORS} (NewGenericServerResponse, 405)",
    "GET of a binding": f"{ROUTES} (serviceErrorHandler), {ERRORS} (NewGenericServerResponse, 405)",
    "delete of an old version": f"{REST}/delete.go (BeforeDelete)",
    "of an old version": f"{STORE} (Update, OptimisticLockErrorMsg)",
    "update of another uid": f"{STAGING}/apiserver/pkg/storage/interfaces.go (Preconditions.Check)",
    "update under another name": f"{HANDLERS}/rest.go (checkName)",
    "status by patch": f"{HANDLERS}/patch.go",
    "a test that fails": f"{HANDLERS}/patch.go (applyJSPatch)",
    "remove what is not there": f"{HANDLERS}/patch.go (applyJSPatch)",
    "a JSON patch that is an object": f"{HANDLERS}/patch.go (applyJSPatch)",
    "a merge patch that is no JSON": f"{HANDLERS}/patch.go (applyJSPatch)",
    "a pod's host name": f"{POD_RULES} (ValidatePodUpdate)",
    "a class's value": "pkg/apis/scheduling/validation/validation.go (ValidatePriorityClassUpdate)",
    "delete of another uid": f"{REST}/delete.go (BeforeDelete)",
    "delete with": f"{OPTIONS} (ValidateDeleteOptions), {HANDLERS}/delete.go",
    "as a dry run": f"{STORE} (Delete, DeleteCollection)",
    "a system class may not go": "pkg/registry/scheduling/priorityclass/storage/storage.go (Delete)",
    "dryRun unknown": f"{OPTIONS} (ValidateDryRun)",
    "fieldManager": f"{OPTIONS} (ValidateFieldManager)",
    "fieldValidation unknown": f"{OPTIONS} (ValidateFieldValidation)",
    "an unknown field, strictly": f"{STAGING}/apimachinery/pkg/runtime/error.go (strict decoding error)",
    "apply without a manager": f"{OPTIONS} (ValidatePatchOptions)",
    "force without apply": f"{OPTIONS} (ValidatePatchOptions)",
    "apply of managed fields": f"{STAGING}/apimachinery/pkg/util/managedfields/internal/structuredmerge.go (Apply)",
    "a field selector": "pkg/apis/core/v1/conversion.go (AddFieldLabelConversionsForPod)",
    "a label selector": f"{HANDLERS}/get.go (ListResource)",
    "a continue that is none": f"{STAGING}/apiserver/pkg/storage/continue.go and interfaces.go",
    "match without a version": f"{STAGING}/apimachinery/pkg/apis/meta/internalversion/validation/validation.go",
    "a list of a forgotten version": f"{ERRORS} (NewResourceExpired)",
    "bind what is bound": f"{POD_REST}/storage.go (BindingREST.assignPod)",
    "bind another uid": f"{POD_REST}/storage.go (BindingREST.assignPod), {STAGING}/apiserver/pkg/storage/interfaces.go",
    "bind under another name": f"{POD_REST}/storage.go (BindingREST.Create)",
    "evict against a budget": f"{POD_REST}/eviction.go (checkAndDecrement)",
    "evict under another name": f"{POD_REST}/eviction.go (Create)",
}


def source_of(name):
    return next((source for text, source in SOURCES.items() if text in name), None)


def test_every_fact_says_where_it_is_from():
    assert [name for name in FACTS if source_of(name) is None] == []
    assert {text for text in SOURCES if not any(text in name for name in FACTS)} == set()
    assert len(FACTS) >= 60


def ask(port, method, path, body=None, media_type=JSON, **headers):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        text = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        connection.request(method, path, text, {"Content-Type": media_type, **headers})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


@pytest.fixture(scope="module")
def port():
    numbers, changes, clock = count(1), Changes(), SystemClock()
    api = ApiServer(FeatureGates.of(*WORKLOAD_AWARE), new_uid=lambda: f"00000000-0000-0000-0000-{next(numbers):012d}")
    ready, loop = Future(), asyncio.new_event_loop()
    ended = asyncio.Event()

    async def run():
        runner, port = await listen(application(lambda request: api.handle(request, clock.now()), changes), 0)
        ready.set_result(port)
        await ended.wait()
        await runner.cleanup()

    thread = threading.Thread(target=lambda: loop.run_until_complete(run()), daemon=True)
    thread.start()
    port = ready.result(timeout=10)
    budget = {
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "all"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "kept"}}},
    }  # fmt: skip
    for path, body in (
        (PODS, pod()), (PODS, pod("bound", labels={"app": "kept"})), (CLASSES, priority_class(7)),
        (f"{PODS}/bound/binding", {**binding(name="bound"), "target": {"kind": "Node", "name": "n1"}}),
        ("/apis/policy/v1/namespaces/default/poddisruptionbudgets", budget),
    ):  # fmt: skip
        assert ask(port, "POST", path, body)[0] == 201
    running = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    assert ask(port, "PATCH", f"{PODS}/bound/status", running, MERGE_PATCH)[0] == 200
    observed = {
        "status": {
            "observedGeneration": 1,
            "disruptionsAllowed": 0,
            "currentHealthy": 1,
            "desiredHealthy": 1,
            "expectedPods": 1,
        }
    }
    place = "/apis/policy/v1/namespaces/default/poddisruptionbudgets/all/status"
    assert ask(port, "PATCH", place, observed, MERGE_PATCH)[0] == 200
    api.compact()
    yield port
    loop.call_soon_threadsafe(ended.set)
    thread.join(timeout=10)


@pytest.mark.parametrize("fact", FACTS.values(), ids=FACTS)
def test_the_answer_is_the_recorded_one(port, fact):
    method, path, body, media_type, (code, reason), message, causes = fact
    status, answer = ask(port, method, path, body, media_type)
    assert (status, answer.get("reason")) == (code, reason), answer
    assert message in answer.get("message", "")
    if code >= 400:
        assert (answer["kind"], answer["apiVersion"], answer["status"]) == ("Status", "v1", "Failure")
        assert answer["code"] == code and isinstance(answer["metadata"], dict)
    told = (answer.get("details") or {}).get("causes", []) if causes else []
    assert [(cause["reason"], cause.get("field")) for cause in told] == list(causes)


def test_accept_of_another_form_is_406(port):
    status, answer = ask(port, "GET", PODS, Accept="text/html")
    assert (status, answer["reason"]) == (406, "NotAcceptable")


def test_details_name_the_resource_of_a_conflict(port):
    _, answer = ask(port, "POST", f"{PODS}/bound/binding", binding(name="bound"))
    assert answer["details"] == {"name": "bound", "kind": "pods/binding"}


def test_a_watch_from_a_forgotten_version_begins_and_ends_with_an_error(port):
    status, event = ask(port, "GET", f"{PODS}?watch=true&resourceVersion=1&timeoutSeconds=1")
    assert (status, event["type"]) == (200, "ERROR")
    answer = event["object"]
    assert (answer["kind"], answer["status"], answer["code"], answer["reason"]) == ("Status", "Failure", 410, "Expired")
    assert answer["message"].startswith("too old resource version: 1 (")


def test_a_list_of_a_forgotten_version_is_refused_at_once(port):
    status, answer = ask(port, "GET", f"{PODS}?watch=false&resourceVersion=1&resourceVersionMatch=Exact")
    assert (status, answer["code"], answer["reason"]) == (410, 410, "Expired")
