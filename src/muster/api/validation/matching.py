"""Rules for what policies and webhooks have in common: which requests they are about, and conditions in CEL."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from muster.api.cel import programs
from muster.api.meta import LabelSelector
from muster.api.validation import checks, names
from muster.api.validation.checks import Errors
from muster.api.validation.field import Path

Raw = Mapping[str, Any]

OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
SCOPES = ("*", "Cluster", "Namespaced")
FAILURE = ("Fail", "Ignore")
MATCH = ("Equivalent", "Exact")
MOST_CONDITIONS = 64
_RESERVED = (
    "as", "break", "const", "continue", "else", "false", "for", "function", "if", "import", "in", "let", "loop",
    "namespace", "null", "package", "return", "true", "var", "void", "while",
)  # fmt: skip
_IDENTIFIER = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*", re.ASCII)


def is_identifier(text: str) -> bool:
    return _IDENTIFIER.fullmatch(text) is not None and text not in _RESERVED


def expression(text: str, path: Path, variables: frozenset[str], kinds: Sequence[str], declared: Any = None) -> Errors:
    """An expression that compiles, and whose value is of one of these types; `declared` are the names in `variables`.

    Compiled here, and kept for when it is evaluated.
    """
    if not text.strip():
        return [path.required("expression is not specified")]
    try:
        program = programs.compiled(text, variables)
    except programs.CompileError as failure:
        return [path.invalid(text, str(failure))]
    missing = programs.undeclared(text, declared) if declared is not None else ""
    if missing:
        return [path.invalid(text, f"compilation failed: undefined field '{missing}' of variables")]
    if kinds and not any(program.yields(kind) for kind in kinds):
        return [path.invalid(text, f"must evaluate to {' or '.join(kinds)}")]
    return []


def conditions(given: Sequence[Raw], path: Path, variables: frozenset[str], declared: Any = None) -> Errors:
    """The matchConditions of a policy or webhook."""
    errors: Errors = []
    seen = set[str]()
    if len(given) > MOST_CONDITIONS:
        errors.append(path.too_many(len(given), MOST_CONDITIONS))
    for index, each in enumerate(given[:MOST_CONDITIONS]):
        at, name = path // index, each.get("name") or ""
        errors += expression(each.get("expression") or "", at / "expression", variables, ("bool",), declared)
        errors += checks.text(name, at / "name", names.label_key)
        if name and name in seen:
            errors.append((at / "name").duplicate(name))
        seen.add(name)
    return errors


def selector(given: Any, path: Path) -> Errors:
    if given is None:
        return [path.required()]
    return checks.selector(msgspec.convert(given, LabelSelector), path)


def rules(given: Sequence[Raw], path: Path) -> Errors:
    errors: Errors = []
    for index, rule in enumerate(given):
        errors += _rule(rule, path // index)
    return errors


def _rule(rule: Raw, path: Path) -> Errors:
    errors: Errors = []
    for key in ("operations", "apiGroups", "apiVersions", "resources"):
        said = rule.get(key) or ()
        if not said:
            errors.append((path / key).required())
        elif "*" in said and len(said) > 1 and key != "resources":
            many = f"if '*' is present, must not specify other {'operations' if key == 'operations' else 'values'}"
            errors.append((path / key).invalid(list(said), many))
        for index, one in enumerate(said):
            if not one and key in ("apiVersions", "resources"):
                errors.append((path / key // index).required())
    for index, one in enumerate(rule.get("operations") or ()):
        errors += checks.one_of(one, path / "operations" // index, OPERATIONS)
    if rule.get("scope") is not None:
        errors += checks.one_of(rule["scope"], path / "scope", SCOPES)
    for index, name in enumerate(rule.get("resourceNames") or ()):
        errors += checks.formatted(name, path / "resourceNames" // index, names.path_segment)
    return errors + _resources(rule.get("resources") or (), path / "resources")


def _resources(given: Sequence[str], path: Path) -> Errors:
    errors: Errors = []
    whole, every = set[str](), set[str]()
    for index, said in enumerate(given):
        if said == "*/*":
            whole.add("*/*")
        resource, slash, sub = said.partition("/")
        if slash and sub == "*":
            whole.add(resource)
        elif slash and resource == "*":
            every.add(sub)
        if slash and resource in whole and sub != "*":
            why = f"if '{resource}/*' is present, must not specify {said}"
            errors.append((path // index).invalid(said, why))
        if slash and sub in every and resource != "*":
            why = f"if '*/{sub}' is present, must not specify {said}"
            errors.append((path // index).invalid(said, why))
    if "*/*" in whole and len(given) > 1:
        errors.append(path.invalid(list(given), "if '*/*' is present, must not specify other resources"))
    if "*" in given and any("/" not in one for one in given if one != "*"):
        why = "if '*' is present, must not specify other resources without subresources"
        errors.append(path.invalid(list(given), why))
    return errors


def resources(given: Raw, path: Path, *, required: bool) -> Errors:
    """The matchConstraints of a policy (whose rules are required), or the matchResources of a binding."""
    errors = checks.one_of(given["matchPolicy"], path / "matchPolicy", MATCH)
    errors += selector(given["namespaceSelector"], path / "namespaceSelector")
    errors += selector(given["objectSelector"], path / "objectSelector")
    errors += rules(given.get("resourceRules") or (), path / "resourceRules")
    errors += rules(given.get("excludeResourceRules") or (), path / "excludeResourceRules")
    if required and not given.get("resourceRules"):
        errors.append((path / "resourceRules").required())
    return errors
