"""The StatefulSet controller in a world with an API server, kubelets and a binder."""

from __future__ import annotations

from typing import Any

import pytest
from controller_world import Cluster, node

from muster.api.calls import Request

SELECTED = {"app": "web"}
CONTAINER = {"name": "main", "image": "registry.example/web:1"}
CLAIM = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}
SETTLED = 30


def template(image: str = "registry.example/web:1", **annotations: str) -> dict[str, Any]:
    meta: dict[str, Any] = {"labels": SELECTED}
    if annotations:
        meta["annotations"] = annotations
    return {"metadata": meta, "spec": {"containers": [{**CONTAINER, "image": image}]}}


def stateful_set(name: str = "web", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": SELECTED}, "serviceName": name, "template": template(), **spec},
    }


def settled(*manifests: dict[str, Any], seconds: float = SETTLED, **options: Any) -> Cluster:
    cluster = Cluster(**options)
    cluster.create(node(), *manifests)
    cluster.advance(seconds)
    return cluster


def names(cluster: Cluster, resource: str = "pods") -> list[str]:
    return sorted(each["metadata"]["name"] for each in cluster.all(resource))


def images(cluster: Cluster) -> dict[str, str]:
    return {
        each["metadata"]["name"]: each["spec"]["containers"][0]["image"].rpartition(":")[2]
        for each in cluster.all("pods")
    }


def update(cluster: Cluster, seconds: float = SETTLED, **spec: Any) -> None:
    cluster.patch("statefulsets", "web", {"spec": spec})
    cluster.advance(seconds)


def test_pods_have_names_ordinals_and_revisions() -> None:
    cluster = settled(stateful_set(replicas=3))
    assert names(cluster) == ["web-0", "web-1", "web-2"]
    pod = cluster.get("pods", "web-1")
    assert pod is not None
    status = cluster.status("statefulsets", "web")
    assert pod["metadata"]["labels"] == {
        **SELECTED,
        "apps.kubernetes.io/pod-index": "1",
        "statefulset.kubernetes.io/pod-name": "web-1",
        "controller-revision-hash": status["updateRevision"],
    }
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("web-1", "web")
    assert names(cluster, "controllerrevisions") == [status["currentRevision"]]
    counts = ("replicas", "readyReplicas", "availableReplicas", "currentReplicas", "updatedReplicas")
    assert [status[field] for field in counts] == [3] * 5
    assert (status["observedGeneration"], status["collisionCount"]) == (1, 0)
    assert sorted(set(cluster.reasons("StatefulSet"))) == ["SuccessfulCreate"]


def test_a_pod_is_made_only_when_those_before_it_are_available() -> None:
    cluster = settled(stateful_set(replicas=3, minReadySeconds=5), seconds=0.1)
    seen = []
    for _ in range(25):
        seen.append(len(names(cluster)))
        cluster.advance(1)
    assert seen[0] == 1 and seen[-1] == 3 and sorted(seen) == seen
    assert seen.count(1) >= 6 and seen.count(2) >= 6


def test_a_parallel_set_makes_and_deletes_its_pods_at_once() -> None:
    cluster = settled(stateful_set(replicas=5, podManagementPolicy="Parallel"), seconds=0.5)
    assert len(names(cluster)) == 5
    cluster.advance(5)
    update(cluster, seconds=0.5, replicas=1)
    assert sum(bool(each["metadata"].get("deletionTimestamp")) for each in cluster.all("pods")) == 4


def test_pods_go_one_by_one_the_last_one_first() -> None:
    cluster = settled(stateful_set(replicas=4))
    cluster.patch("statefulsets", "web", {"spec": {"replicas": 1}})
    seen = [names(cluster)]
    for _ in range(40):
        cluster.advance(0.25)
        if names(cluster) != seen[-1]:
            seen.append(names(cluster))
    assert seen == [[f"web-{each}" for each in range(count)] for count in (4, 3, 2, 1)]
    assert cluster.status("statefulsets", "web")["replicas"] == 1


def test_ordinals_may_start_anywhere() -> None:
    cluster = settled(stateful_set(replicas=2, ordinals={"start": 5}))
    assert names(cluster) == ["web-5", "web-6"]
    update(cluster, ordinals={"start": 6})
    assert names(cluster) == ["web-6", "web-7"]


def test_a_pod_that_ends_or_is_deleted_comes_back_under_its_name() -> None:
    cluster = settled(stateful_set(replicas=2))
    before = {each["metadata"]["name"]: each["metadata"]["uid"] for each in cluster.all("pods")}
    cluster.patch("pods", "web-0", {"status": {"phase": "Failed"}}, "status")
    cluster.delete("pods", "web-1")
    cluster.advance(SETTLED)
    after = {each["metadata"]["name"]: each["metadata"]["uid"] for each in cluster.all("pods")}
    assert sorted(after) == ["web-0", "web-1"] and not set(before.values()) & set(after.values())
    assert cluster.status("statefulsets", "web")["readyReplicas"] == 2


def test_an_update_goes_from_the_last_pod_to_the_first_one_at_a_time() -> None:
    cluster = settled(stateful_set(replicas=3))
    old = cluster.status("statefulsets", "web")["currentRevision"]
    cluster.patch("statefulsets", "web", {"spec": {"template": template("registry.example/web:2")}})
    seen: list[dict[str, str]] = []
    for _ in range(100):
        cluster.advance(0.25)
        ready = cluster.status("statefulsets", "web").get("readyReplicas", 0)
        assert ready >= 2
        if not seen or images(cluster) != seen[-1]:
            seen.append(images(cluster))
    steps = [{name for name, image in each.items() if image == "2"} for each in seen]
    order = [step for i, step in enumerate(steps) if i == 0 or step != steps[i - 1]]
    assert order == [set(), {"web-2"}, {"web-1", "web-2"}, {"web-0", "web-1", "web-2"}]
    status = cluster.status("statefulsets", "web")
    assert status["currentRevision"] == status["updateRevision"] != old
    assert status["currentReplicas"] == status["updatedReplicas"] == 3


def test_a_partition_keeps_the_first_pods_at_the_old_revision() -> None:
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
    cluster = settled(stateful_set(replicas=3, updateStrategy=rolling))
    update(cluster, template=template("registry.example/web:2"))
    assert images(cluster) == {"web-0": "1", "web-1": "1", "web-2": "2"}
    cluster.delete("pods", "web-0")
    cluster.advance(SETTLED)
    assert images(cluster)["web-0"] == "1", "a pod below the partition comes back as it was"
    status = cluster.status("statefulsets", "web")
    assert status["currentRevision"] != status["updateRevision"]
    assert (status["currentReplicas"], status["updatedReplicas"]) == (2, 1)
    update(cluster, updateStrategy={"rollingUpdate": {"partition": 0}})
    assert set(images(cluster).values()) == {"2"}


def test_more_pods_may_be_updated_at_a_time() -> None:
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "50%"}}
    cluster = settled(stateful_set(replicas=4, updateStrategy=rolling, podManagementPolicy="Parallel"))
    cluster.patch("statefulsets", "web", {"spec": {"template": template("registry.example/web:2")}})
    fewest = 4
    for _ in range(60):
        cluster.advance(0.25)
        fewest = min(fewest, cluster.status("statefulsets", "web")["availableReplicas"])
    assert fewest == 2 and set(images(cluster).values()) == {"2"}


def test_on_delete_leaves_updating_to_the_user() -> None:
    cluster = settled(stateful_set(replicas=2, updateStrategy={"type": "OnDelete"}))
    update(cluster, template=template("registry.example/web:2"))
    assert set(images(cluster).values()) == {"1"}
    cluster.delete("pods", "web-0")
    cluster.advance(SETTLED)
    assert images(cluster) == {"web-0": "2", "web-1": "1"}


def test_what_a_typed_client_makes_of_a_template_is_no_other_revision() -> None:
    cluster = settled(stateful_set(replicas=2))
    before = {each["metadata"]["uid"] for each in cluster.all("pods")}
    given = cluster.get("statefulsets", "web")["spec"]["template"]
    containers = [{**each, "resources": {}} for each in given["spec"]["containers"]]
    update(cluster, template={**given, "spec": {**given["spec"], "containers": containers}})
    assert {each["metadata"]["uid"] for each in cluster.all("pods")} == before
    assert len(cluster.all("controllerrevisions")) == 1


def test_revisions_are_kept_up_to_the_limit_and_an_old_one_becomes_the_newest_again() -> None:
    cluster = settled(stateful_set(replicas=1, revisionHistoryLimit=2))
    first = cluster.status("statefulsets", "web")["updateRevision"]
    for version in range(2, 6):
        update(cluster, template=template(f"registry.example/web:{version}"))
    there = {each["metadata"]["name"]: each["revision"] for each in cluster.all("controllerrevisions")}
    assert sorted(there.values()) == [3, 4, 5] and first not in there
    update(cluster, template=template("registry.example/web:4"))
    again = {each["metadata"]["name"]: each["revision"] for each in cluster.all("controllerrevisions")}
    assert sorted(again.values()) == [3, 5, 6] and set(again) == set(there)
    assert set(images(cluster).values()) == {"4"}


def test_claims_are_made_before_their_pods_and_outlive_them() -> None:
    cluster = settled(stateful_set(replicas=2, volumeClaimTemplates=[CLAIM]))
    assert names(cluster, "persistentvolumeclaims") == ["data-web-0", "data-web-1"]
    claim = cluster.get("persistentvolumeclaims", "data-web-1")
    assert claim is not None and claim["metadata"]["labels"] == SELECTED
    pod = cluster.get("pods", "web-1")
    assert pod is not None
    assert pod["spec"]["volumes"][0] == {"name": "data", "persistentVolumeClaim": {"claimName": "data-web-1"}}
    update(cluster, replicas=0)
    assert names(cluster) == [] and len(names(cluster, "persistentvolumeclaims")) == 2
    update(cluster, replicas=2)
    again = cluster.get("persistentvolumeclaims", "data-web-1")
    assert again is not None and again["metadata"]["uid"] == claim["metadata"]["uid"]


@pytest.mark.parametrize(
    ("policy", "scaled", "left"),
    [
        ({"whenScaled": "Delete"}, ["data-web-0"], ["data-web-0"]),
        ({"whenDeleted": "Delete"}, ["data-web-0", "data-web-1"], []),
        ({"whenScaled": "Delete", "whenDeleted": "Delete"}, ["data-web-0"], []),
        ({}, ["data-web-0", "data-web-1"], ["data-web-0", "data-web-1"]),
    ],
)
def test_claims_go_with_what_the_policy_says(policy: dict[str, str], scaled: list[str], left: list[str]) -> None:
    spec = {"volumeClaimTemplates": [CLAIM], "persistentVolumeClaimRetentionPolicy": policy}
    cluster = settled(stateful_set(replicas=2, **spec))
    assert len(names(cluster, "persistentvolumeclaims")) == 2
    update(cluster, replicas=1)
    assert names(cluster, "persistentvolumeclaims") == scaled
    if policy == {"whenDeleted": "Delete"}:
        update(cluster, replicas=2)
    cluster.delete("statefulsets", "web")
    cluster.advance(SETTLED)
    assert names(cluster) == [] and names(cluster, "controllerrevisions") == []
    assert names(cluster, "persistentvolumeclaims") == left


def test_pods_of_a_deleted_set_are_taken_over_by_its_successor() -> None:
    cluster = settled(stateful_set(replicas=2))
    before = {each["metadata"]["uid"] for each in cluster.all("pods")}
    cluster.delete("statefulsets", "web", propagation="Orphan")
    cluster.advance(SETTLED)
    assert len(names(cluster)) == 2
    cluster.create(stateful_set(replicas=2))
    cluster.advance(SETTLED)
    assert {each["metadata"]["uid"] for each in cluster.all("pods")} == before
    new = cluster.get("statefulsets", "web")
    assert new is not None
    for child in (*cluster.all("pods"), *cluster.all("controllerrevisions")):
        assert child["metadata"]["ownerReferences"][0]["uid"] == new["metadata"]["uid"]
    assert len(names(cluster, "controllerrevisions")) == 1


def test_a_pod_with_other_labels_is_let_go_and_its_name_is_waited_for() -> None:
    cluster = settled(stateful_set(replicas=1))
    cluster.patch("pods", "web-0", {"metadata": {"labels": {"app": "mine"}}})
    cluster.advance(SETTLED)
    pod = cluster.get("pods", "web-0")
    assert pod is not None and not pod["metadata"].get("ownerReferences")
    assert "FailedCreate" in cluster.reasons("StatefulSet")
    cluster.delete("pods", "web-0")
    cluster.advance(120)
    assert cluster.status("statefulsets", "web")["readyReplicas"] == 1


def test_a_revision_of_another_that_has_the_name_counts_as_a_collision() -> None:
    first = settled(stateful_set(replicas=1))
    name = first.status("statefulsets", "web")["updateRevision"]
    taken = {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {"name": name, "namespace": "default"},
        "data": {"other": True},
        "revision": 1,
    }
    cluster = settled(taken, stateful_set(replicas=1))
    status = cluster.status("statefulsets", "web")
    assert status["collisionCount"] == 1 and status["updateRevision"] != name and status["readyReplicas"] == 1


def test_a_set_that_is_at_rest_writes_nothing() -> None:
    cluster = settled(stateful_set(replicas=3, volumeClaimTemplates=[CLAIM]))
    revision = cluster.server.revision
    cluster.advance(300)
    assert cluster.server.revision == revision


def test_scale_is_what_the_subresource_says() -> None:
    cluster = settled(stateful_set(replicas=1))
    body = {"spec": {"replicas": 2}}
    path = "/apis/apps/v1/namespaces/default/statefulsets/web/scale"
    done = cluster.world.call(Request("PATCH", path, body=body, content_type="application/merge-patch+json"))
    assert done.ok
    cluster.advance(SETTLED)
    got = cluster.world.call(Request("GET", path)).body
    assert got["status"] == {"replicas": 2, "selector": "app=web"}
