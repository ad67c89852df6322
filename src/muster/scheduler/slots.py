"""The plan of a gang as text: which pod goes to which node (M11). It is advice, so nonsense is read as no plan."""

from __future__ import annotations

import json
import zlib
from base64 import b85decode, b85encode
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from muster.model.records import PodRecord

PLAN = "muster.dev/plan"
"""The annotation on the root group."""
LONGEST = 128 * 1024
"""Longer ones are not written: all annotations of an object together may have 256 KiB."""
SHORT = 1024
"""Up to here it is plain JSON, so that people can read it."""
_LARGEST = 8 * 1024 * 1024
"""More than any plan that is read unfolds to."""
_PACKED = "z:"
_UID = 8
"""So many characters of a uid tell one incarnation of a pod from the next."""


class Slot(NamedTuple):
    """Which incarnation of a pod is meant."""

    pod: str
    uid: str
    """The beginning of it."""


def slot_of(record: PodRecord) -> Slot:
    return Slot(record.key.name, record.uid[:_UID])


def encode(placements: Iterable[tuple[PodRecord, str]]) -> str:
    """By node, the name and the beginning of the uid of each pod: `{"n1": ["a", "0f3c2a71", "b", "77e01b9d"]}`."""
    by_node: dict[str, list[str]] = {}
    for record, node in placements:
        by_node.setdefault(node, []).extend(slot_of(record))
    text = json.dumps(by_node, separators=(",", ":"))
    if len(text) <= SHORT:
        return text
    return _PACKED + b85encode(zlib.compress(text.encode(), 6)).decode()


def decode(text: str) -> Mapping[Slot, str]:
    """The node of each slot; empty if the text is no plan."""
    try:
        by_node = json.loads(_unfolded(text))
        return {slot: node for node, pods in by_node.items() for slot in _slots(pods)}
    except (ValueError, TypeError, AttributeError, zlib.error, RecursionError):
        return {}


def _unfolded(text: str) -> str | bytes:
    if not text.startswith(_PACKED):
        return text
    unfolding = zlib.decompressobj()
    plain = unfolding.decompress(b85decode(text[len(_PACKED) :]), _LARGEST)
    if unfolding.unconsumed_tail:
        raise ValueError("too large for a plan")
    return plain


def _slots(pods: Any) -> Iterable[Slot]:
    if not isinstance(pods, list) or not all(isinstance(it, str) for it in pods):
        raise TypeError("the pods of a node are no list of names and uids")
    return map(Slot, pods[::2], pods[1::2])


def text_of(raw: Mapping[str, Any]) -> str:
    """The plan that a group carries; "" for none."""
    annotations = raw["metadata"].get("annotations")
    text = annotations.get(PLAN) if annotations else None
    return text if isinstance(text, str) else ""
