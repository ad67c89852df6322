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


KEEPERS = (catalog.REPLICA_SET, catalog.STATEFUL_SET, catalog.DEPLOYMENT)


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
    refused = ("spec", "Forbidden") if kind is catalog.STATEFUL_SET else ("spec.selector", "Invalid")
    assert errors(kind, old, selector=other, template=TEMPLATE) == {refused}
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


def rolling(least, most, type_="RollingUpdate"):
    return {"type": type_, "rollingUpdate": {"maxUnavailable": least, "maxSurge": most}}


def test_a_deployment_replaces_a_quarter_of_its_pods_at_a_time():
    made = catalog.DEPLOYMENT.prepare(manifest(catalog.DEPLOYMENT, selector=SELECTOR, template=TEMPLATE), None, GATES)
    assert made["spec"]["strategy"] == rolling("25%", "25%")
    assert (made["spec"]["revisionHistoryLimit"], made["spec"]["progressDeadlineSeconds"]) == (10, 600)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"strategy": {"type": "Recreate"}}, set()),
        ({"strategy": rolling(0, 1)}, set()),
        ({"strategy": rolling(0, "0%")}, {("spec.strategy.rollingUpdate.maxUnavailable", "Invalid")}),
        ({"strategy": rolling("x", 1)}, {("spec.strategy.rollingUpdate.maxUnavailable", "Invalid")}),
        ({"strategy": rolling(1, 1, "Recreate")}, {("spec.strategy.rollingUpdate", "Forbidden")}),
        ({"strategy": {"type": "Odd"}}, {("spec.strategy.type", "NotSupported")}),
        (
            {"minReadySeconds": 9, "progressDeadlineSeconds": 9},
            {("spec.progressDeadlineSeconds", "Invalid")},
        ),
    ],
)
def test_how_a_deployment_may_replace_pods(spec, expected):
    assert errors(catalog.DEPLOYMENT, selector=SELECTOR, template=TEMPLATE, **spec) == expected


def test_a_daemon_set_replaces_one_pod_at_a_time():
    kind = catalog.DAEMON_SET
    made = kind.prepare(manifest(kind, selector=SELECTOR, template=TEMPLATE), None, GATES)
    assert made["spec"]["updateStrategy"] == rolling(1, 0)
    assert "replicas" not in made["spec"] and kind.validate(made, None, GATES) == []
    assert errors(kind, template=TEMPLATE) == {("spec.selector", "Required")}


def cron(**spec):
    inner = {"restartPolicy": "Never", "containers": [CONTAINER]}
    return {"schedule": "*/5 * * * *", "jobTemplate": {"spec": {"template": {"spec": inner}}}, **spec}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, set()),
        ({"schedule": "@daily"}, set()),
        ({"schedule": "* * *"}, {("spec.schedule", "Invalid")}),
        ({"schedule": ""}, {("spec.schedule", "Required")}),
        ({"concurrencyPolicy": "Odd"}, {("spec.concurrencyPolicy", "NotSupported")}),
        ({"failedJobsHistoryLimit": -1}, {("spec.failedJobsHistoryLimit", "Invalid")}),
        (
            {"jobTemplate": {"spec": {"parallelism": -1, **cron()["jobTemplate"]["spec"]}}},
            {("spec.jobTemplate.spec.parallelism", "Invalid")},
        ),
    ],
)
def test_what_a_cron_job_needs(spec, expected):
    assert errors(catalog.CRON_JOB, **cron(**spec)) == expected


def plain(kind, old=None, **fields):
    raw = {"apiVersion": "v1", "kind": kind.kind, "metadata": {"name": "web", "namespace": "d"}, **fields}
    made = kind.prepare(raw, old, GATES)
    return made, {(error.field, error.type) for error in kind.validate(made, old, GATES)}


def test_what_is_immutable_stays():
    old, wrong = plain(catalog.CONFIG_MAP, data={"a": "1"}, immutable=True)
    assert not wrong
    assert plain(catalog.CONFIG_MAP, old, data={"a": "2"}, immutable=True)[1] == {("data", "Forbidden")}
    assert plain(catalog.CONFIG_MAP, old, data={"a": "1"})[1] == {("immutable", "Forbidden")}
    assert plain(catalog.CONFIG_MAP, old, data={"a": "1"}, immutable=True)[1] == set()


def test_keys_of_config_are_names_of_files():
    assert plain(catalog.CONFIG_MAP, data={"a b": "1"})[1] == {("data[a b]", "Invalid")}
    assert plain(catalog.SECRET, data={"..": "MQ=="})[1] == {("data[..]", "Invalid")}
    assert plain(catalog.CONFIG_MAP, data={"a": "x" * (1 << 20) + "x"})[1] == {("", "TooLong")}


def test_plain_text_of_a_secret_is_encoded_and_not_kept():
    made, wrong = plain(catalog.SECRET, data={"a": "MQ=="}, stringData={"b": "2"})
    assert (made["data"], made["type"], wrong) == ({"a": "MQ==", "b": "Mg=="}, "Opaque", set())
    assert "stringData" not in made


def test_a_secret_has_what_its_type_needs_and_keeps_its_type():
    assert plain(catalog.SECRET, type="kubernetes.io/tls", data={"tls.crt": ""})[1] == {("data[tls.key]", "Required")}
    old, _ = plain(catalog.SECRET)
    assert plain(catalog.SECRET, old, type="other/type")[1] == {("type", "Invalid")}
