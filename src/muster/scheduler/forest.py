"""Which groups are above and below which: PodGroups and CompositePodGroups by the names of their parents.

Links are names in one namespace, so the objects may come in any order. A link counts while the object of that name
exists and is not being deleted; what hangs on one that does not, or in a cycle, has no root and is kept aside (9, 10).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from muster.model.keys import Key
from muster.model.records import CompositeRecord, GroupRecord

DEEPEST = 4
"""Levels of a hierarchy, the PodGroups included (KEP-6012)."""
_LONGEST = 64
"""Chains of parents are followed so far to tell a cycle from a long one."""


class Above(NamedTuple):
    """Where the way up from a group ends. Without a `root`: at a `missing` name, in a `cycle`, or it is too `deep`."""

    root: CompositeRecord | None = None
    missing: str = ""
    cycle: str = ""
    deep: bool = False


class Child(NamedTuple):
    """A group by kind and name."""

    is_leaf: bool
    key: Key


class Forest:
    """The links. `groups` are the PodGroups, kept by the cache.

    Args:
        checked: hierarchies are held to the rules of v1.38 (`validity`), so one that is too deep has a root as well.
    """

    def __init__(self, groups: Mapping[Key, GroupRecord], *, checked: bool = False) -> None:
        self.checked = checked
        self._deepest = _LONGEST if checked else DEEPEST
        self.composites: dict[Key, CompositeRecord] = {}
        self._groups = groups
        self._children: dict[Key, dict[Child, None]] = {}
        self._leaves: dict[Key, tuple[Key, ...]] = {}

    # -- the fold

    def put(self, record: CompositeRecord) -> CompositeRecord | None:
        """Returns what was known before."""
        old = self.composites.get(record.key)
        if old != record:
            self.composites[record.key] = record
            self._relink(Child(False, record.key), old.parent if old else None, record.parent)
        return old

    def drop(self, key: Key) -> CompositeRecord | None:
        old = self.composites.pop(key, None)
        if old is not None:
            self._relink(Child(False, key), old.parent, None)
        return old

    def leaf_changed(self, key: Key, old: GroupRecord | None, new: GroupRecord | None) -> None:
        """A PodGroup came, changed or went."""
        before, after = old.parent if old else None, new.parent if new else None
        if before is not None or after is not None:
            self._relink(Child(True, key), before, after)

    def _relink(self, child: Child, before: str | None, after: str | None) -> None:
        self._leaves.clear()
        if before == after:
            return
        if before is not None:
            parent = Key(child.key.namespace, before)
            children = self._children[parent]
            del children[child]
            if not children:
                del self._children[parent]
        if after is not None:
            self._children.setdefault(Key(child.key.namespace, after), {})[child] = None

    # -- upwards

    def above(self, group: GroupRecord) -> Above:
        """Where the way up from a PodGroup that has a parent ends."""
        passed: dict[Key, None] = {}
        name = group.parent
        while name is not None:
            key = Key(group.key.namespace, name)
            if key in passed:
                return Above(cycle=name)
            passed[key] = None
            record = self.composites.get(key)
            if record is None or record.terminating:
                return Above(missing=name)
            if record.parent is None:
                return Above(record) if len(passed) < self._deepest else Above(deep=True)
            if len(passed) > _LONGEST:
                return Above(deep=True)
            name = record.parent
        return Above()

    def root_of(self, key: Key) -> Key | None:
        """The root above a composite group, itself perhaps; None: a link is missing, or they go round."""
        passed: set[Key] = set()
        while key not in passed and (record := self.composites.get(key)) is not None:
            if record.parent is None:
                return key
            passed.add(key)
            key = Key(key.namespace, record.parent)
        return None

    # -- downwards

    def children(self, key: Key) -> list[CompositeRecord | GroupRecord]:
        """What hangs on a composite group and is not being deleted, in the order of creation, then name."""
        found = [self._record(child) for child in self._children.get(key, ())]
        there = [record for record in found if record is not None and not record.terminating]
        return sorted(there, key=lambda record: (record.created, record.key, isinstance(record, GroupRecord)))

    def _record(self, child: Child) -> CompositeRecord | GroupRecord | None:
        return self._groups.get(child.key) if child.is_leaf else self.composites.get(child.key)

    def leaves(self, root: Key) -> tuple[Key, ...]:
        """The PodGroups of a hierarchy, in order."""
        known = self._leaves.get(root)
        if known is None:
            known = self._leaves[root] = tuple(self._walk(root, 1))
        return known

    def _walk(self, key: Key, level: int) -> Iterator[Key]:
        for record in self.children(key):
            if isinstance(record, GroupRecord):
                yield record.key
            elif level + 1 < self._deepest:
                yield from self._walk(record.key, level + 1)

    def everything(self, root: Key) -> Iterator[tuple[CompositeRecord | GroupRecord, int]]:
        """Every group below a root with its level, parents before children; the root is on level 1."""
        open_groups = [(record, 2) for record in reversed(self.children(root))]
        while open_groups:
            record, level = open_groups.pop()
            yield record, level
            if not isinstance(record, GroupRecord) and level < self._deepest:
                open_groups += [(child, level + 1) for child in reversed(self.children(record.key))]

    def below(self, key: Key) -> list[Key]:
        """Every PodGroup whose way up leads through a composite group of this name, whether that exists or not."""
        found: dict[Key, None] = {}
        seen, open_keys = {key}, [key]
        while open_keys:
            for child in self._children.get(open_keys.pop(), ()):
                if child.is_leaf:
                    found[child.key] = None
                elif child.key not in seen:
                    seen.add(child.key)
                    open_keys.append(child.key)
        return list(found)
