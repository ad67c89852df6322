"""matchLabelKeys and mismatchLabelKeys of a pod become requirements of its selectors when it is created."""

from __future__ import annotations

import copy
from typing import Any

import msgspec

from muster.api import core
from muster.api.defaults import keys
from muster.api.defaults.pods import pod
from muster.api.gates import FeatureGates
from muster.scheduler.demands import demands_of

TERM = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}


def _made(spec: dict[str, Any], old: dict[str, Any] | None = None) -> dict[str, Any]:
    obj = {
        "metadata": {"name": "p", "namespace": "default", "labels": {"app": "web", "rev": "7"}},
        "spec": {"containers": [{"name": "c", "image": "i"}], **copy.deepcopy(spec)},
    }
    pod(obj, old, FeatureGates())
    if old is None:
        keys.merged(obj["spec"], obj["metadata"]["labels"], FeatureGates())
    return obj


def _spread(**more: Any) -> dict[str, Any]:
    constraint = {**TERM, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "matchLabelKeys": ["rev", "lacked"]}
    return {"topologySpreadConstraints": [{**constraint, **more}]}


def _expressions(term: dict[str, Any]) -> Any:
    return term["labelSelector"].get("matchExpressions")


def test_a_spread_constraint_takes_the_pods_own_value_and_leaves_out_keys_that_it_lacks() -> None:
    (constraint,) = _made(_spread())["spec"]["topologySpreadConstraints"]
    assert _expressions(constraint) == [{"key": "rev", "operator": "In", "values": ["7"]}]
    assert constraint["matchLabelKeys"] == ["rev", "lacked"]


def test_affinity_terms_take_both_kinds_of_keys_required_and_preferred() -> None:
    affinity = {
        "podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{**TERM, "matchLabelKeys": ["rev"]}]},
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 1, "podAffinityTerm": {**TERM, "mismatchLabelKeys": ["rev"]}}
            ]
        },
    }
    made = _made({"affinity": affinity})["spec"]["affinity"]
    (near,) = made["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    (far,) = made["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"]
    assert _expressions(near) == [{"key": "rev", "operator": "In", "values": ["7"]}]
    assert _expressions(far["podAffinityTerm"]) == [{"key": "rev", "operator": "NotIn", "values": ["7"]}]


def test_without_a_selector_nothing_is_merged() -> None:
    (constraint,) = _made(_spread(labelSelector=None))["spec"]["topologySpreadConstraints"]
    assert constraint["labelSelector"] is None


def test_an_update_merges_nothing() -> None:
    old = _made(_spread())
    (constraint,) = _made(_spread(), old)["spec"]["topologySpreadConstraints"]
    assert _expressions(constraint) is None


def test_the_scheduler_counts_a_merged_key_once() -> None:
    stored = msgspec.convert(_made(_spread()), core.Pod)
    demands = demands_of(stored)
    assert demands is not None
    requirements = demands.spread[0].selector.requirements
    assert requirements is not None and [r.key for r in requirements] == ["app", "rev"]


def test_a_pod_that_is_relabelled_after_its_creation_keeps_the_merged_value() -> None:
    made = _made(_spread())
    made["metadata"]["labels"]["rev"] = "8"
    demands = demands_of(msgspec.convert(made, core.Pod))
    assert demands is not None
    requirements = demands.spread[0].selector.requirements
    assert requirements is not None and [r.values for r in requirements] == [("web",), ("7",)]
