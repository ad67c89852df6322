"""Expressions: compiled once, evaluated often. The only module that knows the CEL library.

Values go in and come out as JSON has them. There is no schema behind the variables: a field that is not there is an
error when an expression is evaluated, not when it is compiled.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from typing import Any

LONGEST = 16 * 1024
"""Characters of an expression: whatever is longer is refused before it is compiled."""
_VARIABLE = re.compile(r"(?<![\w.\"'])variables\s*\.\s*(\w+)", re.ASCII)
_QUOTED = re.compile(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'")
_CODE = re.compile(r"^(?!ERROR: )[A-Z_]+: | ?\[[A-Z_]+\]$")
_NO_KEY = re.compile(r'Key not found in map : "(.*)"', re.DOTALL)


class CompileError(ValueError):
    """An expression that is none; says where and why."""


class EvaluationError(ValueError):
    """An expression came to no value, such as for a field that is not there."""


class Program:
    """A compiled expression."""

    __slots__ = ("_expression", "_names", "text", "type")

    def __init__(self, text: str, expression: Any, names: frozenset[str]) -> None:
        self.text = text
        self.type: str = expression.return_type().name().lower()
        """bool, int, string …; dyn where only the value tells."""
        self._expression = expression
        self._names = names

    def yields(self, kind: str) -> bool:
        """Whether the value is, or may turn out to be, of the type `kind`."""
        return self.type in (kind, "dyn")

    def evaluate(self, values: Mapping[str, Any]) -> Any:
        """The value of the expression.

        Raises:
            EvaluationError: it has none.
        """
        given = {name: values.get(name) for name in self._names}
        try:
            value = self._expression.eval(data=given)
        except Exception as failure:  # the library's own, of several types
            raise EvaluationError(_said(failure)) from None
        if value.type().name() == "ERROR":
            raise EvaluationError(_said(value.value()))
        return value.plain_value()


@lru_cache(maxsize=4_096)
def compiled(text: str, names: frozenset[str]) -> Program:
    """The program of an expression over the variables `names`.

    Raises:
        CompileError: it is no expression, or uses what there is not.
    """
    if len(text) > LONGEST:
        raise CompileError(f"compilation failed: an expression has at most {LONGEST} characters, this one {len(text)}")
    try:
        expression = _environment(names).compile(text)
    except Exception as failure:  # the library's own, of several types
        raise CompileError(f"compilation failed: {_said(failure)}") from None
    return Program(text, expression, names)


def mentioned(text: str) -> tuple[str, ...]:
    """The names of every `variables.NAME` in an expression."""
    return tuple(_VARIABLE.findall(_QUOTED.sub("''", text)))


def undeclared(text: str, declared: Iterable[str]) -> str:
    """The first `variables.NAME` in an expression that is not declared; "" if all are."""
    known = set(declared)
    return next((name for name in mentioned(text) if name not in known), "")


@cache
def _environment(names: frozenset[str]) -> Any:
    # Only clusters with expressions in them pay for the library.
    from cel_expr_python import cel
    from cel_expr_python.ext import ext_bindings, ext_encoders, ext_math, ext_optional, ext_strings

    from muster.api.cel.library import functions

    extensions = [
        ext_bindings.ExtBindings(),
        ext_encoders.ExtEncoders(),
        ext_math.ExtMath(),
        ext_optional.ExtOptional(),
        ext_strings.ExtStrings(),
        cel.CelExtension("kubernetes", functions()),
    ]
    variables = dict.fromkeys(sorted(names), cel.Type.DYN)
    return cel.NewEnv(variables=variables, extensions=extensions)


def _said(failure: object) -> str:
    text = str(failure)
    while (shorter := _CODE.sub("", text)) != text:
        text = shorter
    return _NO_KEY.sub(r"no such key: \1", text).strip()
