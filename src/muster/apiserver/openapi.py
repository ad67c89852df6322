"""OpenAPI documents of what is served: v3, one for each group and version, and v2 in one piece. JSON only.

Made from the reduced schema: names, types and how lists are merged, no descriptions but those of kinds below.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Any

import msgspec

from muster.api.calls import JSON, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH
from muster.api.catalog import Kind
from muster.apiserver.custom import documents
from muster.apiserver.custom.kinds import CustomKind
from muster.apiserver.schema import document

Json = dict[str, Any]

ROOT = "/openapi/v3"
V2 = "/openapi/v2"
APPLY_PATCH = "application/apply-patch+yaml"
TITLE = {"title": "Muster", "version": "v1.37.0"}
_V3, _V2 = "#/components/schemas/", "#/definitions/"
_GVK = "x-kubernetes-group-version-kind"
_SUBRESOURCE_KINDS = {
    "binding": ("", "v1", "Binding"),
    "eviction": ("policy", "v1", "Eviction"),
    "scale": ("autoscaling", "v1", "Scale"),
}
_METADATA = "apis.meta.v1.ObjectMeta"
_POSTED = ("binding", "eviction")
_DESCRIBED = {
    "Pod": "A group of containers that run together on one node.",
    "Node": "A machine that pods run on, with its labels, taints and resources.",
    "Namespace": "A space of names; deleting it deletes what is in it.",
    "Event": "Something that happened to an object, as the component that did it tells it.",
    "PriorityClass": "A name for a priority of pods and groups, and whether they may preempt others.",
    "Workload": "A template of the groups that an application consists of.",
    "PodGroup": "Pods that are scheduled as one: all that are needed, or none.",
    "CompositePodGroup": "A group of groups, scheduled as one.",
    "Job": "Runs pods until so many of them have succeeded.",
    "PodDisruptionBudget": "How many of some pods may be away at a time because someone chose so.",
    "CustomResourceDefinition": "A kind that a user defines: its names, versions and schemas.",
    "Lease": "Who holds something, and until when, for elections.",
}


def index(served: Sequence[Kind]) -> Json:
    """/openapi/v3: where the document of each group and version is; the address changes with its content."""
    paths = {}
    for root in sorted({_root(kind) for kind in served}):
        found = sha256(encoded(root, served)).hexdigest().upper()[:32]
        paths[root] = {"serverRelativeURL": f"{ROOT}/{root}?hash={found}"}
    return {"paths": paths}


def encoded(root: str, served: Iterable[Kind]) -> bytes:
    """The document of one group and version (`api/v1`, `apis/batch/v1`) as JSON text; empty if there is none."""
    here = tuple(kind for kind in served if _root(kind) == root)
    return _encoded(here) if here else b""


@lru_cache(maxsize=256)
def _encoded(here: tuple[Kind, ...]) -> bytes:
    paths = {path: item for kind in here for path, item in _paths(kind, _V3)}
    schemas = _definitions(here, _V3)
    made = {"openapi": "3.0.0", "info": TITLE, "paths": paths, "components": {"schemas": schemas}}
    return msgspec.json.encode(made)


def version_two(served: Sequence[Kind]) -> Json:
    """/openapi/v2: everything."""
    paths = {path: item for kind in served for path, item in _paths(kind, _V2)}
    return {"swagger": "2.0", "info": TITLE, "paths": paths, "definitions": _definitions(served, _V2)}


def _root(kind: Kind) -> str:
    return f"apis/{kind.group}/{kind.version}" if kind.group else f"api/{kind.version}"


# --- paths -------------------------------------------------------------------------------------------------------


def _paths(kind: Kind, refs: str) -> Iterator[tuple[str, Json]]:
    collection = kind.path("{namespace}" if kind.namespaced else None)
    own = (kind.group, kind.version, kind.kind)
    custom = isinstance(kind, CustomKind)
    whole = refs + (documents.name_of(kind) if isinstance(kind, CustomKind) else _full(_definition_of(kind)))
    space = [_parameter("namespace", refs)] if kind.namespaced else []
    if kind.asked:
        yield collection, {"post": _operation("post", own, refs, whole, body=[JSON]), "parameters": space}
        return
    yield (
        collection,
        {
            "get": _operation("list", own, refs, whole),
            "post": _operation("post", own, refs, whole, body=[JSON]),
            "delete": _operation("deletecollection", own, refs, whole),
            "parameters": space,
        },
    )
    if kind.namespaced:
        yield kind.path(None), {"get": _operation("list", own, refs, whole)}
    one = [_parameter("name", refs), *space]
    patches = [JSON_PATCH, MERGE_PATCH, *([] if custom else [STRATEGIC_PATCH]), APPLY_PATCH]
    changes = {
        "get": _operation("get", own, refs, whole),
        "put": _operation("put", own, refs, whole, body=[JSON]),
        "patch": _operation("patch", own, refs, whole, body=patches),
    }
    delete = _operation("delete", own, refs, whole)
    yield f"{collection}/{{name}}", {**changes, "delete": delete, "parameters": one}
    for name in kind.subresources:
        told = _SUBRESOURCE_KINDS.get(name, own)
        path = f"{collection}/{{name}}/{name}"
        if name in _POSTED:
            yield path, {"post": _operation("connect", told, refs, whole, body=[JSON]), "parameters": one}
        else:
            yield path, {**changes, "parameters": one}


def _operation(action: str, gvk: tuple[str, str, str], refs: str, schema: str, body: Sequence[str] = ()) -> Json:
    group, version, kind = gvk
    ok: Json = {"description": "OK"}
    if refs == _V3:
        ok["content"] = {JSON: {"schema": {"$ref": schema}}}
    else:
        ok["schema"] = {"$ref": schema}
    made: Json = {
        "x-kubernetes-action": action,
        _GVK: {"group": group, "version": version, "kind": kind},
        "responses": {"200": ok},
    }
    names = []
    if action in ("post", "put", "patch"):
        names = ["dryRun", "fieldManager", "fieldValidation"] + (["force"] if action == "patch" else [])
    elif action in ("list", "deletecollection"):
        names = ["labelSelector", "fieldSelector", "limit", "continue", "resourceVersion"]
    if names:
        made["parameters"] = [_parameter(name, refs) for name in names]
    if body and refs == _V3:
        made["requestBody"] = {"content": {form: {"schema": {"$ref": schema}} for form in body}}
    elif body:
        made["consumes"] = list(body)
    return made


def _parameter(name: str, refs: str) -> Json:
    typed = {"type": "boolean" if name == "force" else "integer" if name == "limit" else "string"}
    where: Json = {"in": "path", "required": True} if name in ("name", "namespace") else {"in": "query"}
    return {"name": name, **where, **({"schema": typed} if refs == _V3 else typed)}


# --- schemas -----------------------------------------------------------------------------------------------------


def _definition_of(kind: Kind) -> str:
    name: str = document()["kinds"][f"{kind.api_version}/{kind.kind}"]
    return name


def _full(name: str) -> str:
    """The name of a definition as Kubernetes writes it."""
    if name.startswith("apiextensions."):
        return f"io.k8s.apiextensions-apiserver.pkg.apis.{name}"
    outside = name.startswith(("apis.", "api.", "util.", "runtime."))
    return f"io.k8s.apimachinery.pkg.{name}" if outside else f"io.k8s.api.{name}"


def _definitions(kinds: Sequence[Kind], refs: str) -> Json:
    """The definitions of these kinds, and all that they reach."""
    known: Mapping[str, Any] = document()["$defs"]
    of = {_definition_of(kind): kind for kind in kinds if not isinstance(kind, CustomKind)}
    customs = [kind for kind in kinds if isinstance(kind, CustomKind)]
    of_others = {document()["kinds"]["v1/DeleteOptions"], *([_METADATA] if customs else [])}
    for kind in kinds:
        for name in kind.subresources:
            group, version, other = _SUBRESOURCE_KINDS.get(name, ("", "", ""))
            found = document()["kinds"].get(f"{group}/{version}/{other}".strip("/"))
            of_others |= {found} if found else set()
    at = refs + _full(_METADATA)
    made: Json = {documents.name_of(kind): documents.definition(kind, at, v2=refs == _V2) for kind in customs}
    wanted = [*of, *of_others]
    while wanted:
        name = wanted.pop()
        if _full(name) in made:
            continue
        made[_full(name)] = _shown(known[name], refs, wanted)
        if name in of:
            kind = of[name]
            made[_full(name)][_GVK] = [{"group": kind.group, "version": kind.version, "kind": kind.kind}]
            made[_full(name)]["description"] = _DESCRIBED.get(kind.kind, f"An object of kind {kind.kind}.")
    return dict(sorted(made.items()))


def _shown(node: Mapping[str, Any], refs: str, wanted: list[str]) -> Json:
    """A node of the reduced schema as OpenAPI has it."""
    made = {key: value for key, value in node.items() if key.startswith("x-")}
    if "$ref" in node:
        name = node["$ref"].removeprefix("#/$defs/")
        wanted.append(name)
        reference = {"$ref": refs + _full(name)}
        return {"allOf": [reference], **made} if made and refs == _V3 else {**reference, **made}
    form = node.get("format")
    if "type" not in node:
        return made
    if isinstance(node["type"], list):
        either: Json = {"oneOf": [{"type": "integer"}, {"type": "string"}]} if refs == _V3 else {"type": "string"}
        return {**made, **either, "format": "int-or-string"}
    made["type"] = node["type"]
    if form in ("date-time", "micro-time"):
        made["format"] = "date-time"
    elif form not in (None, "quantity"):
        made["format"] = form
    if "items" in node:
        made["items"] = _shown(node["items"], refs, wanted)
    values = node.get("additionalProperties")
    if isinstance(values, dict):
        made["additionalProperties"] = _shown(values, refs, wanted)
    if node.get("properties"):
        made["properties"] = {key: _shown(value, refs, wanted) for key, value in node["properties"].items()}
    return made
