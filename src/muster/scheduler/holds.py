"""What keeps an entry from being attempted at all: gates, missing members, a missing group (pre-enqueue)."""

from __future__ import annotations

from typing import NamedTuple

from muster.model.diagnosis import Diagnosis, Reason, Rejection, Remedy, Verdict
from muster.model.keys import Key
from muster.model.records import EntryKey, EntryKind, GroupRecord
from muster.scheduler.cache import Cache, Members
from muster.scheduler.forest import DEEPEST, Above
from muster.scheduler.validity import fault

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
        group, members = cache.groups.get(key.key), cache.members.get(key.key, _NOBODY)
        if group is not None and group.parent is not None and not group.terminating:
            return _link_hold(cache.forest.above(group), members.present)
        return _group_hold(group, members, key.key.name)
    if key.kind is EntryKind.COMPOSITE:
        return _tree_hold(cache, key.key)
    record = cache.pods[key.key]
    if record.gates:
        return Hold(tuple(Rejection(Reason.GATED, 0, gate) for gate in record.gates), 1, 1, (record.key.name,))
    return None


def _group_hold(group: GroupRecord | None, members: Members, name: str) -> Hold | None:
    if group is None:
        return Hold((Rejection(Reason.GROUP_MISSING, 0, name),), members.present, names=(name,))
    if group.terminating:
        return Hold((Rejection(Reason.GROUP_DELETED, 0, name),), members.present, names=(name,))
    reasons: tuple[Rejection, ...] = ()
    names: tuple[str, ...] = ()
    if members.present < group.min_count:
        reasons = (Rejection(Reason.MEMBERS_MISSING, 0),)
    if members.gated:
        first = members.gated[min(members.gated)]
        reasons += tuple(Rejection(Reason.GATED, 0, gate) for gate in first.gates)
        names = (first.key.name,)
    return Hold(reasons, members.present, group.min_count, names) if reasons else None


def _link_hold(above: Above, present: int) -> Hold:
    """A group from which no way leads up to a root (statement 9)."""
    if above.cycle:
        return Hold((Rejection(Reason.CYCLE, 0, above.cycle),), present, names=(above.cycle,))
    if above.deep:
        return Hold((Rejection(Reason.TOO_DEEP, 0, str(DEEPEST)),), present)
    return Hold((Rejection(Reason.PARENT_MISSING, 0, above.missing),), present, names=(above.missing,))


def _tree_hold(cache: Cache, root: Key) -> Hold | None:
    """Gates of any pending pod below hold it (13), and so do too few groups with quorum (17)."""
    record = cache.forest.composites[root]
    present = _with_quorum(cache, root, 1)
    if cache.forest.checked and (message := fault(cache.forest, root)):
        return Hold((Rejection(Reason.INVALID_HIERARCHY, 0, message),), present, record.min_count)
    reasons: tuple[Rejection, ...] = ()
    names: tuple[str, ...] = ()
    if present < record.min_count:
        reasons = (Rejection(Reason.GROUPS_MISSING, 0, root.name),)
    below = [members for leaf in cache.forest.leaves(root) if (members := cache.members.get(leaf)) is not None]
    gated = next((members.gated for members in below if members.gated), None)
    if gated:
        first = gated[min(gated)]
        reasons += tuple(Rejection(Reason.GATED, 0, gate) for gate in first.gates)
        names = (first.key.name,)
    return Hold(reasons, present, record.min_count, names) if reasons else None


def _with_quorum(cache: Cache, key: Key, level: int) -> int:
    """How many children of a composite group have quorum."""
    found = 0
    for child in cache.forest.children(key):
        if isinstance(child, GroupRecord):
            found += cache.members.get(child.key, _NOBODY).present >= child.min_count
        elif level + 1 < DEEPEST:
            found += _with_quorum(cache, child.key, level + 1) >= child.min_count
    return found


def diagnose(cache: Cache, key: EntryKey, uid: str, hold: Hold) -> Diagnosis:
    """The hold as a diagnosis, with what would end it."""
    if key.kind is EntryKind.COMPOSITE:
        return _diagnose_tree(cache, key, uid, hold)
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


def _diagnose_tree(cache: Cache, key: EntryKey, uid: str, hold: Hold) -> Diagnosis:
    below = [members for leaf in cache.forest.leaves(key.key) if (members := cache.members.get(leaf)) is not None]
    wrong = hold.reasons[0].reason is Reason.INVALID_HIERARCHY
    return Diagnosis(
        entry=key,
        uid=uid,
        verdict=Verdict.ERROR if wrong else Verdict.WAITING,
        revision=cache.rooms.revision,
        min_count=hold.needed,
        running=sum(len(members.running) for members in below),
        succeeded=sum(len(members.succeeded) for members in below),
        pending=sum(len(members.pending) for members in below),
        placed=hold.present,
        rejections=hold.reasons,
        remedies=tuple(_remedies(key.key, hold, None)),
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
