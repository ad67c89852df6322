"""Of several who want to lead, at most one does at any time, and one does in the end."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.api.calls import Request, Response
from muster.api.instant import MILLISECOND, SECOND
from muster.runtime.remote.election import Claim, Election, Look, Sleep, Terms


class Leases:
    """One Lease, as a server keeps it: created once, written only from the latest revision."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.revision = 0

    def handle(self, request: Request) -> Response:
        if request.method == "GET":
            return Response(404, {}) if self.lease is None else Response(200, self.lease)
        if request.method == "POST":
            return Response(409, {}) if self.lease is not None else self._keep(request.body)
        if self.lease is None:
            return Response(404, {})
        if request.body["metadata"].get("resourceVersion") != str(self.revision):
            return Response(409, {})
        return self._keep(request.body)

    def _keep(self, body: Any) -> Response:
        self.revision += 1
        self.lease = {**body, "metadata": {**body["metadata"], "resourceVersion": str(self.revision)}}
        return Response(201, self.lease)


def terms(who: str) -> Terms:
    return Terms(who)


def turn(election: Election, leases: Leases, now: int, fault: str = "") -> None:
    """One step; `lost`: the answer does not come, though the server did it; `cut`: the call does not arrive."""
    step = election.step
    if isinstance(step, Sleep):
        if now >= step.until:
            election.slept(now)
        return
    answer = Response(0, {}) if fault == "cut" else leases.handle(step.request)
    answer = Response(0, {}) if fault == "lost" else answer
    if isinstance(step, Look):
        election.looked(answer, now)
    else:
        assert isinstance(step, Claim)
        election.claimed(answer, now)


def could_take(other: Election, leader: Election, leases: Leases, at: int) -> bool:
    """Whether `other` would be given the lease at that time: from an older revision than the last it is refused."""
    if other._lease is None or other._lease["metadata"]["resourceVersion"] != str(leases.revision):
        return False
    return other.holder == leader.terms.identity and other._seen_at + 15 * SECOND <= at and other._outdated is False


FAULTS = st.sampled_from(["", "", "", "cut", "lost", "asleep"])


@given(
    plan=st.lists(st.tuples(st.integers(0, 2), st.integers(10, 4_000), FAULTS), max_size=150),
    seed=st.integers(0, 1_000),
)
@settings(max_examples=200, deadline=None)
def test_never_two_lead_and_in_the_end_one_does(plan, seed):
    leases, now = Leases(), 1_700_000_000 * SECOND
    everyone = [Election(terms(f"p{number}"), Random(seed + number)) for number in range(3)]
    for who, milliseconds, fault in plan:
        now += milliseconds * MILLISECOND
        if fault != "asleep":  # else a process that stands still
            turn(everyone[who], leases, now, fault)
        assert sum(one.leads(now) for one in everyone) <= 1
        for one in (leader for leader in everyone if leader.leads(now)):
            last = now + one.remaining(now) - 1  # when a write that it begins now is over at the latest
            assert not any(could_take(other, one, leases, last) for other in everyone if other is not one)
    for _ in range(200):
        now += 300 * MILLISECOND
        for one in everyone:
            turn(one, leases, now)
    assert sum(one.leads(now) for one in everyone) == 1


def leading() -> tuple[Election, Leases, int]:
    leases, now = Leases(), 1_700_000_000 * SECOND
    election = Election(terms("me"), Random(1))
    turn(election, leases, now)
    turn(election, leases, now)
    assert election.leads(now)
    return election, leases, now


def test_the_record_is_that_of_client_go():
    _, leases, _ = leading()
    assert leases.lease is not None
    assert leases.lease["spec"] == {
        "holderIdentity": "me",
        "leaseDurationSeconds": 15,
        "renewTime": "2023-11-14T22:13:20.000000Z",
        "acquireTime": "2023-11-14T22:13:20.000000Z",
        "leaseTransitions": 0,
    }


def test_whoever_cannot_renew_leads_no_more_five_seconds_before_others_may():
    election, _, now = leading()
    assert election.leads(now + 10 * SECOND - 1)
    assert not election.leads(now + 10 * SECOND)
    assert election.remaining(now + 9 * SECOND) == 6 * SECOND
    assert election.remaining(now + 10 * SECOND) == 0


def test_another_takes_over_once_the_record_has_not_moved_for_its_duration():
    _, leases, now = leading()
    other = Election(terms("other"), Random(2))
    turn(other, leases, now + SECOND)
    assert other.holder == "me" and not other.leads(now + SECOND)
    for seconds in range(2, 16):
        turn(other, leases, now + seconds * SECOND)
        assert not other.leads(now + seconds * SECOND)
    for seconds in range(16, 30):
        turn(other, leases, now + seconds * SECOND)
    assert other.leads(now + 29 * SECOND)
    assert leases.lease is not None and leases.lease["spec"]["leaseTransitions"] == 1


def test_a_lease_that_is_let_go_is_taken_at_once_with_unknown_fields_kept():
    election, leases, now = leading()
    assert leases.lease is not None
    leases.lease["spec"]["strategy"] = "OldestEmulationVersion"
    election.looked(Response(200, leases.lease), now)
    request = election.release(now)
    assert request is not None and not election.leads(now)
    assert leases.handle(request).ok
    other = Election(terms("other"), Random(2))
    turn(other, leases, now + 1)
    turn(other, leases, now + 2)
    assert other.leads(now + 2)
    assert leases.lease["spec"]["strategy"] == "OldestEmulationVersion"


def test_a_leader_whose_lease_another_wrote_looks_at_once_and_steps_down():
    election, leases, now = leading()
    assert leases.lease is not None
    leases._keep({**leases.lease, "spec": {**leases.lease["spec"], "holderIdentity": "usurper"}})
    turn(election, leases, now + 2 * SECOND)
    turn(election, leases, now + 2 * SECOND)
    assert isinstance(election.step, Look), "no wait after the conflict"
    turn(election, leases, now + 2 * SECOND)
    assert not election.leads(now + 2 * SECOND)


@pytest.mark.parametrize(
    ("times", "field"),
    [
        ({"hold": 10 * SECOND}, "leaseDuration"),
        ({"hold": SECOND // 2, "renew": 1}, "leaseDuration"),
        ({"renew": 2 * SECOND}, "renewDeadline"),
        ({"retry": 0}, "retryPeriod"),
    ],
)
def test_times_that_do_not_fit_are_refused_by_name(times, field):
    with pytest.raises(ValueError, match=f"^{field}: "):
        Terms("me", **times)
