"""What the device claims of a pod come down to at one revision: where they pin it, and what is still to be allocated.

Claims that ask for the same are told apart no more, so that a thousand pods with a claim each are one class.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from muster.model.devices import MOST_USERS, ClaimFlaw, DeviceClaim, Devices, DeviceUse, PodClaims
from muster.model.keys import Key
from muster.model.records import PodRecord


def crowd_of(pods: Iterable[PodRecord]) -> Counter[Key]:
    """How many of these pods use each claim."""
    crowd: Counter[Key] = Counter()
    for pod in pods:
        crowd.update({Key(pod.key.namespace, use.claim) for use in pod.devices if use.claim})
    return crowd


def claims_of(pod: PodRecord, known: Devices, crowd: Mapping[Key, int]) -> PodClaims:
    """What a pod's claims mean; `crowd` tells which of them several pods of the decision use."""
    pinned, own, joint = set(), [], {}
    for use in dict.fromkeys(pod.devices):
        key = Key(pod.key.namespace, use.claim)
        if not use.claim:
            return PodClaims(flaw=(ClaimFlaw.UNMADE, use.entry))
        claim = known.claims.get(key)
        if claim is None:
            return PodClaims(flaw=(ClaimFlaw.MISSING, use.claim))
        flaw = _flaw(pod, use, claim, known)
        if flaw is not None:
            return PodClaims(flaw=(flaw, use.claim))
        allotment = known.allotment(key)
        if allotment is not None:
            selector = allotment.reach.selector
            if selector is not None:
                pinned.add(selector)
        elif crowd.get(key, 0) > 1:
            joint[key] = claim.shape
        elif claim.shape.requests:
            own.append(claim.shape)
    return PodClaims(tuple(sorted(pinned, key=repr)), tuple(own), tuple(sorted(joint.items(), key=lambda one: one[0])))


def _flaw(pod: PodRecord, use: DeviceUse, claim: DeviceClaim, known: Devices) -> ClaimFlaw | None:
    user = known.user(pod.key, pod.uid, pod.group, use)
    if use.template and claim.owner != user.uid:
        return ClaimFlaw.NOT_OWNED
    if claim.terminating:
        return ClaimFlaw.TERMINATING
    return ClaimFlaw.FULL if len(claim.users) >= MOST_USERS and user not in claim.users else None
