"""What was evicted for whom and what came of it, as data, as an event and in `explain`."""

from __future__ import annotations

from muster.api.calls import Response
from muster.model.accounts import Ending
from muster.plugins import default_profile
from muster.testing.builders import node_manifest, pod_manifest
from muster.views.why import why
from synchronous import Driver


def preempted() -> Driver:
    """The pod `low` was evicted for `vip`, and is still terminating."""
    driver = Driver(preemption=True)
    driver.create(node_manifest("n1", gpus=1), pod_manifest("low", gpus=1, nodeName="n1"))
    keep = driver._carry_out

    def carry_out(request):
        if request.method == "DELETE":
            name = request.path.split("/")[-1]
            driver.change("Pod", name, lambda raw: raw["metadata"].update(deletionTimestamp="2026-01-01T00:00:00Z"))
            return Response(200, {})
        return keep(request)

    driver._carry_out = carry_out
    driver.create(pod_manifest("vip", gpus=1, priority=10))
    assert [account.victims[0].pod.name for account in driver.scheduler.accounts.open] == ["low"]
    return driver


def last(driver: Driver):
    assert not driver.scheduler.accounts.open
    return driver.scheduler.accounts.closed[-1]


def test_an_eviction_that_did_is_closed_with_the_binding_and_nothing_is_said():
    driver = preempted()
    driver.delete("Pod", "low")
    driver.advance(2)
    assert driver.nodes_of("vip") == ["n1"]
    assert last(driver).ending is Ending.BOUND
    assert "PreemptionLost" not in [reason for reason, _ in driver.told("Pod", "vip")]


def test_a_preemptor_that_goes_away_is_the_reason():
    driver = preempted()
    driver.delete("Pod", "vip")
    driver.create(pod_manifest("other", gpus=1))
    assert last(driver).ending is Ending.GONE
    assert ("PreemptionLost", "default/low on n1 was evicted for it; it went away before it was bound") in driver.told(
        "Pod", "vip"
    )


def test_a_node_that_goes_is_the_reason_and_explain_tells():
    driver = preempted()
    driver.delete("Node", "n1")
    driver.delete("Pod", "low")
    driver.advance(5)
    account = last(driver)
    assert (account.ending, account.who) == (Ending.NODE_LOST, ("n1",))
    told = why(driver.scheduler, default_profile(), "default", "vip", "Pod")
    assert told["evictions"] == [
        {
            "victims": ["default/low"],
            "ending": "NODE_LOST",
            "who": ["n1"],
            "sentence": "default/low on n1 was evicted for it; it was not bound: gone or changed since: node n1",
        }
    ]


def test_room_that_somebody_more_important_took_is_the_reason():
    driver = preempted()
    driver.put(pod_manifest("rival", gpus=1, priority=100, preemptionPolicy="Never", nodeName="n1"), "ADDED")
    driver.delete("Pod", "low")
    driver.advance(5)
    account = last(driver)
    assert (account.ending, account.who) == (Ending.ROOM_TAKEN, ("default/rival (priority 100)",))


def test_a_new_scheduler_keeps_the_account_of_whoever_is_nominated():
    driver = preempted()
    driver.restart()
    (account,) = driver.scheduler.accounts.open
    assert (account.preemptor.key.name, account.victims) == ("vip", ())
    driver.delete("Pod", "low")
    driver.advance(2)
    assert last(driver).ending is Ending.BOUND


def test_whom_the_server_does_not_delete_is_let_be_and_somebody_else_goes():
    driver = Driver(preemption=True)
    driver.create(node_manifest("n1", gpus=1), node_manifest("n2", gpus=1))
    driver.create(pod_manifest("low1", gpus=1, nodeName="n1"), pod_manifest("low2", gpus=1, nodeName="n2"))
    keep = driver._carry_out
    asked = []

    def carry_out(request):
        if request.method == "DELETE":
            asked.append(request.path.split("/")[-1])
            if asked[-1] == "low1":
                return Response(403, {"message": "not this one"})
            driver.delete("Pod", asked[-1])
            return Response(200, {})
        return keep(request)

    driver._carry_out = carry_out
    driver.create(pod_manifest("vip", gpus=1, priority=10))
    driver.advance(60)
    assert asked == ["low1", "low2"]
    assert driver.nodes_of("vip") == ["n2"]
    first = driver.scheduler.accounts.closed[0]
    assert (first.ending, first.who) == (Ending.REFUSED, ("default/low1",))
    assert (
        "PreemptionLost",
        "default/low1 on n1 was to be evicted for it; it was not bound: the server refused to evict default/low1",
    ) in driver.told("Pod", "vip")
