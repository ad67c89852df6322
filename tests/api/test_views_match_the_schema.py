"""Every field of the typed views is a field of the v1.37 schema, of a type that fits: no misspelt name stays unread."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from muster.api import catalog
from muster.api.definitions import SchemaProps
from muster.api.meta import Condition
from muster.apiserver.schema import member, resolved, schema

TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", dict: "object", tuple: "array"}


def problems(struct: type[msgspec.Struct], node: Any, path: str) -> Iterator[str]:
    hints = typing.get_type_hints(struct)
    for name, encoded in zip(struct.__struct_fields__, struct.__struct_encode_fields__, strict=True):
        at = f"{path}.{encoded}"
        found = member(node, encoded)
        if found is None and struct is Condition and name == "observed_generation":
            continue  # conditions of nodes and Jobs have none; one view serves all
        if found is None:
            yield f"{at} is unknown"
        else:
            yield from mismatch(hints[name], resolved(found), at)


def mismatch(hint: Any, node: Any, path: str) -> Iterator[str]:
    """What of a field's type differs from the schema's."""
    options = typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)
    options = tuple(option for option in options if option is not type(None))
    if len(options) > 1:
        return  # quantities and counts-or-percentages: a union in the schema too
    (option,) = options
    origin = typing.get_origin(option) or option
    if isinstance(origin, type) and issubclass(origin, msgspec.Struct):
        if path.count(".") < (5 if origin is SchemaProps else 14):  # a schema has schemas inside
            yield from problems(origin, node, path)
        return
    if origin is Any:
        return
    if TYPES[origin] != node["type"]:
        yield f"{path} is {node['type']}, read as {origin.__name__}"
    elif origin is tuple:
        yield from mismatch(typing.get_args(option)[0], resolved(node["items"]), f"{path}[]")


@pytest.mark.parametrize("kind", catalog.KINDS, ids=lambda kind: kind.kind)
def test_the_view_of_a_kind_reads_fields_that_exist(kind: catalog.Kind) -> None:
    assert list(problems(kind.struct, schema(kind.api_version, kind.kind).root, kind.kind)) == []


@pytest.mark.parametrize(
    "kind", [catalog.WORKLOAD, catalog.POD_GROUP, catalog.COMPOSITE_POD_GROUP], ids=lambda k: k.kind
)
def test_the_views_of_groups_read_every_field_of_the_spec(kind: catalog.Kind) -> None:
    spec = resolved(member(schema(kind.api_version, kind.kind).root, "spec") or {})
    read = typing.get_type_hints(kind.struct)["spec"].__struct_encode_fields__
    assert set(spec["properties"]) == set(read)
