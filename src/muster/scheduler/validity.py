"""Which hierarchies of groups v1.38 refuses (statement 55); v1.37 places them as far as it can (54)."""

from __future__ import annotations

from muster.model.keys import Key
from muster.model.records import CompositeRecord, GroupRecord, Policy
from muster.scheduler.forest import DEEPEST, Forest

Group = CompositeRecord | GroupRecord


def fault(forest: Forest, root: Key) -> str:
    """What is wrong with the hierarchy below this root; "" if nothing is. The first in order of the levels."""
    top = forest.composites[root]
    everything = list(forest.everything(root))
    depth = max((level + isinstance(group, CompositeRecord) for group, level in everything), default=1)
    if depth > DEEPEST:
        return f"hierarchy depth {depth} exceeds maximum allowed depth {DEEPEST}"
    for group, _ in everything:
        if group.workload and top.workload and group.workload != top.workload:
            return (
                f'all groups of a hierarchy belong to one Workload: {_name(top)} names "{top.workload}", '
                f'{_name(group)} "{group.workload}" (spec.workloadRef.workloadName)'
            )
    for group, _ in everything:
        parent = forest.composites[Key(root.namespace, group.parent or "")]
        if parent.policy is Policy.GANG and group.policy is Policy.BASIC:
            return f"{_name(parent)} is a gang, and its child {_name(group)} is basic (spec.schedulingPolicy)"
        if parent.disruption_all and not group.disruption_all:
            return f"{_name(parent)} has mode all, and its child {_name(group)} single (spec.disruptionMode)"
    return ""


def _name(group: Group) -> str:
    return f'{"PodGroup" if isinstance(group, GroupRecord) else "CompositePodGroup"} "{group.key.name}"'
