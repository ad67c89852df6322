"""Makes English of a Diagnosis, as no other module but `rejected` does: messages of conditions and events, the verdict.

Messages keep the shapes that Kubernetes users and tools know (statements 31, 32, 65); the verdict is Muster's (M14).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from muster.model.devices import DeviceLack
from muster.model.diagnosis import (
    Diagnosis,
    GroupOutcome,
    Lack,
    PodVerdict,
    Reason,
    Rejection,
    Remedy,
    Shortfall,
    Verdict,
)
from muster.model.eviction_words import sentence as eviction_sentence
from muster.model.eviction_words import told as eviction_told
from muster.model.keys import Key
from muster.model.records import EntryKind
from muster.model.rejected import node_reason as node_reason

PLACEMENTS = "0/{} placements are available, first placement status: "
"""What precedes the message of a group that could not be placed, with topology-aware scheduling on (statement 65)."""
NO_NODES = "no nodes available to schedule pods"
OTHERS = 3
"""So many groups of a hierarchy that fail, beside the first, are named."""
NOTHING_PLACED = "no pods were schedulable"

_PRE = "all pods in a single pod group should have the same "
_MISMATCH: Mapping[Reason, str] = {
    Reason.SCHEDULER_NAME_MISMATCH: _PRE + ".spec.schedulerName set",
    Reason.PRIORITY_MISMATCH: _PRE + "priority as the pod group's priority",
    Reason.PREEMPTION_POLICY_MISMATCH: _PRE + "preemption policy",
}


_DOMAINS: Mapping[Reason, str] = {
    Reason.DOMAIN_SPLIT: 'running members are in two domains of the label "{2}", "{0}" and "{1}", and must share one',
    Reason.OUTSIDE_DOMAINS: 'running member {0} is on node {1}, which does not have the label "{2}"',
    Reason.DOMAIN_UNKNOWN: 'running member {0} is on node {1}, which does not exist: its domain of "{2}" is not known',
}


# --- messages in the shape of Kubernetes ---------------------------------------------------------------------------


def nodes_message(verdict: PodVerdict) -> str:
    """`0/3 nodes are available: 1 node(s) had untolerated taint {dedicated: red}, 2 Insufficient cpu.`"""
    if not verdict.nodes:
        return NO_NODES
    counts: dict[str, int] = {}
    alike: set[str] = set()
    for rejection in verdict.rejections:
        text = node_reason(rejection)
        counts[text] = counts.get(text, 0) + rejection.nodes
        if rejection.reason in (Reason.CLAIM, Reason.DEVICE_CLAIM):
            alike.add(text)  # It is about the pod itself, so the number of nodes says nothing.
    reasons = ", ".join(sorted(text if text in alike else f"{count} {text}" for text, count in counts.items()))
    return f"0/{verdict.nodes} nodes are available: {reasons}."


def group_message(diagnosis: Diagnosis, *, placements: bool = False) -> str:
    """What the group's own condition says; `placements`: with topology-aware scheduling on (statement 65)."""
    if diagnosis.verdict is Verdict.SCHEDULED:
        return ""
    if diagnosis.verdict is Verdict.WAITING:
        return "; ".join(hold_message(diagnosis, rejection) for rejection in diagnosis.rejections)
    if diagnosis.verdict is Verdict.ERROR:
        return error_message(diagnosis)
    if diagnosis.groups:
        return outcome_message(diagnosis, diagnosis.groups[0]) + eviction_told(diagnosis)
    if _has_no_domain(diagnosis):
        return _no_domain_message(diagnosis)
    before = PLACEMENTS.format(max(diagnosis.placements, 1)) if placements or diagnosis.placements else ""
    return before + _minimum_message(diagnosis) + eviction_told(diagnosis)


def outcome_message(diagnosis: Diagnosis, outcome: GroupOutcome) -> str:
    """What the condition of one group of a hierarchy says (statements 63, 65, 66); "" if it is scheduled."""
    if diagnosis.verdict is Verdict.ERROR:
        return error_message(diagnosis)
    if not outcome.satisfied:
        return _own_message(diagnosis, outcome)
    if not outcome.blocker:
        return ""
    above = "parent" if outcome.blocker_is_parent else "ancestor"
    failed = (g for g in diagnosis.groups if g.kind is EntryKind.COMPOSITE and g.key.name == outcome.blocker)
    why = next((f": {_own_message(diagnosis, group)}" for group in failed), "")
    return f'{above} composite pod group "{outcome.blocker}" is unschedulable{why}'


def _own_message(diagnosis: Diagnosis, outcome: GroupOutcome) -> str:
    leaf = outcome.kind is EntryKind.POD_GROUP
    if outcome.exists < outcome.min_count:
        return f"{outcome.exists} of {outcome.min_count} {'members exist' if leaf else 'groups have their members'}"
    if outcome.rejections and outcome.rejections[0].reason is Reason.NO_DOMAINS:
        return f'0/0 placements are available: no node has the label "{outcome.rejections[0].detail}"'
    name = "minCount" if leaf else "minGroupCount"
    message = f"{name} ({outcome.min_count}) cannot be satisfied: {outcome.there} scheduled, {outcome.left} remaining"
    if outcome.failed:
        message += f" ({', '.join(outcome.failed)} cannot be placed)"
    return PLACEMENTS.format(1) + (
        message if diagnosis.proven else f"{message} (search stopped; not proven impossible)"
    )


def _has_no_domain(diagnosis: Diagnosis) -> bool:
    return bool(diagnosis.rejections) and diagnosis.rejections[0].reason is Reason.NO_DOMAINS


def _no_domain_message(diagnosis: Diagnosis) -> str:
    return f'0/0 placements are available: no node has the label "{diagnosis.topology_key}"'


def _minimum_message(diagnosis: Diagnosis) -> str:
    there = diagnosis.running + diagnosis.succeeded + diagnosis.placed
    left = diagnosis.pending - diagnosis.placed
    message = f"minCount ({diagnosis.min_count}) cannot be satisfied: {there} scheduled, {left} remaining"
    if there >= diagnosis.min_count and not diagnosis.placed:
        message = NOTHING_PLACED
    return message if diagnosis.proven else f"{message} (search stopped; not proven impossible)"


def pod_message(diagnosis: Diagnosis, pod: Key, *, placements: bool = False) -> str:
    """What the PodScheduled condition of one pod of the entry says (statement 62)."""
    if diagnosis.verdict is Verdict.UNSCHEDULABLE or diagnosis.verdict is Verdict.SCHEDULED:
        own = diagnosis.pods.get(pod)
        if own is not None and own.group:
            told = [g for g in diagnosis.groups if g.kind is EntryKind.POD_GROUP and g.key.name == own.group]
            return outcome_message(diagnosis, told[0])
        single = diagnosis.entry.kind is EntryKind.POD
        if not single and own is not None and (own.rejections or not own.nodes) and not _has_no_domain(diagnosis):
            return nodes_message(own)
        if single:
            found = own if own is not None and (own.rejections or not own.nodes) else None
            message = nodes_message(found or PodVerdict(diagnosis.rejections, diagnosis.nodes))
            return message.removesuffix(".") + ending if (ending := eviction_told(diagnosis)) else message
    return group_message(diagnosis, placements=placements)


def hold_message(diagnosis: Diagnosis, rejection: Rejection) -> str:
    """Why an entry is kept aside (M6), for conditions and events."""
    present = diagnosis.running + diagnosis.succeeded + diagnosis.pending
    match rejection.reason:
        case Reason.MEMBERS_MISSING:
            return f"{present} of {diagnosis.min_count} members exist"
        case Reason.GROUPS_MISSING:
            return f"{diagnosis.placed} of {diagnosis.min_count} groups have their members"
        case Reason.CYCLE:
            return f'cycle detected in hierarchy: composite pod group "{rejection.detail}" is above itself'
        case Reason.TOO_DEEP:
            return f"hierarchy exceeds maximum allowed depth {rejection.detail}"
        case Reason.GATED if diagnosis.entry.kind is not EntryKind.POD:
            return f'scheduling gate "{rejection.detail}" of pod {diagnosis.names[0]} holds the group'
        case Reason.GATED:
            return "Scheduling is blocked due to non-empty scheduling gates"
        case Reason.GROUP_MISSING:
            return f'PodGroup "{rejection.detail}" does not exist'
        case Reason.GROUP_DELETED:
            return f'PodGroup "{rejection.detail}" is being deleted'
        case Reason.CLAIMS_AWAITED:
            kind, claim, node = rejection.detail.split("/")
            ready = "allocated and ready" if kind == "resourceclaim" else "bound"
            return f'{kind} "{claim}" is not {ready} yet, for node {node}'
        case _:
            return f'parent composite pod group "{rejection.detail}" does not exist'


def error_message(diagnosis: Diagnosis) -> str:
    """What went wrong before or after any placement."""
    first = diagnosis.rejections[0] if diagnosis.rejections else Rejection(Reason.DECISION_FAILED, 0, "unknown")
    if first.reason in _MISMATCH:
        values = " and ".join(repr(name) for name in diagnosis.names)
        return _MISMATCH[first.reason] + (f", found {values}" if values else "")
    if first.reason in _DOMAINS:
        return _DOMAINS[first.reason].format(*diagnosis.names)
    if first.reason is Reason.INVALID_HIERARCHY:
        return first.detail
    if first.reason is Reason.BINDING_REFUSED:
        return f"binding rejected: {first.detail}"
    return f"the decision failed: {first.detail}"


# --- the verdict ---------------------------------------------------------------------------------------------------


def verdict(diagnosis: Diagnosis) -> str:
    """One sentence: why it waits, how much it lacks, where it is nearest, and what would change that."""
    subject = f"{diagnosis.entry.kind.value} {diagnosis.entry.key}"
    left = diagnosis.pending - (diagnosis.placed if diagnosis.verdict is Verdict.SCHEDULED else 0)
    head = f"{subject} waits"
    if _is_partly_there(diagnosis) and left:
        head = f"{subject}: running {_running(diagnosis, left)}, {_one_or(left)} {_waits(left)}"
    elif _runs(diagnosis):
        head = f"{subject} runs, and {_count(left, 'further member')} {_waits(left)}"
    return (
        f"{head}: {_why(diagnosis)}{_doubt(diagnosis)}{_nearest(diagnosis)}{_remedies(diagnosis)}."
        + eviction_sentence(diagnosis)
    )


def _is_partly_there(diagnosis: Diagnosis) -> bool:
    """Whether it is a group that was tried, and of which some members run."""
    refused = bool(diagnosis.rejections) and diagnosis.rejections[0].reason is Reason.BINDING_REFUSED
    tried = refused or diagnosis.verdict in (Verdict.UNSCHEDULABLE, Verdict.SCHEDULED)
    return tried and diagnosis.entry.kind is EntryKind.POD_GROUP and diagnosis.running > 0


def _running(diagnosis: Diagnosis, left: int) -> str:
    """`3 of 4`: of all its members that have not ended."""
    return f"{diagnosis.running} of {diagnosis.running + left}"


def _one_or(number: int) -> str:
    return "one member" if number == 1 else f"{number} members"


def fits_now(diagnosis: Diagnosis) -> str:
    """Of an entry that would be placed if it were decided now, wholly or in part."""
    subject = f"{diagnosis.entry.kind.value} {diagnosis.entry.key}"
    if diagnosis.entry.kind is EntryKind.POD:
        return f"{subject} fits now, and waits for its next attempt."
    fitting, members = diagnosis.placed, _count(diagnosis.pending, "pending member")
    return f"{subject} waits for its next attempt: {fitting} of its {members} {_fit(fitting)} now."


def _fit(number: int) -> str:
    return "fits" if number == 1 else "fit"


def _runs(diagnosis: Diagnosis) -> bool:
    """Whether the group has its minimum, so that only further members wait."""
    if diagnosis.verdict is Verdict.SCHEDULED:
        return True
    there = diagnosis.running + diagnosis.succeeded
    return (
        diagnosis.verdict is Verdict.UNSCHEDULABLE
        and diagnosis.entry.kind is EntryKind.POD_GROUP
        and diagnosis.running > 0
        and there >= diagnosis.min_count
    )


def _why(diagnosis: Diagnosis) -> str:
    if diagnosis.verdict is Verdict.WAITING:
        return " and ".join(hold_message(diagnosis, rejection) for rejection in diagnosis.rejections)
    if diagnosis.verdict is Verdict.ERROR:
        return error_message(diagnosis)
    if diagnosis.groups:
        return _why_tree(diagnosis)
    if _has_no_domain(diagnosis):
        return f'it has to be in one domain of the label "{diagnosis.topology_key}", which no node has'
    where = nodes_message(PodVerdict(diagnosis.rejections, diagnosis.nodes)).rstrip(".")
    about = next((lack.pod for lack in diagnosis.lacks if lack.rejections == diagnosis.rejections), None)
    where = f"{about}: {where}" if about else where
    if diagnosis.domain and _runs(diagnosis) and diagnosis.rejections:
        return f"it has to stay in {domain_name(diagnosis)} ({where})"
    if diagnosis.entry.kind is EntryKind.POD or (_runs(diagnosis) and diagnosis.rejections):
        return where
    return f"{_lack(diagnosis)} ({where})" if diagnosis.rejections or not diagnosis.nodes else _lack(diagnosis)


def _why_tree(diagnosis: Diagnosis) -> str:
    """Of a hierarchy: how many groups it lacks, and of the first that failed by itself, why."""
    root, leaves = diagnosis.groups[0], [g for g in diagnosis.groups if g.kind is EntryKind.POD_GROUP]
    first = next((g for g in leaves if not g.satisfied), None)
    if first is None or (root.satisfied and diagnosis.rejections):
        first = next((g for g in leaves if g.rejections), first)
    cause = f"; PodGroup {first.key.name}: {_why_group(diagnosis, first)}" if first is not None else ""
    if root.satisfied:
        return cause.removeprefix("; ") or "they do not fit together"
    cause += _others([g for g in leaves if not g.satisfied and g is not first])
    return (
        f"it needs {_count(root.min_count, 'group')} at once, {root.there} can be placed, "
        f"{max(root.min_count - root.there, 0)} short{cause}"
    )


def _others(failed: Sequence[GroupOutcome]) -> str:
    """Further groups that fail by themselves, in short."""
    told = [f"{g.key.name} (holds {g.there} of {g.min_count}{_lacks(g.shortfall)})" for g in failed[:OTHERS]]
    more = len(failed) - len(told)
    told += [f"{more} more"] if more else []
    return f"; nor can {' or '.join(filter(None, (', '.join(told[:-1]), told[-1])))}" if told else ""


def _lacks(shortfall: Shortfall | None) -> str:
    return f", {_shortfall(shortfall)}" if shortfall is not None else ""


def _why_group(diagnosis: Diagnosis, outcome: GroupOutcome) -> str:
    if not outcome.rejections or outcome.rejections[0].reason >= Reason.GATED:
        return _own_message(diagnosis, outcome)
    nodes = nodes_message(PodVerdict(outcome.rejections, outcome.nodes)).rstrip(".")
    if outcome.satisfied or outcome.kind is not EntryKind.POD_GROUP:
        return nodes
    level = outcome.topology_key.rpartition("/")[2]
    together, where = (f"in one {level}", f" in {level} {outcome.domain}") if outcome.domain else ("at once", "")
    return f"it needs {_count(outcome.min_count, 'member')} {together}, {outcome.there} can be placed{where} ({nodes})"


def _lack(diagnosis: Diagnosis) -> str:
    there = diagnosis.running + diagnosis.succeeded
    lacking = diagnosis.min_count - there - diagnosis.placed
    if lacking <= 0:
        return f"none of its {_count(diagnosis.pending, 'pending member')} can be placed"
    running = f"{there} run or are done, " if there > diagnosis.running else ""
    if diagnosis.domain:
        return _lack_in_domain(diagnosis, lacking)
    return (
        f"it needs {_count(diagnosis.min_count, 'member')} at once, {running}{diagnosis.placed} can be placed, "
        f"{lacking} short"
    )


def _doubt(diagnosis: Diagnosis) -> str:
    return "" if diagnosis.proven else "; the search stopped early, so this is not proven impossible"


def domain_name(diagnosis: Diagnosis) -> str:
    """`rack r7`: the last part of the label key and the value."""
    return f"{_level(diagnosis)} {diagnosis.domain}"


def _level(diagnosis: Diagnosis) -> str:
    return diagnosis.topology_key.rpartition("/")[2]


def _lack_in_domain(diagnosis: Diagnosis, lacking: int) -> str:
    there = diagnosis.running + diagnosis.succeeded + diagnosis.placed
    needs = f"it needs {_count(diagnosis.min_count, 'member')} in one {_level(diagnosis)}"
    if diagnosis.running:
        best = f"its {domain_name(diagnosis)}"
    else:
        best = f"best of {diagnosis.placements}: {domain_name(diagnosis)}"
    return f"{needs}; {best} holds {there} of {diagnosis.min_count}, short of {lacking}"


def _nearest(diagnosis: Diagnosis) -> str:
    if len(diagnosis.lacks) > 1:
        first, second, *more = diagnosis.lacks
        others = f", and {_count(len(more), 'more kind')}" if more else ""
        return f"; missing: {_kind(first)}, {_kind(second)}{others}"
    told = _shortfall(diagnosis.shortfall)
    return f"; {told}" if told else ""


def _kind(lack: Lack) -> str:
    """`3 like worker-5 (the 3 nearest nodes lack 12 nvidia.com/gpu in sum)`."""
    most = max(lack.rejections, key=lambda rejection: rejection.nodes, default=None)
    why = _shortfall(lack.shortfall) or (f"{most.nodes} {node_reason(most)}" if most else "")
    return f"{lack.pods} like {lack.pod} ({why})" if why else f"{lack.pods} like {lack.pod}"


def device_lack(lack: DeviceLack) -> str:
    """`request "gpu" needs 4 devices of class "h100" with the same numa; best: n7 has 3, with 1`."""
    needs = f'request "{lack.request}" needs {_count(lack.needed, "device")} of class "{lack.device_class}"'
    if lack.failed:
        return f"{needs}; an expression failed on device {lack.failed}: {lack.why}"
    if not lack.found and not lack.taken and not lack.tainted:
        return (
            f"{needs}, and no node has any that it may use" if not lack.attribute else f"{needs} with {lack.attribute}"
        )
    agree = f" with the same {lack.attribute}" if lack.attribute else ""
    value = f", with {lack.value}" if lack.attribute else ""
    others = [f"{n} {what}" for n, what in ((lack.taken, "in use"), (lack.tainted, "tainted")) if n]
    beside = f" ({', '.join(others)})" if others else ""
    return f"{needs}{agree}; best: {lack.node} has {lack.found}{value}{beside}"


def _shortfall(shortfall: Shortfall | None) -> str:
    if shortfall is not None and shortfall.devices is not None:
        return device_lack(shortfall.devices)
    if shortfall is None or shortfall.lacking <= 0:
        return ""
    amount = f"{format_amount(shortfall.resource, shortfall.lacking)} {shortfall.resource}"
    if shortfall.asked:
        asked, most = (format_amount(shortfall.resource, n) for n in (shortfall.asked, shortfall.most))
        return f"each asks for {asked} {shortfall.resource}, and no node that it may use has more than {most}"
    if shortfall.nodes > 1:
        inside = f" of {shortfall.where}" if shortfall.where else ""
        return f"the {shortfall.nodes} nearest nodes{inside} lack {amount} in sum"
    return f"nearest on {shortfall.where}, which lacks {amount}" if shortfall.where else f"the cluster lacks {amount}"


def _remedies(diagnosis: Diagnosis) -> str:
    """Any of them helps; but of what holds an entry before any attempt, everything must go."""
    told = [(remedy.action in _FOR_MEMBERS, remedy_phrase(remedy)) for remedy in diagnosis.remedies]
    if not told:
        return ""
    if diagnosis.verdict is not Verdict.WAITING:
        return f"; to change that, {', or '.join(phrase for _, phrase in told)}"
    members = ", or ".join(phrase for for_members, phrase in told if for_members)
    others = [phrase for for_members, phrase in told if not for_members]
    return f"; to change that, {', and '.join(filter(None, (members, *others)))}"


_FOR_MEMBERS = frozenset({"add-members", "lower-min-count"})


def remedy_phrase(remedy: Remedy) -> str:
    """A change that would help, as an order: `add 3 nodes like n1`."""
    known = _REMEDIES.get(remedy.action)
    return known(remedy) if known else f"{remedy.action} {remedy.amount or ''} {remedy.detail}".strip()


_REMEDIES: Mapping[str, Callable[[Remedy], str]] = {
    "add-members": lambda r: f"create {_count(r.amount, 'more member')}",
    "lower-min-count": lambda r: f"lower minCount{f' of {r.where}' if r.where else ''} to {r.amount}",
    "free": lambda r: f"free {format_amount(r.detail, r.amount)} {r.detail}" + (f" on {r.where}" if r.where else ""),
    "add-nodes": lambda r: " ".join(
        (
            f"add {_count(r.amount, 'node')}",
            *((f"like {r.detail}",) if r.detail else ()),
            *((f"in {r.where}",) if r.where else ()),
        )
    ),
    "uncordon": lambda r: f"uncordon {r.where}" if r.where else f"uncordon {_count(r.amount, 'node')}",
    "tolerate": lambda r: f"tolerate the taint {r.detail}",
    "declare": lambda r: f"have {_count(r.amount, 'node')} declare the feature {r.detail}",
    "remove-gate": lambda r: _remove_gates(r.detail.split(", ")),
    "create-group": lambda r: f'create the PodGroup "{r.detail}"',
    "match-priority": lambda r: "give its pods and the group the same priority",
}


def _remove_gates(gates: Sequence[str]) -> str:
    quoted = " and ".join(f'"{gate}"' for gate in gates)
    return f"remove the scheduling gate{'s' if len(gates) > 1 else ''} {quoted}"


def format_amount(resource: str, amount: int) -> str:
    """Cores for cpu, Ki to Ti for bytes where it comes out even, else the plain number."""
    if resource == "cpu":
        return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"
    if resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-"):
        for shift, suffix in ((40, "Ti"), (30, "Gi"), (20, "Mi"), (10, "Ki")):
            if amount and amount % (1 << shift) == 0:
                return f"{amount >> shift}{suffix}"
    return str(amount)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _waits(number: int) -> str:
    return "waits" if number == 1 else "wait"
