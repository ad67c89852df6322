"""Whatever stands anywhere in a definition or in an object of a user's kind: an answer, and never a crash."""

from __future__ import annotations

import copy
from typing import Any

from custom import DEFINITIONS, PATH, definition, run
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muster.api.calls import MERGE_PATCH

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["", "a", "object", "array", "1h"]) | st.just(0.5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["a", "type", "items", "properties", "name", "kind", "default"]), inner, max_size=3
        )
    ),
    max_leaves=8,
)
QUICK = settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
RUN: dict[str, Any] = run(
    workers=1,
    port="a",
    until=None,
    env=[{"name": "a", "value": "b"}],
    tags=["a"],
    limits={"a": 1},
    free={"a": {"b": [1]}},
    template={"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}},
)


def places(value, path=()):
    if path:
        yield path
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield from places(value[key], (*path, key))


def changed(whole, path, value):
    made = copy.deepcopy(whole)
    at = made
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return made


@QUICK
@given(st.sampled_from(list(places(definition()))), ANYTHING)
def test_a_definition_with_anything_anywhere_is_answered(new_api, path, value):
    api = new_api()
    answer = api.call("POST", DEFINITIONS, changed(definition(), path, value))
    assert answer.status in (201, 400, 422), answer.body
    if answer.status == 201:
        assert api.call("GET", "/openapi/v3").status == api.call("GET", "/openapi/v2").status == 200
        assert api.call("POST", PATH, run()).status < 500


@QUICK
@given(st.lists(st.tuples(st.sampled_from(list(places(RUN))), ANYTHING), min_size=1, max_size=2))
def test_an_object_with_anything_anywhere_is_answered_and_what_is_stored_stays_as_it_is(new_api, changes):
    api = new_api()
    api.made(definition())
    body = RUN
    for path, value in changes:
        try:
            body = changed(body, path, value)
        except (KeyError, IndexError, TypeError):
            continue  # the first change took away where the second one was
    answer = api.call("POST", PATH, body)
    assert answer.status in (201, 400, 422), answer.body
    if answer.status == 201 and answer.body["metadata"]["name"] == "a":
        stored = api.call("GET", f"{PATH}/a").body
        again = api.call("PUT", f"{PATH}/a", stored)
        assert again.status == 200 and again.body == stored, "what is read may be written, and changes nothing"
        applied = api.call(
            "PATCH", f"{PATH}/a", run(), {"fieldManager": "m", "force": "1"}, "application/apply-patch+yaml"
        )
        assert applied.status == 200, applied.body
        assert api.call("PATCH", f"{PATH}/a", {"status": body.get("spec")}, {}, MERGE_PATCH).status < 500
