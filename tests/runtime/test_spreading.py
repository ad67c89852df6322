"""The default spread constraints of a profile file."""

from __future__ import annotations

import pytest

from muster.engine.profile import SYSTEM_SPREAD, ProfileError
from muster.model.neighbours import PodSelector, SpreadConstraint
from muster.plugins import BUILT_IN, default_profile
from muster.runtime.config import profile_from

ZONE = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}


def of(spread: object) -> tuple[SpreadConstraint, ...]:
    return profile_from({"plugins": [{"name": "topology_spread"}], "topologySpread": spread}, "p.yaml", BUILT_IN).spread


def listed(*constraints: object) -> dict[str, object]:
    return {"defaultingType": "List", "defaultConstraints": list(constraints)}


def test_nothing_said_is_the_systems_soft_spreading_over_hosts_and_zones() -> None:
    assert default_profile().spread == of({}) == of({"defaultingType": "System"}) == SYSTEM_SPREAD
    assert [(c.topology_key, c.max_skew, c.hard) for c in SYSTEM_SPREAD] == [
        ("kubernetes.io/hostname", 3, False),
        ("topology.kubernetes.io/zone", 5, False),
    ]


def test_a_list_is_taken_as_it_is_and_an_empty_one_spreads_nobody() -> None:
    hard = {**ZONE, "whenUnsatisfiable": "DoNotSchedule", "minDomains": 2, "nodeTaintsPolicy": "Honor"}
    assert of(listed(ZONE, {**hard, "nodeAffinityPolicy": "Ignore"})) == (
        SpreadConstraint(PodSelector(None), "zone", 1, False),
        SpreadConstraint(PodSelector(None), "zone", 1, True, 2, False, True),
    )
    assert of(listed()) == ()


@pytest.mark.parametrize(
    ("spread", "said"),
    [
        ([], "topologySpread: must be a mapping"),
        ({"kind": 1}, "topologySpread.kind: unknown field"),
        ({"defaultingType": "None"}, "topologySpread.defaultingType: 'None' is unknown; want System or List"),
        ({"defaultConstraints": [ZONE]}, "topologySpread.defaultConstraints: only with defaultingType List"),
        ({"defaultingType": "List", "defaultConstraints": {}}, "topologySpread.defaultConstraints: must be a list"),
        (listed(1), "defaultConstraints[0]: must be a mapping"),
        (listed(ZONE, {**ZONE, "maxSkew": 2}), "defaultConstraints[1]: the same topologyKey and whenUnsatisfiable"),
        (listed({**ZONE, "maxSkew": 0}), "defaultConstraints[0].maxSkew: 0; give a whole number from 1"),
        (listed({**ZONE, "maxSkew": True}), "defaultConstraints[0].maxSkew: True"),
        (listed({"topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}), "defaultConstraints[0].maxSkew: missing"),
        (listed({**ZONE, "topologyKey": ""}), "defaultConstraints[0].topologyKey: missing"),
        (listed({**ZONE, "topologyKey": "a b"}), "defaultConstraints[0].topologyKey: 'a b' is no label key"),
        (listed({**ZONE, "whenUnsatisfiable": "Never"}), "whenUnsatisfiable: 'Never'; want DoNotSchedule or Schedule"),
        (listed({**ZONE, "minDomains": 2}), "defaultConstraints[0].minDomains: only with whenUnsatisfiable"),
        (listed({**ZONE, "nodeTaintsPolicy": "no"}), "nodeTaintsPolicy: 'no'; want Honor or Ignore"),
        (listed({**ZONE, "labelSelector": {}}), "defaultConstraints[0].labelSelector: remove it"),
        (listed({**ZONE, "matchLabelKeys": []}), "defaultConstraints[0].matchLabelKeys: remove it"),
        (listed({**ZONE, "weight": 1}), "defaultConstraints[0].weight: unknown field"),
    ],
)
def test_a_wrong_field_is_named(spread: object, said: str) -> None:
    with pytest.raises(ProfileError) as error:
        of(spread)
    assert said in str(error.value)
    assert str(error.value).startswith("p.yaml: topologySpread")
