"""`muster build`: the scheduling objects of manifests, why they are so, and errors at the line that caused them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from muster.cli.failure import FAILED, USAGE, Failure, complain
from muster.cli.manifests import standard_input
from muster.runtime import documents
from muster.runtime.documents import Document, DocumentError
from muster.workloadbuilder.adapters.known import ADAPTERS, adapter_of, compile_manifest
from muster.workloadbuilder.adapters.view import UNKNOWN_UID, Compiled, Made
from muster.workloadbuilder.materialize import BuildError

STANDARD_INPUT = "standard input"


class Part(NamedTuple):
    """One object of a file."""

    body: Mapping[str, Any]
    source: str
    within: str
    """Path of the object in its document: of an item of a List `items[2]`, else nothing."""


def build(files: Sequence[str], namespace: str, output: str, explain: bool) -> int:
    """Prints what comes of each supported object of the files; exit 1 if there is an error in one."""
    if output not in ("yaml", "json"):
        raise Failure(f"--output: {output!r} is neither yaml nor json", USAGE)
    parts, texts = _load(files)
    bodies = [part.body for part in parts]
    known = [part for part in parts if adapter_of(part.body) is not None]
    if not known:
        kinds = ", ".join(kind for _, kind in ADAPTERS)
        raise Failure(f"{', '.join(files)}: no object that is scheduled in groups; supported kinds: {kinds}")
    compiled = [(part, _compile(part, bodies, namespace)) for part in known]
    wrong = [line for part, result in compiled for line in _errors(part, result, texts)]
    if wrong:
        for line in wrong:
            complain(line)
        return FAILED
    _print([result for _, result in compiled], [part for part, _ in compiled], output, explain)
    return 0


def _compile(part: Part, bodies: Sequence[Mapping[str, Any]], namespace: str) -> Compiled:
    try:
        return compile_manifest(part.body, bodies, namespace)
    except BuildError as error:
        raise Failure(f"{part.source}: {error}") from None


def _load(files: Sequence[str]) -> tuple[list[Part], dict[str, str]]:
    if not files:
        raise Failure("-f FILE is missing: name a manifest file, a directory, or - for standard input", USAGE)
    texts: dict[str, str] = {}
    found: list[Document] = []
    try:
        for name in files:
            if name == "-":
                texts[STANDARD_INPUT] = standard_input()
                found += documents.parse(texts[STANDARD_INPUT], STANDARD_INPUT)
            else:
                found += documents.read(Path(name))
    except DocumentError as error:
        raise Failure(str(error)) from None
    parts = [part for document in found for part in _parts(document)]
    for part in parts:
        if not isinstance(part.body, Mapping):
            raise Failure(f"{part.source}: an object with apiVersion, kind and metadata is wanted")
    return parts, texts


def _parts(document: Document) -> list[Part]:
    body = document.value
    if isinstance(body, Mapping) and body.get("kind") == "List" and isinstance(body.get("items"), list):
        return [Part(item, document.source, f"items[{index}]") for index, item in enumerate(body["items"])]
    return [Part(body, document.source, "")]


def _errors(part: Part, result: Compiled, texts: Mapping[str, str]) -> list[str]:
    name, _, first = part.source.rpartition(":")
    lines = []
    for error in result.errors:
        field = f"{part.within}.{error.field}" if part.within else error.field
        lines.append(f"{name}:{line_of(_text(name, texts), int(first), field)}: {field}: {error.body}")
    return lines


def _text(name: str, texts: Mapping[str, str]) -> str:
    return texts[name] if name in texts else Path(name).read_text(encoding="utf-8")


def line_of(text: str, first: int, field: str) -> int:
    """The line (from 1) of a field of the document that begins in line `first`, or of its nearest parent there."""
    for node in yaml.compose_all(text, Loader=yaml.SafeLoader):
        if node is not None and node.start_mark.line + 1 == first:
            return _line(node, _steps(field))
    return first


def _steps(field: str) -> list[str]:
    """`spec.a[0].annotations[x.y/z]` in steps."""
    return [bracket or name for bracket, name in re.findall(r"\[([^\]]*)\]|([^.\[\]]+)", field)]


def _line(node: yaml.Node, steps: list[str]) -> int:
    line = node.start_mark.line + 1
    for step in steps:
        if isinstance(node, yaml.MappingNode):
            entry = next(((key, value) for key, value in node.value if key.value == step), None)
            if entry is None:
                return line
            line, node = entry[0].start_mark.line + 1, entry[1]
        elif isinstance(node, yaml.SequenceNode) and step.isdigit() and int(step) < len(node.value):
            node = node.value[int(step)]
            line = node.start_mark.line + 1
    return line


def _print(results: Sequence[Compiled], parts: Sequence[Part], output: str, explain: bool) -> None:
    if output == "json":
        items = [body for result in results for body in result.objects]
        print(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, indent=2))
    for part, result in zip(parts, results, strict=True):
        said = _about(part, result) if explain or not result.made else []
        if output == "json":
            reasons = [f"{made.body['metadata']['name']}: {line}" for made in result.made for line in _reasons(made)]
            for line in [*said, *(reasons if explain else ())]:
                complain(line)
            continue
        for line in said:
            print(f"# {line}")
        for made in result.made:
            print("---")
            for line in _reasons(made) if explain else ():
                print(f"# {line}")
            print(yaml.safe_dump(made.body, sort_keys=False, width=120), end="")


def _reasons(made: Made) -> list[str]:
    return [made.why] if made.pods is None else [made.why, f"its pods: {json.dumps(made.pods)}"]


def _about(part: Part, result: Compiled) -> list[str]:
    meta = part.body["metadata"]
    called = f"{part.source}: {part.body['kind']} {meta['name']}"
    lines = [f"{called}: {note}" for note in result.notes]
    if not result.made:
        return [f"{called}: no groups: {result.nothing}", *lines]
    if not meta.get("uid"):
        lines.append(f"{called}: it has no uid yet; the hash in the names is that of {UNKNOWN_UID}")
    return lines
