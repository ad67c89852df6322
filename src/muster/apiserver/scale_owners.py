"""Who owns the number of replicas: the managed fields of an object as those of its Scale, and back again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from muster.api.structure import jsonpath
from muster.apiserver.custom import registry
from muster.apiserver.custom.kinds import CustomKind
from muster.apiserver.fieldsets import Path
from muster.apiserver.ownership import REPLICAS, Entries, Entry
from muster.apiserver.state import Call


def places(call: Call) -> Mapping[str, Path | None]:
    """Where each version of the call's kind has its replicas; None: it has no Scale."""
    if not isinstance(call.kind, CustomKind):
        return {call.kind.api_version: REPLICAS}
    return {version.api_version: _place(version) for version in registry.versions(call.store, call.kind)}


def _place(kind: CustomKind) -> Path | None:
    fields = jsonpath.fields(kind.scale["specReplicasPath"]) if kind.scale else None
    return tuple(f"f:{name}" for name in fields) if fields else None


def of_scale(entries: Entries, places: Mapping[str, Path | None], api_version: str) -> Entries:
    """The managed fields of a Scale: those who own the replicas of the object, and nothing else."""
    return tuple(
        replace(entry, api_version=api_version, fields=frozenset([REPLICAS]))
        for entry in entries
        if places.get(entry.api_version) in entry.fields
    )


def of_object(entries: Entries, scale: Entries, places: Mapping[str, Path | None], api_version: str) -> Entries:
    """The managed fields of the object, with the owners of its replicas that its Scale has now.

    An entry of a version that is no more goes, as upstream.
    """
    now = {_who(entry): entry for entry in scale if REPLICAS in entry.fields}
    made = []
    for entry in entries:
        place = places.get(entry.api_version)
        if place is None or place not in entry.fields:
            made += [entry] if entry.api_version in places else []
            continue
        if now.pop(_who(entry), None) is None:
            entry = replace(entry, fields=entry.fields - {place})
        made += [entry] if entry.fields else []
    place = places[api_version]
    assert place is not None
    return (*made, *(replace(entry, api_version=api_version, fields=frozenset([place])) for entry in now.values()))


def _who(entry: Entry) -> tuple[str, str, str]:
    return entry.manager, entry.operation, entry.subresource
