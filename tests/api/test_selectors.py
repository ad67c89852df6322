"""Label and field selectors."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api import selectors
from muster.api.meta import LabelSelector, LabelSelectorRequirement

KEYS = st.sampled_from(["app", "example.com/rack", "in", "notin", "tier-1"])
VALUES = st.sampled_from(["a", "b", "c", "10", "9", ""])
REQUIREMENTS = st.one_of(
    st.builds(selectors.Requirement, KEYS, st.sampled_from(["In", "NotIn"]), st.lists(VALUES, min_size=1).map(tuple)),
    st.builds(selectors.Requirement, KEYS, st.sampled_from(["Exists", "DoesNotExist"])),
    st.builds(selectors.Requirement, KEYS, st.sampled_from(["Gt", "Lt"]), st.sampled_from([("9",), ("10",)])),
)
LABELS = st.dictionaries(KEYS, VALUES)


@given(st.lists(REQUIREMENTS, max_size=4).map(tuple), LABELS)
def test_a_selector_means_the_same_after_being_written_and_read(
    requirements: tuple[selectors.Requirement, ...], labels: dict[str, str]
) -> None:
    selector = selectors.Selector(requirements)
    assert selectors.labels(str(selector)).matches(labels) == selector.matches(labels)
    assert selector.matches(labels) == all(requirement.holds(labels) for requirement in requirements)


@pytest.mark.parametrize(
    ("text", "labels", "matches"),
    [
        ("", {}, True),
        ("a=b", {"a": "b"}, True),
        ("a==b,c", {"a": "b", "c": ""}, True),
        ("a!=b", {}, True),
        ("a!=b", {"a": "b"}, False),
        ("a in (x, y)", {"a": "y"}, True),
        ("a in (x,y),b notin (z)", {"a": "y", "b": "z"}, False),
        ("a notin (z)", {}, True),
        ("!a", {"a": "1"}, False),
        ("! a", {}, True),
        ("a>9", {"a": "10"}, True),
        ("a>9", {"a": "x"}, False),
        ("a<9", {"a": "10"}, False),
        ("a=", {"a": ""}, True),
    ],
)
def test_label_selectors_select(text: str, labels: dict[str, str], matches: bool) -> None:
    assert selectors.labels(text).matches(labels) is matches


@pytest.mark.parametrize(
    "text", ["a=b=c", "a in x", "a in (x", "a b", "=b", "!a=b", "a,,b", "a in ()x", "-a=b", "a=b c", "a)"]
)
def test_what_is_no_label_selector_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no label"):
        selectors.labels(text)


def test_an_absent_selector_selects_nothing_and_an_empty_one_everything() -> None:
    assert not selectors.of(None).matches({})
    assert selectors.of(LabelSelector()).matches({"a": "b"})
    both = LabelSelector({"a": "1"}, (LabelSelectorRequirement("b", "Exists"),))
    assert selectors.of(both).matches({"a": "1", "b": ""})
    assert not selectors.of(both).matches({"a": "1"})


POD: dict[str, Any] = {
    "metadata": {"name": "p", "namespace": "default"},
    "spec": {"nodeName": "n1", "unschedulable": False},
    "status": {"succeeded": 3},
}


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("metadata.name=p", True),
        ("metadata.name=p,spec.nodeName==n2", False),
        ("spec.nodeName!=n2", True),
        ("status.phase=", True),
        ("spec.unschedulable=false", True),
        ("status.succeeded=3", True),
        ("", True),
    ],
)
def test_field_selectors_compare_text_and_absent_is_empty(text: str, matches: bool) -> None:
    fields = ("spec.nodeName", "status.phase", "spec.unschedulable", "status.succeeded")
    assert selectors.fields(text, fields).matches(POD) is matches


def test_a_field_that_cannot_be_selected_by_is_refused_with_those_that_can() -> None:
    with pytest.raises(ValueError, match=r"not supported: spec.image; supported: metadata.name.*spec.nodeName"):
        selectors.fields("spec.image=x", ("spec.nodeName",))
    with pytest.raises(ValueError, match="no field selector"):
        selectors.fields("metadata.name")


def test_an_absent_boolean_field_is_false() -> None:
    schedulable = selectors.fields("spec.unschedulable=false", ["spec.unschedulable"])
    assert schedulable.matches({"spec": {}})
    assert not schedulable.matches({"spec": {"unschedulable": True}})
    assert not selectors.fields("spec.unschedulable!=false", ["spec.unschedulable"]).matches({"spec": {}})
