"""How each place of an object is owned and merged: as a whole, by field, by key, by value. Read from the schema."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from functools import cache
from typing import Any

import msgspec

from muster.apiserver.schema import Node, document, resolved


class Form(Enum):
    WHOLE = "whole"
    """A scalar, or a list or mapping that is owned as one (`atomic`)."""
    FIELDS = "fields"
    """A structure: each of its fields for itself."""
    MAPPING = "mapping"
    KEYED = "keyed"
    """A list of items that are told apart by the values of some of their fields."""
    SET = "set"
    """A list of different scalars."""


_KEY_DEFAULTS = {"protocol": "TCP"}
"""What a key is where an item does not say it."""
PRESERVES = "x-kubernetes-preserve-unknown-fields"
_ALWAYS_THERE = ("containers",)
"""Lists that are written even when they are empty."""


class Shape:
    """One place. `inner(name)` and `item` are the places within it."""

    __slots__ = ("_defaults", "_node", "_of", "form", "item", "keys", "parts", "shows")

    def __init__(self, node: Node, *, shows: bool = True) -> None:
        found = resolved(node)
        self._node = found
        self._of = node.get("$ref", "").removeprefix("#/$defs/").removeprefix("apis.")
        self.parts: dict[str, Shape] = {}
        """Places within it that were asked for, by field; under "" those of all values of a mapping."""
        self.form = _form(found)
        self.shows = shows
        """Its coming into being is a change of its own (a dot in fieldsV1), and not only what comes with it."""
        self.keys: tuple[str, ...] = (
            tuple(found.get("x-kubernetes-list-map-keys", ())) if self.form is Form.KEYED else ()
        )
        self.item: Shape | None = Shape(found["items"]) if self.form is Form.KEYED else None
        self._defaults = _KEY_DEFAULTS if self.item is None else self.item.defaults(self.keys)

    def defaults(self, keys: tuple[str, ...]) -> Mapping[str, Any]:
        """What these fields are where they are not said."""
        properties = self._node.get("properties") or {}
        told = {key: properties[key]["default"] for key in keys if "default" in (properties.get(key) or {})}
        return told or _KEY_DEFAULTS

    def inner(self, name: str) -> Shape:
        """The place of a field, or of a mapping's value."""
        key = "" if self.form is Form.MAPPING else name
        made = self.parts.get(key)
        if made is None:
            made = self.parts[key] = self._made(name)
        return made

    def _made(self, name: str) -> Shape:
        if self.form is Form.MAPPING:
            return Shape(self._node["additionalProperties"])
        node = self._node["properties"].get(name)
        if node is None:
            return OPEN if self._node.get(PRESERVES) else UNKNOWN
        if node.get(PRESERVES) and not node.get("properties"):
            return OPEN
        return Shape(node, shows=name not in _ALWAYS_THERE and _is_pointer(self._of, name))

    def key_of(self, item: Any) -> str:
        """The path element of an item of a list that is owned by key or by value."""
        if self.form is Form.SET:
            return f"v:{_text(item)}"
        if not isinstance(item, dict):
            return f"v:{_text(item)}"
        found = {key: item.get(key, self._defaults.get(key)) for key in sorted(self.keys)}
        return f"k:{_text({key: value for key, value in found.items() if value is not None})}"

    def keys_left_out(self, item: Any) -> list[str]:
        """The keys that an item neither says nor has by default."""
        if not isinstance(item, dict):
            return []
        return [key for key in self.keys if item.get(key) is None and self._defaults.get(key) is None]


def _text(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _form(node: Node) -> Form:
    kind = node.get("type")
    if kind == "array":
        how = node.get("x-kubernetes-list-type", "atomic")
        return {"map": Form.KEYED, "set": Form.SET}.get(how, Form.WHOLE)
    if kind != "object" or node.get("x-kubernetes-map-type") == "atomic":
        return Form.WHOLE
    if node.get("properties"):
        return Form.FIELDS
    return Form.MAPPING if isinstance(node.get("additionalProperties"), dict) else Form.WHOLE


UNKNOWN = Shape({"type": "string"})
OPEN = Shape({"type": "object", "additionalProperties": {}})
"""A place where a user's kind takes anything: mappings are owned by field, lists as a whole."""
OPEN.parts[""] = OPEN


@cache
def _codes(name: str) -> Mapping[str, str]:
    """The protobuf type of each field, which says what is a pointer."""
    found: dict[str, str] = {}
    for entry in document()["protobuf"].get(name, {}).values():
        field, _, code = entry.partition(":")
        if field:
            found[field] = code
        else:
            found |= _codes(code.lstrip("?@"))
    return found


def _is_pointer(of: str, name: str) -> bool:
    return not _codes(of).get(name, "?").startswith("@")


@cache
def shape(api_version: str, kind: str) -> Shape:
    """The shape of a kind.

    Raises:
        KeyError: the schema file does not have it.
    """
    return Shape({"$ref": f"#/$defs/{document()['kinds'][f'{api_version}/{kind}']}"})
