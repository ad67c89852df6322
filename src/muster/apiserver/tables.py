"""Other forms of an answer that a client asks for in Accept: as a Table, or as metadata alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from muster.api.calls import JSON, Response
from muster.apiserver import ownership, status
from muster.apiserver.cells import GENERIC
from muster.apiserver.columns import KINDS
from muster.apiserver.custom.columns import columns as custom_columns
from muster.apiserver.custom.kinds import CustomKind
from muster.apiserver.log import Raw, WatchEvent
from muster.apiserver.sheet import Column, Sheet
from muster.apiserver.state import Call
from muster.apiserver.watch import BOOKMARK, Watch

Json = dict[str, Any]

META = "meta.k8s.io"
TABLE, PARTIAL, PARTIAL_LIST = "Table", "PartialObjectMetadata", "PartialObjectMetadataList"
_ANY = (JSON, "*/*", "application/*")
_TOLD = ("None", "Metadata", "Object")


@dataclass(frozen=True, slots=True)
class Form:
    """What a client accepts: `name` is "" for the objects themselves, or TABLE, PARTIAL, PARTIAL_LIST."""

    name: str = ""
    version: str = ""


PLAIN = Form()


def accepted(accept: str) -> Form | None:
    """The first form in an Accept header that is served; None if there is none."""
    for clause in accept.split(","):
        media_type, *rest = (part.strip() for part in clause.split(";"))
        if media_type.lower() not in _ANY:
            continue
        parameters = dict(part.partition("=")[::2] for part in rest)
        name, version = parameters.get("as", ""), parameters.get("v", "")
        if not name or name.endswith("DiscoveryList"):
            return PLAIN
        if name in (TABLE, PARTIAL, PARTIAL_LIST) and parameters.get("g") == META and version in ("v1", "v1beta1"):
            return Form(name, version)
    return None


def shaped(call: Call, form: Form, made: Response | Watch) -> Response | Watch:
    """An answer in the form that was asked for; failures stay as they are."""
    if isinstance(made, Watch):
        made.shape = _events(call, form)
        return made
    body = made.body
    if not made.ok or not isinstance(body, Mapping) or body.get("kind") == "Status":
        return made
    return Response(made.status, _shaped_body(call, form, body), made.headers)


def _shaped_body(call: Call, form: Form, body: Raw) -> Json:
    items = body.get("items")
    if form.name == TABLE:
        return _table(call, form, [body] if items is None else items, _list_meta(body))
    if items is None:
        if form.name != PARTIAL:
            raise status.not_acceptable(f"as={form.name} of one object")
        return _partial(body, form.version)
    if form.name != PARTIAL_LIST:
        raise status.not_acceptable(f"as={form.name} of a list")
    partial = [_partial(raw, form.version) for raw in items]
    return {
        "kind": PARTIAL_LIST,
        "apiVersion": f"{META}/{form.version}",
        "metadata": body["metadata"],
        "items": partial,
    }


def _list_meta(body: Raw) -> Json:
    meta = body.get("metadata") or {}
    keys = ("resourceVersion", "continue", "remainingItemCount")
    return {key: meta[key] for key in keys if key in meta}


def _partial(raw: Raw, version: str) -> Json:
    return {"kind": PARTIAL, "apiVersion": f"{META}/{version}", "metadata": ownership.dressed(raw)["metadata"]}


def _row_object(raw: Raw, version: str) -> Json:
    """Rows go without managed fields, which nobody looks for there."""
    meta = ownership.bare(raw["metadata"])
    return {"kind": PARTIAL, "apiVersion": f"{META}/{version}", "metadata": meta}


def _columns(call: Call) -> tuple[Column, ...]:
    if isinstance(call.kind, CustomKind):
        return custom_columns(call.kind)
    return KINDS.get((call.kind.group, call.kind.kind), GENERIC)


def _table(call: Call, form: Form, items: Iterable[Raw], meta: Json, *, defined: bool = True) -> Json:
    columns, sheet = _columns(call), Sheet(call.store, call.now)
    row = _rows(call, form, columns, sheet)
    made: Json = {"kind": TABLE, "apiVersion": f"{META}/{form.version}", "metadata": meta}
    made["columnDefinitions"] = [_definition(column) for column in columns] if defined else None
    return {**made, "rows": [row(raw) for raw in items]}


def _definition(column: Column) -> Json:
    form = column.format or ("name" if column.name == "Name" else "")
    about = {"name": column.name, "type": column.type, "format": form, "description": column.description}
    return {**about, "priority": column.priority}


def _rows(call: Call, form: Form, columns: tuple[Column, ...], sheet: Sheet) -> Callable[[Raw], Json]:
    told = call.request.query.get("includeObject") or "Metadata"
    if told not in _TOLD:
        raise status.bad_request(f"includeObject: Unsupported value: {told!r}: supported values: {', '.join(_TOLD)}")

    def row(raw: Raw) -> Json:
        made: Json = {"cells": [column.cell(raw, sheet) for column in columns]}
        if told == "None":
            return {**made, "object": None}
        return {**made, "object": ownership.dressed(raw) if told == "Object" else _row_object(raw, form.version)}

    return row


def _events(call: Call, form: Form) -> Callable[[WatchEvent], Raw]:
    """The object of a watch event in this form. Only the first table says what its columns are."""
    if form.name != TABLE:
        return lambda event: _partial(event.object, form.version)
    told = False
    _rows(call, form, (), Sheet(call.store, call.now))  # refuses what it has to before the stream begins

    def table(event: WatchEvent) -> Raw:
        nonlocal told
        first, told = not told, True
        meta = {"resourceVersion": event.object["metadata"]["resourceVersion"]}
        return _table(
            call, form, () if event.type == BOOKMARK else (call.kind.shown(event.object),), meta, defined=first
        )

    return table
