"""Calls of webhooks as data: what a request has to know before it goes on, and what was answered.

The server does not call anybody. A request that needs an answer which it has not got stops before it has written
anything, as a `Paused`; whoever drives the server makes the calls and resumes it. It then runs again from the start, on
the state of that moment, with the same uids and the same time, and the answers at hand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from muster.api.calls import Request
from muster.api.instant import Instant


@dataclass(frozen=True, slots=True)
class Ask:
    """One call of a webhook: a POST of `review` to `url`."""

    key: bytes
    """The same for the same question."""
    webhook: str
    url: str
    ca_bundle: bytes
    """Certificates in PEM that the webhook's must be signed by; empty: those that the machine trusts."""
    timeout: int
    """Seconds."""
    review: dict[str, Any]
    server_name: str = ""
    """What its certificate has to be for; "": the host of the address."""


@dataclass(frozen=True, slots=True)
class Heard:
    """What came of a call: the JSON value of its answer, or why there is none."""

    body: Any = None
    failure: str = ""


Answerer = Callable[[Ask], Heard]


class Asking(Exception):
    """Answers are needed before the request can go on. Nothing was written."""

    def __init__(self, asks: tuple[Ask, ...]) -> None:
        super().__init__(f"{len(asks)} webhooks are to be called")
        self.asks = asks


@dataclass(slots=True)
class Paused:
    """A request that waits for answers to `asks`."""

    request: Request
    now: Instant
    asks: tuple[Ask, ...] = ()
    heard: dict[bytes, Heard] = field(default_factory=dict)
    uids: list[str] = field(default_factory=list)
    """Those that were drawn; drawn again in this order when the request runs again."""
    turns: int = 0


def nobody(ask: Ask) -> Heard:
    """The answer where webhooks are not called."""
    return Heard(failure="nothing here calls webhooks, which needs a server process; over HTTP they are called")
