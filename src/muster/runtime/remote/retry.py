"""Whether a call is made again, and after how long: as data, with randomness as an argument."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from muster.api.calls import Response

UNREACHED = 0
"""The status of an answer that did not come: the connection failed, or it took too long."""
TOO_MANY = 429
_AGAIN = frozenset({UNREACHED, TOO_MANY, 500, 502, 503, 504})
LONGEST_ASKED = 300.0
"""Seconds: a server that asks for more is asked again after that."""


@dataclass(frozen=True)
class Backoff:
    """Waits that grow by `factor` up to `longest`, each up to `jitter` of itself longer. Seconds."""

    first: float = 0.1
    factor: float = 2.0
    longest: float = 5.0
    jitter: float = 1.0

    def wait(self, failures: int, random: Random) -> float:
        """How long to wait after so many failures in a row, from 1."""
        grown = min(self.first * self.factor ** min(failures - 1, 60), self.longest)
        return grown * (1 + self.jitter * random.random())


CALLS = Backoff()
"""Of single calls."""
STREAMS = Backoff(0.8, 2.0, 30.0, 1.0)
"""Of lists and watches: the waits of client-go's reflectors."""


def asked_to_wait(response: Response) -> float | None:
    """The seconds of a Retry-After header; None where there is none that is a number of seconds."""
    text = next((value for name, value in response.headers.items() if name.lower() == "retry-after"), "").strip()
    return min(float(text), LONGEST_ASKED) if text.isascii() and text.isdigit() else None


def pause(response: Response, failures: int, random: Random, backoff: Backoff = CALLS) -> float | None:
    """Seconds until the same call is made again after its so-manieth failure; None: this answer stands.

    A 429 without Retry-After is a decision (of a disruption budget), and no request to come back.
    """
    if response.status not in _AGAIN:
        return None
    asked = asked_to_wait(response)
    if asked is None:
        return None if response.status == TOO_MANY else backoff.wait(failures, random)
    return asked + backoff.first * backoff.jitter * random.random()
