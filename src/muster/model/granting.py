"""What the device claims of a pod come down to at one revision: where they pin it, and what is still to be allocated.

Claims that ask for the same are told apart no more, so that a thousand pods with a claim each are one class.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256

from muster.model.devices import (
    MOST_USERS,
    Choice,
    ClaimFlaw,
    ClaimShape,
    DeviceClaim,
    Devices,
    DeviceUse,
    PodClaims,
    User,
)
from muster.model.keys import Key
from muster.model.records import PodClass, PodRecord

_LONGEST = 200
"""So much of the name of a pod goes into that of a claim for it."""


def crowd_of(pods: Iterable[PodRecord]) -> Counter[Key]:
    """How many of these pods use each claim."""
    crowd: Counter[Key] = Counter()
    for pod in pods:
        crowd.update({Key(pod.key.namespace, use.claim) for use in pod.devices if use.claim})
    return crowd


def beyond(pods: Iterable[PodRecord], known: Devices, crowd: Mapping[Key, int]) -> frozenset[str]:
    """Uids of pods for which a claim would be reserved beyond what it can be (D13), if all before them came in."""
    room = {key: MOST_USERS - len(claim.users) for key in crowd if (claim := known.claims.get(key)) is not None}
    crowded = {key: some for key, some in room.items() if crowd[key] > some}
    if not crowded:
        return frozenset()
    found: set[str] = set()
    users: dict[Key, set[User]] = {key: set(known.claims[key].users) for key in crowded}
    for pod in pods:
        wanted = {(key, known.user(pod.key, pod.uid, pod.group, use)) for key, use in _used(pod) if key in crowded}
        if any(user not in users[key] and len(users[key]) >= MOST_USERS for key, user in wanted):
            found.add(pod.uid)
            continue
        for key, user in wanted:
            users[key].add(user)
    return frozenset(found)


def claims_of(
    pod: PodRecord, known: Devices, crowd: Mapping[Key, int], beyond: frozenset[str] = frozenset()
) -> PodClaims:
    """What a pod's claims mean; `crowd` tells which of them several pods of the decision use, `beyond` which of these
    are too many."""
    pinned, own, joint = set(), [], {}
    for key, use in _used(pod):
        claim = known.claims.get(key)
        flaw = _flaw(pod, use, claim, known)
        if flaw is not None or claim is None:
            return PodClaims(flaw=(flaw or ClaimFlaw.MISSING, use.claim or use.entry))
        allotment = known.allotment(key)
        if allotment is not None:
            selector = allotment.reach.selector
            if selector is not None:
                pinned.add(selector)
        elif crowd.get(key, 0) > 1:
            joint[key] = claim.shape
        elif claim.shape.requests:
            own.append(claim.shape)
    if pod.uid in beyond:
        full = (use.claim for key, use in _used(pod) if crowd.get(key, 0) > 1)
        return PodClaims(flaw=(ClaimFlaw.FULL, next(full, "")))
    given = known.allotment(extended_key(pod)) if pod.cls.extended else None
    if given is not None and given.reach.selector is not None:
        pinned.add(given.reach.selector)
    return PodClaims(
        tuple(sorted(pinned, key=repr)),
        tuple(own),
        tuple(sorted(joint.items(), key=lambda one: one[0])),
        extended=tuple(_extended(pod.cls, known)) if given is None else (),
    )


def extended_key(pod: PodRecord) -> Key:
    """The claim that is made for the extended resources of a pod (D12)."""
    suffix = sha256(pod.uid.encode()).hexdigest()[:8]
    return Key(pod.key.namespace, f"{pod.key.name[:_LONGEST].rstrip('-.')}-extended-resources-{suffix}")


def needs_devices(pod_class: PodClass, known: Devices) -> bool:
    """Whether pods of a class have claims, or ask for extended resources that a device class serves."""
    return pod_class.devices or any(one.resource in known.resources for one in pod_class.extended)


def _extended(pod_class: PodClass, known: Devices) -> Iterator[tuple[str, ClaimShape]]:
    for resource in dict.fromkeys(one.resource for one in pod_class.extended):
        device_class = known.resources.get(resource)
        if device_class is not None:
            mine = (one for one in pod_class.extended if one.resource == resource)
            choices = (Choice(one.request, device_class, count=one.amount) for one in mine)
            yield resource, ClaimShape(tuple((choice,) for choice in choices))


def own_claims(pod: PodRecord, known: Devices, crowd: Mapping[Key, int]) -> list[Key]:
    """Which claims `PodClaims.own` is about, in the same order."""
    return [
        key
        for key, _ in _used(pod)
        if known.allotment(key) is None and crowd.get(key, 0) <= 1 and known.claims[key].shape.requests
    ]


def _used(pod: PodRecord) -> Iterator[tuple[Key, DeviceUse]]:
    """The claims of a pod, each once; those without a name yet too."""
    seen: set[Key] = set()
    for use in pod.devices:
        key = Key(pod.key.namespace, use.claim)
        if not use.claim or key not in seen:
            seen.add(key)
            yield key, use


def _flaw(pod: PodRecord, use: DeviceUse, claim: DeviceClaim | None, known: Devices) -> ClaimFlaw | None:
    if not use.claim:
        return ClaimFlaw.UNMADE
    if claim is None:
        return ClaimFlaw.MISSING
    user = known.user(pod.key, pod.uid, pod.group, use)
    if use.template and claim.owner != user.uid:
        return ClaimFlaw.NOT_OWNED
    if claim.terminating:
        return ClaimFlaw.TERMINATING
    return ClaimFlaw.FULL if len(claim.users) >= MOST_USERS and user not in claim.users else None
