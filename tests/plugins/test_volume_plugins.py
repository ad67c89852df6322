"""What each policy on volumes lets pass, one by one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from muster.engine.decide import decide
from muster.model import wording
from muster.model.diagnosis import PodVerdict, Reason, Rejection
from muster.model.volumes import ONE_POD, WHOLE, ClassRecord, Disk, DriverRecord
from muster.plugins import default_profile
from muster.testing import builders
from storing import at, claim, key, stored, storing, volume

PROFILE = default_profile()
ZONE, BETA = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"


def outcome(nodes, pod, *records, **fields):
    """The node that a pod gets, else why it gets none."""
    snapshot = stored(builders.snapshot(nodes), *records, **fields)
    decision = decide(snapshot, [builders.entry(pod)], PROFILE, now=0)
    (plan,), (diagnosis,) = decision.plans, decision.diagnoses
    return plan.binds[0].node if plan.binds else diagnosis.rejections


def node(name, limit=None, **fields):
    return replace(builders.node(name, **fields), drivers={"csi": limit})


@pytest.mark.parametrize(
    ("records", "flaw"),
    [
        ([], "missing/c"),
        ([claim("c", terminating=True)], "terminating/c"),
        ([claim("c", lost=True)], "lost/c"),
        ([claim("c", "gone")], "class-missing/gone"),
        ([claim("c", "now"), ClassRecord("now", "csi")], "unbound/c"),
        ([claim("c", None)], "unbound/c"),
        ([claim("c", "now", volume="v")], "volume-missing/v"),
    ],
)
def test_a_claim_with_a_flaw_keeps_its_pod_from_every_node_and_the_flaw_is_told_without_a_number(records, flaw):
    rejections = outcome([node("n1"), node("n2")], storing("p", "c"), *records)
    assert rejections == (Rejection(Reason.CLAIM, 2, flaw),)
    assert "2 " not in wording.nodes_message(PodVerdict(rejections, 2)).removeprefix("0/2 ")


def test_a_claim_for_one_pod_that_is_used_on_a_node_keeps_others_from_all_nodes():
    records = [claim("c", "now", volume="v", modes=(ONE_POD,)), volume("v", "now")]
    used = {key("c"): {"n2": 1}}
    found = outcome([node("n1"), node("n2")], storing("p", "c"), *records, mounts=used)
    assert found == (Rejection(Reason.CLAIM, 2, "in-use/c"),)


@pytest.mark.parametrize(
    ("of_volume", "of_node", "passes"),
    [
        ((ZONE, ("a",)), {ZONE: "a"}, True),
        ((ZONE, ("a",)), {ZONE: "b"}, False),
        ((ZONE, ("a", "b")), {ZONE: "b"}, True),
        ((BETA, ("a",)), {ZONE: "a"}, True),
        ((ZONE, ("a",)), {BETA: "a"}, True),
        ((ZONE, ("a",)), {}, True),
        ((ZONE, ("a",)), {"topology.kubernetes.io/region": "west"}, False),
    ],
)
def test_zones_of_volume_and_node_agree_whichever_key_names_them(of_volume, of_node, passes):
    records = [claim("c", "now", volume="v"), volume("v", "now", zones=(of_volume,))]
    found = outcome([node("n1", labels=of_node)], storing("p", "c"), *records)
    assert found == ("n1" if passes else (Rejection(Reason.VOLUME_ZONE, 1),))


def test_a_volume_that_is_attached_still_counts_though_its_pod_is_gone():
    records = [claim("c", "now", volume="v"), volume("v", "now", driver="csi", handle="h")]
    left = [volume("old", "now", driver="csi", handle="o")]
    attached = outcome([node("n1", 1)], storing("p", "c"), *records, *left, attachments=(("old", "n1"),))
    assert attached == (Rejection(Reason.VOLUME_LIMIT, 1),)
    assert outcome([node("n1", 1)], storing("p", "c"), *records, *left) == "n1"
    assert outcome([node("n1", 1)], storing("p", "c"), *records, attachments=(("v", "n1"),)) == "n1"


def test_a_claim_that_is_yet_to_be_served_counts_for_the_driver_that_will_serve_it():
    records = [claim("c"), claim("d"), ClassRecord("late", "csi", late=True)]
    nodes = [node("n1", 1), node("n2", 2, cpu=1000)]
    assert outcome(nodes, storing("p", "c", "d", cpu=1000), *records) == "n2"


def test_a_driver_that_must_be_there_keeps_its_pods_where_it_is():
    records = [claim("c", "now", volume="v"), volume("v", "now", driver="x", handle="h")]
    asked = DriverRecord("x", must_be_there=True)
    assert outcome([node("n1")], storing("p", "c"), *records) == "n1"
    found = outcome([node("n1")], storing("p", "c"), *records, asked)
    assert found == (Rejection(Reason.DRIVER_MISSING, 1, "x"),)


@pytest.mark.parametrize(
    ("there", "wanted", "passes"), [(1, 1, True), (WHOLE, 1, False), (1, WHOLE, False), (2 * WHOLE, 1, False)]
)
def test_a_disk_has_one_writer_on_a_node_or_readers_only(there, wanted, passes):
    disk = Disk("iSCSI", "iqn")
    found = outcome([node("n1")], storing("p", disks=[(disk, wanted)]), disks={disk: {"n1": there}})
    assert found == ("n1" if passes else (Rejection(Reason.DISK_CONFLICT, 1),))


def test_a_free_volume_must_suit_the_claim():
    late = ClassRecord("late", "", late=True)
    asks = claim("c", size=5, attributes="gold")
    bad = [
        volume("small", size=4, attributes="gold"),
        volume("other", "other", size=9, attributes="gold"),
        volume("raw", size=9, block=True, attributes="gold"),
        volume("plain", size=9),
        volume("mine", size=9, attributes="gold", claim=key("d")),
        volume("ends", size=9, attributes="gold", terminating=True),
        volume("held", size=9, attributes="gold", available=False),
        volume("read", size=9, attributes="gold", modes=("ReadOnlyMany",)),
    ]
    found = outcome([node("n1")], storing("p", "c"), late, asks, *bad)
    assert found == (Rejection(Reason.NO_VOLUMES, 1),)
    good = volume("good", size=9, attributes="gold", affinity=at("n2"))
    assert outcome([node("n1"), node("n2", cpu=500)], storing("p", "c"), late, asks, *bad, good) == "n2"
