"""Topology spread, one sentence a rule: a pod that only zone a suits, with pods of the app running in a and b."""

from __future__ import annotations

from typing import Any

import pytest

from muster.testing.builders import node_manifest, pod_manifest
from synchronous import Driver

MINE = {"matchLabels": {"app": "web"}}

RULES: list[tuple[str, str, str, dict[str, Any], bool]] = [
    ("a pod that matches itself counts", "a", "web", {}, False),
    ("a pod that does not match itself adds nothing", "a", "other", {}, True),
    ("the skew may be as large as maxSkew", "a", "web", {"maxSkew": 2}, True),
    ("nodes ruled out by the selector do not count under Honor", "a", "web", {"nodeAffinityPolicy": "Honor"}, True),
    ("with fewer domains than minDomains the fewest is zero", "ab", "web", {"minDomains": 3}, False),
    ("with as many domains as minDomains the fewest counts", "ab", "web", {"minDomains": 2}, True),
    ("below minDomains the first pod may come", "", "web", {"minDomains": 3}, True),
    ("no selector means no pod", "aa", "web", {"labelSelector": None}, True),
    ("an empty selector means every pod", "a", "other", {"labelSelector": {}}, False),
    ("ScheduleAnyway never blocks", "aaa", "web", {"whenUnsatisfiable": "ScheduleAnyway"}, True),
    ("a key to match that the pod lacks is ignored", "a", "web", {"matchLabelKeys": ["rev"]}, False),
]


@pytest.mark.parametrize(("running", "app", "more", "fits"), [r[1:] for r in RULES], ids=[r[0] for r in RULES])
def test_whether_zone_a_takes_the_pod(running: str, app: str, more: dict[str, Any], fits: bool) -> None:
    driver = Driver()
    driver.create(*(node_manifest(f"n-{zone}", cpu="8", labels={"zone": zone}) for zone in "ab"))
    for i, zone in enumerate(running):
        driver.create(pod_manifest(f"r{i}", labels={"app": "web"}, nodeName=f"n-{zone}"))
    constraint = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": MINE,
        "nodeAffinityPolicy": "Ignore",
        **more,
    }
    pod = pod_manifest("p", labels={"app": app}, nodeSelector={"zone": "a"}, topologySpreadConstraints=[constraint])
    driver.create(pod)
    assert driver.nodes_of("p") == ["n-a" if fits else None]
