"""Deployments: versions of a pod template take over from one another, within the limits that the user gives."""

from __future__ import annotations

from typing import Any

from controller_world import Cluster, node

Json = dict[str, Any]
MACHINES = "deployments", "replicasets", "collector", "hollow", "nodes", "binder"
REVISION = "deployment.kubernetes.io/revision"


def deployment(name: str = "web", replicas: int = 3, *, image: str = "v1", **spec: Any) -> Json:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": image}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template, **spec},
    }


def rolling(surge: int | str, missing: int | str) -> Json:
    return {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": missing}}


def world(*manifests: Json, **options: Any) -> Cluster:
    cluster = Cluster(*MACHINES, **options)
    cluster.create(node(), *manifests)
    cluster.advance(30)
    return cluster


def set_image(cluster: Cluster, image: str, name: str = "web") -> None:
    containers = [{"name": "c", "image": image}]
    cluster.patch("deployments", name, {"spec": {"template": {"spec": {"containers": containers}}}})


def scale(cluster: Cluster, replicas: int, name: str = "web") -> None:
    cluster.patch("deployments", name, {"spec": {"replicas": replicas}}, "scale")


def image_of(obj: Json) -> str:
    spec = obj["spec"].get("template", obj)["spec"]
    return str(spec["containers"][0]["image"])


def images(cluster: Cluster) -> list[str]:
    return sorted(image_of(each) for each in cluster.all("pods") if "deletionTimestamp" not in each["metadata"])


def versions(cluster: Cluster) -> dict[str, Json]:
    return {image_of(each): each for each in cluster.all("replicasets")}


def sizes(cluster: Cluster) -> dict[str, int]:
    return {image: each["spec"]["replicas"] for image, each in sorted(versions(cluster).items())}


def condition(cluster: Cluster, type_: str, name: str = "web") -> Json:
    found = cluster.status("deployments", name).get("conditions") or ()
    return next((each for each in found if each["type"] == type_), {})


# --- versions ----------------------------------------------------------------------------------------------------


def test_it_makes_a_replica_set_that_is_told_by_the_hash_of_its_template():
    cluster = world(deployment())
    (version,) = cluster.all("replicasets")
    hashed = version["metadata"]["labels"]["pod-template-hash"]
    assert version["metadata"]["name"] == f"web-{hashed}"
    assert version["spec"]["selector"]["matchLabels"] == {"app": "web", "pod-template-hash": hashed}
    assert version["metadata"]["annotations"] == {
        REVISION: "1",
        "deployment.kubernetes.io/desired-replicas": "3",
        "deployment.kubernetes.io/max-replicas": "4",
    }
    assert {each["metadata"]["labels"]["pod-template-hash"] for each in cluster.all("pods")} == {hashed}
    assert cluster.get("deployments", "web")["metadata"]["annotations"][REVISION] == "1"


def test_its_status_adds_up_and_says_that_it_is_done():
    cluster = world(deployment())
    status = cluster.status("deployments", "web")
    counts = {key: value for key, value in status.items() if key != "conditions" and value}
    assert counts == {
        "observedGeneration": 1,
        "replicas": 3,
        "updatedReplicas": 3,
        "readyReplicas": 3,
        "availableReplicas": 3,
    }
    said = {each["type"]: (each["status"], each["reason"]) for each in status["conditions"]}
    assert said == {
        "Available": ("True", "MinimumReplicasAvailable"),
        "Progressing": ("True", "NewReplicaSetAvailable"),
    }


def test_a_new_template_takes_over_and_the_old_version_stays_for_the_record():
    cluster = world(deployment())
    set_image(cluster, "v2")
    cluster.advance(30)
    assert images(cluster) == ["v2"] * 3
    assert sizes(cluster) == {"v1": 0, "v2": 3}
    assert [versions(cluster)[each]["metadata"]["annotations"][REVISION] for each in ("v1", "v2")] == ["1", "2"]
    assert "ScalingReplicaSet" in cluster.reasons("Deployment")


def test_going_back_makes_the_old_version_the_newest_again_and_keeps_its_numbers():
    cluster = world(deployment())
    for image in ("v2", "v1"):
        set_image(cluster, image)
        cluster.advance(30)
    assert sizes(cluster) == {"v1": 3, "v2": 0}
    annotations = versions(cluster)["v1"]["metadata"]["annotations"]
    assert (annotations[REVISION], annotations["deployment.kubernetes.io/revision-history"]) == ("3", "1")
    assert cluster.get("deployments", "web")["metadata"]["annotations"][REVISION] == "3"


def test_what_a_typed_client_makes_of_a_template_is_no_other_template():
    """kubectl's undo and every client in Go write `resources: {}` and nulls where people write nothing."""
    cluster = world(deployment())
    before = {each["metadata"]["uid"] for each in cluster.all("pods")}
    template = cluster.get("deployments", "web")["spec"]["template"]
    (container,) = template["spec"]["containers"]
    rewritten = {**container, "resources": {}, "env": []}
    meta = {**template["metadata"], "creationTimestamp": None, "annotations": {}}
    again = {"metadata": meta, "spec": {**template["spec"], "containers": [rewritten], "nodeSelector": {}}}
    cluster.patch("deployments", "web", {"spec": {"template": again}})
    cluster.advance(30)
    assert {each["metadata"]["uid"] for each in cluster.all("pods")} == before
    assert len(cluster.all("replicasets")) == 1
    set_image(cluster, "v2")
    cluster.advance(30)
    cluster.patch("deployments", "web", {"spec": {"template": {"spec": {"containers": [container]}}}})
    cluster.advance(30)
    assert sizes(cluster) == {"v1": 3, "v2": 0}


def test_only_as_many_old_versions_are_kept_as_it_says():
    cluster = world(deployment(revisionHistoryLimit=2))
    for number in range(2, 7):
        set_image(cluster, f"v{number}")
        cluster.advance(30)
    assert sizes(cluster) == {"v4": 0, "v5": 0, "v6": 3}


def test_a_name_that_is_taken_is_avoided_by_another_hash():
    first = world(deployment())
    name = first.all("replicasets")[0]["metadata"]["name"]
    cluster = Cluster(*MACHINES)
    foreign = {"app": "other"}
    template = {"metadata": {"labels": foreign}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    spec = {"replicas": 0, "selector": {"matchLabels": foreign}, "template": template}
    meta = {"name": name, "namespace": "default"}
    cluster.create(node(), {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": meta, "spec": spec})
    cluster.create(deployment())
    cluster.advance(30)
    assert images(cluster) == ["v1"] * 3
    assert cluster.status("deployments", "web")["collisionCount"] == 1


def test_annotations_go_along_with_it_and_so_does_min_ready_seconds():
    cluster = world(deployment())
    cluster.patch("deployments", "web", {"metadata": {"annotations": {"kubernetes.io/change-cause": "why not"}}})
    cluster.patch("deployments", "web", {"spec": {"minReadySeconds": 3}})
    cluster.advance(30)
    (version,) = cluster.all("replicasets")
    assert version["metadata"]["annotations"]["kubernetes.io/change-cause"] == "why not"
    assert version["spec"]["minReadySeconds"] == 3


def test_a_replica_set_without_owner_is_adopted_and_counts_as_a_version():
    cluster = world(deployment())
    cluster.delete("deployments", "web", propagation="Orphan")
    cluster.advance(10)
    before = cluster.all("pods")
    cluster.create(deployment())
    cluster.advance(30)
    (version,) = cluster.all("replicasets")
    assert version["metadata"]["ownerReferences"][0]["kind"] == "Deployment"
    assert {each["metadata"]["uid"] for each in cluster.all("pods")} == {each["metadata"]["uid"] for each in before}


def test_everything_goes_with_it():
    for propagation in ("Background", "Foreground"):
        cluster = world(deployment())
        set_image(cluster, "v2")
        cluster.advance(2)
        cluster.delete("deployments", "web", propagation=propagation)
        cluster.advance(30)
        assert [cluster.all(each) for each in ("deployments", "replicasets", "pods")] == [[], [], []]


# --- how it changes ----------------------------------------------------------------------------------------------


def test_a_version_that_never_gets_ready_takes_only_what_may_be_missing():
    cluster = world(deployment(replicas=4, strategy=rolling("25%", "25%")))
    stuck = {"spec": {"template": {"spec": {"schedulerName": "nobody", "nodeSelector": {"a": "b"}}}}}
    cluster.patch("nodes", "n1", {"metadata": {"annotations": {"muster.dev/lost": "true"}}})
    cluster.patch("deployments", "web", stuck)
    cluster.advance(15)
    assert sorted(each["spec"]["replicas"] for each in cluster.all("replicasets")) == [2, 3]
    assert cluster.status("deployments", "web")["availableReplicas"] == 3


def test_recreating_takes_all_old_pods_away_before_it_makes_a_new_one():
    cluster = world(deployment(strategy={"type": "Recreate"}), stop_delay=10_000_000)
    set_image(cluster, "v2")
    cluster.advance(5)
    assert {image_of(each) for each in cluster.all("pods")} == {"v1"}
    cluster.advance(30)
    assert images(cluster) == ["v2"] * 3


def test_scaling_while_versions_change_keeps_the_proportions():
    cluster = world(deployment(replicas=10, strategy=rolling(3, 2)))
    cluster.patch("nodes", "n1", {"metadata": {"annotations": {"muster.dev/lost": "true"}}})
    set_image(cluster, "v2")
    cluster.advance(10)
    assert sizes(cluster) == {"v1": 8, "v2": 5}
    scale(cluster, 15)
    cluster.advance(5)
    assert sizes(cluster) == {"v1": 11, "v2": 7}


def test_scaling_down_and_up_again_is_no_new_version():
    cluster = world(deployment())
    for size in (0, 5, 2):
        scale(cluster, size)
        cluster.advance(30)
        assert len(images(cluster)) == size
        assert cluster.status("deployments", "web").get("availableReplicas", 0) == size
    assert len(cluster.all("replicasets")) == 1


def test_while_it_is_paused_it_scales_but_rolls_nothing_out():
    cluster = world(deployment())
    cluster.patch("deployments", "web", {"spec": {"paused": True}})
    set_image(cluster, "v2")
    scale(cluster, 5)
    cluster.advance(30)
    assert images(cluster) == ["v1"] * 5
    assert condition(cluster, "Progressing")["reason"] == "DeploymentPaused"
    cluster.patch("deployments", "web", {"spec": {"paused": False}})
    cluster.advance(30)
    assert images(cluster) == ["v2"] * 5
    assert condition(cluster, "Progressing")["reason"] == "NewReplicaSetAvailable"


# --- whether it gets on ------------------------------------------------------------------------------------------


def test_without_progress_for_so_long_it_is_stuck_until_it_gets_on():
    cluster = world(deployment(progressDeadlineSeconds=60))
    cluster.patch("nodes", "n1", {"metadata": {"annotations": {"muster.dev/lost": "true"}}})
    set_image(cluster, "v2")
    cluster.advance(30)
    assert condition(cluster, "Progressing")["reason"] == "ReplicaSetUpdated"
    cluster.advance(60)
    stuck = condition(cluster, "Progressing")
    assert (stuck["status"], stuck["reason"]) == ("False", "ProgressDeadlineExceeded")
    cluster.patch("nodes", "n1", {"metadata": {"annotations": {"muster.dev/lost": None}}})
    cluster.advance(400)
    assert condition(cluster, "Progressing")["reason"] == "NewReplicaSetAvailable"


def test_pods_that_are_refused_are_told_in_its_status():
    urgent = deployment()
    urgent["spec"]["template"]["spec"]["priorityClassName"] = "urgent"
    cluster = world(urgent)
    assert condition(cluster, "ReplicaFailure")["reason"] == "FailedCreate"
    assert condition(cluster, "Available")["reason"] == "MinimumReplicasUnavailable"
    cluster.create({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent"}})
    cluster.advance(120)
    assert not condition(cluster, "ReplicaFailure")
    assert condition(cluster, "Available")["status"] == "True"


def test_a_version_that_may_not_be_made_is_told_in_its_status_and_tried_again():
    cluster = Cluster(*MACHINES)
    meta = {"name": "q", "namespace": "default"}
    hard = {"count/replicasets.apps": "0"}
    cluster.create(node(), {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta, "spec": {"hard": hard}})
    cluster.create(deployment())
    cluster.advance(10)
    failed = condition(cluster, "Progressing")
    assert (failed["status"], failed["reason"]) == ("False", "ReplicaSetCreateError")
    assert "exceeded quota: q" in failed["message"]
    assert cluster.reasons("Deployment") == ["ReplicaSetCreateError"]
    cluster.patch("resourcequotas", "q", {"spec": {"hard": {"count/replicasets.apps": "5"}}})
    cluster.advance(60)
    assert images(cluster) == ["v1"] * 3
    assert condition(cluster, "Progressing")["reason"] == "NewReplicaSetAvailable"


def test_a_deployment_at_rest_writes_nothing_and_wakes_nobody():
    cluster = world(deployment(), deployment("db", strategy={"type": "Recreate"}))
    set_image(cluster, "v2")
    cluster.advance(100)
    revision = cluster.server.revision
    for name in ("deployments", "replicasets"):
        cluster.world.restart(name)
    cluster.advance(24 * 3600)
    assert cluster.server.revision == revision
