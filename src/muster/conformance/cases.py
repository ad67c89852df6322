"""Case files: found, read and checked as far as the runner relies on it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

AREAS = (
    "gang", "queue", "basic", "preemption", "topology", "composite", "dra", "resize", "elastic", "affinity", "volumes",
    "validation", "builder", "core", "field", "search",
)  # fmt: skip
ACTIONS = (
    "create", "expect", "delete", "patch", "status", "advance", "restart", "pause", "resume", "refuse", "termination",
    "reject",
)  # fmt: skip
_KEYS = frozenset(
    ("name", "area", "about", "strict", "kube", "beyond", "needs", "levels", "source", "gates", "since", "until",
     "profile", "priorityAdmission", "volumes", "apps", "steps", "input", "output", "errors")
)  # fmt: skip
_RELEASE = re.compile(r"^\d+\.\d+$")


class CaseError(ValueError):
    """A file is no case: says the file, the place in it and what was expected."""


# The loader in C, where PyYAML has it, reads the same and is six times as fast.
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class UniqueLoader(_Loader):  # type: ignore[misc]
    """Reads only true and false as booleans, as YAML 1.2 does (a case has a key `on`), and refuses duplicate keys."""

    yaml_implicit_resolvers = {  # noqa: RUF012
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:bool"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def unique_mapping(self, node: yaml.MappingNode) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"duplicate key {key!r}", key_node.start_mark)
            seen.add(key)
        found: dict[Any, Any] = self.construct_mapping(node, deep=True)
        return found


UniqueLoader.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")
)
UniqueLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, UniqueLoader.unique_mapping)


@dataclass(frozen=True, slots=True)
class Case:
    """One case. `steps` are (action, argument) pairs; a builder case has none, but `input`, `output` and `errors`."""

    path: Path
    name: str
    area: str
    about: str
    strict: bool = True
    needs: frozenset[str] = frozenset()
    levels: tuple[str, ...] = ()
    gates: tuple[str, ...] = ()
    since: str | None = None
    until: str | None = None
    profile: str | None = None
    priority_admission: bool = False
    volumes: bool = False
    apps: bool = False
    steps: tuple[tuple[str, Any], ...] = ()
    input: Mapping[str, Any] = field(default_factory=dict)
    output: Mapping[str, Any] | None = None
    errors: Sequence[Mapping[str, Any]] | None = None

    def counts_for(self, target: str) -> bool:
        """Whether the case says something about this release, such as "1.37"."""
        release = _release(target)
        if self.since is not None and _release(self.since) > release:
            return False
        return self.until is None or _release(self.until) >= release


def find(paths: Iterable[Path | str]) -> Iterator[Path]:
    """Every .yaml file that is named or lies below a folder that is named, sorted, each once.

    Raises:
        CaseError: a path does not exist, or no file was found at all.
    """
    found: dict[Path, None] = {}
    for path in map(Path, paths):
        if path.is_dir():
            found.update(dict.fromkeys(sorted(path.rglob("*.yaml"))))
        elif path.exists():
            found[path] = None
        else:
            raise CaseError(f"{path}: no such file or folder")
    if not found:
        raise CaseError("no case files (*.yaml) in " + ", ".join(map(str, paths)))
    return iter(found)


def load(path: Path) -> Case:
    """Reads one case.

    Raises:
        CaseError: the file cannot be read, is no YAML, or breaks the format.
    """
    try:
        raw = yaml.load(path.read_text(encoding="utf-8"), UniqueLoader)
    except (OSError, UnicodeDecodeError) as error:
        raise CaseError(f"{path}: cannot be read: {error}") from None
    except yaml.YAMLError as error:
        raise CaseError(f"{path}: no valid YAML: {' '.join(str(error).split())}") from None
    if not isinstance(raw, dict):
        raise CaseError(f"{path}: a case is a mapping with name, area, about and steps")
    return _case(path, raw)


def _case(path: Path, raw: Mapping[str, Any]) -> Case:
    unknown = sorted(map(str, raw.keys() - _KEYS))
    if unknown:
        raise CaseError(f"{path}: unknown key {unknown[0]!r}; known keys: {', '.join(sorted(_KEYS))}")
    for key, kind in (("name", str), ("area", str), ("about", str), ("strict", bool)):
        if not isinstance(raw.get(key), kind):
            raise CaseError(f"{path}: {key} is missing or no {'text' if kind is str else 'true/false'}")
    if raw["area"] not in AREAS:
        raise CaseError(f"{path}: unknown area {raw['area']!r}; known areas: {', '.join(AREAS)}")
    for key in ("since", "until"):
        if raw.get(key) is not None and not (is_release(raw[key])):
            raise CaseError(f'{path}: {key}: want a quoted release such as "1.38", not {raw[key]!r}')
    for key in ("needs", "gates", "levels"):
        if not _is_texts(raw.get(key, [])):
            raise CaseError(f"{path}: {key}: want a list of names")
    if raw["area"] == "builder" and not isinstance(raw.get("input"), dict):
        raise CaseError(f"{path}: a builder case needs input, and output or errors")
    return Case(
        path=path,
        name=raw["name"],
        area=raw["area"],
        about=raw["about"],
        strict=raw["strict"],
        needs=frozenset(raw.get("needs", ())),
        levels=tuple(raw.get("levels", ())),
        gates=tuple(raw.get("gates", ())),
        since=raw.get("since"),
        until=raw.get("until"),
        profile=raw.get("profile"),
        priority_admission=bool(raw.get("priorityAdmission", False)),
        volumes=bool(raw.get("volumes", False)),
        apps=bool(raw.get("apps", False)),
        steps=() if raw["area"] == "builder" else _steps(path, raw.get("steps")),
        input=raw.get("input", {}),
        output=raw.get("output"),
        errors=raw.get("errors"),
    )


def _steps(path: Path, raw: Any) -> tuple[tuple[str, Any], ...]:
    if not isinstance(raw, list) or not raw:
        raise CaseError(f"{path}: steps: want a list of actions")
    steps = []
    for number, step in enumerate(raw, 1):
        if not isinstance(step, dict) or len(step) != 1:
            raise CaseError(f"{path}: step {number}: want exactly one action")
        (action, argument), *_ = step.items()
        if action not in ACTIONS:
            raise CaseError(f"{path}: step {number}: unknown action {action!r}; known actions: {', '.join(ACTIONS)}")
        steps.append((action, argument))
    return tuple(steps)


def is_release(value: Any) -> bool:
    """Whether this is text such as `1.37`."""
    return isinstance(value, str) and _RELEASE.match(value) is not None


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _release(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(".")))
