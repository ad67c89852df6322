"""Preemption in English: the part of `wording` that says what evicting would do, or did."""

from __future__ import annotations

from muster.model.diagnosis import Diagnosis, Preemption, PreemptionOutcome, Victim
from muster.model.records import EntryKind

UNSURE = "That it would have fitted without is not ruled out: the search for that was ended twice by its budget."
NAMED = 3
"""So many victims are named."""


def told(diagnosis: Diagnosis) -> str:
    """The end of a condition's message, with a leading space (P24); "" if nothing was tried."""
    tried = diagnosis.preemption
    if tried is None:
        return ""
    noun = "podgroup" if diagnosis.entry.kind is not EntryKind.POD else "pod"
    what = "pod group preemption" if diagnosis.entry.kind is not EntryKind.POD else "preemption"
    if tried.outcome is PreemptionOutcome.FOUND:
        return f". {what}: found a placement for {noun}, preempting {len(tried.victims)} victims"
    return f". {what}: {tried.outcome.value}"


def sentence(diagnosis: Diagnosis) -> str:
    """A sentence of its own with a leading space; "" if nothing was tried."""
    tried = diagnosis.preemption
    if tried is None:
        return ""
    match tried.outcome:
        case PreemptionOutcome.NEVER:
            return " It may not preempt (preemptionPolicy Never)."
        case PreemptionOutcome.NO_VICTIMS if tried.candidates and not tried.best:
            return f" No placement was found without everything of lower priority ({_pods(tried.candidates)}) either."
        case PreemptionOutcome.NO_VICTIMS if tried.candidates:
            return f" Evicting everything of lower priority ({_pods(tried.candidates)}) would not help."
        case PreemptionOutcome.NO_VICTIMS:
            return ""
        case PreemptionOutcome.ONGOING | PreemptionOutcome.AWAITED:
            return f" Its room is being freed: {_pods(len(tried.awaited))} of lower priority still terminating."
    doubt = "" if tried.needed else f" {UNSURE}"
    return f" {_evicting(tried)}{doubt}"


def _evicting(tried: Preemption) -> str:
    victims = tried.victims
    named = ", ".join(_victim(victim) for victim in victims[:NAMED])
    more = f" and {len(victims) - NAMED} more" if len(victims) > NAMED else ""
    groups = f", {len(tried.groups)} of their groups as a whole" if tried.groups else ""
    budgets = f"; {tried.violations} of them against a disruption budget" if tried.violations else ""
    best = "no better choice exists" if tried.best else "no better choice was found"
    return (
        f"To place {_pods(tried.placed)}, {_pods(len(victims))} of {tried.candidates} of lower priority "
        f"{'is' if len(victims) == 1 else 'are'} evicted{groups}: {named}{more} "
        f"(none of them can be spared, highest priority {tried.highest}{budgets}; {best})."
    )


def _victim(victim: Victim) -> str:
    return f"{victim.pod} on {victim.node}"


def _pods(number: int) -> str:
    return f"{number} pod" if number == 1 else f"{number} pods"
