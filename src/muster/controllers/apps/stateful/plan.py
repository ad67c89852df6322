"""What is to be done next about the pods of a StatefulSet, from what is there."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from muster.controllers.apps.stateful.replicas import Replica, Wanted


class Steps(NamedTuple):
    """Ordinals to make, pods to delete: all of it may be done at once."""

    create: list[int]
    delete: list[Replica]


def plan(
    wanted: Wanted,
    there: Sequence[Replica],
    *,
    update: str,
    creating: Collection[int] = (),
    held: Collection[str] = (),
) -> Steps:
    """The next steps.

    Ordered sets make a pod only once all before it are available, and delete one only once all after it are gone; the
    others do everything at once. Scaling goes before updating. Pods that have ended are replaced.

    Args:
        there: its pods, of any ordinals.
        update: the revision that pods are to have.
        creating: ordinals that were asked for and are not seen yet.
        held: uids of pods that may not be deleted yet.
    """
    at = {each.ordinal: each for each in there}
    steps = Steps([], [])
    if _grow(wanted, at, creating, steps) or _shrink(wanted, there, held, steps) or wanted.on_delete:
        return steps
    _replace(wanted, at, update, steps)
    return steps


def _grow(wanted: Wanted, at: Mapping[int, Replica], creating: Collection[int], steps: Steps) -> bool:
    """Makes what is missing and removes what has ended; True if an ordered set has to wait for that."""
    for ordinal in wanted.ordinals:
        pod = at.get(ordinal)
        if pod is None and ordinal not in creating:
            steps.create.append(ordinal)
        elif pod is not None and pod.ended and not pod.leaving:
            steps.delete.append(pod)
        if wanted.ordered and not _settled(pod):
            return True
    return False


def _shrink(wanted: Wanted, there: Sequence[Replica], held: Collection[str], steps: Steps) -> bool:
    """Deletes pods of other ordinals, the last one first; True if an ordered set has to wait for that.

    An ordered set deletes a pod that is not available only if it has ended, or all that are left before it are.
    """
    condemned = sorted((each for each in there if each.ordinal not in wanted.ordinals), key=lambda each: -each.ordinal)
    sick = [each for each in condemned if not _settled(each)]
    for pod in condemned:
        blocked = wanted.ordered and not _settled(pod) and not pod.ended and pod is not sick[-1]
        if not (blocked or pod.leaving or pod.pod.uid in held):
            steps.delete.append(pod)
        if wanted.ordered:
            return True
    return False


def _replace(wanted: Wanted, at: Mapping[int, Replica], update: str, steps: Steps) -> None:
    """Deletes pods of other revisions, the last one first, as long as not too many are unavailable.

    What is unavailable already costs nothing to replace.
    """
    room = wanted.max_unavailable - sum(not _settled(at.get(ordinal)) for ordinal in wanted.ordinals)
    for ordinal in reversed(wanted.ordinals):
        pod = at.get(ordinal)
        if pod is None or pod.leaving or pod.ended or pod.revision == update or ordinal in wanted.kept_back:
            continue
        if _settled(pod):
            if room <= 0:
                continue
            room -= 1
        steps.delete.append(pod)


def _settled(pod: Replica | None) -> bool:
    return pod is not None and pod.available and not pod.leaving
