"""Strategic merge patch: lists are merged by key, as the schema's x-kubernetes-patch-* say, with the $ directives.

Nothing is changed in place; the outcome shares with the original what the patch does not touch.
"""

from __future__ import annotations

from typing import Any

import msgspec

from muster.apiserver import status
from muster.apiserver.schema import Node, member, resolved

Json = dict[str, Any]

DIRECTIVE = "$patch"
RETAIN_KEYS = "$retainKeys"
DELETE_FROM = "$deleteFromPrimitiveList/"
SET_ORDER = "$setElementOrder/"


def strategic_merge(node: Node | None, original: Any, patch: Json) -> Any:
    """`original` (an object, or nothing) after `patch`. `node` is the schema there; None: plain merging.

    Raises:
        Failure: 400, the patch is malformed.
    """
    base: Json = original if isinstance(original, dict) else {}
    directive = patch.get(DIRECTIVE)
    if directive == "replace":
        return _undirected(patch)
    if directive == "delete":
        return {}
    if directive not in (None, "merge"):
        raise status.bad_request(f"$patch: want merge, replace or delete, not {directive!r}")
    made = _retained(base, patch)
    orders = {name.removeprefix(SET_ORDER): value for name, value in patch.items() if name.startswith(SET_ORDER)}
    for name, value in patch.items():
        if name.startswith(DELETE_FROM):
            _delete_from(made, name.removeprefix(DELETE_FROM), value)
    for name, value in patch.items():
        if name in (DIRECTIVE, RETAIN_KEYS) or name.startswith((DELETE_FROM, SET_ORDER)):
            continue
        if value is None:
            made.pop(name, None)
        else:
            _merge_field(made, name, member(node, name), value)
    for name, order in orders.items():
        _order(made, base.get(name), name, member(node, name), order, patch.get(name))
    return made


def _merge_field(made: Json, name: str, node: Node | None, value: Any) -> None:
    if isinstance(value, dict):
        if value.get(DIRECTIVE) == "delete":
            made.pop(name, None)
        else:
            made[name] = strategic_merge(node, made.get(name), value)
    elif isinstance(value, list):
        made[name] = _merge_list(node, made.get(name), value, name)
    else:
        made[name] = value


def _retained(base: Json, patch: Json) -> Json:
    keep = patch.get(RETAIN_KEYS)
    if keep is None:
        return dict(base)
    if not isinstance(keep, list):
        raise status.bad_request(f"{RETAIN_KEYS}: want an array of field names")
    missing = [name for name, value in patch.items() if name[0] != "$" and value is not None and name not in keep]
    if missing:
        raise status.bad_request(f"{RETAIN_KEYS} does not have what the patch sets: {', '.join(missing)}")
    return {name: value for name, value in base.items() if name in keep}


def _merge_list(node: Node | None, original: Any, patch: list[Any], name: str) -> list[Any]:
    base: list[Any] = original if isinstance(original, list) else []
    if any(_directed(item, "replace") for item in patch):
        return [_undirected(item) for item in patch if not _directed(item, "replace")]
    key, merges = _strategy(node)
    if not merges:
        return [_undirected(item) for item in patch]
    if key is None:
        united = list({_identity(item): item for item in (*base, *patch)}.values())
        return _arranged(united, base, patch, None)
    merged = _merge_by_key(node, base, patch, key, name)
    return _arranged(merged, base, [item for item in patch if not _directed(item, "delete")], key)


def _directed(item: Any, directive: str) -> bool:
    return isinstance(item, dict) and item.get(DIRECTIVE) == directive


def _identity(value: Any) -> bytes:
    """Something hashable that is equal for equal JSON values (of scalars; members of objects must agree in order)."""
    return msgspec.json.encode(value)


def _strategy(node: Node | None) -> tuple[str | None, bool]:
    """The merge key of a list (None for one of scalars), and whether it is merged at all."""
    if node is None:
        return None, False
    found = resolved(node)
    return found.get("x-kubernetes-patch-merge-key"), "merge" in found.get("x-kubernetes-patch-strategy", "").split(",")


def _merge_by_key(node: Node | None, base: list[Any], patch: list[Any], key: str, name: str) -> list[Any]:
    assert node is not None
    items = resolved(node)["items"]
    made: dict[bytes, Any] = {_key_of(item, key, index): item for index, item in enumerate(base)}
    for item in patch:
        if not isinstance(item, dict) or key not in item:
            raise status.bad_request(f"an item of {name} does not have the merge key {key!r}")
        at = _key_of(item, key, 0)
        if _directed(item, "delete"):
            made.pop(at, None)
        else:
            made[at] = strategic_merge(items, made.get(at), item)
    return list(made.values())


def _key_of(item: Any, key: str, index: int) -> bytes:
    """What an item is merged by; a stored item without the key is merged with nothing."""
    return _identity(item[key]) if isinstance(item, dict) and key in item else b"#%d" % index


def _delete_from(made: Json, name: str, values: Any) -> None:
    """`$deleteFromPrimitiveList/<field>`: takes these scalars out of the list."""
    if not isinstance(values, list):
        raise status.bad_request(f"{DELETE_FROM}{name}: want an array of values")
    present = made.get(name)
    if isinstance(present, list):
        unwanted = {_identity(value) for value in values}
        made[name] = [item for item in present if _identity(item) not in unwanted]


def _order(made: Json, base: Any, name: str, node: Node | None, order: Any, patch: Any) -> None:
    """`$setElementOrder/<field>`: these come in this order; others stay before those that they came before."""
    if not isinstance(order, list):
        raise status.bad_request(f"{SET_ORDER}{name}: want an array")
    items = made.get(name)
    if not isinstance(items, list):
        return
    key = _strategy(node)[0]
    named = {_place(entry, key) for entry in order}
    for item in patch if isinstance(patch, list) else ():
        if _place(item, key) not in named and not _directed(item, "delete") and not _directed(item, "replace"):
            raise status.bad_request(f"{SET_ORDER}{name} does not name every item of {name} that the patch has")
    made[name] = _arranged(items, base if isinstance(base, list) else [], order, key)


def _place(item: Any, key: str | None) -> bytes:
    """What tells an item from others."""
    return _identity(item.get(key) if key is not None and isinstance(item, dict) else item)


def _arranged(items: list[Any], base: list[Any], order: list[Any], key: str | None) -> list[Any]:
    """`items` with those of `order` in that order, and each other one before the first of them that it came before.

    What `base`, the list as it was, does not have comes as early as the order allows.
    """
    rank = {_place(entry, key): index for index, entry in enumerate(order)}
    was = {_place(entry, key): index for index, entry in enumerate(base)}
    named = sorted((item for item in items if _place(item, key) in rank), key=lambda item: rank[_place(item, key)])
    others = [item for item in items if _place(item, key) not in rank]
    others.sort(key=lambda item: was.get(_place(item, key), len(was)))
    made: list[Any] = []
    for item in named:
        here = was.get(_place(item, key))
        while here is not None and others and was.get(_place(others[0], key), len(was)) < here:
            made.append(others.pop(0))
        made.append(item)
    return made + others


def _undirected(value: Any) -> Any:
    """A value without directives and nulls: what a patch adds where there was nothing to merge with."""
    if isinstance(value, dict):
        return {
            name: _undirected(inner)
            for name, inner in value.items()
            if inner is not None and not name.startswith(("$patch", "$retainKeys", "$deleteFrom", "$setElementOrder"))
        }
    if isinstance(value, list):
        return [_undirected(item) for item in value]
    return value
