"""Whether a plan can be taken although the cluster may have changed since it was decided."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from muster.engine.fit import in_one_domain, still_fits
from muster.engine.profile import Profile
from muster.model.keys import Key
from muster.model.plan import Plan
from muster.model.records import GroupNode, Phase, PodRecord, QueueEntry
from muster.scheduler.allocating import Allocating
from muster.scheduler.cache import Cache
from muster.scheduler.prebind import Prebind
from muster.scheduler.trees import lets, nodes_of, tree_of


class Recheck:
    """Looks at pods, groups and nodes again, by the same fit function as the decision."""

    def __init__(self, cache: Cache, profile: Profile, prebind: Prebind, allocating: Allocating) -> None:
        self._cache, self._profile, self._prebind, self._allocating = cache, profile, prebind, allocating

    def changed_nodes(self, plans: Sequence[Plan]) -> frozenset[str]:
        """Nodes that these plans rely on and that are not as they were. To be asked before any of them is taken."""
        generation, version = self._cache.rooms.generation, self._cache.neighbours.version
        return frozenset(
            node
            for plan in plans
            for node, at in (plan.generations or {}).items()
            if generation(node) != at or plan.neighbours not in (None, version)
        )

    def holds(self, head: QueueEntry, plan: Plan, changed: frozenset[str]) -> bool:
        """Whether a plan can be taken as it is: its pods and group are as they were, and its nodes too or fit still."""
        if not all(self._is_as_it_was(record, head, plan) for record in self._bound_by(head, plan)):
            return False
        if head.group is not None and not self._reaches_minimum(head, len(plan.binds)):
            return False
        if head.tree is not None and not self._satisfies_tree(head, plan):
            return False
        if head.group is not None and not self.is_together(head.group.key, {step.node for step in plan.binds}):
            return False
        pods = {record.uid: record for record in head.pods}
        storing = any(pods[step.uid].volumes is not None for step in plan.binds)
        placements = [(pods[step.uid], step.node) for step in plan.binds]
        if self._allocating.choices(placements) is None:
            return False
        if not storing and changed.isdisjoint(plan.generations or {step.node: 0 for step in plan.binds}):
            return True
        if not still_fits(self._cache.snapshot(), self._profile, placements):
            return False
        return not storing or self._prebind.choices(placements) is not None

    def fits(self, placements: Sequence[tuple[PodRecord, str]]) -> bool:
        """Whether these pods could be bound there now, by room and filters."""
        known = all(node in self._cache.nodes for _, node in placements)
        return known and still_fits(self._cache.snapshot(), self._profile, placements)

    def _bound_by(self, head: QueueEntry, plan: Plan) -> Iterator[PodRecord]:
        taken = {step.uid for step in plan.binds}
        return (record for record in head.pods if record.uid in taken)

    def _is_as_it_was(self, record: PodRecord, head: QueueEntry, plan: Plan) -> bool:
        now = self._cache.pods.get(record.key)
        return now is record or (
            now is not None
            and now.uid == record.uid
            and now.phase is Phase.PENDING
            and not now.terminating
            and now.cls is record.cls
            and now.devices == record.devices
            and now.priority == record.priority
            and now.scheduler_name == record.scheduler_name
            and record.uid not in self._cache.assumed
        )

    def _reaches_minimum(self, head: QueueEntry, placed: int) -> bool:
        assert head.group is not None
        group, members = self._cache.groups.get(head.group.key), self._cache.members.get(head.group.key)
        if group is None or group.terminating or members is None or group.uid != head.group.uid:
            return False
        return len(members.running) + len(members.succeeded) + placed >= group.min_count

    def is_together(self, key: Key, nodes: Iterable[str] = ()) -> bool:
        """Whether the running members of a group and these nodes are in one domain, if it has to be in one."""
        group, members = self._cache.groups.get(key), self._cache.members.get(key)
        if group is None or members is None or group.topology_key is None:
            return True
        names = {record.node or self._cache.assumed[record.uid] for record in members.running.values()}
        return in_one_domain((self._cache.nodes.get(name) for name in names.union(nodes)), group.topology_key)

    def _satisfies_tree(self, head: QueueEntry, plan: Plan) -> bool:
        """Whether every group on the way down to a pod of the plan is there and has its minimum with it."""
        root = self._cache.forest.composites.get(head.key.key)
        if root is None or root.uid != head.uid or root.terminating or root.parent is not None:
            return False
        placed: Counter[Key] = Counter()
        for record in self._bound_by(head, plan):
            if self._cache.owner(record) != head.key or record.group is None:
                return False
            placed[Key(record.key.namespace, record.group)] += 1
        tree = tree_of(self._cache, head.key.key)
        groups = {record.uid: record.group or "" for record in head.pods}
        where: dict[str, set[str]] = {}
        for step in plan.binds:
            where.setdefault(groups[step.uid], set()).add(step.node)
        return lets(tree, placed) and self.are_together(tree, where)

    def are_together(self, tree: GroupNode, where: Mapping[str, set[str]]) -> bool:
        """Whether each group above these PodGroups is in one domain, if it has to be, with these nodes added."""
        for group in nodes_of(tree):
            key, leaves = group.record.topology_key, tuple(group.leaves())
            if key is None or not any(leaf.record.key.name in where for leaf in leaves):
                continue
            names = {pod.node for leaf in leaves for pod in leaf.bound if pod.node is not None}
            names.update(*(where.get(leaf.record.key.name, ()) for leaf in leaves))
            if not in_one_domain((self._cache.nodes.get(name) for name in names), key):
                return False
        return True
