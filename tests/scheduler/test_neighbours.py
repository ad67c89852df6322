"""The counts of matching pods: change by change they are what one look at every pod finds."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.model.neighbours import Holding, LabelRequirement, PodDemands, PodSelector, PodTerm, Selection
from muster.model.records import PodClass, PodRecord
from muster.scheduler import neighbours
from muster.scheduler.cache import Cache
from muster.testing import builders

APPS = ("web", "db", "cache")
NODES = ("n1", "n2", "away")
TEAM = LabelRequirement("team", "In", ("a",))
SPACES = {"default": {"team": "a"}, "other": {"team": "b"}}


def means(app: str, **where: Any) -> PodSelector:
    return PodSelector((LabelRequirement("app", "In", (app,)),), **where)


SELECTORS = (
    means("web", namespaces=("default",)),
    means("db", by_labels=()),
    PodSelector((LabelRequirement("app", "NotIn", ("web",)),), by_labels=(TEAM,)),
    PodSelector(None, ("default",)),
)
DEMANDS = tuple(
    PodDemands(anti_affinity=(PodTerm(selector, "zone"),), affinity=(PodTerm(SELECTORS[0], "zone"),))
    for selector in SELECTORS
)


def cache_with_nodes() -> Cache:
    cache = Cache()
    for name in NODES[:2]:
        cache.put_node(builders.node(name))
    return cache


@st.composite
def records(draw: st.DrawFn) -> PodRecord:
    cls: PodClass = builders.pod_class(demands=draw(st.sampled_from((None, None, *DEMANDS))))
    record = builders.pod(
        draw(st.sampled_from("abcdef")),
        cls,
        namespace=draw(st.sampled_from(("default", "other"))),
        node=draw(st.sampled_from((None, *NODES))),
    )
    labels = (("app", draw(st.sampled_from(APPS))), ("index", draw(st.sampled_from("12"))))
    return replace(record, labels=labels, terminating=draw(st.booleans()))


def expected(cache: Cache, selection: Selection, leaving: bool) -> list[int]:
    counts = dict.fromkeys(NODES[:2], 0)
    for record in cache.pods.values():
        wanted = record.node in counts and (record.terminating or not leaving)
        space, labels = record.key.namespace, dict(record.labels)
        if wanted and all(selector.selects(space, labels, cache.neighbours.spaces) for selector in selection):
            counts[record.node or ""] += 1
    return list(counts.values())


@given(st.lists(st.one_of(records(), st.sampled_from(sorted(SPACES.items(), key=repr))), max_size=25))
@settings(max_examples=150, deadline=None, derandomize=True)
def test_counts_follow_every_change(events: list[Any]) -> None:
    cache = cache_with_nodes()
    for event in events:
        if isinstance(event, PodRecord):
            cache.put_pod(event)
        else:
            known = cache.neighbours.spaces.get(event[0])
            cache.put_namespace(event[0], None if known else event[1])
        seen = cache.snapshot().neighbours
        asked = {
            selection
            for record in cache.pods.values()
            if record.cls.demands and not record.node
            for selection in record.cls.demands.selections()
        }
        assert asked <= seen.matching.keys()
        for selection in seen.matching:
            assert seen.matching[selection].tolist() == expected(cache, selection, leaving=False)
            assert seen.leaving[selection].tolist() == expected(cache, selection, leaving=True)
        held = [h for r in cache.pods.values() if r.node and r.cls.demands for h in r.cls.demands.holdings()]
        assert set(seen.holding) == set(held)


def test_an_assumed_pod_counts_and_a_forgotten_one_does_not() -> None:
    cache = cache_with_nodes()
    asker = builders.pod("asker", demands=DEMANDS[0])
    web = replace(builders.pod("w"), labels=(("app", "web"),))
    cache.put_pod(asker)
    cache.put_pod(web)
    selection = (SELECTORS[0],)
    before = cache.snapshot().neighbours.matching[selection]
    cache.assume(web, "n2")
    assert cache.snapshot().neighbours.matching[selection].tolist() == [0, 1]
    cache.forget(web)
    assert cache.snapshot().neighbours.matching[selection].tolist() == [0, 0]
    assert before.tolist() == [0, 0]


def test_counts_keep_their_nodes_when_nodes_come_and_go() -> None:
    cache = cache_with_nodes()
    cache.put_pod(builders.pod("asker", demands=DEMANDS[0]))
    cache.put_pod(replace(builders.pod("w", node="n2"), labels=(("app", "web"),)))
    cache.put_node(builders.node("a0"))
    cache.drop_node("n1")
    seen = cache.snapshot()
    assert dict(zip(seen.nodes.names, seen.neighbours.matching[(SELECTORS[0],)], strict=True)) == {"a0": 0, "n2": 1}


def test_what_nobody_asks_for_any_more_is_forgotten_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "MOST_SELECTIONS", 5)
    cache = cache_with_nodes()
    for number in range(40):
        asker = builders.pod("asker", demands=PodDemands(anti_affinity=(PodTerm(means(f"app{number}"), "zone"),)))
        cache.put_pod(asker)
    seen = cache.snapshot().neighbours
    assert (means("app39"),) in seen.matching
    assert len(seen.matching) <= 7


def test_a_running_pods_terms_are_counted_where_it_runs() -> None:
    cache = cache_with_nodes()
    cache.put_pod(builders.pod("hermit", node="n1", demands=DEMANDS[0]))
    held = cache.snapshot().neighbours.holding[Holding(PodTerm(SELECTORS[0], "zone"), None)]
    assert np.array_equal(held, [1, 0])
