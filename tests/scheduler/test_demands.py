"""What pods ask of their neighbours, as ingest reads it."""

from typing import Any

from muster.api.object import Object
from muster.model.neighbours import REQUIRED_WEIGHT, Holding, LabelRequirement, PodSelector, PodTerm, SpreadConstraint
from muster.model.records import PodRecord
from muster.scheduler.ingest import Ingest
from muster.testing.builders import pod_manifest

WEB = {"matchLabels": {"app": "web"}}
APP_IS_WEB = LabelRequirement("app", "In", ("web",))


def ingested(ingest: Ingest, name: str, labels: dict[str, str] | None = None, **spec: Any) -> PodRecord:
    manifest = pod_manifest(name, labels=labels, **spec)
    manifest["metadata"]["uid"] = name
    return ingest.pod(Object(manifest))


def near(**term: Any) -> dict[str, Any]:
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone", **term}]}}


def test_a_term_without_namespaces_means_those_of_the_pods_own() -> None:
    record = ingested(Ingest(), "p", affinity=near(labelSelector=WEB))
    assert record.cls.demands is not None
    assert record.cls.demands.affinity == (PodTerm(PodSelector((APP_IS_WEB,), ("default",)), "zone"),)
    assert [holding.weight for holding in record.cls.demands.holdings()] == [REQUIRED_WEIGHT]


def test_a_namespace_selector_takes_the_place_of_the_own_namespace() -> None:
    record = ingested(Ingest(), "p", affinity=near(labelSelector=WEB, namespaceSelector={}))
    assert record.cls.demands is not None
    assert record.cls.demands.affinity[0].selector == PodSelector((APP_IS_WEB,), (), ())


def test_a_term_without_a_selector_means_nobody() -> None:
    record = ingested(Ingest(), "p", affinity=near())
    assert record.cls.demands is not None
    (selector,) = next(record.cls.demands.selections())
    assert not selector.selects("default", {}, {})


def test_label_keys_add_the_pods_own_values_and_leave_out_those_it_lacks() -> None:
    term = near(labelSelector=WEB, matchLabelKeys=["version", "lacking"], mismatchLabelKeys=["tenant"])
    record = ingested(Ingest(), "p", {"version": "1", "tenant": "a"}, affinity=term)
    assert record.cls.demands is not None
    assert record.cls.demands.affinity[0].selector.requirements == (
        APP_IS_WEB,
        LabelRequirement("tenant", "NotIn", ("a",)),
        LabelRequirement("version", "In", ("1",)),
    )


def test_pods_that_differ_in_a_label_key_are_of_two_classes_and_in_another_label_of_one() -> None:
    ingest, term = Ingest(), near(labelSelector=WEB, matchLabelKeys=["version"])
    one = ingested(ingest, "a", {"version": "1", "index": "0"}, affinity=term)
    other = ingested(ingest, "b", {"version": "1", "index": "1"}, affinity=term)
    third = ingested(ingest, "c", {"version": "2", "index": "1"}, affinity=term)
    assert one.cls is other.cls
    assert one.cls != third.cls
    assert (one.labels, other.labels) == ((("index", "0"), ("version", "1")), (("index", "1"), ("version", "1")))


def test_preferred_terms_carry_their_weight_and_anti_affinity_a_negative_one() -> None:
    wish = {"weight": 7, "podAffinityTerm": {"topologyKey": "zone", "labelSelector": WEB}}
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [wish]}
    record = ingested(Ingest(), "p", affinity={"podAffinity": preferred, "podAntiAffinity": preferred})
    assert record.cls.demands is not None
    term = PodTerm(PodSelector((APP_IS_WEB,), ("default",)), "zone")
    assert list(record.cls.demands.holdings()) == [Holding(term, 7), Holding(term, -7)]


def test_a_spread_constraint_has_the_defaults_of_the_api() -> None:
    constraint = {"maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": WEB}
    record = ingested(Ingest(), "p", topologySpreadConstraints=[constraint])
    assert record.cls.demands is not None
    selector = PodSelector((APP_IS_WEB,), ("default",))
    assert record.cls.demands.spread == (SpreadConstraint(selector, "zone", 2, True, 1, True, False),)


def test_pods_that_ask_nothing_of_others_have_no_demands() -> None:
    assert ingested(Ingest(), "p", {"app": "web"}, affinity={"nodeAffinity": {}}).cls.demands is None
