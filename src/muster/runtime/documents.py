"""Reads YAML and JSON files that people write: several documents, where each begins, and what is wrong with it.

Only `true` and `false` are booleans, times stay text, and a key given twice is an error instead of a silent choice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

SUFFIXES = (".yaml", ".yml", ".json")


class DocumentError(ValueError):
    """A file that cannot be read: `jobs.yaml:12: ...`."""


class Document(NamedTuple):
    value: Any
    source: str
    """File name and line of the document's first line: `jobs.yaml:12`."""


_MERGE = "tag:yaml.org,2002:merge"
"""The key `<<`: what it brings may be given again."""


class _Loader(yaml.SafeLoader):
    """YAML 1.1 without its surprises: `on`, `no` and 2026-11-30 are text."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: dict[Any, int] = {}
        for key_node, _ in node.value:
            if key_node.tag == _MERGE:
                continue
            key, mark = self.construct_object(key_node, deep=True), key_node.start_mark
            if not isinstance(key, str):
                raise yaml.MarkedYAMLError(problem=f"key {key!r} must be text; put it in quotes", problem_mark=mark)
            if key in seen:
                twice = f'key "{key}" is given twice (line {seen[key]} too); keep one'
                raise yaml.MarkedYAMLError(problem=twice, problem_mark=mark)
            seen[key] = mark.line + 1
        return super().construct_mapping(node, deep)


_Loader.yaml_implicit_resolvers = {
    first: [(tag, rule) for tag, rule in rules if not tag.endswith((":timestamp", ":bool"))]
    for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_TRUTH = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}


def _boolean(loader: _Loader, node: yaml.ScalarNode) -> bool:
    return _TRUTH[node.value]


_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("^(?:" + "|".join(_TRUTH) + ")$"), list("tTfF"))
_Loader.add_constructor("tag:yaml.org,2002:bool", _boolean)


def parse(text: str, name: str) -> list[Document]:
    """The documents of one text; empty ones are left out.

    Raises:
        DocumentError: names the file, the line and what to change.
    """
    try:
        loader = _Loader(text)
        found = []
        while loader.check_node():
            node = loader.get_node()
            value = None if node is None else loader.construct_document(node)
            if node is not None and value is not None:
                found.append(Document(value, f"{name}:{node.start_mark.line + 1}"))
        return found
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f":{mark.line + 1}" if mark else ""
        raise DocumentError(f"{name}{line}: {error.problem or error.context}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise DocumentError(f"{name}: not YAML or JSON: {str(error).splitlines()[0]}") from None


def read(path: Path) -> list[Document]:
    """The documents of a file, or of every YAML and JSON file of a directory, by name.

    Raises:
        DocumentError: the file is missing, unreadable or malformed, or the directory has no such file.
    """
    return [document for file in _files(path) for document in parse(_text(file), str(file))]


def _files(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    found = sorted(file for file in path.iterdir() if file.suffix in SUFFIXES and file.is_file())
    if not found:
        raise DocumentError(f"{path}: no {', '.join(SUFFIXES)} file in this directory")
    yield from found


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise DocumentError(f"{path}: no such file or directory") from None
    except UnicodeDecodeError:
        raise DocumentError(f"{path}: not UTF-8 text; save it as UTF-8") from None
    except OSError as error:
        raise DocumentError(f"{path}: {error.strerror}") from None
