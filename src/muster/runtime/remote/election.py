"""Leader election by a Lease, as client-go does it: a state machine without I/O.

Times are this process's own: a lease is another's until its record has not changed for as long as it is held for, by
the clock of whoever looks. A leader that could not renew within `renew` leads no more, well before others take over.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple

from muster.api.calls import Request, Response
from muster.api.instant import SECOND, Instant, to_micro_time

NOT_FOUND, CONFLICT = 404, 409
JITTER = 1.2
"""Of the wait between attempts to take over: up to so many times itself longer, as in client-go."""


@dataclass(frozen=True)
class Terms:
    """Who wants to lead what, and the times of it; the defaults of kube-scheduler.

    Raises:
        ValueError: the times do not fit; names the field.
    """

    identity: str
    namespace: str = "kube-system"
    name: str = "muster-scheduler"
    hold: Instant = 15 * SECOND
    """leaseDuration: how long others wait after the last renewal that they saw."""
    renew: Instant = 10 * SECOND
    """renewDeadline: how long a leader tries to renew before it gives up."""
    retry: Instant = 2 * SECOND
    """retryPeriod: between attempts."""

    def __post_init__(self) -> None:
        if self.hold < SECOND:
            raise ValueError("leaseDuration: must be at least 1s")
        if self.hold <= self.renew:
            raise ValueError("leaseDuration: must be longer than renewDeadline")
        if self.renew <= int(JITTER * self.retry):
            raise ValueError(f"renewDeadline: must be longer than {JITTER} times retryPeriod")
        if self.retry <= 0:
            raise ValueError("retryPeriod: must be longer than 0s")

    @property
    def path(self) -> str:
        return f"/apis/coordination.k8s.io/v1/namespaces/{self.namespace}/leases/{self.name}"


class Look(NamedTuple):
    """Read the Lease."""

    request: Request


class Claim(NamedTuple):
    """Write it: to take it, to keep it, or to let it go."""

    request: Request
    asked_at: Instant


class Sleep(NamedTuple):
    until: Instant


Step = Look | Claim | Sleep


class Election:
    """Do what `step` says and tell `looked`, `claimed` or `slept`; whether it leads is `leads(now)`, at any time."""

    def __init__(self, terms: Terms, random: Random) -> None:
        self.terms = terms
        self._random = random
        self.step: Step = Look(self._get())
        self.holder = ""
        """Who led by the latest record seen."""
        self._lease: dict[str, Any] | None = None
        self._outdated = True
        """The Lease must be read before it is written."""
        self._seen_at: Instant = 0
        self._renewed_at: Instant | None = None
        """When the write was sent by which it leads; None: it does not lead."""

    def leads(self, now: Instant) -> bool:
        return self._renewed_at is not None and now < self._renewed_at + self.terms.renew

    def remaining(self, now: Instant) -> Instant:
        """How long a write that is begun now may last so that it ends before anybody else can lead; 0: do not begin."""
        if self._renewed_at is None or not self.leads(now):
            return 0
        return max(0, self._renewed_at + self.terms.hold - now)

    def expires_at(self) -> Instant | None:
        """When it leads no more unless it renews until then; None: it does not lead."""
        return None if self._renewed_at is None else self._renewed_at + self.terms.renew

    # -- events

    def looked(self, answer: Response, now: Instant) -> None:
        """The Lease as it is, or why it cannot be read."""
        if answer.status == NOT_FOUND:
            self._lease = None
            self.step = Claim(self._post(now), now)
        elif answer.ok and isinstance(answer.body, Mapping):
            self._observe(answer.body, now)
            if self._may_claim(now):
                self.step = Claim(self._put(now), now)
            else:
                self._lose(now)
                self._sleep(now)
        else:
            self._sleep(now)

    def claimed(self, answer: Response, now: Instant) -> None:
        """What came of writing it."""
        assert isinstance(self.step, Claim)
        if answer.ok and isinstance(answer.body, Mapping):
            self._observe(answer.body, now)
            self._renewed_at = self.step.asked_at
            self._sleep(now)
        elif answer.status == CONFLICT and self.leads(now):  # somebody else wrote it: look at once who
            self.step = Look(self._get())
        else:
            self._outdated = True
            self._sleep(now)

    def slept(self, now: Instant) -> None:
        """The wait is over: a leader renews by what it knows, anybody else looks first."""
        self._lose(now)
        if self._renewed_at is not None and not self._outdated and self.holder == self.terms.identity:
            self.step = Claim(self._put(now), now)
        else:
            self.step = Look(self._get())

    def release(self, now: Instant) -> Request | None:
        """The write that lets the lease go, so that others need not wait; it leads no more from here on."""
        led, self._renewed_at = self.leads(now), None
        if not led or self._lease is None or self.holder != self.terms.identity:
            return None
        spec = {
            **self._lease.get("spec", {}),
            "holderIdentity": "",
            "leaseDurationSeconds": 1,
            "renewTime": to_micro_time(now),
            "acquireTime": to_micro_time(now),
        }
        return Request("PUT", self.terms.path, body={**self._lease, "spec": spec})

    # -- parts

    def _observe(self, lease: Mapping[str, Any], now: Instant) -> None:
        spec = lease.get("spec") or {}
        if self._lease is None or self._lease.get("spec") != spec:
            self._seen_at = now
        self._lease, self._outdated = dict(lease), False
        self.holder = str(spec.get("holderIdentity") or "")

    def _may_claim(self, now: Instant) -> bool:
        if self.holder in ("", self.terms.identity):
            return True
        spec = (self._lease or {}).get("spec") or {}
        held_for = _whole(spec.get("leaseDurationSeconds")) * SECOND or self.terms.hold
        return now >= self._seen_at + held_for

    def _lose(self, now: Instant) -> None:
        """Leads no more where another holds the lease, or its own time is over."""
        if self._renewed_at is not None and (not self.leads(now) or self.holder not in ("", self.terms.identity)):
            self._renewed_at = None

    def _sleep(self, now: Instant) -> None:
        """A leader renews at even times; who waits does so at random ones, so that not all try at once."""
        wait = self.terms.retry
        if self._renewed_at is None:
            wait += int(self._random.random() * JITTER * wait)
        self.step = Sleep(now + wait)

    def _get(self) -> Request:
        return Request("GET", self.terms.path)

    def _post(self, now: Instant) -> Request:
        body = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": self.terms.name, "namespace": self.terms.namespace},
            "spec": {**self._times(now), "acquireTime": to_micro_time(now), "leaseTransitions": 0},
        }
        return Request("POST", self.terms.path.rpartition("/")[0], body=body)

    def _put(self, now: Instant) -> Request:
        assert self._lease is not None
        spec = {**(self._lease.get("spec") or {}), **self._times(now)}
        if self.holder != self.terms.identity:
            spec["acquireTime"] = to_micro_time(now)
            spec["leaseTransitions"] = _whole(spec.get("leaseTransitions")) + 1
        return Request("PUT", self.terms.path, body={**self._lease, "spec": spec})

    def _times(self, now: Instant) -> dict[str, Any]:
        return {
            "holderIdentity": self.terms.identity,
            "leaseDurationSeconds": self.terms.hold // SECOND,
            "renewTime": to_micro_time(now),
        }


def _whole(value: Any) -> int:
    return value if type(value) is int else 0
