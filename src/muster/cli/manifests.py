"""Manifests from files and standard input, checked as far as a client can: which object, of which kind, where."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from muster.api import catalog, definitions
from muster.cli.failure import USAGE, Failure, not_a_segment
from muster.cli.kinds import known
from muster.cli.printing import label
from muster.runtime import documents
from muster.runtime.documents import Document, DocumentError

Find = Callable[[str, str], catalog.Kind]
"""apiVersion and kind to the kind.

Raises:
    ValueError: there is none.
"""
STRICT = {"fieldValidation": "Strict"}
"""Query of a write that refuses fields the kind does not have."""


class Manifest(NamedTuple):
    kind: catalog.Kind
    namespace: str
    name: str
    """"" for one that asks for a generated name."""
    body: Mapping[str, Any]
    source: str

    @property
    def label(self) -> str:
        """What people call it: `podgroup.scheduling.k8s.io/training`."""
        return label(self.kind, self.name)


def load(files: Sequence[str], namespace: str, find: Find = known) -> list[Manifest]:
    """Every object of the files, in order; the items of a List one by one.

    `find` says what kind an object is of; kinds that the files define themselves count as well.

    Raises:
        Failure: names the file, the line or field, and what to change.
    """
    if not files:
        raise Failure("-f FILE is missing: name a manifest file, a directory, or - for standard input", USAGE)
    try:
        found = [document for name in files for document in _documents(name)]
    except DocumentError as error:
        raise Failure(str(error)) from None
    parts = [part for document in found for part in _parts(document)]
    find = _with_defined(parts, find)
    manifests = [manifest(part, namespace, find) for part in parts]
    if not manifests:
        raise Failure(f"{', '.join(files)}: no object in there; a manifest has apiVersion, kind and metadata")
    return manifests


def _with_defined(parts: Sequence[Document], find: Find) -> Find:
    """Also knows the kinds of the CustomResourceDefinitions among these objects, as far as those can be read."""
    defined: dict[tuple[str, str], catalog.Kind] = {}
    for part in parts:
        with contextlib.suppress(msgspec.ValidationError):
            given = msgspec.convert(part.value, _Definition)
            group, names = given.spec.group, given.spec.names
            namespaced = given.spec.scope == "Namespaced"
            for version in given.spec.versions:
                struct, single = definitions.CustomObject, names.singular or names.kind.lower()
                kind = catalog.Kind(names.kind, group, version.name, names.plural, single, struct, (), namespaced)
                defined[kind.api_version, kind.kind] = kind

    def found(api_version: str, kind: str) -> catalog.Kind:
        return defined.get((api_version, kind)) or find(api_version, kind)

    return found


class _Names(msgspec.Struct):
    plural: str
    kind: str
    singular: str = ""


class _Version(msgspec.Struct):
    name: str


class _Spec(msgspec.Struct):
    group: str
    names: _Names
    versions: list[_Version]
    scope: str = ""


class _Definition(msgspec.Struct, tag_field="kind", tag="CustomResourceDefinition"):
    """What a definition says of names; the server checks the rest."""

    spec: _Spec


def manifest(document: Document, namespace: str, find: Find = known) -> Manifest:
    """One object, of a kind that Muster serves and with a name.

    Raises:
        Failure: names the field and what to change.
    """
    body, source = document
    if not isinstance(body, dict):
        raise Failure(f"{source}: an object with apiVersion, kind and metadata is wanted, not {_what(body)}")
    for field, example in (("apiVersion", "scheduling.k8s.io/v1beta1"), ("kind", "PodGroup")):
        if not isinstance(body.get(field), str) or not body[field]:
            raise Failure(f"{source}: {field}: missing or no text; give for example {example}")
    try:
        kind = find(body["apiVersion"], body["kind"])
    except ValueError as error:
        raise Failure(f"{source}: {error}") from None
    meta = body.get("metadata")
    if not isinstance(meta, dict):
        raise Failure(f"{source}: metadata: missing or no mapping; give for example metadata: {{name: training}}")
    name = meta.get("name")
    if name is not None and not isinstance(name, str):
        raise Failure(f"{source}: metadata.name: {name!r} must be text; put it in quotes")
    if name and not_a_segment(name):
        raise Failure(f"{source}: metadata.name: {not_a_segment(name)}")
    if not name and not meta.get("generateName"):
        raise Failure(f"{source}: metadata.name: missing; give the object a name, or a generateName")
    return Manifest(kind, _namespace(meta, namespace, source) if kind.namespaced else "", name or "", body, source)


def _namespace(meta: Mapping[str, Any], default: str, source: str) -> str:
    namespace = meta.get("namespace", default)
    if not isinstance(namespace, str) or not namespace:
        raise Failure(f"{source}: metadata.namespace: {namespace!r} must be text; put it in quotes, or leave it out")
    if not_a_segment(namespace):
        raise Failure(f"{source}: metadata.namespace: {not_a_segment(namespace)}")
    return namespace


def _documents(name: str) -> list[Document]:
    if name == "-":
        return documents.parse(standard_input(), "standard input")
    if "://" in name:
        raise DocumentError(
            f"-f {name}: files only, no addresses; fetch it first (curl -sSO {name}), then name the file"
        )
    return documents.read(Path(name))


def standard_input() -> str:
    """All of it.

    Raises:
        DocumentError: it is closed, or no text.
    """
    if sys.stdin is None:
        raise DocumentError("standard input: closed; name a file, or send the manifest there")
    try:
        return sys.stdin.read()
    except UnicodeDecodeError:
        raise DocumentError("standard input: not UTF-8 text; send UTF-8") from None
    except OSError as error:
        raise DocumentError(f"standard input: {error.strerror or error}") from None


def _parts(document: Document) -> list[Document]:
    """The items of a List, or of a list of one kind as the API answers it (PodList), whose items may leave that out."""
    body = document.value
    kind = body.get("kind") if isinstance(body, dict) else None
    if not isinstance(kind, str) or not kind.endswith("List") or not isinstance(body.get("items"), list):
        return [document]
    told = {} if kind == "List" else {"apiVersion": body.get("apiVersion"), "kind": kind.removesuffix("List")}
    return [
        Document({**told, **item} if isinstance(item, dict) else item, f"{document.source} items[{i}]")
        for i, item in enumerate(body["items"])
    ]


def _what(value: Any) -> str:
    return {list: "a list", str: "text", int: "a number", float: "a number", bool: "a boolean"}.get(type(value), "this")
