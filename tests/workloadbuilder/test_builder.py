"""The builder: what it makes, what it refuses, where it says so."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from muster.api import writes
from muster.api.gates import FeatureGates
from muster.api.instant import SECOND
from muster.apiserver.server import ApiServer
from muster.workloadbuilder import (
    Builder,
    BuildError,
    BuildOptions,
    SchedulingConfig,
    UserBlock,
    WorkloadInput,
    WorkloadItem,
    as_record,
    as_yaml,
    default_min_count,
    pod_group_name,
    workload_name,
)

OWNER = {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "u-1"}
OPTIONS = BuildOptions("wl", "ns", OWNER)
ROOT = "spec.scheduling"


def leaf(name: str = "main", *, default: SchedulingConfig = SchedulingConfig(), **user: Any) -> WorkloadItem:  # noqa: B008
    return WorkloadItem(name, default, WorkloadInput(**user))


def policy(block: Any, *path: str) -> UserBlock:
    return UserBlock(path or ("schedulingPolicy",), leaf=block)


def errors(
    item: WorkloadItem, options: BuildOptions = OPTIONS, old: WorkloadItem | None = None
) -> list[tuple[str, str]]:
    return [(each.field, each.type) for each in Builder(item, options).validate(ROOT, old=old)]


def chain(depth: int) -> WorkloadItem:
    """A tree of so many levels, one item on each."""
    item = WorkloadItem(f"level-{depth}")
    for level in range(depth - 1, 0, -1):
        item = WorkloadItem(f"level-{level}", children=(item,))
    return item


# --- building


def test_a_user_who_sets_only_constraints_keeps_the_default_policy():
    constraints = UserBlock(leaf={"topology": [{"key": "rack"}]})
    item = leaf(default=SchedulingConfig({"gang": {"minCount": 3}}), constraints=constraints)
    template = Builder(item, OPTIONS).build_workload()["spec"]["podGroupTemplates"][0]
    assert template["schedulingPolicy"] == {"gang": {"minCount": 3}}
    assert template["schedulingConstraints"] == {"topology": [{"key": "rack"}]}


def test_callbacks_fill_what_the_user_left_open_and_nothing_else():
    given_count = WorkloadItem(
        "a", user=WorkloadInput(policy({"gang": {"minCount": 2}})), callbacks=(default_min_count(9),)
    )
    left_open = WorkloadItem("a", user=WorkloadInput(policy({"gang": {}})), callbacks=(default_min_count(9),))
    counts = [
        Builder(each, OPTIONS).build_workload()["spec"]["podGroupTemplates"][0]["schedulingPolicy"]["gang"]["minCount"]
        for each in (given_count, left_open)
    ]
    assert counts == [2, 9]


def test_a_callback_that_overrides_the_user_is_an_error():
    def impose(config: SchedulingConfig) -> SchedulingConfig:
        return SchedulingConfig({"gang": {"minCount": 1}})

    item = WorkloadItem("a", user=WorkloadInput(policy({"gang": {"minCount": 5}})), callbacks=(impose,))
    with pytest.raises(BuildError, match="'a' changes the schedulingPolicy"):
        Builder(item, OPTIONS).build_workload()


def test_the_workload_is_built_once_and_the_input_is_not_touched():
    block = {"gang": {"minCount": 2}}
    before = deepcopy(block)
    builder = Builder(leaf(policy=policy(block)), OPTIONS)
    built = builder.build_workload()
    assert builder.build_workload() is built
    built["spec"]["podGroupTemplates"][0]["schedulingPolicy"]["gang"]["minCount"] = 77
    assert block == before


@pytest.mark.parametrize(("depth", "fits"), [(1, True), (4, True), (5, False)])
def test_trees_have_at_most_four_levels(depth, fits):
    builder = Builder(chain(depth), OPTIONS)
    if fits:
        assert builder.build_workload()["spec"]
    else:
        with pytest.raises(BuildError, match="'level-5' is on level 5"):
            builder.build_workload()


def test_only_leaves_have_resource_claims():
    claims = SchedulingConfig(resource_claims=[{"name": "c", "resourceClaimName": "c"}])
    with pytest.raises(BuildError, match="only leaves have resource claims"):
        Builder(WorkloadItem("root", claims, children=(leaf(),)), OPTIONS).build_workload()


@pytest.mark.parametrize("version", ["", "/v1", "batch/", "a/b/c"])
def test_the_owners_api_version_must_be_one(version):
    options = BuildOptions("wl", "ns", {**OWNER, "apiVersion": version})
    with pytest.raises(BuildError, match="apiVersion"):
        Builder(leaf(), options).build_workload()


def test_groups_can_be_made_from_templates_at_any_depth():
    builder = Builder(chain(4), OPTIONS)
    group = builder.new_pod_group("g", "level-4")
    composite = builder.new_composite_pod_group("c", "level-3")
    assert (group["kind"], group["spec"]["workloadRef"]["templateName"]) == ("PodGroup", "level-4")
    assert (composite["kind"], composite["apiVersion"]) == ("CompositePodGroup", "scheduling.k8s.io/v1alpha3")
    with pytest.raises(BuildError, match="no template 'level-3' of this kind; it has level-4"):
        builder.new_pod_group("g", "level-3")


def test_what_is_built_is_accepted_by_the_server():
    gates = FeatureGates.of("GenericWorkload", "TopologyAwareWorkloadScheduling", "CompositePodGroup")
    uids = iter(range(10_000))
    server = ApiServer(gates, new_uid=lambda: f"uid-{next(uids):08}", priority_admission=False)
    builder = Builder(chain(4), BuildOptions("wl", "default", OWNER))
    made = [
        builder.build_workload(),
        builder.new_composite_pod_group("c", "level-1"),
        builder.new_pod_group("g", "level-4"),
    ]
    answers = [server.handle(writes.create(each), SECOND) for each in made]
    assert [answer.status for answer in answers] == [201, 201, 201], [answer.body for answer in answers]


# --- validation, at the user's path


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        ({"policy": policy({})}, [("schedulingPolicy", "Invalid")]),
        ({"policy": policy({"basic": {}, "gang": {"minCount": 1}})}, [("schedulingPolicy", "Invalid")]),
        ({"policy": policy({"gang": {}})}, []),
        ({"policy": policy({"gang": {"minCount": 0}})}, [("schedulingPolicy.gang.minCount", "Invalid")]),
        ({"policy": policy({"gang": {"minCount": -1}}, "a", "b")}, [("a.b.gang.minCount", "Invalid")]),
        ({"constraints": policy({"topology": [{"key": ""}]}, "c")}, [("c.topology[0].key", "Required")]),
        ({"constraints": policy({"topology": [{"key": "a b"}]}, "c")}, [("c.topology[0].key", "Invalid")]),
        ({"constraints": policy({"topology": [{"key": "a"}, {"key": "b"}]}, "c")}, [("c.topology", "TooMany")]),
        ({"disruption_mode": policy({}, "m")}, [("m", "Invalid")]),
        ({"resource_claims": policy([{"name": "a"}], "r")}, [("r[0]", "Invalid")]),
        ({"resource_claims": policy([{"resourceClaimName": "x"}], "r")}, [("r[0].name", "Required")]),
        ({"resource_claims": policy([{"name": "A", "resourceClaimName": "x"}], "r")}, [("r[0].name", "Invalid")]),
        (
            {"resource_claims": policy(2 * [{"name": "a", "resourceClaimName": "x"}], "r")},
            [("r[1]", "Duplicate")],
        ),
        (
            {"resource_claims": policy([{"name": f"c{n}", "resourceClaimName": "x"} for n in range(5)], "r")},
            [("r", "TooMany")],
        ),
        (
            {"policy": policy({"basic": {}}), "disruption_mode": policy({"all": {}}, "m")},
            [("m", "Invalid")],
        ),
    ],
)
def test_what_is_wrong_with_a_block_is_said_at_the_users_field(user, expected):
    assert errors(leaf(**user)) == [(f"{ROOT}.{field}", type_) for field, type_ in expected]


def test_children_report_at_their_own_paths():
    broken = policy({"gang": {"minCount": 0}}, "roles", "worker", "policy")
    root = WorkloadItem("root", children=(leaf("ok"), leaf("bad", policy=broken)))
    assert errors(root) == [(f"{ROOT}.roles.worker.policy.gang.minCount", "Invalid")]


def test_lists_of_what_is_allowed_are_said_in_the_message():
    item = leaf(policy=policy({"gang": {"minCount": 2}}), disruption_mode=policy({"all": {}}, "mode"))
    options = BuildOptions("wl", "ns", OWNER, allowed_policies=("basic",), allowed_disruption_modes=())
    found = Builder(item, options).validate(ROOT)
    assert [(each.field, each.type) for each in found] == [
        (f"{ROOT}.schedulingPolicy", "Forbidden"),
        (f"{ROOT}.mode", "Forbidden"),
    ]
    assert "allowed: basic" in found[0].message and "none may be chosen" in found[1].message


def test_without_declarative_rules_the_rules_across_fields_still_hold():
    item = leaf(policy=policy({"basic": {}}), disruption_mode=policy({"all": {}}, "mode"))
    options = BuildOptions("wl", "ns", OWNER, disable_declarative_validation=True)
    assert errors(item, options) == [(f"{ROOT}.mode", "Invalid")]


# --- updates


def test_only_the_count_of_a_gang_may_change():
    old = leaf(policy=policy({"gang": {"minCount": 2}}))
    assert errors(leaf(policy=policy({"gang": {"minCount": 9}})), old=old) == []
    assert errors(leaf(policy=policy({"basic": {}})), old=old) == [(f"{ROOT}.schedulingPolicy", "Invalid")]
    assert errors(leaf(), old=old) == [(f"{ROOT}.schedulingPolicy", "Invalid")]


@pytest.mark.parametrize("field", ["constraints", "disruption_mode", "resource_claims"])
def test_everything_else_is_immutable(field):
    blocks = {
        "constraints": {"topology": [{"key": "zone"}]},
        "disruption_mode": {"single": {}},
        "resource_claims": [{"name": "a", "resourceClaimName": "x"}],
    }
    new = leaf(**{field: policy(blocks[field], "x")})
    assert errors(new, old=leaf()) == [(f"{ROOT}.x", "Invalid")]
    assert errors(new, old=new) == []


def test_the_number_of_groups_of_a_composite_is_immutable():
    def root(count: int) -> WorkloadItem:
        block = UserBlock(("p",), composite={"gang": {"minGroupCount": count}})
        return WorkloadItem("root", user=WorkloadInput(block), children=(leaf(),))

    assert errors(root(2), old=root(1)) == [(f"{ROOT}.p", "Invalid")]


def test_another_root_is_a_wrong_use_and_items_cannot_come_or_go():
    assert errors(leaf("new"), old=leaf("old")) == [(ROOT, "Internal")]
    one, two = (WorkloadItem("r", children=tuple(leaf(name) for name in names)) for names in (("a",), ("a", "b")))
    assert errors(two, old=one) == errors(one, old=two) == [(ROOT, "Forbidden")]


# --- names

TEXT = st.text("abcdefghijklmnopqrstuvwxyz0123456789-", min_size=1, max_size=300).filter(lambda text: text[0] != "-")


@given(TEXT, TEXT)
def test_names_are_never_too_long_and_always_the_same(first, second):
    for name in (workload_name, pod_group_name):
        made = name(first, second)
        assert made == name(first, second)
        assert len(made) <= 253
        assert made.startswith(first[:120])


@given(TEXT, TEXT, TEXT)
def test_owners_with_different_uids_have_different_names(owner, one, other):
    same = workload_name(owner, one) == workload_name(owner, other)
    assert same == (one == other)


# --- other forms


def test_what_is_built_comes_as_records_and_as_yaml_too():
    builder = Builder(chain(2), OPTIONS)
    made = [
        builder.build_workload(),
        builder.new_composite_pod_group("c", "level-1"),
        builder.new_pod_group("g", "level-2"),
    ]
    records = [as_record(each) for each in made]
    assert [type(each).__name__ for each in records] == ["Workload", "CompositePodGroup", "PodGroup"]
    assert [each.metadata.name for each in records] == ["wl", "c", "g"]
    assert list(yaml.safe_load_all(as_yaml(made))) == made
    with pytest.raises(BuildError, match="Pod"):
        as_record({"kind": "Pod"})
    with pytest.raises(BuildError, match=r"spec\.schedulingPolicy"):
        as_record({"kind": "PodGroup", "spec": {"schedulingPolicy": "gang"}})


def test_an_item_has_at_most_eight_leaves():
    crowd = WorkloadItem("root", children=tuple(leaf(f"l-{number}") for number in range(9)))
    with pytest.raises(BuildError, match="more than 8 leaves"):
        Builder(crowd, OPTIONS).build_workload()


@pytest.mark.parametrize(
    ("user", "field"),
    [
        ({"policy": policy("gang", "p")}, "p"),
        ({"policy": policy({"gang": 4}, "p")}, "p.gang"),
        ({"policy": policy({"gang": {"minCount": "4"}}, "p")}, "p.gang.minCount"),
        ({"policy": policy({"gang": {"minCount": True}}, "p")}, "p.gang.minCount"),
        ({"constraints": policy({"topology": [None]}, "c")}, "c.topology[0]"),
        ({"constraints": policy({"topology": "rack"}, "c")}, "c.topology"),
        ({"constraints": policy({"topology": [{"key": 5}]}, "c")}, "c.topology[0].key"),
        ({"disruption_mode": policy(["all"], "m")}, "m"),
        ({"resource_claims": policy([{"name": {}}], "r")}, "r[0].name"),
    ],
)
def test_a_block_of_another_shape_is_an_error_at_its_field(user: dict[str, Any], field: str):
    found = Builder(leaf(**user), OPTIONS).validate(ROOT, old=leaf(**user))
    assert [each.field for each in found] == [f"{ROOT}.{field}"]
