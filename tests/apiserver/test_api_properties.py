"""Random operations against a simple model of a store, and watches that add up to lists."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muster.testing.builders import pod_manifest

NAMES = st.sampled_from("abc")
APPS = st.sampled_from("xy")
FINALIZER = "example.com/keep"

OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("create"), NAMES, APPS),
        st.tuples(st.just("label"), NAMES, APPS),
        st.tuples(st.just("bind"), NAMES),
        st.tuples(st.just("hold"), NAMES),
        st.tuples(st.just("release"), NAMES),
        st.tuples(st.just("delete"), NAMES, st.sampled_from([None, 0, 5])),
        st.tuples(st.just("poll"), st.booleans()),
    ),
    max_size=25,
)
calm = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


class Model:
    """What a pod store does, in a few lines: name -> [app, bound, held, grace or None]."""

    def __init__(self):
        self.pods = {}

    def apply(self, operation):
        """Changes the model; returns the status code that the server must answer with."""
        kind, name, *rest = operation
        pod = self.pods.get(name)
        if kind == "create":
            if pod:
                return 409
            self.pods[name] = {"app": rest[0], "bound": False, "held": False, "grace": None}
            return 201
        if pod is None:
            return 404
        if kind == "bind" and (pod["bound"] or pod["grace"] is not None):
            return 409
        if kind == "hold" and pod["grace"] is not None and not pod["held"]:
            return 422
        self.change(kind, pod, rest)
        if pod["grace"] == 0 and not pod["held"]:
            del self.pods[name]
        return 201 if kind == "bind" else 200

    @staticmethod
    def change(kind, pod, rest):
        if kind == "label":
            pod["app"] = rest[0]
        elif kind == "bind":
            pod["bound"] = True
        elif kind in ("hold", "release"):
            pod["held"] = kind == "hold"
        elif kind == "delete":
            asked = 30 if rest[0] is None else rest[0]
            grace = asked if pod["bound"] else 0
            pod["grace"] = grace if pod["grace"] is None else min(grace, pod["grace"])


def carry_out(api, operation):
    kind, name, *rest = operation
    if kind == "create":
        return api.create(pod_manifest(name, labels={"app": rest[0]})).status
    if kind == "label":
        return api.patch("pods", name, {"metadata": {"labels": {"app": rest[0]}}}).status
    if kind == "bind":
        return api.bind(name, "n1").status
    if kind in ("hold", "release"):
        return api.patch("pods", name, {"metadata": {"finalizers": [FINALIZER] if kind == "hold" else None}}).status
    return api.delete("pods", name, None if rest[0] is None else {"gracePeriodSeconds": rest[0]}).status


@calm
@given(OPERATIONS)
def test_the_server_does_what_the_model_does(new_api, operations):
    api, model = new_api(), Model()
    for operation in operations:
        if operation[0] == "poll":
            continue
        assert carry_out(api, operation) == model.apply(operation), operation
        assert set(api.names("pods")) == model.pods.keys()
    for name, pod in model.pods.items():
        stored = api.get("pods", name)
        assert stored["metadata"]["labels"]["app"] == pod["app"]
        assert ("nodeName" in stored["spec"]) is pod["bound"]
        assert (FINALIZER in stored["metadata"].get("finalizers", ())) is pod["held"]
        assert stored["metadata"].get("deletionGracePeriodSeconds") == pod["grace"]


class Reader:
    """Folds a watch into a map, and checks that every event makes sense where it comes."""

    def __init__(self, watch):
        self.watch = watch
        self.known = {}
        self.revision = 0

    def read(self):
        for event in self.watch.poll():
            name, revision = event.object["metadata"]["name"], int(event.object["metadata"]["resourceVersion"])
            assert (event.type == "ADDED") is (name not in self.known), event
            assert event.revision >= self.revision
            self.revision = event.revision
            if event.type == "DELETED":
                assert revision == event.revision
                del self.known[name]
            else:
                self.known[name] = event.object


@calm
@given(OPERATIONS)
def test_a_watch_adds_up_to_the_list_at_any_moment(new_api, operations):
    api = new_api()
    queries = ({}, {"labelSelector": "app=x"}, {"fieldSelector": "spec.nodeName=n1"}, {"labelSelector": "app!=x"})
    readers = [(Reader(api.watch("pods", **query)), query) for query in queries]
    for operation in operations:
        if operation[0] != "poll":
            carry_out(api, operation)
        elif operation[1]:
            for reader, _ in readers:
                reader.read()
    for reader, query in readers:
        reader.read()
        listed = api.call("GET", api.path("pods"), query=query).body["items"]
        assert reader.known == {item["metadata"]["name"]: item for item in listed}


@calm
@given(OPERATIONS, st.integers(0, 30))
def test_any_revision_can_be_replayed_from_any_other(new_api, operations, back):
    api = new_api()
    states = {api.server.revision: {}}
    for operation in operations:
        if operation[0] != "poll":
            carry_out(api, operation)
            items = api.call("GET", api.path("pods")).body["items"]
            states[api.server.revision] = {item["metadata"]["name"]: item for item in items}
    start = max(min(states), api.server.revision - back)
    exact = {"resourceVersion": str(start), "resourceVersionMatch": "Exact"}
    past = {item["metadata"]["name"]: item for item in api.call("GET", api.path("pods"), query=exact).body["items"]}
    assert past == states.get(start, past)
    reader = Reader(api.watch("pods", resourceVersion=str(start)))
    reader.known = past
    reader.read()
    assert reader.known == states[api.server.revision]
