"""ValidatingAdmissionPolicies: evaluated for a write that is otherwise ready to happen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from muster.api import admission, catalog
from muster.api.catalog import Kind
from muster.api.cel import programs
from muster.apiserver import ownership, status
from muster.apiserver.admission_attempt import Attempt, chosen_version, selected
from muster.apiserver.admission_conditions import Unclear, hold, values
from muster.apiserver.log import Raw
from muster.apiserver.selection import selector_matches

Json = dict[str, Any]

POLICIES = catalog.VALIDATING_ADMISSION_POLICY.resource
BINDINGS = catalog.VALIDATING_ADMISSION_POLICY_BINDING.resource
CODES = {"Unauthorized": 401, "Forbidden": 403, "Invalid": 422, "RequestEntityTooLarge": 413}
LONGEST_MESSAGE = 5 * 1024
"""Bytes of what a messageExpression may come to."""


class _Misconfigured(Exception):
    """A policy or binding cannot be evaluated for this write."""


def check(attempt: Attempt) -> None:
    """Evaluates every policy that is bound and concerns this write; warns as bindings say.

    Raises:
        Failure: one denies it.
    """
    store = attempt.call.store
    denial: status.Failure | None = None
    bindings = sorted(store.all(BINDINGS), key=lambda raw: str(raw["metadata"]["name"]))
    for binding in bindings:
        policy = store.get(POLICIES, "", binding["spec"]["policyName"])
        if policy is None:
            continue
        for message, reason in _broken(attempt, policy, binding):
            actions = binding["spec"]["validationActions"]
            if "Warn" in actions:
                attempt.call.warnings.append(_warning(policy, binding, message))
            if "Deny" in actions and denial is None:
                denial = _denial(attempt, policy, binding, message, reason)
    if denial is not None:
        raise denial


def _warning(policy: Raw, binding: Raw, message: str) -> str:
    names = policy["metadata"]["name"], binding["metadata"]["name"]
    return f"Validation failed for ValidatingAdmissionPolicy '{names[0]}' with binding '{names[1]}': {message}"


def _denial(attempt: Attempt, policy: Raw, binding: Raw, message: str, reason: str) -> status.Failure:
    names = policy["metadata"]["name"], binding["metadata"]["name"]
    why = f"ValidatingAdmissionPolicy '{names[0]}' with binding '{names[1]}' denied request: {message}"
    made = status.forbidden(attempt.call.kind, attempt.name, why, [{"message": message}])
    return status.Failure(CODES[reason], reason, str(made), details=made.details)


def _broken(attempt: Attempt, policy: Raw, binding: Raw) -> Iterator[tuple[str, str]]:
    """Message and reason of everything that the policy, bound like this, finds wrong with a write."""
    spec = policy["spec"]
    version = _version(attempt, spec["matchConstraints"])
    limits = binding["spec"].get("matchResources")
    if version is None or (limits is not None and _version(attempt, limits) is None):
        return
    try:
        found = _params(attempt, spec, binding["spec"].get("paramRef"))
    except _Misconfigured as failure:
        if spec["failurePolicy"] == "Fail":
            yield f"failed to configure binding: {failure}", "Invalid"
        return
    for param in found:
        yield from _Evaluation(attempt, spec, version, param).problems()


def _version(attempt: Attempt, match: Raw) -> str | None:
    """The version in which rules and selectors choose this write; None: they do not."""
    policy, rules = match["matchPolicy"], match.get("resourceRules") or ()
    if not selected(attempt, match) or chosen_version(attempt, match.get("excludeResourceRules") or (), policy):
        return None
    return chosen_version(attempt, rules, policy) if rules else attempt.call.kind.version


# --- parameters --------------------------------------------------------------------------------------------------


def _params(attempt: Attempt, spec: Raw, ref: Raw | None) -> Sequence[Raw | None]:
    """The objects that a policy is evaluated with, one after the other; `[None]` for a policy without parameters."""
    wanted = spec.get("paramKind")
    if wanted is None or ref is None:
        return [None]
    kind = _kind(attempt, wanted)
    space = ""
    if kind.namespaced:
        space = ref.get("namespace") or attempt.call.namespace
        if not space:
            raise _Misconfigured(
                "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
            )
    elif ref.get("namespace"):
        raise _Misconfigured("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
    store = attempt.call.store
    if ref.get("name"):
        one = store.get(kind.resource, space, ref["name"])
        found = [] if one is None else [one]
    else:
        every = store.all(kind.resource, space or None)
        found = [raw for raw in every if selector_matches(ref["selector"], raw["metadata"].get("labels") or {})]
    if not found and ref["parameterNotFoundAction"] == "Deny":
        raise _Misconfigured("no params found for policy binding with `Deny` parameterNotFoundAction")
    return [ownership.undressed(kind.shown(raw)) for raw in found]


def _kind(attempt: Attempt, wanted: Raw) -> Kind:
    named = wanted["apiVersion"], wanted["kind"]
    for kind in attempt.call.state.served():
        if (kind.api_version, kind.kind) == named:
            return kind
    raise _Misconfigured(f"failed to find resource referenced by paramKind: '{named[0]}, Kind={named[1]}'")


# --- expressions -------------------------------------------------------------------------------------------------


class _Evaluation:
    """One policy with one parameter about one write. Variables are evaluated when an expression mentions them."""

    def __init__(self, attempt: Attempt, spec: Raw, version: str, param: Raw | None) -> None:
        self._spec = spec
        self._given = values(attempt, version) | {"namespaceObject": attempt.space, "variables": {}}
        self._names = admission.POLICY
        if spec.get("paramKind") is not None:
            self._names = admission.POLICY | {"params"}
            self._given["params"] = param
        self._variables = {each["name"]: each["expression"] for each in spec.get("variables") or ()}
        self._tried = set[str]()

    def problems(self) -> Iterator[tuple[str, str]]:
        fails = self._spec["failurePolicy"] == "Fail"
        try:
            if not hold(self._spec.get("matchConditions") or (), self._value):
                return
        except Unclear as failure:
            if fails:
                yield str(failure), "Invalid"
            return
        for each in self._spec.get("validations") or ():
            reason = each.get("reason") or "Invalid"
            try:
                if self._value(each["expression"]) is not True:
                    yield self._message(each), reason
            except (programs.CompileError, programs.EvaluationError) as failure:
                if fails:
                    yield f"expression '{each['expression'].strip()}' resulted in error: {failure}", reason

    def _message(self, validation: Raw) -> str:
        said = (validation.get("message") or "").strip() or f"failed expression: {validation['expression'].strip()}"
        if not validation.get("messageExpression"):
            return said
        try:
            made = self._value(validation["messageExpression"])
        except (programs.CompileError, programs.EvaluationError):
            return said
        text = made.strip() if isinstance(made, str) else ""
        return text if text and "\n" not in text and len(text.encode()) <= LONGEST_MESSAGE else said

    def _value(self, expression: str) -> Any:
        self._prepare(expression)
        return programs.compiled(expression, self._names).evaluate(self._given)

    def _prepare(self, expression: str) -> None:
        """Evaluates what the expression mentions; a variable without a value is one that is not there."""
        for name in programs.mentioned(expression):
            if name in self._tried or name not in self._variables:
                continue
            self._tried.add(name)
            try:
                value = self._value(self._variables[name])
            except (programs.CompileError, programs.EvaluationError):
                continue
            self._given["variables"] = {**self._given["variables"], name: value}
