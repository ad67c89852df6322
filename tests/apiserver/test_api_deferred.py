"""Managed fields are made out late: whenever that happens, they say the same."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from muster.api.calls import MERGE_PATCH
from muster.api.gates import FeatureGates
from muster.api.instant import SECOND
from muster.apiserver.ownership import dressed

WRITES = st.lists(
    st.tuples(st.sampled_from(["one", "two", "three"]), st.sampled_from("abc"), st.sampled_from([None, "1", "2"])),
    min_size=1,
    max_size=25,
)
PATH = "/api/v1/namespaces/n"


def entries(api):
    return dressed(api.call("GET", PATH).body)["metadata"].get("managedFields")


@settings(max_examples=50, suppress_health_check=list(HealthCheck))
@given(WRITES, st.sets(st.integers(0, 24)))
def test_reading_in_between_changes_nothing(new_api, writes, read_after):
    told = []
    for reads in (frozenset(), read_after):
        api = new_api(FeatureGates())
        api.made({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}})
        for number, (manager, label, value) in enumerate(writes):
            api.now += SECOND
            api.call("PATCH", PATH, {"metadata": {"labels": {label: value}}}, {"fieldManager": manager}, MERGE_PATCH)
            if number in reads:
                entries(api)
        told.append(entries(api))
    assert told[0] == told[1]


@settings(max_examples=50, suppress_health_check=list(HealthCheck))
@given(WRITES)
def test_every_label_has_one_owner_the_last_who_changed_it(new_api, writes):
    api = new_api(FeatureGates())
    api.made({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}})
    wanted, values = {}, {}
    for manager, label, value in writes:
        api.call("PATCH", PATH, {"metadata": {"labels": {label: value}}}, {"fieldManager": manager}, MERGE_PATCH)
        if value != values.get(label):
            wanted[label] = manager
        values[label] = value
    owners = {}
    for entry in entries(api) or ():
        for name in entry["fieldsV1"].get("f:metadata", {}).get("f:labels", {}):
            if name.removeprefix("f:") in "abc" and name != ".":
                assert name not in owners
                owners[name] = entry["manager"]
    assert owners == {f"f:{label}": manager for label, manager in wanted.items() if values[label] is not None}
