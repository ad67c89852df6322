"""Golden sentences, written by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from muster.model import wording
from muster.model.diagnosis import Diagnosis, PodVerdict, Reason, Rejection, Remedy, Shortfall, Verdict
from muster.model.keys import Key
from muster.model.records import EntryKey, EntryKind
from muster.model.volumes import Flaw

GPU = "nvidia.com/gpu"
GROUP = EntryKey(EntryKind.POD_GROUP, Key("team", "train"))
POD = EntryKey(EntryKind.POD, Key("team", "single"))


def diagnosis(entry=GROUP, verdict=Verdict.UNSCHEDULABLE, **fields):
    return Diagnosis(entry, "u", verdict, 1, **fields)


@pytest.mark.parametrize(
    ("rejections", "nodes", "text"),
    [
        (
            [(Reason.NODE_TAINTED, 1, "dedicated=red:NoSchedule"), (Reason.INSUFFICIENT, 2, "cpu")],
            3,
            "0/3 nodes are available: 1 node(s) had untolerated taint {dedicated: red}, 2 Insufficient cpu.",
        ),
        (
            [(Reason.INSUFFICIENT, 8, GPU)],
            8,
            "0/8 nodes are available: 8 Insufficient nvidia.com/gpu.",
        ),
        (
            [(Reason.HOST_PORTS, 1, "80/TCP"), (Reason.NODE_UNSCHEDULABLE, 2, ""), (Reason.NODE_SELECTOR, 3, "")],
            6,
            "0/6 nodes are available: 1 node(s) didn't have free ports for the requested pod ports, "
            "2 node(s) were unschedulable, 3 node(s) didn't match Pod's node affinity/selector.",
        ),
        ([(Reason.INSUFFICIENT, 1, "pods")], 1, "0/1 nodes are available: 1 Too many pods."),
        (
            [(Reason.NODE_TAINTED, 4, "broken"), (Reason.NODE_TAINTED, 1, "spot:NoExecute")],
            5,
            "0/5 nodes are available: 1 node(s) had untolerated taint {spot: }, "
            "4 node(s) had untolerated taint {broken: }.",
        ),
        (
            [(Reason.NOMINATED_AWAY, 1, GPU), (Reason.TAKEN_BY_MEMBERS, 2, GPU)],
            3,
            "0/3 nodes are available: 1 node(s) had their room held for a nominated pod, "
            "2 node(s) had their room taken by other members of the group.",
        ),
        ([], 0, "no nodes available to schedule pods"),
    ],
)
def test_nodes_that_said_no_are_counted_in_the_words_of_kubernetes(rejections, nodes, text):
    verdict = PodVerdict(tuple(Rejection(*rejection) for rejection in rejections), nodes)
    assert wording.nodes_message(verdict) == text


def test_a_group_short_of_its_minimum_counts_what_is_scheduled_and_what_remains():
    short = diagnosis(min_count=33, pending=33, placed=30)
    assert wording.group_message(short) == "minCount (33) cannot be satisfied: 30 scheduled, 3 remaining"
    assert wording.group_message(short, placements=True) == (
        "0/1 placements are available, first placement status: "
        "minCount (33) cannot be satisfied: 30 scheduled, 3 remaining"
    )


def test_running_and_finished_members_count_as_scheduled():
    short = diagnosis(min_count=4, running=1, succeeded=1, pending=2, placed=1)
    assert wording.group_message(short) == "minCount (4) cannot be satisfied: 3 scheduled, 1 remaining"


def test_a_group_above_its_minimum_that_places_nobody_says_so():
    assert wording.group_message(diagnosis(min_count=2, running=2, pending=3)) == "no pods were schedulable"


def test_a_search_that_stopped_early_claims_no_proof():
    stopped = diagnosis(min_count=3, pending=3, placed=2, proven=False)
    assert wording.group_message(stopped).endswith("(search stopped; not proven impossible)")


@pytest.mark.parametrize(
    "fields",
    [
        {"min_count": 3, "pending": 3, "placed": 2},
        {"min_count": 3, "pending": 3, "placed": 2, "domain": "r1", "topology_key": "rack", "placements": 4},
        {"min_count": 2, "running": 2, "pending": 3},
        {"entry": POD, "pending": 1, "rejections": (Rejection(Reason.INSUFFICIENT, 4, GPU),), "nodes": 4},
    ],
)
def test_whatever_is_said_of_it_says_that_nothing_is_proven(fields):
    stopped = diagnosis(**fields, proven=False)
    assert "not proven impossible" in wording.verdict(stopped)
    assert "not proven impossible" in wording.group_message(stopped)
    assert "not proven" not in wording.verdict(replace(stopped, proven=True))


def test_a_request_that_no_node_could_ever_hold_is_called_so():
    short = Shortfall(GPU, 27, nodes=3, asked=9, most=8)
    told = wording.verdict(diagnosis(min_count=3, pending=3, shortfall=short))
    assert told.endswith("; each asks for 9 nvidia.com/gpu, and no node that it may use has more than 8.")


@pytest.mark.parametrize(
    ("remedy", "text"),
    [
        (Remedy("add-nodes", 2, "n1"), "add 2 nodes like n1"),
        (Remedy("add-nodes", 1, "n1", "rack r7"), "add 1 node like n1 in rack r7"),
        (Remedy("add-nodes", 1), "add 1 node"),
        (Remedy("lower-min-count", 2, "", "leaf"), "lower minCount of leaf to 2"),
    ],
)
def test_a_remedy_says_where_it_is_to_be_done(remedy, text):
    assert wording.remedy_phrase(remedy) == text


def test_a_member_tells_its_own_nodes_and_one_that_had_a_node_tells_the_groups_reason():
    own = PodVerdict((Rejection(Reason.INSUFFICIENT, 2, GPU),), 2)
    lucky, unlucky = Key("team", "a"), Key("team", "b")
    short = diagnosis(min_count=2, pending=2, placed=1, nodes=2, pods={lucky: PodVerdict((), 2), unlucky: own})
    assert wording.pod_message(short, lucky) == "minCount (2) cannot be satisfied: 1 scheduled, 1 remaining"
    assert wording.pod_message(short, unlucky) == "0/2 nodes are available: 2 Insufficient nvidia.com/gpu."


@pytest.mark.parametrize(
    ("reason", "names", "text"),
    [
        (
            Reason.SCHEDULER_NAME_MISMATCH,
            ("a", "b"),
            "all pods in a single pod group should have the same .spec.schedulerName set, found 'a' and 'b'",
        ),
        (
            Reason.PRIORITY_MISMATCH,
            ("0", "100"),
            "all pods in a single pod group should have the same priority as the pod group's priority, "
            "found '0' and '100'",
        ),
        (
            Reason.PREEMPTION_POLICY_MISMATCH,
            (),
            "all pods in a single pod group should have the same preemption policy",
        ),
    ],
)
def test_members_that_disagree_are_told_what_they_must_share(reason, names, text):
    error = diagnosis(verdict=Verdict.ERROR, rejections=(Rejection(reason, 0),), names=names)
    assert wording.group_message(error, placements=True) == text
    assert wording.pod_message(error, Key("team", "a")) == text


HELD = [
    (
        diagnosis(
            verdict=Verdict.WAITING,
            min_count=6,
            running=1,
            pending=2,
            rejections=(Rejection(Reason.MEMBERS_MISSING, 0),),
            remedies=(Remedy("add-members", 3), Remedy("lower-min-count", 3)),
        ),
        "3 of 6 members exist",
        "PodGroup team/train waits: 3 of 6 members exist; "
        "to change that, create 3 more members, or lower minCount to 3.",
    ),
    (
        diagnosis(
            verdict=Verdict.WAITING,
            pending=2,
            rejections=(Rejection(Reason.GROUP_MISSING, 0, "train"),),
            remedies=(Remedy("create-group", 0, "train"),),
        ),
        'PodGroup "train" does not exist',
        'PodGroup team/train waits: PodGroup "train" does not exist; to change that, create the PodGroup "train".',
    ),
    (
        diagnosis(
            verdict=Verdict.WAITING,
            rejections=(Rejection(Reason.GATED, 0, "example.com/quota"),),
            remedies=(Remedy("remove-gate", 1, "example.com/quota"),),
            names=("worker-3",),
        ),
        'scheduling gate "example.com/quota" of pod worker-3 holds the group',
        'PodGroup team/train waits: scheduling gate "example.com/quota" of pod worker-3 holds the group; '
        'to change that, remove the scheduling gate "example.com/quota".',
    ),
    (
        diagnosis(
            verdict=Verdict.WAITING,
            min_count=4,
            pending=3,
            rejections=(
                Rejection(Reason.MEMBERS_MISSING, 0),
                Rejection(Reason.GATED, 0, "a"),
                Rejection(Reason.GATED, 0, "b"),
            ),
            remedies=(Remedy("add-members", 1), Remedy("lower-min-count", 3), Remedy("remove-gate", 2, "a, b")),
            names=("w-0",),
        ),
        '3 of 4 members exist; scheduling gate "a" of pod w-0 holds the group; '
        'scheduling gate "b" of pod w-0 holds the group',
        'PodGroup team/train waits: 3 of 4 members exist and scheduling gate "a" of pod w-0 holds the group '
        'and scheduling gate "b" of pod w-0 holds the group; to change that, create 1 more member, '
        'or lower minCount to 3, and remove the scheduling gates "a" and "b".',
    ),
    (
        diagnosis(verdict=Verdict.WAITING, rejections=(Rejection(Reason.GROUP_DELETED, 0, "train"),)),
        'PodGroup "train" is being deleted',
        'PodGroup team/train waits: PodGroup "train" is being deleted.',
    ),
    (
        diagnosis(verdict=Verdict.WAITING, rejections=(Rejection(Reason.PARENT_MISSING, 0, "tree"),)),
        'parent composite pod group "tree" does not exist',
        'PodGroup team/train waits: parent composite pod group "tree" does not exist.',
    ),
]


@pytest.mark.parametrize(("held", "message", "sentence"), HELD)
def test_what_is_held_says_by_what_and_how_to_end_it(held, message, sentence):
    assert wording.group_message(held) == message
    assert wording.verdict(held) == sentence


def test_the_verdict_on_a_gang_says_how_much_is_short_where_and_what_would_help():
    short = diagnosis(
        min_count=33,
        pending=33,
        placed=30,
        nodes=77,
        rejections=(Rejection(Reason.NODE_SELECTOR, 30), Rejection(Reason.INSUFFICIENT, 47, GPU)),
        shortfall=Shortfall(GPU, 1, "full1"),
        remedies=(
            Remedy("tolerate", 3, "example.com/broken"),
            Remedy("lower-min-count", 30),
            Remedy("free", 3, GPU),
            Remedy("add-nodes", 1, "good1"),
        ),
    )
    assert wording.verdict(short) == (
        "PodGroup team/train waits: it needs 33 members at once, 30 can be placed, 3 short "
        "(0/77 nodes are available: 30 node(s) didn't match Pod's node affinity/selector, "
        "47 Insufficient nvidia.com/gpu); nearest on full1, which lacks 1 nvidia.com/gpu; "
        "to change that, tolerate the taint example.com/broken, or lower minCount to 30, "
        "or free 3 nvidia.com/gpu, or add 1 node like good1."
    )


def test_the_verdict_on_a_broken_gang_counts_what_runs():
    short = diagnosis(min_count=4, running=2, pending=2, placed=1, nodes=4)
    assert wording.verdict(short) == (
        "PodGroup team/train: running 2 of 4, 2 members wait: it needs 4 members at once, 1 can be placed, 1 short."
    )


def test_the_verdict_on_a_single_pod_and_on_leftovers_is_what_their_nodes_say():
    full = (Rejection(Reason.INSUFFICIENT, 2, "cpu"),)
    single = diagnosis(POD, pending=1, nodes=2, rejections=full, shortfall=Shortfall("cpu", 1500, "n1"))
    assert wording.verdict(single) == (
        "Pod team/single waits: 0/2 nodes are available: 2 Insufficient cpu; nearest on n1, which lacks 1500m cpu."
    )
    left = diagnosis(verdict=Verdict.SCHEDULED, min_count=2, pending=3, placed=2, nodes=2, rejections=full)
    assert wording.verdict(left) == (
        "PodGroup team/train runs, and 1 further member waits: 0/2 nodes are available: 2 Insufficient cpu."
    )


def test_a_group_that_has_its_minimum_runs_whatever_its_further_members_wait_for():
    full = (Rejection(Reason.INSUFFICIENT, 2, "cpu"),)
    late = diagnosis(min_count=2, running=2, pending=2, nodes=2, rejections=full)
    assert wording.verdict(late) == (
        "PodGroup team/train: running 2 of 4, 2 members wait: 0/2 nodes are available: 2 Insufficient cpu."
    )


def test_a_refused_binding_and_a_failed_decision_say_what_happened():
    refused = diagnosis(verdict=Verdict.ERROR, rejections=(Rejection(Reason.BINDING_REFUSED, 0, "forbidden"),))
    assert wording.verdict(refused) == "PodGroup team/train waits: binding rejected: forbidden."
    assert wording.verdict(replace(refused, running=3, pending=1)) == (
        "PodGroup team/train: running 3 of 4, one member waits: binding rejected: forbidden."
    )
    raised = replace(refused, rejections=(Rejection(Reason.DECISION_FAILED, 0, "IndexError: 7"),))
    assert wording.group_message(raised) == "the decision failed: IndexError: 7"


def test_every_reason_and_every_action_can_be_worded():
    for reason in Reason:
        if Reason.NONE < reason < Reason.GATED:
            of_claim = reason in (Reason.CLAIM, Reason.DEVICE_CLAIM)
            assert wording.node_reason(Rejection(reason, 1, "missing/x" if of_claim else "x"))
    for flaw in Flaw:
        assert wording.node_reason(Rejection(Reason.CLAIM, 1, f"{flaw.value}/x"))
    for action in ("add-members", "lower-min-count", "free", "add-nodes", "uncordon", "tolerate", "remove-gate"):
        assert wording.remedy_phrase(Remedy(action, 2, "x")) != action


@pytest.mark.parametrize(
    ("resource", "amount", "text"),
    [("cpu", 2000, "2"), ("cpu", 1500, "1500m"), ("memory", 3 << 30, "3Gi"), ("memory", 7, "7"), (GPU, 12, "12")],
)
def test_amounts_are_written_as_people_write_them(resource, amount, text):
    assert wording.format_amount(resource, amount) == text


def test_a_constrained_group_tells_the_nearest_domain_and_what_it_lacks():
    short = diagnosis(
        min_count=8,
        pending=8,
        placed=6,
        nodes=3,
        topology_key="topology.muster.dev/rack",
        placements=50,
        domain="r7",
        rejections=(Rejection(Reason.TAKEN_BY_MEMBERS, 3),),
        shortfall=Shortfall(GPU, 2, "rack r7"),
    )
    assert wording.verdict(short) == (
        "PodGroup team/train waits: it needs 8 members in one rack; best of 50: rack r7 holds 6 of 8, short of 2 "
        "(0/3 nodes are available: 3 node(s) had their room taken by other members of the group); "
        "nearest on rack r7, which lacks 2 nvidia.com/gpu."
    )
    assert wording.group_message(short) == (
        "0/50 placements are available, first placement status: "
        "minCount (8) cannot be satisfied: 6 scheduled, 2 remaining"
    )


def test_a_group_that_has_to_stay_in_its_domain_says_so():
    full = diagnosis(
        min_count=2,
        running=2,
        pending=1,
        nodes=2,
        topology_key="rack",
        placements=1,
        domain="a",
        rejections=(Rejection(Reason.INSUFFICIENT, 2, GPU),),
    )
    assert wording.verdict(full) == (
        "PodGroup team/train: running 2 of 3, one member waits: it has to stay in rack a "
        "(0/2 nodes are available: 2 Insufficient nvidia.com/gpu)."
    )


@pytest.mark.parametrize(
    ("reason", "names", "text"),
    [
        (
            Reason.DOMAIN_SPLIT,
            ("a", "b", "rack"),
            'running members are in two domains of the label "rack", "a" and "b", and must share one',
        ),
        (
            Reason.OUTSIDE_DOMAINS,
            ("run", "n1", "rack"),
            'running member run is on node n1, which does not have the label "rack"',
        ),
        (
            Reason.DOMAIN_UNKNOWN,
            ("run", "n1", "rack"),
            'running member run is on node n1, which does not exist: its domain of "rack" is not known',
        ),
    ],
)
def test_running_members_without_a_common_domain_are_named(reason, names, text):
    wrong = diagnosis(
        verdict=Verdict.ERROR, rejections=(Rejection(reason, 0, "rack"),), names=names, topology_key="rack"
    )
    assert wording.group_message(wrong) == text


def test_a_label_that_no_node_has_is_the_reason():
    nowhere = diagnosis(
        min_count=2, pending=2, topology_key="rack", rejections=(Rejection(Reason.NO_DOMAINS, 0, "rack"),)
    )
    assert wording.group_message(nowhere) == '0/0 placements are available: no node has the label "rack"'
    assert wording.verdict(nowhere) == (
        'PodGroup team/train waits: it has to be in one domain of the label "rack", which no node has.'
    )
