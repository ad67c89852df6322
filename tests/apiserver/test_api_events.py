"""One Event seen through v1 and through events.k8s.io."""

from __future__ import annotations

from typing import Any

import pytest

from muster.api import catalog
from muster.api.calls import MERGE_PATCH, Request
from muster.apiserver.ownership import dressed

TIME = "2026-01-01T00:00:00.000000Z"
ABOUT = {"kind": "Pod", "namespace": "default", "name": "p"}
OLD = catalog.EVENT.path("default")
NEW = catalog.EVENTS_EVENT.path("default")


def new_event(name: str = "e", **fields: Any) -> dict[str, Any]:
    told = {"reason": "Bound", "action": "Binding", "note": "on n1", "type": "Normal", "eventTime": TIME}
    who = {"reportingController": "muster.dev/scheduler", "reportingInstance": "one"}
    body = {"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": name}, "regarding": ABOUT}
    return {**body, **told, **who, **fields}


def old_event(name: str = "e", **fields: Any) -> dict[str, Any]:
    told = {"reason": "Started", "message": "it runs", "type": "Normal", "count": 2}
    times = {"firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:05Z"}
    body = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": name}, "involvedObject": ABOUT}
    return {**body, **told, **times, "source": {"component": "kubelet", "host": "n1"}, **fields}


def test_what_is_made_by_one_name_is_read_by_the_other(api):
    made = api.call("POST", NEW, new_event())
    assert made.status == 201 and made.body["note"] == "on n1" and made.body["apiVersion"] == "events.k8s.io/v1"
    read = api.call("GET", f"{OLD}/e").body
    assert (read["apiVersion"], read["message"], read["involvedObject"]) == ("v1", "on n1", ABOUT)
    assert read["reportingComponent"] == "muster.dev/scheduler" and not {"note", "regarding"} & read.keys()
    assert read["metadata"]["uid"] == made.body["metadata"]["uid"]


def test_what_old_events_say_is_deprecated_there(api):
    api.made(old_event())
    (read,) = api.call("GET", NEW).body["items"]
    assert read["note"] == "it runs" and read["deprecatedCount"] == 2
    assert read["deprecatedSource"] == {"component": "kubelet", "host": "n1"}
    assert read["deprecatedFirstTimestamp"] == "2026-01-01T00:00:00Z"
    assert not {"message", "count", "source", "firstTimestamp", "involvedObject"} & read.keys()


def test_watches_of_both_see_every_change_in_their_own_words(api):
    watches = [api.server.handle(Request("GET", path, {"watch": "true"}), api.now) for path in (OLD, NEW)]
    api.call("POST", NEW, new_event())
    series = {"series": {"count": 2, "lastObservedTime": TIME}}
    assert api.call("PATCH", f"{NEW}/e", series, content_type=MERGE_PATCH).status == 200
    api.call("DELETE", f"{OLD}/e")
    old, new = ([(event.type, watch.shown(event)) for event in watch.poll()] for watch in watches)
    assert [change for change, _ in old] == [change for change, _ in new] == ["ADDED", "MODIFIED", "DELETED"]
    assert all(raw["message"] == "on n1" and raw["apiVersion"] == "v1" for _, raw in old)
    assert all(raw["note"] == "on n1" and raw["apiVersion"] == "events.k8s.io/v1" for _, raw in new)


@pytest.mark.parametrize("selector", ["regarding.name=p", "reason=Bound", "reportingController=muster.dev/scheduler"])
def test_fields_are_selected_by_the_names_of_each(api, selector):
    api.call("POST", NEW, new_event())
    api.made(old_event("other", involvedObject={**ABOUT, "name": "q"}))
    found = api.call("GET", NEW, query={"fieldSelector": selector}).body["items"]
    assert [event["metadata"]["name"] for event in found] == ["e"]
    assert (
        api.call("GET", OLD, query={"fieldSelector": "involvedObject.name=q"}).body["items"][0]["reason"] == "Started"
    )
    assert api.call("GET", OLD, query={"fieldSelector": "regarding.name=p"}).status == 400


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"eventTime": None}, "eventTime"),
        ({"action": ""}, "action"),
        ({"reason": ""}, "reason"),
        ({"reportingController": "a b"}, "reportingController"),
        ({"reportingInstance": "x" * 129}, "reportingInstance"),
        ({"note": "x" * 1025}, "note"),
        ({"type": "Odd"}, "type"),
        ({"deprecatedCount": 1}, "deprecatedCount"),
        ({"series": {"count": 1, "lastObservedTime": TIME}}, "series.count"),
        ({"regarding": {**ABOUT, "namespace": "other"}}, "regarding.namespace"),
    ],
)
def test_the_new_form_is_strict(api, fields, wrong):
    answer = api.call("POST", NEW, new_event(**fields))
    assert answer.status == 422 and wrong in [cause["field"] for cause in answer.body["details"]["causes"]]


def test_an_update_counts_on_and_changes_nothing_else(api):
    api.call("POST", NEW, new_event())
    answer = api.call("PATCH", f"{NEW}/e", {"note": "other"}, content_type=MERGE_PATCH)
    assert answer.status == 422 and answer.body["details"]["causes"][0]["field"] == "note"
    assert api.call("PATCH", f"{OLD}/e", {"message": "other"}, content_type=MERGE_PATCH).status == 200


def test_who_owns_what_is_told_by_the_names_that_are_stored(api):
    api.call("POST", NEW, new_event(), {"fieldManager": "me"})
    (entry,) = dressed(api.call("GET", f"{NEW}/e").body)["metadata"]["managedFields"]
    assert entry["apiVersion"] == "v1" and "f:message" in entry["fieldsV1"]


def test_a_put_makes_one_and_an_apply_changes_it(api):
    assert api.call("PUT", f"{NEW}/e", new_event()).status == 201
    series = {"series": {"count": 3, "lastObservedTime": TIME}}
    config = {"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e"}, "eventTime": TIME, **series}
    query, form = {"fieldManager": "me", "force": "true"}, "application/apply-patch+yaml"
    assert api.call("PATCH", f"{NEW}/e", config, query, form).status == 200
    assert api.call("GET", f"{OLD}/e").body["series"]["count"] == 3


def test_tables_of_both_are_the_same(api):
    api.made(old_event())
    api.call("POST", NEW, new_event("f"))
    accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
    rows = []
    for path in (OLD, NEW):
        body = api.server.handle(Request("GET", path, accept=accept), api.now).body
        rows.append([row["cells"] for row in body["rows"]])
    assert rows[0] == rows[1] and "it runs" in rows[0][0]


def test_a_namespace_takes_its_events_along(api):
    api.made({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "s"}})
    api.call("POST", catalog.EVENTS_EVENT.path("s"), new_event(regarding={**ABOUT, "namespace": "s"}))
    api.call("DELETE", "/api/v1/namespaces/s")
    assert api.call("GET", catalog.EVENTS_EVENT.path("s")).body["items"] == []
