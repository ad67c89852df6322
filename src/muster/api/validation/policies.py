"""Rules for ValidatingAdmissionPolicies and their bindings; expressions are compiled when they are written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from muster.api import admission
from muster.api.gates import FeatureGates
from muster.api.meta import ObjectMeta, Part
from muster.api.validation import checks, matching, meta, names
from muster.api.validation.checks import Errors
from muster.api.validation.field import SPEC, FieldError, Path

Raw = Mapping[str, Any]

REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge", "Unauthorized")
ACTIONS = ("Audit", "Deny", "Warn")
NOT_FOUND_ACTIONS = ("Allow", "Deny")
MOST_ANNOTATIONS = 20


def policy(new: Raw, old: Raw | None, gates: FeatureGates) -> Errors:
    errors, readable = metadata(new, old, admission.ValidatingAdmissionPolicy)
    if not readable:
        return errors
    spec = new["spec"]
    known = admission.POLICY | ({"params"} if spec.get("paramKind") is not None else set())
    errors += checks.one_of(spec["failurePolicy"], SPEC / "failurePolicy", matching.FAILURE)
    if spec.get("paramKind") is not None:
        errors += _param_kind(spec["paramKind"], SPEC / "paramKind")
    if spec.get("matchConstraints") is None:
        errors.append((SPEC / "matchConstraints").required())
    else:
        errors += matching.resources(spec["matchConstraints"], SPEC / "matchConstraints", required=True)
    declared: list[str] = []
    errors += _variables(spec.get("variables") or (), known, declared)
    conditions = spec.get("matchConditions") or ()
    errors += matching.conditions(conditions, SPEC / "matchConditions", known, declared)
    return errors + _outcomes(spec, known, declared)


def metadata(new: Raw, old: Raw | None, struct: type[Part]) -> tuple[Errors, bool]:
    """What is wrong with the metadata, and whether every field is of the right type."""
    view = checks.typed(new, struct)
    if isinstance(view, FieldError):
        return [view], False
    before = checks.typed(old, struct) if old is not None else None
    was: ObjectMeta | None = None if before is None or isinstance(before, FieldError) else _meta(before)
    return meta.metadata(_meta(view), was, namespaced=False), True


def _meta(view: Part) -> ObjectMeta:
    found: ObjectMeta = view.metadata  # type: ignore[attr-defined]
    return found


def _param_kind(given: Raw, path: Path) -> Errors:
    errors: Errors = []
    for key in ("apiVersion", "kind"):
        if not given.get(key):
            errors.append((path / key).required())
    return errors


def _variables(given: Sequence[Raw], known: frozenset[str], declared: list[str]) -> Errors:
    """Fills `declared`: each variable may use those before it."""
    errors: Errors = []
    for index, each in enumerate(given):
        at, name = SPEC / "variables" // index, each.get("name") or ""
        if not name:
            errors.append((at / "name").required("name is not specified"))
        elif not matching.is_identifier(name):
            errors.append((at / "name").invalid(name, "name is not a valid CEL identifier"))
        elif name in declared:
            errors.append((at / "name").duplicate(name))
        errors += matching.expression(each.get("expression") or "", at / "expression", known, (), declared)
        declared.append(name)
    return errors


def _outcomes(spec: Raw, known: frozenset[str], declared: Sequence[str]) -> Errors:
    validations, annotations = spec.get("validations") or (), spec.get("auditAnnotations") or ()
    errors: Errors = []
    if not validations and not annotations:
        why = "validations or auditAnnotations must contain at least one item"
        errors += [(SPEC / "validations").required(why), (SPEC / "auditAnnotations").required(why)]
    for index, each in enumerate(validations):
        errors += _validation(each, SPEC / "validations" // index, known, declared)
    path = SPEC / "auditAnnotations"
    if len(annotations) > MOST_ANNOTATIONS:
        errors.append(path.too_many(len(annotations), MOST_ANNOTATIONS))
    seen = set[str]()
    for index, each in enumerate(annotations[:MOST_ANNOTATIONS]):
        at, key = path // index, each.get("key") or ""
        errors += checks.text(key, at / "key", names.label_key)
        if key and key in seen:
            errors.append((at / "key").duplicate(key))
        seen.add(key)
        value = each.get("valueExpression") or ""
        errors += matching.expression(value, at / "valueExpression", known, ("string", "null"), declared)
    return errors


def _validation(each: Raw, path: Path, known: frozenset[str], declared: Sequence[str]) -> Errors:
    errors = matching.expression(each.get("expression") or "", path / "expression", known, ("bool",), declared)
    if each.get("messageExpression"):
        said = each["messageExpression"]
        errors += matching.expression(said, path / "messageExpression", known, ("string",), declared)
    message = each.get("message") or ""
    if message and not message.strip():
        errors.append((path / "message").invalid(message, "message must be non-empty if specified"))
    elif "\n" in message.strip():
        errors.append((path / "message").invalid(message, "message must not contain line breaks"))
    elif not message and "\n" in (each.get("expression") or "").strip():
        errors.append((path / "message").required("message must be specified if expression contains line breaks"))
    if each.get("reason") is not None:
        errors += checks.one_of(each["reason"], path / "reason", REASONS)
    return errors


def binding(new: Raw, old: Raw | None, gates: FeatureGates) -> Errors:
    errors, readable = metadata(new, old, admission.ValidatingAdmissionPolicyBinding)
    if not readable:
        return errors
    spec = new["spec"]
    name = spec.get("policyName") or ""
    errors += checks.text(name, SPEC / "policyName", names.dns_subdomain)
    if spec.get("paramRef") is not None:
        errors += _param_ref(spec["paramRef"], SPEC / "paramRef")
    if spec.get("matchResources") is not None:
        errors += matching.resources(spec["matchResources"], SPEC / "matchResources", required=False)
    actions, path = spec.get("validationActions") or (), SPEC / "validationActions"
    if not actions:
        errors.append(path.required())
    for index, action in enumerate(actions):
        errors += checks.one_of(action, path // index, ACTIONS)
        if action in actions[:index]:
            errors.append((path // index).duplicate(action))
    if "Deny" in actions and "Warn" in actions:
        why = (
            "must not contain both Deny and Warn (repeating the same validation failure information in the API response"
        )
        errors.append(path.invalid(list(actions), f"{why} and headers serves no purpose)"))
    return errors


def _param_ref(given: Raw, path: Path) -> Errors:
    errors: Errors = []
    name, chosen = given.get("name") or "", given.get("selector")
    if name and (problem := names.path_segment(name)):
        errors.append((path / "name").invalid(name, problem))
    if name and chosen is not None:
        why = "name and selector are mutually exclusive"
        errors += [(path / "name").forbidden(why), (path / "selector").forbidden(why)]
    elif not name and chosen is None:
        errors.append(path.required("one of name or selector must be specified"))
    elif chosen is not None:
        errors += matching.selector(chosen, path / "selector")
    action = given.get("parameterNotFoundAction") or ""
    if not action:
        errors.append((path / "parameterNotFoundAction").required())
    else:
        errors += checks.one_of(action, path / "parameterNotFoundAction", NOT_FOUND_ACTIONS)
    return errors
