"""What may go wrong in the virtual world, drawn from a seeded generator so that a run replays."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

from muster.api.calls import Request, Response
from muster.api.instant import MILLISECOND, Instant


@dataclass(frozen=True, slots=True)
class Rates:
    """How often, as probabilities: per watch event, per write or per step of the world."""

    lost_watch: float = 0.0
    """A watch breaks; its machine is Listed anew."""
    late: float = 0.0
    """An event, an answer or a decision takes up to `latest` to arrive."""
    latest: Instant = 2_000 * MILLISECOND
    conflict: float = 0.0
    """A PUT or PATCH is answered 409 and not carried out."""
    refused_bind: float = 0.0
    """A binding is answered 500 and not carried out."""
    unanswered: float = 0.0
    """A write is carried out, but its answer is lost (status 0)."""
    killed: float = 0.0
    """The scheduler is killed and started again before the next step; writes under way may or may not arrive."""


CALM = Rates()
ROUGH = Rates(lost_watch=0.01, late=0.3, conflict=0.05, refused_bind=0.05, unanswered=0.02, killed=0.004)


@dataclass(slots=True)
class Faults:
    """Draws faults. `rates` may be set to CALM at any time to let the world heal."""

    random: Random
    rates: Rates = CALM
    counts: dict[str, int] = field(default_factory=dict)
    """How many of each kind have happened."""

    def delay(self) -> Instant:
        if not self._happens("late", self.rates.late):
            return 0
        return self.random.randrange(1, self.rates.latest)

    def loses_watch(self) -> bool:
        return self._happens("lost_watch", self.rates.lost_watch)

    def kills(self) -> bool:
        return self._happens("killed", self.rates.killed)

    def arrives(self) -> bool:
        """Whether a write of a killed machine was already on its way."""
        return self.random.random() < 0.5

    def refusal(self, request: Request) -> Response | None:
        """The answer to a write that the world prevents, or None to let it through."""
        if request.method in ("PUT", "PATCH") and self._happens("conflict", self.rates.conflict):
            return Response(409, _status(409, "Conflict", "the object has been modified; please apply your changes"))
        if request.path.endswith("/binding") and self._happens("refused_bind", self.rates.refused_bind):
            return Response(500, _status(500, "InternalError", "etcdserver: request timed out"))
        return None

    def loses_answer(self) -> Response | None:
        if not self._happens("unanswered", self.rates.unanswered):
            return None
        return Response(0, _status(0, "Timeout", "connection reset by peer"))

    def _happens(self, kind: str, rate: float) -> bool:
        if not rate or self.random.random() >= rate:
            return False
        self.counts[kind] = self.counts.get(kind, 0) + 1
        return True


def _status(code: int, reason: str, message: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Status",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }
