"""What wakes a pod that waits for, or because of, other pods; and what does not (M4)."""

from collections.abc import Callable
from typing import Any

import pytest

from muster.testing.builders import gang_manifests, node_manifest, pod_manifest
from synchronous import Driver


def rule(kind: str, app: str, key: str = "zone", **more: Any) -> dict[str, Any]:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}, **more}
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


def spread(*, when: str = "DoNotSchedule", **fields: Any) -> list[dict[str, Any]]:
    constraint = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": when, "labelSelector": WEB, **fields}
    return [constraint]


WEB = {"matchLabels": {"app": "web"}}
SPREAD = {"topologySpreadConstraints": spread(minDomains=3)}
NEAR, APART = {"affinity": rule("podAffinity", "web")}, {"affinity": rule("podAntiAffinity", "web")}
NEAR_ITSELF = {"affinity": rule("podAffinity", "p")}
HERMIT = {"affinity": rule("podAntiAffinity", "p")}
"""What a running pod has that keeps the waiting one out."""


def add(app: str, **spec: Any) -> Callable[[Driver], None]:
    return lambda driver: driver.create(running("new", app, "full", **spec))


def end(name: str) -> Callable[[Driver], None]:
    return lambda driver: driver.delete("Pod", name)


def rename(name: str, app: str) -> Callable[[Driver], None]:
    return lambda driver: relabel(driver, name, app)


def terminate(name: str) -> Callable[[Driver], None]:
    gone = "2026-01-01T00:00:09Z"
    return lambda driver: driver.change("Pod", name, lambda raw: raw["metadata"].update(deletionTimestamp=gone))


def on_node(**labels: str) -> Callable[[Driver], None]:
    return lambda driver: driver.change("Node", "full", lambda raw: raw["metadata"]["labels"].update(labels))


def image(driver: Driver) -> None:
    images = [{"names": ["x"], "sizeBytes": 1}]
    driver.change("Node", "full", lambda raw: raw["status"].update(images=images))


def cordon(driver: Driver) -> None:
    driver.change("Node", "full", lambda raw: raw["spec"].update(unschedulable=True))


def as_team(team: str) -> Callable[[Driver], None]:
    return lambda driver: driver.change(
        "Namespace", "default", lambda raw: raw["metadata"].update(labels={"team": team})
    )


TEAM_A = {"matchLabels": {"team": "a"}}
APART_BY_SPACE = {"affinity": rule("podAntiAffinity", "web", namespaceSelector=TEAM_A)}
WISH = {"weight": 1, "podAffinityTerm": {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "cache"}}}}
APART_WISHING = {
    "affinity": {
        **rule("podAntiAffinity", "web"),
        "podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [WISH]},
    }
}
WAKES = {
    "near: one comes": (NEAR, "db", add("web"), True),
    "near: another comes": (NEAR, "db", add("cache"), False),
    "near: one becomes one": (NEAR, "db", rename("there", "web"), True),
    "near: another goes": (NEAR, "db", end("there"), False),
    "near: its node gets another label": (NEAR, "db", on_node(rack="r"), True),
    "near: its node gets an image": (NEAR, "db", image, False),
    "near: its node is cordoned": (NEAR, "db", cordon, False),
    "apart: one goes": (APART, "web", end("there"), True),
    "apart: one is relabelled": (APART, "web", rename("there", "quiet"), True),
    "apart: another one comes": (APART, "web", add("web"), False),
    "apart: one begins to go": (APART, "web", terminate("there"), False),
    "apart: whom it would rather be near comes": (APART_WISHING, "web", add("cache"), False),
    "apart: the namespace is not meant any more": (APART_BY_SPACE, "web", as_team("b"), True),
    "spread: one goes": (SPREAD, "web", end("there"), True),
    "spread: one comes": (SPREAD, "web", add("web"), True),
    "spread: one begins to go": (SPREAD, "web", terminate("there"), True),
    "spread: another begins to go": (SPREAD, "web", terminate("idle"), False),
    "spread: one is relabelled": (SPREAD, "web", rename("there", "quiet"), True),
    "kept out: the hermit goes": ({}, "hermit", end("there"), True),
    "kept out: another hermit of others goes": ({}, "hermit", end("stranger"), False),
    "kept out: another hermit comes": ({}, "hermit", add("hermit", **HERMIT), False),
    "kept out: a plain pod goes": ({}, "hermit", end("idle"), False),
}


@pytest.mark.parametrize("case", WAKES)
def test_a_waiting_pod_is_tried_again_exactly_when_a_change_may_help(case: str) -> None:
    spec, there, change, wakes = WAKES[case]
    driver = Driver()
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", "labels": {"team": "a"}}}
    driver.create(space, node_manifest("full", cpu="8", labels={"zone": "a"}))
    driver.create(running("there", there, "full", **(HERMIT if there == "hermit" else {})))
    driver.create(running("idle", "idle", "full"))
    driver.create(running("stranger", "stranger", "full", affinity=rule("podAntiAffinity", "nobody")))
    driver.create(pod_manifest("p", labels={"app": "web" if spec is SPREAD else "p"}, **spec))
    assert driver.nodes_of("p") == [None]
    driver.advance(30)
    decisions = driver.decisions
    change(driver)
    assert (driver.decisions > decisions) is wakes


def test_the_last_of_its_kind_that_goes_lets_a_pod_be_the_first() -> None:
    driver = with_nodes("a")
    driver.create(node_manifest("b", cpu="8", labels={"zone": "b"}))
    driver.change("Node", "n-a", lambda raw: raw["spec"].update(unschedulable=True))
    driver.create(running("last", "p", "n-a"), pod_manifest("p", labels={"app": "p"}, **NEAR_ITSELF))
    driver.advance(30)
    assert driver.nodes_of("p") == [None]
    driver.delete("Pod", "last")
    assert driver.nodes_of("p") == ["b"]


def taint(driver: Driver) -> None:
    taints = [{"key": "k", "value": "", "effect": "NoSchedule"}]
    driver.change("Node", "empty", lambda raw: raw["spec"].update(taints=taints))


def cordon_empty(driver: Driver) -> None:
    driver.change("Node", "empty", lambda raw: raw["spec"].update(unschedulable=True))


def move_to_a(driver: Driver) -> None:
    driver.change("Node", "empty", lambda raw: raw["metadata"]["labels"].update(zone="a"))


@pytest.mark.parametrize(
    ("policy", "change", "wakes"),
    [
        ({}, lambda driver: driver.delete("Node", "empty"), True),
        ({}, move_to_a, True),
        ({"nodeTaintsPolicy": "Honor"}, taint, True),
        ({"nodeTaintsPolicy": "Honor"}, cordon_empty, True),
        ({}, taint, False),
    ],
)
def test_a_domain_that_ends_lets_a_pod_into_the_others(policy: Any, change: Any, wakes: bool) -> None:
    """The emptiest domain has no room: without it the least is more."""
    driver = with_nodes("a")
    driver.create(node_manifest("empty", cpu="1", labels={"zone": "b"}))
    driver.create(running("there", "web", "n-a"))
    waiting = spread(**policy)
    driver.create(pod_manifest("p", labels={"app": "web"}, cpu="2", topologySpreadConstraints=waiting))
    assert driver.nodes_of("p") == [None]
    driver.advance(30)
    change(driver)
    assert (driver.nodes_of("p") == ["n-a"]) is wakes
