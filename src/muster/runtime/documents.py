"""Reads YAML and JSON files that people write: several documents, where each begins, and what is wrong with it.

Only `true` and `false` are booleans, times stay text, and a key given twice is an error instead of a silent choice.
"""

from __future__ import annotations

import math
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


MOST_LEVELS = 100
"""How deep a document may be nested."""
MOST_BY_ALIASES = 3_000_000
"""How many characters the aliases of one document may stand for: about as many as a server takes in one body."""

_TAG = "tag:yaml.org,2002:"
_TRUTH = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}


class _Loader(yaml.SafeLoader):
    """YAML 1.1 without its surprises, and without values that JSON has not: `on`, `no`, `=` and 2026-11-30 are text."""


class _Extent(NamedTuple):
    """How large the value of a node is once every alias is replaced by what it stands for."""

    characters: int
    levels: int


class _Survey:
    """One look at a composed document before anything is built: its keys, and how far its aliases reach."""

    def __init__(self) -> None:
        self._extents: dict[int, _Extent | None] = {}
        """By identity; None while the node is being looked at."""
        self._written = 0

    def check(self, root: yaml.Node) -> None:
        """Refuses keys that are given twice or are no text, endless or very deep values, and the billion laughs."""
        if self._extent(root).characters - self._written > MOST_BY_ALIASES:
            raise _refusal(f"its aliases stand for more than {MOST_BY_ALIASES} characters; write less of it", root)

    def _extent(self, node: yaml.Node) -> _Extent:
        if id(node) in self._extents:
            known = self._extents[id(node)]
            if known is None:
                raise _refusal("an alias leads back to itself; write the value out", node)
            return known
        self._extents[id(node)] = None
        own, parts = self._parts(node)
        extents = [self._extent(part) for part in parts]
        levels = 1 + max((extent.levels for extent in extents), default=0)
        if levels > MOST_LEVELS:
            raise _refusal(f"nested too deep; at most {MOST_LEVELS} levels", node)
        self._written += own
        found = _Extent(own + sum(extent.characters for extent in extents), levels)
        self._extents[id(node)] = found
        return found

    def _parts(self, node: yaml.Node) -> tuple[int, list[yaml.Node]]:
        """The characters that a node has itself, and the nodes in it."""
        if isinstance(node, yaml.MappingNode):
            _check_keys(node)
            return 1 + sum(len(key.value) for key, _ in node.value), [value for _, value in node.value]
        if isinstance(node, yaml.SequenceNode):
            return 1, node.value
        return 1 + len(node.value), []


def _check_keys(node: yaml.MappingNode) -> None:
    seen: dict[str, int] = {}
    for key, _ in node.value:
        if key.tag == f"{_TAG}merge":  # what `<<` brings may be given again
            continue
        if key.tag != f"{_TAG}str" or not isinstance(key, yaml.ScalarNode):
            shown = f"key {key.value}" if isinstance(key, yaml.ScalarNode) else "a key"
            raise _refusal(f"{shown} must be text; put it in quotes", key)
        if key.value in seen:
            raise _refusal(f'key "{key.value}" is given twice (line {seen[key.value]} too); keep one', key)
        seen[key.value] = key.start_mark.line + 1


def _refusal(problem: str, node: yaml.Node) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)


def _boolean(loader: _Loader, node: yaml.ScalarNode) -> bool:
    word = loader.construct_scalar(node)
    if word not in _TRUTH:
        raise _refusal(f"{_short(word)} is no boolean; write true or false", node)
    return _TRUTH[word]


def _number(loader: _Loader, node: yaml.ScalarNode) -> float:
    whole = node.tag == f"{_TAG}int"
    try:
        number: float = loader.construct_yaml_int(node) if whole else loader.construct_yaml_float(node)
    except (ValueError, IndexError):
        raise _refusal(f"{_short(node.value)} is no number, or has too many digits", node) from None
    if not whole and not math.isfinite(number):
        raise _refusal(f"{_short(node.value)} is no number that JSON has; put it in quotes if it is text", node)
    return number


def _string(loader: _Loader, node: yaml.ScalarNode) -> str:
    """Text in which a character of two escapes, as JSON has them, is one."""
    text = str(loader.construct_scalar(node))
    try:
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise _refusal("half of a surrogate pair (\\ud800 to \\udfff); write the character itself", node) from None


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:40]}...")


_Loader.yaml_implicit_resolvers = {
    first: [(tag, rule) for tag, rule in rules if not tag.endswith((":timestamp", ":bool", ":value"))]
    for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(f"{_TAG}bool", re.compile("^(?:" + "|".join(_TRUTH) + ")$"), list("tTfF"))
_Loader.yaml_constructors = {
    f"{_TAG}null": yaml.SafeLoader.construct_yaml_null,
    f"{_TAG}bool": _boolean,
    f"{_TAG}int": _number,
    f"{_TAG}float": _number,
    f"{_TAG}str": _string,
    f"{_TAG}seq": yaml.SafeLoader.construct_yaml_seq,
    f"{_TAG}map": yaml.SafeLoader.construct_yaml_map,
    None: yaml.SafeLoader.construct_undefined,
}


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
            if node is None:
                continue
            _Survey().check(node)
            value = loader.construct_document(node)
            if value is not None:
                found.append(Document(value, f"{name}:{node.start_mark.line + 1}"))
        return found
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f":{mark.line + 1}" if mark else ""
        raise DocumentError(f"{name}{line}: {error.problem or error.context}") from None
    except RecursionError:
        raise DocumentError(f"{name}: nested too deep; at most {MOST_LEVELS} levels") from None
    except (yaml.YAMLError, ValueError) as error:
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
