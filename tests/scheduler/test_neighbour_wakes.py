"""What wakes a pod that waits for, or because of, other pods; and what does not (M4)."""

from typing import Any

from muster.testing.builders import gang_manifests, node_manifest, pod_manifest
from synchronous import Driver


def rule(kind: str, app: str, key: str = "zone") -> dict[str, Any]:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def with_nodes(*zones: str) -> Driver:
    driver = Driver()
    driver.create(*(node_manifest(f"n-{zone}", cpu="8", labels={"zone": zone}) for zone in zones))
    return driver


def running(name: str, app: str, node: str, **spec: Any) -> dict[str, Any]:
    return pod_manifest(name, labels={"app": app}, nodeName=node, **spec)


def relabel(driver: Driver, name: str, app: str) -> None:
    driver.change("Pod", name, lambda raw: raw["metadata"].update(labels={"app": app}))


def test_a_pod_that_wants_another_near_is_woken_when_that_one_comes():
    driver = with_nodes("a")
    driver.create(pod_manifest("p", affinity=rule("podAffinity", "db")))
    assert driver.nodes_of("p") == [None]
    driver.advance(30)
    decisions = driver.decisions
    driver.create(running("other", "cache", "n-a"))
    assert driver.decisions == decisions
    driver.create(running("db", "db", "n-a"))
    assert driver.nodes_of("p") == ["n-a"]


def test_a_relabelled_pod_wakes_whom_it_lets_in():
    driver = with_nodes("a")
    driver.create(running("other", "web", "n-a"), pod_manifest("p", affinity=rule("podAntiAffinity", "web")))
    driver.advance(30)
    assert driver.nodes_of("p") == [None]
    relabel(driver, "other", "quiet")
    assert driver.nodes_of("p") == ["n-a"]


def test_a_pod_that_is_kept_out_is_woken_when_it_is_relabelled_itself():
    driver = with_nodes("a")
    driver.create(running("hermit", "hermit", "n-a", affinity=rule("podAntiAffinity", "web")))
    driver.create(pod_manifest("p", labels={"app": "web"}))
    driver.advance(30)
    assert driver.nodes_of("p") == [None]
    relabel(driver, "p", "quiet")
    assert driver.nodes_of("p") == ["n-a"]


def test_alike_pods_with_other_labels_do_not_wait_behind_one_that_is_kept_out():
    driver = with_nodes("a")
    driver.create(running("big", "big", "n-a", cpu="8"))
    driver.create(pod_manifest("a", labels={"app": "web"}), pod_manifest("b", labels={"app": "quiet"}))
    driver.advance(30)
    driver.create(running("hermit", "hermit", "n-a", cpu=None, affinity=rule("podAntiAffinity", "web")))
    driver.delete("Pod", "big")
    driver.advance(60)
    assert driver.nodes_of("a", "b") == [None, "n-a"]


def test_a_node_that_gets_the_label_lets_a_spread_pod_in():
    driver = Driver()
    driver.create(node_manifest("n1", cpu="8"))
    constraint = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    driver.create(pod_manifest("p", labels={"app": "web"}, topologySpreadConstraints=[constraint]))
    driver.advance(30)
    assert driver.nodes_of("p") == [None]
    driver.change("Node", "n1", lambda raw: raw["metadata"]["labels"].update(zone="a"))
    assert driver.nodes_of("p") == ["n1"]


def test_a_gang_whose_members_keep_apart_is_woken_by_a_new_domain():
    driver = with_nodes("a")
    driver.create(*gang_manifests("g", 2, labels={"app": "web"}, affinity=rule("podAntiAffinity", "web")))
    driver.advance(30)
    assert driver.nodes_of("g-0", "g-1") == [None, None]
    driver.create(node_manifest("n-b", cpu="8", labels={"zone": "b"}))
    driver.advance(30)
    assert sorted(driver.nodes_of("g-0", "g-1")) == ["n-a", "n-b"]
