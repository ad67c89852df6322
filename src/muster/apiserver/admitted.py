"""Which fields of a new object its author did not say: admission has filled them in, and nobody owns them.

As in Kubernetes, where fields get their owners before admission; an owner who lets go of one would take it away.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from muster.apiserver import fieldsets
from muster.apiserver.fieldsets import Path
from muster.apiserver.log import Raw
from muster.apiserver.shapes import Shape

Json = dict[str, Any]
Places = tuple[Path, ...]
_PARTS = ("metadata", "spec")


def before(made: Json) -> Json:
    """What admission gets, kept: it changes the top level and the metadata, and replaces everything below."""
    return {**made, "metadata": {**made["metadata"]}}


def places(shape: Shape, given: Raw, made: Raw) -> Places:
    """Where `made` has what `given` had not: places that stand for all that is below them."""
    new: list[tuple[str, str]] = []
    for part in _PARTS:
        was, now = given.get(part), made.get(part)
        if was is now or not isinstance(was, dict) or not isinstance(now, dict):
            continue
        for name, value in now.items():
            if name not in was:
                new.append((part, name))
            elif was[name] is not value and was[name] != value:
                return tuple(sorted(fieldsets.compare(shape, given, made).added))
    return _paths(tuple(new)) if new else ()


@lru_cache(maxsize=256)
def _paths(new: tuple[tuple[str, str], ...]) -> Places:
    return tuple((f"f:{part}", f"f:{name}") for part, name in new)


@lru_cache(maxsize=1024)
def without(fields: frozenset[Path], filled: Places) -> frozenset[Path]:
    """Fields but for those in these places. Read only: shared by all objects that are made alike."""
    lengths = {len(place) for place in filled}
    known = frozenset(filled)
    return frozenset(path for path in fields if not any(path[:length] in known for length in lengths))
