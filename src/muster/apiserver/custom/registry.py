"""The kinds that the definitions in a store serve at this moment."""

from __future__ import annotations

from collections.abc import Iterator
from weakref import WeakKeyDictionary

from muster.api import catalog
from muster.api.catalog import Raw
from muster.api.validation.definition import established
from muster.apiserver.custom import kinds
from muster.apiserver.custom.kinds import CustomKind
from muster.apiserver.storage import Store

DEFINITIONS = catalog.CUSTOM_RESOURCE_DEFINITION.resource


class Registry:
    """Kinds by definition. What is made of a definition is kept as long as that is the one in the store."""

    def __init__(self) -> None:
        self._made: dict[str, tuple[Raw, tuple[CustomKind, ...]]] = {}

    def versions(self, definition: Raw) -> tuple[CustomKind, ...]:
        """Every version of an established definition, served or not, the newest first."""
        name = definition["metadata"]["name"]
        known = self._made.get(name)
        if known is None or known[0] is not definition:
            versions = definition["spec"]["versions"] if established(definition) else ()
            found = sorted((kinds.made(definition, version) for version in versions), key=_age)
            known = self._made[name] = (definition, tuple(found))
        return known[1]

    def forget(self, names: set[str]) -> None:
        for name in self._made.keys() - names:
            del self._made[name]


def _age(kind: CustomKind) -> tuple[object, ...]:
    return catalog.version_order(kind.version)


_REGISTRIES: WeakKeyDictionary[Store, Registry] = WeakKeyDictionary()


def _registry(store: Store) -> Registry:
    found = _REGISTRIES.get(store)
    if found is None:
        found = _REGISTRIES[store] = Registry()
    return found


def find(store: Store, group: str, version: str, plural: str) -> CustomKind | None:
    """The kind behind a URL path, if a definition serves it."""
    definition = store.get(DEFINITIONS, "", f"{plural}.{group}")
    if definition is None:
        return None
    return next((kind for kind in _served(store, definition) if kind.version == version), None)


def versions(store: Store, kind: CustomKind) -> tuple[CustomKind, ...]:
    """All versions of a kind, also those that are not served."""
    definition = store.get(DEFINITIONS, "", kind.resource)
    return () if definition is None else _registry(store).versions(definition)


def served(store: Store) -> list[CustomKind]:
    """All versions that are served, by definition."""
    definitions = sorted(store.all(DEFINITIONS), key=lambda raw: raw["metadata"]["name"])
    _registry(store).forget({raw["metadata"]["name"] for raw in definitions})
    return [kind for definition in definitions for kind in _served(store, definition)]


def _served(store: Store, definition: Raw) -> Iterator[CustomKind]:
    wanted = {version["name"] for version in definition["spec"]["versions"] if version.get("served")}
    return (kind for kind in _registry(store).versions(definition) if kind.version in wanted)


def storing(store: Store, definition: Raw) -> CustomKind | None:
    """The storage version of a definition; None while its names are not accepted."""
    found = _registry(store).versions(definition)
    return next((kind for kind in found if kind.version == kind.stored_version), None)


def all_storing(store: Store) -> list[CustomKind]:
    """The storage version of every definition."""
    found = (storing(store, definition) for definition in store.all(DEFINITIONS))
    return [kind for kind in found if kind is not None]
