"""Services and the kinds that keep replicas: defaults, and what is refused at which field."""

import pytest

from muster.api import catalog
from muster.api.gates import FeatureGates

GATES = FeatureGates()
CONTAINER = {"name": "main", "image": "registry.example/web:1"}
TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [CONTAINER]}}
SELECTOR = {"matchLabels": {"app": "web"}}


def manifest(kind, **spec):
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": "web", "namespace": "d"},
        "spec": spec,
    }


def errors(kind, old=None, **spec):
    made = kind.prepare(manifest(kind, **spec), old, GATES)
    return {(error.field, error.type) for error in kind.validate(made, old, GATES)}


KEEPERS = (catalog.REPLICA_SET, catalog.STATEFUL_SET)


@pytest.mark.parametrize("kind", KEEPERS, ids=lambda kind: kind.kind)
def test_a_keeper_of_replicas_is_completed_and_accepted(kind):
    made = kind.prepare(manifest(kind, selector=SELECTOR, template=TEMPLATE), None, GATES)
    assert made["spec"]["replicas"] == 1
    assert made["spec"]["template"]["spec"]["restartPolicy"] == "Always"
    assert kind.validate(made, None, GATES) == []


@pytest.mark.parametrize("kind", KEEPERS, ids=lambda kind: kind.kind)
@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"template": TEMPLATE}, ("spec.selector", "Required")),
        ({"template": TEMPLATE, "selector": {}}, ("spec.selector", "Invalid")),
        (
            {"template": TEMPLATE, "selector": {"matchLabels": {"app": "other"}}},
            ("spec.template.metadata.labels", "Invalid"),
        ),
        ({"template": TEMPLATE, "selector": SELECTOR, "replicas": -1}, ("spec.replicas", "Invalid")),
        (
            {"template": {**TEMPLATE, "spec": {"containers": []}}, "selector": SELECTOR},
            ("spec.template.spec.containers", "Required"),
        ),
        (
            {
                "template": {**TEMPLATE, "spec": {"containers": [CONTAINER], "restartPolicy": "Never"}},
                "selector": SELECTOR,
            },
            ("spec.template.spec.restartPolicy", "NotSupported"),
        ),
    ],
)
def test_a_wrong_keeper_is_refused_at_the_field(kind, spec, expected):
    assert expected in errors(kind, **spec)


@pytest.mark.parametrize("kind", KEEPERS, ids=lambda kind: kind.kind)
def test_a_selector_may_not_change(kind):
    old = kind.prepare(manifest(kind, selector=SELECTOR, template=TEMPLATE), None, GATES)
    other = {"matchExpressions": [{"key": "app", "operator": "Exists"}]}
    assert errors(kind, old, selector=other, template=TEMPLATE) == {("spec.selector", "Invalid")}
    assert errors(kind, old, selector=SELECTOR, template=TEMPLATE, replicas=3) == set()


def test_a_replication_controller_selects_the_labels_of_its_pods():
    made = catalog.REPLICATION_CONTROLLER.prepare(
        manifest(catalog.REPLICATION_CONTROLLER, template=TEMPLATE), None, GATES
    )
    assert made["spec"]["selector"] == made["metadata"]["labels"] == {"app": "web"}
    assert catalog.REPLICATION_CONTROLLER.validate(made, None, GATES) == []
    assert ("spec.selector", "Required") in errors(catalog.REPLICATION_CONTROLLER, template={"spec": TEMPLATE["spec"]})


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"ports": [{"port": 80}], "selector": {"app": "web"}}, set()),
        ({"clusterIP": "None"}, set()),
        ({"type": "ExternalName", "externalName": "db.example"}, set()),
        ({}, {("spec.ports", "Required")}),
        ({"ports": [{"port": 0}]}, {("spec.ports[0].port", "Invalid")}),
        ({"ports": [{"port": 80}], "type": "Odd"}, {("spec.type", "NotSupported")}),
        ({"ports": [{"port": 80}], "selector": {"bad key": "x"}}, {("spec.selector", "Invalid")}),
        ({"ports": [{"port": 80, "name": "a"}, {"port": 81, "name": "a"}]}, {("spec.ports[1].name", "Duplicate")}),
        ({"ports": [{"port": 80}, {"port": 81, "name": "a"}]}, {("spec.ports[0].name", "Required")}),
        ({"type": "ExternalName"}, {("spec.externalName", "Required")}),
    ],
)
def test_what_a_service_needs(spec, expected):
    assert errors(catalog.SERVICE, **spec) == expected
