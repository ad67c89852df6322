"""Why a resize that was deferred waits, as data, and in English."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from muster.model import wording
from muster.model.diagnosis import Diagnosis, Preemption, PreemptionOutcome, Victim
from muster.model.wording import format_amount

NAMED = 3
"""So many victims are named."""


class Lacking(NamedTuple):
    """What is missing of one resource on the node, now, and with everything gone that may be evicted."""

    resource: str
    now: int
    then: int
    """0: nothing any more."""


@dataclass(frozen=True, slots=True)
class ResizeDiagnosis(Diagnosis):
    """Of a bound pod that wants to grow where it is (KEP-5836)."""

    node: str = ""
    known: bool = True
    """Whether the node exists."""
    lacking: tuple[Lacking, ...] = ()
    """Empty: the resize fits, and its kubelet will carry it out."""
    owners: tuple[str, ...] = ()
    """Who forbids evictions for resizes on the node, where that is why nobody is evicted."""
    shrinking: int = 0
    """How many pods there are being made smaller, where that is why nobody is evicted yet."""


def verdict(diagnosis: Diagnosis) -> str:
    """`wording.verdict`, for resizes too."""
    return sentence(diagnosis) if isinstance(diagnosis, ResizeDiagnosis) else wording.verdict(diagnosis)


def sentence(diagnosis: ResizeDiagnosis) -> str:
    """One sentence: why the resize waits, and what would change that."""
    subject = f"{diagnosis.entry.kind.value} {diagnosis.entry.key}"
    if not diagnosis.known:
        return (
            f"{subject} waits to be resized: its node {diagnosis.node} does not exist; delete the pod, or add the node."
        )
    tried = diagnosis.preemption
    if not diagnosis.lacking and tried is None:
        return f"{subject} waits to be resized: it fits on {diagnosis.node} now, and the kubelet there will do it."
    missing = " and ".join(_missing(lack) for lack in diagnosis.lacking) or "its turn among other resizes"
    return f"{subject} waits to be resized: it lacks {missing} on {diagnosis.node}{_why(diagnosis, tried)}."


def _missing(lack: Lacking) -> str:
    return f"{format_amount(lack.resource, lack.now)} {lack.resource}"


def _why(diagnosis: ResizeDiagnosis, tried: Preemption | None) -> str:
    if diagnosis.shrinking:
        smaller = "pod that is" if diagnosis.shrinking == 1 else "pods that are"
        return f", and waits for {diagnosis.shrinking} {smaller} being made smaller there"
    ask = f"free that much on {diagnosis.node}, or ask for less"
    if diagnosis.owners:
        owners = ", ".join(diagnosis.owners)
        return (
            f", and spec.podPreemptionPolicy.disableResizePreemption of the node ({owners}) forbids to evict for it; "
            f"{ask}, or take these owners off"
        )
    if tried is None or tried.outcome is PreemptionOutcome.NO_VICTIMS:
        return f"{_all_gone(diagnosis, tried)}; {ask}"
    if tried.outcome is PreemptionOutcome.NEVER:
        return f", and its preemptionPolicy Never forbids to evict for it; {ask}"
    if tried.outcome is PreemptionOutcome.FOUND:
        return f", and is given it: {_named(tried.victims)} {_is(len(tried.victims))} evicted for it"
    pods = len(tried.awaited)
    return f", and waits for {pods} {'pod' if pods == 1 else 'pods'} of lower priority there to end"


def _all_gone(diagnosis: ResizeDiagnosis, tried: Preemption | None) -> str:
    if tried is None or not tried.candidates:
        return ", and no pod of lower priority runs there"
    then = [lack for lack in diagnosis.lacking if lack.then]
    left = " and ".join(f"{format_amount(lack.resource, lack.then)} {lack.resource}" for lack in then)
    pods = f"{tried.candidates} {'pod' if tried.candidates == 1 else 'pods'}"
    return f", and would still lack {left or 'its turn'} without the {pods} of lower priority there"


def _is(number: int) -> str:
    return "is" if number == 1 else "are"


def _named(victims: tuple[Victim, ...]) -> str:
    more = f" and {len(victims) - NAMED} more" if len(victims) > NAMED else ""
    return ", ".join(str(victim.pod) for victim in victims[:NAMED]) + more
