"""ReplicaSets have as many pods as they should: of their own, or adopted; and say how many."""

from __future__ import annotations

from typing import Any

from controller_world import Cluster, node, pod

from muster.api import writes

Json = dict[str, Any]
QUIET = "replicasets", "collector", "hollow", "nodes", "binder"


def replica_set(name: str = "web", replicas: int = 3, *, labels: Json | None = None, **spec: Any) -> Json:
    labels = labels or {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "pause"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template, **spec},
    }


def world(*manifests: Json, **options: Any) -> Cluster:
    cluster = Cluster(*QUIET, **options)
    cluster.create(node(), *manifests)
    cluster.advance(30)
    return cluster


def scale(cluster: Cluster, replicas: int, name: str = "web") -> None:
    cluster.patch("replicasets", name, {"spec": {"replicas": replicas}}, "scale")


def living(cluster: Cluster) -> list[Json]:
    return [each for each in cluster.all("pods") if "deletionTimestamp" not in each["metadata"]]


def names(cluster: Cluster) -> set[str]:
    return {each["metadata"]["name"] for each in living(cluster)}


def controlled(pod: Json) -> bool:
    return any(each.get("controller") for each in pod["metadata"].get("ownerReferences") or ())


# --- numbers -----------------------------------------------------------------------------------------------------


def test_it_has_as_many_pods_as_it_says_each_made_from_the_template_and_owned():
    cluster = world(replica_set(replicas=5))
    pods = cluster.all("pods")
    assert len(pods) == 5
    owner = cluster.get("replicasets", "web")["metadata"]
    for each in pods:
        assert each["metadata"]["labels"] == {"app": "web"}
        assert each["metadata"]["name"].startswith("web-")
        reference = each["metadata"]["ownerReferences"][0]
        assert (reference["uid"], reference["controller"], reference["kind"]) == (owner["uid"], True, "ReplicaSet")
    assert cluster.status("replicasets", "web") == {
        "replicas": 5,
        "fullyLabeledReplicas": 5,
        "readyReplicas": 5,
        "availableReplicas": 5,
        "observedGeneration": 1,
    }
    assert cluster.reasons("ReplicaSet").count("SuccessfulCreate") == 5


def test_it_grows_and_shrinks_and_counts_its_generations():
    cluster = world(replica_set())
    first = names(cluster)
    scale(cluster, 6)
    cluster.advance(5)
    assert len(names(cluster)) == 6
    assert first < names(cluster)
    scale(cluster, 1)
    cluster.advance(5)
    assert len(names(cluster)) == 1
    assert cluster.status("replicasets", "web")["observedGeneration"] == 3
    scale(cluster, 0)
    cluster.advance(5)
    assert cluster.all("pods") == []
    assert cluster.status("replicasets", "web")["replicas"] == 0


def test_a_pod_that_is_killed_or_ends_is_replaced_under_another_name():
    cluster = world(replica_set())
    first = names(cluster)
    killed, ended = sorted(first)[:2]
    cluster.delete("pods", killed)
    cluster.patch("pods", ended, {"status": {"phase": "Failed"}}, "status")
    cluster.advance(5)
    assert len([each for each in living(cluster) if each["status"]["phase"] == "Running"]) == 3
    assert killed not in names(cluster)
    assert cluster.status("replicasets", "web")["readyReplicas"] == 3


def test_a_pod_that_is_being_deleted_is_replaced_at_once_and_counted_apart():
    cluster = world(replica_set(), stop_delay=20_000_000)
    killed = sorted(names(cluster))[0]
    cluster.delete("pods", killed)
    cluster.advance(5)
    assert len(cluster.all("pods")) == 4
    status = cluster.status("replicasets", "web")
    assert (status["replicas"], status["terminatingReplicas"]) == (3, 1)


def test_pods_are_available_only_after_they_have_been_ready_for_long_enough():
    cluster = Cluster(*QUIET)
    cluster.create(node(), replica_set(minReadySeconds=20))
    cluster.advance(10)
    status = cluster.status("replicasets", "web")
    assert (status["readyReplicas"], status.get("availableReplicas", 0)) == (3, 0)
    cluster.advance(20)
    assert cluster.status("replicasets", "web")["availableReplicas"] == 3


# --- which one goes ----------------------------------------------------------------------------------------------


def test_pods_that_are_not_ready_or_cheap_to_delete_go_first():
    cluster = world(replica_set(replicas=4))
    unready, cheap, *others = sorted(names(cluster))
    conditions = [{"type": "Ready", "status": "False"}]
    cluster.patch("pods", unready, {"status": {"conditions": conditions}}, "status")
    annotation = {"controller.kubernetes.io/pod-deletion-cost": "-5"}
    cluster.patch("pods", cheap, {"metadata": {"annotations": annotation}})
    scale(cluster, 3)
    cluster.advance(5)
    assert names(cluster) == {cheap, *others}
    scale(cluster, 2)
    cluster.advance(5)
    assert names(cluster) == set(others)


# --- whose pods --------------------------------------------------------------------------------------------------


def test_orphans_that_it_selects_are_adopted_instead_of_new_pods():
    cluster = Cluster(*QUIET)
    cluster.create(node(), pod("old", labels={"app": "web"}), pod("other", labels={"app": "db"}))
    cluster.advance(5)
    cluster.create(replica_set(replicas=2))
    cluster.advance(5)
    assert len(living(cluster)) == 3
    assert controlled(cluster.get("pods", "old"))
    assert not controlled(cluster.get("pods", "other"))


def test_one_orphan_too_many_is_adopted_and_the_least_useful_pod_goes():
    cluster = world(replica_set(replicas=2))
    cluster.create(pod("late", labels={"app": "web"}))
    cluster.advance(5)
    assert len(living(cluster)) == 2
    assert all(map(controlled, living(cluster)))


def test_a_pod_that_it_no_longer_selects_is_let_go_and_replaced():
    cluster = world(replica_set())
    freed = sorted(names(cluster))[0]
    cluster.patch("pods", freed, {"metadata": {"labels": {"app": "debug"}}})
    cluster.advance(5)
    assert len(living(cluster)) == 4
    assert not controlled(cluster.get("pods", freed))
    cluster.patch("pods", freed, {"metadata": {"labels": {"app": "web"}}})
    cluster.advance(5)
    assert len(living(cluster)) == 3


def test_pods_of_another_controller_are_left_alone():
    cluster = Cluster("replicasets", "hollow", "binder")
    reference = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": True}
    cluster.create(pod("theirs", labels={"app": "web"}, ownerReferences=[reference]), replica_set(replicas=1))
    cluster.advance(5)
    assert [each["uid"] for each in cluster.get("pods", "theirs")["metadata"]["ownerReferences"]] == ["u"]
    assert len(living(cluster)) == 2


def test_pods_go_with_their_replica_set_unless_they_are_to_be_orphaned():
    cluster = world(replica_set(), replica_set("db"))
    cluster.delete("replicasets", "web", propagation="Foreground")
    cluster.advance(10)
    cluster.delete("replicasets", "db", propagation="Orphan")
    cluster.advance(10)
    assert cluster.all("replicasets") == []
    assert [each["metadata"]["labels"]["app"] for each in living(cluster)] == ["db"] * 3
    assert not any(map(controlled, living(cluster)))


# --- refusals ----------------------------------------------------------------------------------------------------


def test_pods_that_admission_refuses_are_reported_once_and_made_when_they_may_be():
    cluster = Cluster(*QUIET)
    urgent = replica_set(replicas=4)
    urgent["spec"]["template"]["spec"]["priorityClassName"] = "urgent"
    cluster.create(node(), urgent)
    cluster.advance(20)
    assert living(cluster) == []
    (condition,) = cluster.status("replicasets", "web")["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("ReplicaFailure", "True", "FailedCreate")
    assert "urgent" in condition["message"]
    assert cluster.reasons("ReplicaSet") == ["FailedCreate"]
    cluster.create({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent"}})
    cluster.advance(120)
    assert len(living(cluster)) == 4
    assert not cluster.status("replicasets", "web").get("conditions")


def test_pods_beyond_a_quota_are_refused_and_come_when_there_is_room():
    cluster = Cluster(*QUIET)
    meta = {"name": "q", "namespace": "default"}
    cluster.create(
        node(), {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta, "spec": {"hard": {"pods": "2"}}}
    )
    cluster.create(replica_set(replicas=4))
    cluster.advance(20)
    assert len(living(cluster)) == 2
    status = cluster.status("replicasets", "web")
    assert (status["replicas"], status["conditions"][0]["reason"]) == (2, "FailedCreate")
    assert "exceeded quota: q" in status["conditions"][0]["message"]
    cluster.patch("resourcequotas", "q", {"spec": {"hard": {"pods": "10"}}})
    cluster.advance(120)
    assert len(living(cluster)) == 4
    assert not cluster.status("replicasets", "web").get("conditions")


# --- restarts ----------------------------------------------------------------------------------------------------


def test_a_controller_that_is_restarted_at_any_moment_makes_no_pod_too_many():
    for after in range(12):
        cluster = Cluster(*QUIET, seed=after)
        cluster.create(node())
        answer = cluster.world.call(writes.create(replica_set(replicas=6)))
        assert answer.ok
        cluster.advance(after / 50)
        cluster.world.restart("replicasets")
        cluster.advance(10)
        assert len(cluster.all("pods")) == 6
        assert cluster.reasons("ReplicaSet").count("SuccessfulDelete") == 0
