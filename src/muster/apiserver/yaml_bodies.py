"""Bodies in YAML: what JSON could say too, in time that grows with their length."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import yaml

from muster.apiserver import decode, status

__all__ = ["value_of"]

MOST_NODES = 100_000
"""Scalars, lists and maps in one body: about a second's work, and more than objects within the size limit have."""
_TAG = "tag:yaml.org,2002:"
_EXPLICIT = {None, "!", _TAG + "str", _TAG + "map", _TAG + "seq"}
_NUMBERS = {
    _TAG + "int": re.compile(r"^[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|0[0-7_]*|[1-9][0-9_]*)$"),
    _TAG + "float": re.compile(
        r"^(?:[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+]?[0-9]+)?|[-+]?\.[0-9][0-9_]*(?:[eE][-+]?[0-9]+)?"
        r"|[-+]?[0-9][0-9_]*[eE][-+]?[0-9]+)$"
    ),
}


def _loader() -> Any:
    """YAML as JSON could have it: times stay text, and so do numbers to base 60."""
    fast: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    resolvers = {
        first: [(tag, _NUMBERS.get(tag, form)) for tag, form in pairs if tag != _TAG + "timestamp"]
        for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    return type("_Loader", (fast,), {"yaml_implicit_resolvers": resolvers})


_LOADER = _loader()


def value_of(text: bytes) -> Any:
    """The value that a body in YAML has.

    Raises:
        Failure: 400; it is no YAML, or more than JSON can say, or too much.
    """
    try:
        _look_through(text)
        value = yaml.load(text, _LOADER)
    except (yaml.YAMLError, ValueError, RecursionError) as failure:
        raise status.bad_request(f"error decoding YAML: {str(failure).splitlines()[0]}") from None
    try:
        return decode.from_bytes(msgspec.json.encode(value))
    except (TypeError, ValueError, OverflowError, RecursionError):
        raise status.bad_request("error decoding YAML: it is more than JSON can say") from None


def _look_through(text: bytes) -> None:
    """Refuses, before anything is made of it, what would take long or grow."""
    depth = nodes = 0
    for event in yaml.parse(text, _LOADER):
        if isinstance(event, yaml.AliasEvent):
            raise status.bad_request("the body uses YAML aliases, which are not served here")
        if isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if not isinstance(event, yaml.NodeEvent):
            continue
        nodes += 1
        depth += isinstance(event, yaml.CollectionStartEvent)
        if depth > decode.MAX_DEPTH:
            raise decode.nested_too_deep()
        if nodes > MOST_NODES:
            raise status.bad_request(f"error decoding YAML: the body has more than {MOST_NODES} values")
        if getattr(event, "tag", None) not in _EXPLICIT:
            raise status.bad_request("error decoding YAML: it is more than JSON can say")
