"""Who waits for whose claims: no member of a gang is bound before enough of them for its minimum can be (W15)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

from muster.model.keys import Key
from muster.model.records import EntryKey, EntryKind, GroupNode
from muster.scheduler.bindings import Binding, Step
from muster.scheduler.cache import Cache
from muster.scheduler.trees import is_satisfied, tree_of

_NOBODY: Mapping[Key, int] = {}


class Parties:
    """Bindings of groups, by entry, that have not been sent yet because claims of the group are not bound.

    A member goes as soon as its group, and every group above that, has its minimum with those that are bound, done or
    ready. So members beyond the minimum hold nobody up, and nor do those of groups without a minimum.
    """

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._of: dict[EntryKey, dict[str, Binding]] = {}
        self._changed: dict[EntryKey, None] = {}

    def join(self, fresh: Collection[Binding]) -> None:
        """A plan that was taken: all of it is one entry's."""
        entry = next((binding.entry for binding in fresh), None)
        if entry is None or entry.kind is EntryKind.POD:
            return
        if entry in self._of or not all(binding.ready for binding in fresh):
            self._of.setdefault(entry, {}).update((binding.record.uid, binding) for binding in fresh)
            self._changed[entry] = None  # those who wait already may be enough with these

    def leave(self, binding: Binding, *, ended: bool) -> None:
        """It was sent; `ended`: it was not, and the group may be one short."""
        party = self._of.get(binding.entry)
        if party is None or party.pop(binding.record.uid, None) is None:
            return
        if not party:
            del self._of[binding.entry]
        if ended:
            self._changed[binding.entry] = None

    def is_ready(self, binding: Binding) -> None:
        if not binding.ready:
            binding.ready = True
            self._changed[binding.entry] = None

    def look_again(self) -> None:
        """A group is not what it was."""
        self._changed.update(dict.fromkeys(self._of))

    def take_changed(self) -> Sequence[EntryKey]:
        """Entries of which a member became ready, or was lost, or a group changed, since this was last asked."""
        changed, self._changed = tuple(self._changed), {}
        return changed

    def lets(self, binding: Binding) -> bool:
        """Whether a member may be bound now, as far as the claims of the others go."""
        party = self._of.get(binding.entry)
        return party is None or leaf_of(binding) in self._complete(binding.entry, party)

    def free(self, entry: EntryKey) -> Sequence[Binding]:
        """Those that were held and may be bound now."""
        party = self._of.get(entry, {})
        held = [binding for binding in party.values() if binding.step is Step.READY]
        complete = self._complete(entry, party) if held else ()
        return [binding for binding in held if leaf_of(binding) in complete]

    def short(self, entry: EntryKey) -> Sequence[Binding]:
        """Those whose groups do not have their minimum even with all that are on their way."""
        party = self._of.get(entry)
        if party is None:
            return ()
        complete = complete_groups(self._cache, entry)
        return [binding for binding in party.values() if leaf_of(binding) not in complete]

    def _complete(self, entry: EntryKey, party: Mapping[str, Binding]) -> AbstractSet[Key]:
        unready = Counter(leaf_of(binding) for binding in party.values() if not binding.ready)
        return complete_groups(self._cache, entry, unready)


def leaf_of(binding: Binding) -> Key:
    """The PodGroup of a member."""
    return Key(binding.record.key.namespace, binding.record.group or "")


def complete_groups(cache: Cache, entry: EntryKey, less: Mapping[Key, int] = _NOBODY) -> AbstractSet[Key]:
    """The PodGroups of an entry that have their minimum, as have all above; `less`: members that don't count."""
    if entry.kind is EntryKind.COMPOSITE:
        root = cache.forest.composites.get(entry.key)
        if root is None or root.terminating:
            return frozenset()
        return frozenset(_complete(tree_of(cache, entry.key), {key: -number for key, number in less.items()}))
    group, members = cache.groups.get(entry.key), cache.members.get(entry.key)
    if group is None or group.terminating or members is None:
        return frozenset()
    there = len(members.running) + len(members.succeeded) - less.get(entry.key, 0)
    return frozenset((entry.key,)) if there >= group.min_count else frozenset()


def _complete(tree: GroupNode, placed: Mapping[Key, int]) -> Iterator[Key]:
    if not is_satisfied(tree, placed):
        return
    if tree.is_leaf:
        yield tree.record.key
    for child in tree.children:
        yield from _complete(child, placed)
