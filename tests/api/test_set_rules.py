"""StatefulSets, DaemonSets and ControllerRevisions: defaults, what may change, and what is refused at which field."""

import pytest

from muster.api import catalog
from muster.api.gates import FeatureGates

GATES = FeatureGates()
CONTAINER = {"name": "main", "image": "registry.example/web:1"}
TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [CONTAINER]}}
BASE = {"selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE}
CLAIM = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}
ROLLING = "spec.updateStrategy.rollingUpdate"


def made(kind, old=None, **spec):
    raw = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": "web", "namespace": "d"},
        "spec": {**BASE, **spec},
    }
    return kind.prepare(raw, old, GATES)


def errors(kind, old=None, **spec):
    return {(error.field, error.type) for error in kind.validate(made(kind, old, **spec), old, GATES)}


def test_a_stateful_set_is_completed():
    spec = made(catalog.STATEFUL_SET, volumeClaimTemplates=[CLAIM])["spec"]
    assert spec["updateStrategy"] == {"type": "RollingUpdate", "rollingUpdate": {"partition": 0, "maxUnavailable": 1}}
    assert (spec["podManagementPolicy"], spec["revisionHistoryLimit"], spec["replicas"]) == ("OrderedReady", 10, 1)
    assert spec["persistentVolumeClaimRetentionPolicy"] == {"whenDeleted": "Retain", "whenScaled": "Retain"}
    claim = spec["volumeClaimTemplates"][0]
    assert claim["spec"]["volumeMode"] == "Filesystem" and claim["status"] == {"phase": "Pending"}
    assert (claim["apiVersion"], claim["kind"]) == ("v1", "PersistentVolumeClaim")
    assert (
        "rollingUpdate" not in made(catalog.STATEFUL_SET, updateStrategy={"type": "OnDelete"})["spec"]["updateStrategy"]
    )


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"ordinals": {"start": 3}, "minReadySeconds": 5, "volumeClaimTemplates": [CLAIM]}, set()),
        ({"updateStrategy": {"type": "OnDelete"}}, set()),
        ({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "30%"}}}, set()),
        ({"ordinals": {"start": -1}}, {("spec.ordinals.start", "Invalid")}),
        ({"minReadySeconds": -1}, {("spec.minReadySeconds", "Invalid")}),
        ({"revisionHistoryLimit": -1}, {("spec.revisionHistoryLimit", "Invalid")}),
        ({"podManagementPolicy": "Odd"}, {("spec.podManagementPolicy", "NotSupported")}),
        ({"serviceName": "No Name"}, {("spec.serviceName", "Invalid")}),
        ({"updateStrategy": {"type": "Recreate"}}, {("spec.updateStrategy.type", "NotSupported")}),
        ({"updateStrategy": {"rollingUpdate": {"partition": -1}}}, {(f"{ROLLING}.partition", "Invalid")}),
        ({"updateStrategy": {"rollingUpdate": {"maxUnavailable": 0}}}, {(f"{ROLLING}.maxUnavailable", "Invalid")}),
        ({"updateStrategy": {"rollingUpdate": {"maxUnavailable": "x"}}}, {(f"{ROLLING}.maxUnavailable", "Invalid")}),
        ({"updateStrategy": {"type": "OnDelete", "rollingUpdate": {"partition": 1}}}, {(ROLLING, "Invalid")}),
        (
            {"persistentVolumeClaimRetentionPolicy": {"whenScaled": "Recycle"}},
            {("spec.persistentVolumeClaimRetentionPolicy.whenScaled", "NotSupported")},
        ),
        (
            {"volumeClaimTemplates": [{"metadata": {"name": "Data"}, "spec": CLAIM["spec"]}]},
            {("spec.volumeClaimTemplates[0].metadata.name", "Invalid")},
        ),
        (
            {"volumeClaimTemplates": [{**CLAIM, "spec": {**CLAIM["spec"], "accessModes": []}}]},
            {("spec.volumeClaimTemplates[0].spec.accessModes", "Required")},
        ),
    ],
)
def test_what_a_stateful_set_may_say(spec, expected):
    assert errors(catalog.STATEFUL_SET, **spec) == expected


def mounting(name, *, devices=(), volumes=()):
    container = {**CONTAINER, "volumeMounts": [{"name": name, "mountPath": "/data"}], "volumeDevices": list(devices)}
    return {**TEMPLATE, "spec": {"containers": [container], "volumes": list(volumes)}}


def test_pods_mount_the_claims_that_are_made_for_them():
    mounted = {"template": mounting("data"), "volumeClaimTemplates": [CLAIM]}
    assert errors(catalog.STATEFUL_SET, **mounted) == set()
    block = {"metadata": {"name": "raw"}, "spec": {**CLAIM["spec"], "volumeMode": "Block"}}
    device = {"name": "raw", "devicePath": "/dev/raw"}
    both = {"template": mounting("data", devices=[device]), "volumeClaimTemplates": [CLAIM, block]}
    assert errors(catalog.STATEFUL_SET, **both) == set()
    hidden = mounting("data", volumes=[{"name": "other", "emptyDir": {}}, {"name": "data", "emptyDir": {}}])
    assert errors(catalog.STATEFUL_SET, template=hidden, volumeClaimTemplates=[CLAIM]) == set()


def test_what_is_mounted_has_to_be_a_volume_or_a_claim_of_the_set():
    at = "spec.template.spec.containers[0].volumeMounts[0].name"
    assert errors(catalog.STATEFUL_SET, template=mounting("date"), volumeClaimTemplates=[CLAIM]) == {(at, "NotFound")}
    assert errors(catalog.DAEMON_SET, template=mounting("data")) == {(at, "NotFound")}


@pytest.mark.parametrize(
    "spec",
    [
        {"replicas": 7},
        {"ordinals": {"start": 2}},
        {"template": {**TEMPLATE, "spec": {"containers": [{**CONTAINER, "image": "registry.example/web:2"}]}}},
        {"updateStrategy": {"type": "OnDelete"}},
        {"revisionHistoryLimit": 2},
        {"minReadySeconds": 9},
        {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete"}},
    ],
)
def test_what_of_a_stateful_set_may_change(spec):
    kind = catalog.STATEFUL_SET
    old = made(kind, volumeClaimTemplates=[CLAIM])
    assert errors(kind, old, volumeClaimTemplates=[CLAIM], **spec) == set()


@pytest.mark.parametrize(
    "spec",
    [{"serviceName": "other"}, {"podManagementPolicy": "Parallel"}, {"volumeClaimTemplates": [CLAIM]}],
)
def test_the_rest_of_a_stateful_set_stays(spec):
    kind = catalog.STATEFUL_SET
    assert errors(kind, made(kind, serviceName="web"), **{"serviceName": "web", **spec}) == {("spec", "Forbidden")}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"updateStrategy": {"rollingUpdate": {"maxSurge": "10%", "maxUnavailable": 0}}}, set()),
        ({"updateStrategy": {"rollingUpdate": {"maxSurge": 1}}}, {(f"{ROLLING}.maxSurge", "Invalid")}),
        ({"updateStrategy": {"rollingUpdate": {"maxUnavailable": 0}}}, {(f"{ROLLING}.maxUnavailable", "Invalid")}),
        (
            {"template": {**TEMPLATE, "spec": {**TEMPLATE["spec"], "activeDeadlineSeconds": 5}}},
            {("spec.template.spec.activeDeadlineSeconds", "Forbidden")},
        ),
    ],
)
def test_what_a_daemon_set_may_say(spec, expected):
    assert errors(catalog.DAEMON_SET, **spec) == expected


def test_what_a_revision_restores_stays():
    kind = catalog.CONTROLLER_REVISION
    metadata = {"name": "web-1", "namespace": "d"}

    def found(old=None, **fields):
        raw = {"apiVersion": "apps/v1", "kind": kind.kind, "metadata": metadata, **fields}
        return {(error.field, error.type) for error in kind.validate(raw, old, GATES)}

    assert found(data={"spec": {}}, revision=1) == set()
    assert found(revision=1) == {("data", "Required")}
    assert found(data={}, revision=-1) == {("revision", "Invalid")}
    old = {"apiVersion": "apps/v1", "kind": kind.kind, "metadata": metadata, "data": {"spec": {}}, "revision": 1}
    assert found(old, data={"spec": {}}, revision=2) == set()
    assert found(old, data={"spec": {"template": {}}}, revision=1) == {("data", "Invalid")}
