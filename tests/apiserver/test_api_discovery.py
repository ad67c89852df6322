from __future__ import annotations

from muster.api import catalog
from muster.api.calls import Request
from muster.api.gates import FeatureGates


def read(api, path, accept=""):
    answer = api.server.handle(Request("GET", path, accept=accept), api.now)
    assert answer.status == 200, answer.body
    return answer


def test_every_served_kind_can_be_found(api):
    found = set()
    for group in read(api, "/apis").body["groups"]:
        assert read(api, f"/apis/{group['name']}").body["versions"] == group["versions"]
        for version in group["versions"]:
            body = read(api, f"/apis/{version['groupVersion']}").body
            found |= {(body["groupVersion"], entry["name"]) for entry in body["resources"]}
    assert read(api, "/api").body["versions"] == ["v1"]
    found |= {("v1", entry["name"]) for entry in read(api, "/api/v1").body["resources"]}
    wanted = {(kind.api_version, kind.plural) for kind in catalog.SERVED}
    wanted |= {(kind.api_version, f"{kind.plural}/{sub}") for kind in catalog.SERVED for sub in kind.subresources}
    assert found == wanted


def test_kinds_behind_a_gate_are_hidden(new_api):
    api = new_api(FeatureGates())
    (group,) = [group for group in read(api, "/apis").body["groups"] if group["name"] == "scheduling.k8s.io"]
    assert [version["version"] for version in group["versions"]] == ["v1"]


def test_the_stable_version_of_a_group_is_preferred(api):
    body = read(api, "/apis/scheduling.k8s.io").body
    assert [entry["version"] for entry in body["versions"]] == ["v1", "v1beta1", "v1alpha3"]
    assert body["preferredVersion"]["version"] == "v1"


def test_what_is_found_is_served(api):
    for kind in catalog.KINDS:
        assert api.call("GET", kind.path(None)).status == 200


def test_everything_at_once_for_kubectl(api):
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
    core, groups = read(api, "/api", accept), read(api, "/apis", accept)
    assert core.body["kind"] == groups.body["kind"] == "APIGroupDiscoveryList"
    assert "as=APIGroupDiscoveryList" in groups.headers["Content-Type"]
    (version,) = core.body["items"][0]["versions"]
    pods = next(entry for entry in version["resources"] if entry["resource"] == "pods")
    assert pods["scope"] == "Namespaced" and pods["responseKind"]["kind"] == "Pod"
    binding = next(entry for entry in pods["subresources"] if entry["subresource"] == "binding")
    assert binding == {
        "subresource": "binding",
        "responseKind": {"group": "", "version": "v1", "kind": "Binding"},
        "verbs": ["create"],
    }


def test_the_version_is_that_of_the_api(api):
    body = read(api, "/version").body
    assert (body["major"], body["minor"]) == ("1", "37")


def test_health_is_plain_text(api):
    assert [read(api, path).body for path in ("/healthz", "/livez", "/readyz")] == ["ok"] * 3


def test_discovery_is_read_only(api):
    assert api.call("POST", "/apis", {}).status == 405
    assert api.call("DELETE", "/version").status == 405
    assert api.call("PUT", "/api/v1", {}).status == 405
