"""The columns of policies, their bindings and webhook configurations."""

from __future__ import annotations

from muster.apiserver.cells import AGE, NAME
from muster.apiserver.log import Raw
from muster.apiserver.sheet import Column, Sheet

_UNSET = "<unset>"


def _validations(policy: Raw, sheet: Sheet) -> int:
    return len(policy["spec"].get("validations") or ())


def _param_kind(policy: Raw, sheet: Sheet) -> str:
    kind = policy["spec"].get("paramKind")
    return f"{kind.get('apiVersion')}/{kind.get('kind')}" if kind else _UNSET


def _param_ref(binding: Raw, sheet: Sheet) -> str:
    ref = binding["spec"].get("paramRef") or {}
    if ref.get("name"):
        return f"{ref['namespace']}/{ref['name']}" if ref.get("namespace") else str(ref["name"])
    return _UNSET if not ref else "<selector>"


def _policy(binding: Raw, sheet: Sheet) -> str:
    return str(binding["spec"].get("policyName", ""))


def _webhooks(configuration: Raw, sheet: Sheet) -> int:
    return len(configuration.get("webhooks") or ())


POLICY = (NAME, Column("Validations", _validations, "integer"), Column("ParamKind", _param_kind), AGE)
BINDING = (NAME, Column("PolicyName", _policy), Column("ParamRef", _param_ref), AGE)
WEBHOOKS = (NAME, Column("Webhooks", _webhooks, "integer"), AGE)
