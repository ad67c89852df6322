from muster.engine.fit import still_fits
from muster.plugins import default_profile
from muster.testing import builders

PROFILE = default_profile()
POD = builders.pod("p", gpus=2)


def test_a_plan_holds_while_its_pods_fit_together():
    snapshot = builders.snapshot([builders.node("n", gpus=4)])
    assert still_fits(snapshot, PROFILE, [(POD, "n")] * 2)
    assert not still_fits(snapshot, PROFILE, [(POD, "n")] * 3)


def test_pods_of_different_classes_count_together():
    snapshot = builders.snapshot([builders.node("n", gpus=4)])
    assert not still_fits(snapshot, PROFILE, [(POD, "n"), (builders.pod("larger", gpus=3), "n")])


def test_a_node_that_is_gone_or_refuses_breaks_the_plan():
    snapshot = builders.snapshot([builders.node("n", gpus=4, unschedulable=True)])
    assert not still_fits(snapshot, PROFILE, [(POD, "n")])
    assert not still_fits(snapshot, PROFILE, [(POD, "away")])


def test_a_port_that_was_taken_meanwhile_breaks_the_plan():
    web = builders.pod_class(ports=[80])
    free, taken = (builders.snapshot([builders.node("n")], bound) for bound in ([], [builders.pod("b", web, node="n")]))
    assert still_fits(free, PROFILE, [(builders.pod("p", web), "n")])
    assert not still_fits(taken, PROFILE, [(builders.pod("p", web), "n")])


def test_a_plan_without_pods_holds():
    assert still_fits(builders.snapshot([]), PROFILE, [])
