"""Rules for CustomResourceDefinitions: names, scope, versions, their schemas, columns and subresources."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from muster.api import definitions
from muster.api.gates import FeatureGates
from muster.api.meta import ObjectMeta
from muster.api.structure import expressions, jsonpath, rules
from muster.api.validation import checks, meta, names
from muster.api.validation.checks import Errors
from muster.api.validation.field import METADATA, SPEC, FieldError, Path

Raw = Mapping[str, Any]

SCOPES = ("Cluster", "Namespaced")
COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
APPROVED = "api-approved.kubernetes.io"
_PROTECTED = ("k8s.io", "kubernetes.io")
MOST_COLUMNS, MOST_SELECTABLE = 64, 8
_LABEL_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?", re.ASCII)
_TEXT_1035 = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123')"
)
_SCALE = "must be a json path under"


def dns_1035(value: str) -> str | None:
    """RFC 1035 label, at most 63 characters."""
    if len(value) > names.LABEL_LENGTH:
        return f"must be no more than {names.LABEL_LENGTH} characters"
    return None if _LABEL_1035.fullmatch(value) else _TEXT_1035


def definition(new: Raw, old: Raw | None, gates: FeatureGates) -> Errors:
    """Everything that is wrong with a definition."""
    view = checks.typed(new, definitions.CustomResourceDefinition)
    if isinstance(view, FieldError):
        return [view]
    before = checks.typed(old, definitions.CustomResourceDefinition) if old is not None else None
    was: ObjectMeta | None = before.metadata if isinstance(before, definitions.CustomResourceDefinition) else None
    errors = meta.metadata(view.metadata, was, namespaced=False)
    spec = new["spec"]
    errors += _identity(view.metadata, spec)
    errors += _names(spec["names"], SPEC / "names")
    if not spec.get("scope"):
        errors.append((SPEC / "scope").required())
    elif spec["scope"] not in SCOPES:
        errors.append((SPEC / "scope").not_supported(spec["scope"], SCOPES))
    errors += _versions(spec.get("versions") or [])
    errors += _conversion(spec)
    if old is not None:
        errors += _update(spec, old)
    return errors


def _identity(view: ObjectMeta, spec: Raw) -> Errors:
    group, plural = spec.get("group") or "", spec["names"].get("plural") or ""
    errors: Errors = []
    if view.name != f"{plural}.{group}":
        errors.append((METADATA / "name").invalid(view.name, 'must be spec.names.plural+"."+spec.group'))
    if not group:
        errors.append((SPEC / "group").required())
    elif problem := names.dns_subdomain(group):
        errors.append((SPEC / "group").invalid(group, problem))
    elif "." not in group:
        errors.append((SPEC / "group").invalid(group, "should be a domain with at least one dot"))
    elif group.endswith(tuple(f".{end}" for end in _PROTECTED)) or group in _PROTECTED:
        errors += _approved(view.annotations.get(APPROVED, ""))
    return errors


def _approved(said: str) -> Errors:
    path = (METADATA / "annotations").key(APPROVED)
    see = "see https://github.com/kubernetes/enhancements/pull/1111"
    if not said:
        return [path.required(f'protected groups must have approval annotation "{APPROVED}", {see}')]
    if said.startswith(("https://", "http://", "unapproved")):
        return []
    return [path.invalid(said, f'protected groups must have approval annotation "{APPROVED}" with either a URL or a '
                         f'reason starting with "unapproved", {see}')]  # fmt: skip


def _names(given: Raw, path: Path) -> Errors:
    errors: Errors = []
    errors += checks.text(given.get("plural") or "", path / "plural", dns_1035)
    if given.get("singular"):
        errors += checks.formatted(given["singular"], path / "singular", dns_1035)
    for key in ("kind", "listKind"):
        said = given.get(key) or ""
        if not said and (key == "kind" or given.get("kind")):
            errors.append((path / key).required())
        elif said and (problem := dns_1035(said.lower())):
            why = f"may have mixed case, but should otherwise match: {problem}"
            errors.append((path / key).invalid(said, why))
    if given.get("kind") and given.get("kind") == given.get("listKind"):
        errors.append((path / "listKind").invalid(given["listKind"], "kind and listKind may not be the same"))
    for key in ("shortNames", "categories"):
        for index, name in enumerate(given.get(key) or ()):
            errors += checks.formatted(name, path / key // index, dns_1035)
    return errors


def _versions(versions: Sequence[Raw]) -> Errors:
    path = SPEC / "versions"
    if not versions:
        return [path.required("must have at least one version")]
    errors: Errors = []
    seen = set[str]()
    for index, version in enumerate(versions):
        at, name = path // index, version.get("name") or ""
        errors += checks.text(name, at / "name", dns_1035)
        if name in seen:
            errors.append(path.invalid(name, "must contain unique version names"))
        seen.add(name)
        errors += _version(version, at)
    stored = [version.get("name", "") for version in versions if version.get("storage")]
    if len(stored) != 1:
        errors.append(path.invalid(stored, "must have exactly one version marked as storage version"))
    return errors


def _version(version: Raw, path: Path) -> Errors:
    errors: Errors = []
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    if schema is None:
        errors.append((path / "schema" / "openAPIV3Schema").required("schemas are required"))
    else:
        at = path / "schema" / "openAPIV3Schema"
        errors += rules.errors(schema, at)
        errors += expressions.rule_errors(schema, at)
    if version.get("deprecationWarning") and not version.get("deprecated"):
        why = "can only be set for deprecated versions"
        errors.append((path / "deprecationWarning").invalid(version["deprecationWarning"], why))
    errors += _subresources(version.get("subresources") or {}, path / "subresources")
    errors += _columns(version.get("additionalPrinterColumns") or (), path / "additionalPrinterColumns")
    errors += _selectable(version.get("selectableFields") or (), schema or {}, path / "selectableFields")
    return errors


def _subresources(given: Raw, path: Path) -> Errors:
    scale = given.get("scale")
    if scale is None:
        return []
    errors: Errors = []
    path = path / "scale"
    for key, under in (("specReplicasPath", ("spec",)), ("statusReplicasPath", ("status",))):
        said = scale.get(key) or ""
        if not said:
            errors.append((path / key).required())
        else:
            errors += _under(said, under, path / key)
    if scale.get("labelSelectorPath"):
        errors += _under(scale["labelSelectorPath"], ("spec", "status"), path / "labelSelectorPath")
    return errors


def _under(said: str, roots: tuple[str, ...], path: Path) -> Errors:
    fields = jsonpath.fields(said)
    if fields is None or "[" in said:
        return [path.invalid(said, "must be a json path made of names of fields, such as .spec.replicas")]
    if fields[0] not in roots or len(fields) < 2:
        return [path.invalid(said, f"{_SCALE} {' or '.join(f'.{root}' for root in roots)}")]
    return []


def _columns(columns: Sequence[Raw], path: Path) -> Errors:
    errors: Errors = []
    for index, column in enumerate(columns[:MOST_COLUMNS]):
        at, kind, form = path // index, column.get("type") or "", column.get("format") or ""
        if not column.get("name"):
            errors.append((at / "name").required())
        if not kind:
            errors.append((at / "type").required(f"must be one of {','.join(COLUMN_TYPES)}"))
        elif kind not in COLUMN_TYPES:
            errors.append((at / "type").invalid(kind, f"must be one of {','.join(COLUMN_TYPES)}"))
        if form and form not in COLUMN_FORMATS:
            errors.append((at / "format").invalid(form, f"must be one of {','.join(COLUMN_FORMATS)}"))
        errors += _column_path(column.get("jsonPath") or "", at / "jsonPath")
    if len(columns) > MOST_COLUMNS:
        errors.append(path.too_many(len(columns), MOST_COLUMNS))
    return errors


def _column_path(said: str, path: Path) -> Errors:
    if not said:
        return [path.required()]
    try:
        jsonpath.path(said)
    except ValueError as problem:
        return [path.invalid(said, f"is not a path of fields, indexes and simple filters: {problem}")]
    return []


def _selectable(entries: Sequence[Raw], schema: Raw, path: Path) -> Errors:
    errors: Errors = []
    seen = set[str]()
    for index, entry in enumerate(entries):
        at, said = path // index / "jsonPath", entry.get("jsonPath") or ""
        fields = jsonpath.fields(said)
        if not said:
            errors.append(at.required())
        elif fields is None or "[" in said:
            errors.append(at.invalid(said, "must be a simple path of fields, such as .spec.color"))
        elif said in seen:
            errors.append(at.duplicate(said))
        elif fields[0] == "metadata":
            errors.append(at.invalid(said, "must not point to fields in metadata"))
        elif _type_at(schema, fields) not in ("boolean", "integer", "string"):
            errors.append(at.invalid(said, "must point to a field of type string, boolean or integer in the schema"))
        seen.add(said)
    if len(entries) > MOST_SELECTABLE:
        errors.append(path.too_many(len(entries), MOST_SELECTABLE))
    return errors


def _type_at(schema: Raw, fields: Sequence[str]) -> str:
    for name in fields:
        schema = (schema.get("properties") or {}).get(name) or {}
    return schema.get("type") or ""


def _conversion(spec: Raw) -> Errors:
    errors: Errors = []
    conversion = spec["conversion"]
    path = SPEC / "conversion"
    if conversion["strategy"] == "Webhook":
        why = "conversion webhooks are not called by this server: only strategy None is, which changes apiVersion alone"
        errors.append((path / "strategy").forbidden(why))
    elif conversion["strategy"] != "None":
        errors.append((path / "strategy").not_supported(conversion["strategy"], ("None", "Webhook")))
    elif conversion.get("webhook") is not None:
        errors.append((path / "webhook").forbidden("should not be set when strategy is not set to Webhook"))
    if spec.get("preserveUnknownFields"):
        why = (
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead. "
            "See https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/"
            "#field-pruning for details"
        )
        errors.append((SPEC / "preserveUnknownFields").invalid(True, why))
    return errors


def established(raw: Raw) -> bool:
    return any(
        entry.get("type") == "Established" and entry.get("status") == "True"
        for entry in raw.get("status", {}).get("conditions") or ()
    )


def _update(spec: Raw, old: Raw) -> Errors:
    errors: Errors = []
    before = old["spec"]
    if established(old):
        for at, new_value, old_value in (
            (SPEC / "group", spec.get("group"), before.get("group")),
            (SPEC / "scope", spec.get("scope"), before.get("scope")),
            (SPEC / "names" / "plural", spec["names"].get("plural"), before["names"].get("plural")),
            (SPEC / "names" / "kind", spec["names"].get("kind"), before["names"].get("kind")),
        ):
            errors += checks.unchanged(new_value, old_value, at)
    there = {version.get("name") for version in spec.get("versions") or ()}
    for index, name in enumerate(old.get("status", {}).get("storedVersions") or ()):
        if name not in there:
            errors.append(_missing(index, name))
    return errors


def _missing(index: int, name: str) -> FieldError:
    why = (
        f"missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until "
        f"a storage migration ensures no data remains persisted in {name} and removes {name} from status.storedVersions"
    )
    return (Path("status") / "storedVersions" // index).invalid(name, why)


def definition_status(new: Raw, old: Raw | None, gates: FeatureGates) -> Errors:
    """The storage version is among the stored ones, and all of those are versions."""
    view = checks.typed(new, definitions.CustomResourceDefinition)
    if isinstance(view, FieldError):
        return [view]
    if view.status == definitions.DefinitionStatus():
        return []
    stored = new.get("status", {}).get("storedVersions") or []
    versions = new["spec"].get("versions") or ()
    path = Path("status") / "storedVersions"
    errors: Errors = []
    for version in versions:
        if version.get("storage") and version["name"] not in stored:
            errors.append(path.invalid(stored, f"must have the storage version {version['name']}"))
    names_of = [version["name"] for version in versions]
    return errors + [_missing(index, name) for index, name in enumerate(stored) if name not in names_of]
