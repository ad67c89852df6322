"""ReplicaSets and Deployments: what of their specs and statuses is refused, at which field."""

import pytest

from muster.api import catalog
from muster.api.gates import FeatureGates

GATES = FeatureGates()
BOTH = (catalog.REPLICA_SET, catalog.DEPLOYMENT)
CONTAINER = {"name": "main", "image": "registry.example/web:1"}


def manifest(kind, **more):
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [CONTAINER]}}
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": "web", "namespace": "d"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template},
        **more,
    }


def wrong(kind, change):
    made = kind.prepare(manifest(kind), None, GATES)
    change(made["spec"])
    return {(error.field, error.type) for error in kind.validate(made, None, GATES)}


def wrong_status(kind, status, before=None):
    new, old = manifest(kind, status=status), manifest(kind, status=before or {})
    return {error.field for error in kind.validate_status(new, old, GATES)}


@pytest.mark.parametrize("kind", BOTH, ids=lambda kind: kind.kind)
def test_its_pods_have_no_deadline_since_they_are_to_run_for_ever(kind):
    def change(spec):
        spec["template"] = {**spec["template"], "spec": {**spec["template"]["spec"], "activeDeadlineSeconds": 5}}

    assert wrong(kind, change) == {("spec.template.spec.activeDeadlineSeconds", "Forbidden")}


@pytest.mark.parametrize(
    ("surge", "missing", "field"),
    [
        (0, 0, "maxUnavailable"),
        ("0%", 0, "maxUnavailable"),
        (-1, 1, "maxSurge"),
        ("many", 1, "maxSurge"),
        (1, "101%", "maxUnavailable"),
        ("300%", 0, None),
        (0, "100%", None),
    ],
)
def test_surge_and_missing_pods_are_numbers_or_percentages_and_not_both_none(surge, missing, field):
    def change(spec):
        spec["strategy"] = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": missing}}

    expected = {(f"spec.strategy.rollingUpdate.{field}", "Invalid")} if field else set()
    assert wrong(catalog.DEPLOYMENT, change) == expected


@pytest.mark.parametrize("kind", BOTH, ids=lambda kind: kind.kind)
@pytest.mark.parametrize(
    ("status", "fields"),
    [
        ({"replicas": 3, "readyReplicas": 2, "availableReplicas": 1, "terminatingReplicas": 4}, set()),
        ({"replicas": -1}, {"status.replicas"}),
        ({"replicas": 1, "readyReplicas": 2}, {"status.readyReplicas"}),
        ({"replicas": 3, "readyReplicas": 1, "availableReplicas": 2}, {"status.availableReplicas"}),
        (
            {"observedGeneration": -1, "terminatingReplicas": -1},
            {
                "status.observedGeneration",
                "status.terminatingReplicas",
            },
        ),
    ],
)
def test_counts_that_cannot_be_are_refused(kind, status, fields):
    assert wrong_status(kind, status) == fields


def test_collisions_are_only_counted_up():
    assert wrong_status(catalog.DEPLOYMENT, {"collisionCount": 1}, {"collisionCount": 2}) == {"status.collisionCount"}
    assert wrong_status(catalog.DEPLOYMENT, {"collisionCount": 2}, {"collisionCount": 1}) == set()
    assert wrong_status(catalog.DEPLOYMENT, {"updatedReplicas": 1}) == {"status.updatedReplicas"}
