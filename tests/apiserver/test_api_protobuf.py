"""Bodies in protobuf form, as typed clients (kubectl create, drain) send them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.apiserver import protobuf

PROTOBUF = "application/vnd.kubernetes.protobuf"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
JOB = bytes.fromhex(
    "6b3873000a0f0a0862617463682f763112034a6f6212720a110a016a12001a0022002a0032003800420012533251"
    "0a100a0012001a0022002a00320038004200123d121a0a016a1201612a0042006a007200800100880100900100a201"
    "001a054e6576657232004200"
    "4a0052005800600068008201008a01009a0100c201001a0820002800"
    "30003a001a002200"
)
"""What `kubectl create job j --image=a` sends."""


def number(field, value):
    made, key = b"", field << 3
    for part in (key, value & ((1 << 64) - 1)):
        while part > 0x7F:
            made, part = made + bytes([part & 0x7F | 0x80]), part >> 7
        made += bytes([part])
    return made


def data(field, *parts):
    """A field that carries text, or a message of these parts."""
    value = b"".join(part.encode() if isinstance(part, str) else part for part in parts)
    head = number(field, len(value))
    return bytes([head[0] | 2, *head[1:]]) + value if field < 16 else bytes([head[0] | 2]) + head[1:] + value


def envelope(api_version, kind, *parts):
    return b"k8s\x00" + data(1, data(1, api_version), data(2, kind)) + data(2, *parts)


def test_what_kubectl_sends_is_a_job(api):
    answer = api.call("POST", JOBS, JOB, content_type=PROTOBUF)
    assert answer.status == 201, answer.body
    template = answer.body["spec"]["template"]["spec"]
    assert (template["restartPolicy"], template["containers"][0]["image"]) == ("Never", "a")
    assert answer.body["status"] == {} and "suspended" not in answer.body


def test_zero_is_kept_where_it_is_not_the_same_as_absent():
    made = protobuf.decoded(envelope("batch/v1", "Job", data(2, number(1, 0), number(7, 0), number(5, 0))))
    assert made["spec"] == {"parallelism": 0, "backoffLimit": 0, "manualSelector": False}
    made = protobuf.decoded(envelope("scheduling.k8s.io/v1", "PriorityClass", number(2, 0), number(3, 0)))
    assert made == {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}


def test_negative_numbers_mappings_quantities_and_inlined_members():
    container = data(2, data(1, "c"), data(8, data(2, data(1, "cpu"), data(2, data(1, "500m")))))
    volume = data(1, data(1, "v"), data(2, data(2)))
    taint = data(22, data(1, "k"), number(5, -1))
    labels = data(1, data(11, data(1, "a"), data(2, "b")), data(11, data(1, "empty")))
    made = protobuf.decoded(envelope("v1", "Pod", labels, data(2, volume, container, taint)))
    assert made["metadata"]["labels"] == {"a": "b", "empty": ""}
    assert made["spec"]["containers"] == [{"name": "c", "resources": {"requests": {"cpu": "500m"}}}]
    assert made["spec"]["volumes"] == [{"name": "v", "emptyDir": {}}]
    assert made["spec"]["tolerations"] == [{"key": "k", "tolerationSeconds": -1}]


def test_times_and_integers_or_text():
    spec = data(2, data(1, number(1, 1), data(3, "50%")))
    assert protobuf.decoded(envelope("policy/v1", "PodDisruptionBudget", spec))["spec"] == {"minAvailable": "50%"}
    spec = data(2, data(1, number(1, 0), number(2, 3)))
    assert protobuf.decoded(envelope("policy/v1", "PodDisruptionBudget", spec))["spec"] == {"minAvailable": 3}
    lease = data(2, data(1, "me"), data(3, number(1, 1_767_225_600), number(2, 5_000)))
    spec = protobuf.decoded(envelope("coordination.k8s.io/v1", "Lease", lease))["spec"]
    assert spec == {"holderIdentity": "me", "acquireTime": "2026-01-01T00:00:00.000005Z"}


def test_another_kind_is_refused(api):
    answer = api.call("POST", "/api/v1/namespaces/default/pods", JOB, content_type=PROTOBUF)
    assert answer.status == 400 and "does not match" in answer.body["message"]
    answer = api.call("POST", JOBS, envelope("apps/v9", "Thing"), content_type=PROTOBUF)
    assert answer.status == 400 and "not known" in answer.body["message"]


@pytest.mark.parametrize("length", range(0, len(JOB), 3))
def test_half_a_body_is_refused_or_half_an_object(api, length):
    answer = api.call("POST", JOBS, JOB[:length], content_type=PROTOBUF)
    assert answer.status in (400, 422), answer.body


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(noise):
    for body in (noise, b"k8s\x00" + noise, envelope("v1", "Pod", noise)):
        try:
            protobuf.decoded(body)
        except ValueError:
            continue
