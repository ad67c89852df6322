"""Names and hashes of what a controller of group apps makes: the same again after a restart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

import msgspec

from muster.workloadbuilder.names import hash_text

_LONGEST_BASE = 57
"""So that a pod's name still is a DNS label, as host names must be."""


def pod_names(owner: str, uid: str) -> Iterator[str]:
    """Names for the pods of an owner, best first. Always the same ones, so that a create whose answer was lost is asked
    for again under the same name, and the server says that it exists."""
    base = owner[:_LONGEST_BASE]
    for number in count():
        yield f"{base}-{hash_text(f'{uid}/{number}')[-5:]}"


_EMPTY_IS_NOTHING = (
    "annotations", "labels", "limits", "matchLabels", "metadata", "nodeSelector", "requests", "resources",
)  # fmt: skip
"""Mappings that mean the same when empty as when left out. Others, such as selectors, do not."""


def canonical(value: Any) -> Any:
    """A pod template, or a part of it, without what says nothing: typed clients write `resources: {}` where people
    write nothing, and that is no other template."""
    if isinstance(value, Mapping):
        parts = {name: canonical(part) for name, part in value.items()}
        return {name: part for name, part in parts.items() if not _says_nothing(name, part)}
    return [canonical(part) for part in value] if isinstance(value, list) else value


def _says_nothing(name: str, part: Any) -> bool:
    return part is None or part == [] or (part == {} and name in _EMPTY_IS_NOTHING)


def template_hash(template: Mapping[str, Any], collisions: int = 0) -> str:
    """What tells pod templates apart: safe in names and label values. `collisions` makes another one of the same."""
    text = msgspec.json.encode(canonical(template), order="sorted").decode()
    return hash_text(f"{text}/{collisions}" if collisions else text)
