from __future__ import annotations

import copy

import pytest

from muster.apiserver.patch import merged
from muster.apiserver.schema import schema
from muster.apiserver.status import Failure
from muster.apiserver.strategic import strategic_merge

POD = schema("v1", "Pod").root


def container(name, **fields):
    return {"name": name, **fields}


def pod(**spec):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}


def patched(original, patch):
    before = copy.deepcopy(original)
    after = strategic_merge(POD, original, patch)
    assert original == before, "a patch changed the original"
    return after


def test_containers_are_merged_by_name():
    original = pod(containers=[container("a", image="1", env=[{"name": "X", "value": "1"}]), container("b", image="2")])
    after = patched(original, {"spec": {"containers": [{"name": "b", "image": "3"}, {"name": "c", "image": "4"}]}})
    assert [(c["name"], c["image"]) for c in after["spec"]["containers"]] == [("a", "1"), ("b", "3"), ("c", "4")]


def test_nested_lists_are_merged_by_their_own_keys():
    original = pod(containers=[container("a", env=[{"name": "X", "value": "1"}, {"name": "Y", "value": "2"}])])
    after = patched(original, {"spec": {"containers": [{"name": "a", "env": [{"name": "Y", "value": "3"}]}]}})
    assert after["spec"]["containers"][0]["env"] == [{"name": "X", "value": "1"}, {"name": "Y", "value": "3"}]


def test_an_item_is_deleted_by_its_key():
    original = pod(containers=[container("a"), container("b")])
    after = patched(original, {"spec": {"containers": [{"name": "a", "$patch": "delete"}]}})
    assert after["spec"]["containers"] == [container("b")]


def test_a_list_is_replaced_on_request():
    original = pod(containers=[container("a"), container("b")])
    after = patched(original, {"spec": {"containers": [container("c"), {"$patch": "replace"}]}})
    assert after["spec"]["containers"] == [container("c")]


def test_an_object_is_replaced_or_deleted_on_request():
    original = pod(securityContext={"runAsUser": 1, "runAsGroup": 2}, containers=[])
    after = patched(original, {"spec": {"securityContext": {"$patch": "replace", "runAsUser": 3}}})
    assert after["spec"]["securityContext"] == {"runAsUser": 3}
    after = patched(original, {"spec": {"securityContext": {"$patch": "delete"}}})
    assert "securityContext" not in after["spec"]


def test_null_removes_a_field():
    after = patched(pod(nodeName="n", containers=[]), {"spec": {"nodeName": None, "hostname": None}})
    assert "nodeName" not in after["spec"] and "hostname" not in after["spec"]


def test_atomic_lists_are_replaced():
    original = pod(tolerations=[{"key": "a"}], containers=[])
    assert patched(original, {"spec": {"tolerations": [{"key": "b"}]}})["spec"]["tolerations"] == [{"key": "b"}]


def test_maps_are_merged_by_key():
    original = {"metadata": {"labels": {"a": "1", "b": "2"}}}
    after = patched(original, {"metadata": {"labels": {"b": "3", "a": None, "c": "4"}}})
    assert after["metadata"]["labels"] == {"b": "3", "c": "4"}


def test_lists_of_scalars_are_united():
    original = {"metadata": {"finalizers": ["a", "b"]}}
    assert patched(original, {"metadata": {"finalizers": ["b", "c", "c"]}})["metadata"]["finalizers"] == ["a", "b", "c"]


def test_scalars_are_deleted_from_a_list():
    original = {"metadata": {"finalizers": ["a", "b", "c"]}}
    after = patched(original, {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a", "c"]}})
    assert after["metadata"]["finalizers"] == ["b"]


def test_items_are_put_into_a_given_order():
    original = pod(containers=[container("a"), container("b"), container("c")])
    body = {
        "$setElementOrder/containers": [{"name": "d"}, {"name": "c"}, {"name": "a"}],
        "containers": [container("d")],
    }
    after = patched(original, {"spec": body})
    names = [item["name"] for item in after["spec"]["containers"]]
    assert [name for name in names if name != "b"] == ["d", "c", "a"] and "b" in names


def test_retained_keys_clear_the_other_members_of_a_union():
    original = pod(containers=[], volumes=[{"name": "v", "emptyDir": {}}])
    body = {"volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/x"}}]}
    assert patched(original, {"spec": body})["spec"]["volumes"] == [{"name": "v", "hostPath": {"path": "/x"}}]


def test_conditions_are_merged_by_type():
    original = {"status": {"conditions": [{"type": "A", "status": "True"}, {"type": "B", "status": "True"}]}}
    after = patched(original, {"status": {"conditions": [{"type": "B", "status": "False"}]}})
    assert after["status"]["conditions"] == [{"type": "A", "status": "True"}, {"type": "B", "status": "False"}]


def test_what_is_added_carries_no_directives():
    after = patched(pod(containers=[]), {"spec": {"containers": [{"name": "a", "$patch": "merge", "image": "i"}]}})
    assert after["spec"]["containers"] == [container("a", image="i")]


@pytest.mark.parametrize(
    "patch",
    [
        {"spec": {"containers": [{"image": "i"}]}},
        {"spec": {"containers": ["a"]}},
        {"spec": {"$patch": "explode"}},
        {"spec": {"$retainKeys": "a"}},
        {"metadata": {"$deleteFromPrimitiveList/finalizers": "a"}},
        {"spec": {"$setElementOrder/containers": {"a": 1}}},
    ],
)
def test_a_malformed_patch_is_refused(patch):
    with pytest.raises(Failure) as refused:
        strategic_merge(POD, pod(containers=[container("a")]), patch)
    assert refused.value.code == 400


def test_very_long_lists_are_patched_in_linear_time():
    many = [container(f"c{i}") for i in range(20_000)]
    order = [{"name": item["name"]} for item in reversed(many)]
    after = patched(pod(containers=many), {"spec": {"containers": many, "$setElementOrder/containers": order}})
    assert after["spec"]["containers"] == many[::-1]


@pytest.mark.parametrize(
    ("original", "patch", "result"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "foo"}, None, None),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_merge_patch_does_what_the_examples_of_rfc_7386_say(original, patch, result):
    before = copy.deepcopy(original)
    assert merged(original, patch) == result
    assert original == before


def named(*names):
    return [{"name": name, "image": "i"} for name in names]


def order_after(live, patch, order=None):
    spec = {"containers": [{"name": name} for name in patch]}
    if order is not None:
        spec["$setElementOrder/containers"] = [{"name": name} for name in order]
    after = patched(pod(containers=named(*live)), {"spec": spec})
    return "".join(item["name"] for item in after["spec"]["containers"])


@pytest.mark.parametrize(
    ("live", "patch", "sequence", "after"),
    [
        ("a", "b", None, "ba"),  # as documented: a container that a patch adds comes first
        ("ab", "c", None, "cab"),
        ("abc", "b", None, "abc"),
        ("abc", "ca", None, "bca"),
        ("axb", "ba", "ba", "xba"),
        ("ab", "c", "abc", "abc"),
        ("abx", "", "ba", "bax"),
        ("xab", "", "ba", "xba"),
    ],
)
def test_items_that_only_the_server_has_keep_their_place_among_the_others(live, patch, sequence, after):
    assert order_after(live, patch, sequence) == after


def test_an_order_must_name_what_the_patch_has():
    with pytest.raises(Failure, match="does not name every item"):
        order_after("ab", "c", "ab")


def test_keys_to_retain_must_include_what_the_patch_sets():
    live = pod(volumes=[{"name": "v", "emptyDir": {}}])
    change = {"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/x"}}
    after = patched(live, {"spec": {"volumes": [change]}})
    assert after["spec"]["volumes"] == [{"name": "v", "hostPath": {"path": "/x"}}]
    with pytest.raises(Failure, match="does not have what the patch sets: hostPath"):
        patched(live, {"spec": {"volumes": [change | {"$retainKeys": ["name"]}]}})


@pytest.mark.parametrize("first", ["finalizers", "$deleteFromPrimitiveList/finalizers"])
def test_scalars_are_taken_out_before_others_come_in(first):
    live = pod() | {"metadata": {"name": "a", "finalizers": ["x/a", "x/b"]}}
    parts = {"finalizers": ["x/c"], "$deleteFromPrimitiveList/finalizers": ["x/a"]}
    meta = {first: parts.pop(first), **parts}
    after = patched(live, {"metadata": {"$setElementOrder/finalizers": ["x/b", "x/c"], **meta}})
    assert after["metadata"]["finalizers"] == ["x/b", "x/c"]
