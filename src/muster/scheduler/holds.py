"""What keeps an entry from being attempted at all: gates, missing members, a missing group (pre-enqueue)."""

from __future__ import annotations

from typing import NamedTuple

from muster.model.diagnosis import Diagnosis, Reason, Rejection, Remedy, Verdict
from muster.model.keys import Key
from muster.model.records import EntryKey, EntryKind, GroupRecord
from muster.scheduler.cache import Cache, Members

_NOBODY = Members()


class Hold(NamedTuple):
    """Why an entry is kept aside; the most basic reason first."""

    reasons: tuple[Rejection, ...]
    present: int = 0
    needed: int = 1
    names: tuple[str, ...] = ()


def hold_of(cache: Cache, key: EntryKey) -> Hold | None:
    """What holds this entry (statements 9, 13-16, M5, M6); None: it may be attempted."""
    if key.kind is EntryKind.POD_GROUP:
        return _group_hold(cache.groups.get(key.key), cache.members.get(key.key, _NOBODY), key.key.name)
    record = cache.pods[key.key]
    if record.gates:
        return Hold(tuple(Rejection(Reason.GATED, 0, gate) for gate in record.gates), 1, 1, (record.key.name,))
    if record.unsupported:
        return Hold(_unsupported(record.unsupported), 1, 1, (record.key.name,))
    return None


def _group_hold(group: GroupRecord | None, members: Members, name: str) -> Hold | None:
    if group is None:
        return Hold((Rejection(Reason.GROUP_MISSING, 0, name),), members.present, names=(name,))
    if group.terminating:
        return Hold((Rejection(Reason.GROUP_DELETED, 0, name),), members.present, names=(name,))
    if group.parent is not None:
        return Hold((Rejection(Reason.PARENT_MISSING, 0, group.parent),), members.present, names=(group.parent,))
    reasons: tuple[Rejection, ...] = ()
    names: tuple[str, ...] = ()
    if members.present < group.min_count:
        reasons = (Rejection(Reason.MEMBERS_MISSING, 0),)
    if members.gated:
        first = members.gated[min(members.gated)]
        reasons += tuple(Rejection(Reason.GATED, 0, gate) for gate in first.gates)
        names = (first.key.name,)
    if members.unsupported:
        first = members.unsupported[min(members.unsupported)]
        reasons += _unsupported(first.unsupported)
        names = names or (first.key.name,)
    return Hold(reasons, members.present, group.min_count, names) if reasons else None


def _unsupported(demands: tuple[str, ...]) -> tuple[Rejection, ...]:
    return tuple(Rejection(Reason.UNSUPPORTED, 0, demand) for demand in demands)


def diagnose(cache: Cache, key: EntryKey, uid: str, hold: Hold) -> Diagnosis:
    """The hold as a diagnosis, with what would end it."""
    group = cache.groups.get(key.key) if key.kind is EntryKind.POD_GROUP else None
    members = cache.members.get(key.key, _NOBODY) if key.kind is EntryKind.POD_GROUP else _NOBODY
    return Diagnosis(
        entry=key,
        uid=uid,
        verdict=Verdict.WAITING,
        revision=cache.rooms.revision,
        min_count=group.min_count if group else 1,
        running=len(members.running),
        succeeded=len(members.succeeded),
        pending=len(members.pending) if key.kind is EntryKind.POD_GROUP else 1,
        rejections=hold.reasons,
        remedies=tuple(_remedies(key.key, hold, group)),
        nodes=len(cache.nodes),
        names=hold.names,
    )


def _remedies(key: Key, hold: Hold, group: GroupRecord | None) -> list[Remedy]:
    remedies = []
    gates = [rejection.detail for rejection in hold.reasons if rejection.reason is Reason.GATED]
    for reason in dict.fromkeys(rejection.reason for rejection in hold.reasons):
        if reason is Reason.MEMBERS_MISSING and group is not None:
            remedies.append(Remedy("add-members", group.min_count - hold.present))
            if hold.present:
                remedies.append(Remedy("lower-min-count", hold.present))
        elif reason is Reason.GATED:
            remedies.append(Remedy("remove-gate", len(gates), ", ".join(gates)))
        elif reason in (Reason.GROUP_MISSING, Reason.GROUP_DELETED):
            remedies.append(Remedy("create-group", 0, key.name))
    return remedies
