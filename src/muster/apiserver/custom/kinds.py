"""One served version of a kind that a user has defined, as a row of the catalog."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from muster.api import definitions
from muster.api.catalog import Kind, Raw
from muster.api.gates import FeatureGates
from muster.api.structure import expressions, filling, jsonpath, values
from muster.api.validation import checks, meta
from muster.api.validation.checks import Errors
from muster.api.validation.field import ROOT, FieldError, Type

Json = dict[str, Any]

_BLOCKING = (Type.NOT_SUPPORTED, Type.REQUIRED, Type.TOO_LONG, Type.TOO_MANY, Type.TYPE_INVALID)
"""Errors after which rules in CEL are not asked."""
_ALWAYS = ("apiVersion", "kind", "metadata")


@dataclass(frozen=True, slots=True, eq=False)
class CustomKind(Kind):
    """A version of a user's kind. Stored objects have the apiVersion of the storage version, `shown` that of this one.

    Two of them are different things, also when they say the same: each belongs to one state of its definition.
    """

    structure: Raw = field(default_factory=dict)
    """Its openAPIV3Schema."""
    stored_structure: Raw = field(default_factory=dict)
    """That of the storage version, whose defaults objects get when they are read."""
    stored_version: str = ""
    list_name: str = ""
    scale: Raw = field(default_factory=dict)
    """The paths of the scale subresource."""
    columns: tuple[Raw, ...] = ()

    @property
    def resource(self) -> str:
        return f"{self.plural}.{self.group}"

    @property
    def list_kind(self) -> str:
        return self.list_name

    def prepare(self, raw: Raw, old: Raw | None, gates: FeatureGates) -> Json:
        """What would be stored: the status of before where it has an endpoint of its own, and defaults."""
        made = dict(raw)
        if self.has_status:
            made.pop("status", None)
            if old is not None and "status" in old:
                made["status"] = old["status"]
        return self.filled(made)

    def with_status(self, old: Raw, given: Raw, meta: Json) -> Json:
        """A new version that only differs in its status."""
        made = {**old, "metadata": meta}
        made.pop("status", None)
        return self.filled(made | ({"status": given["status"]} if "status" in given else {}))

    def filled(self, raw: Raw) -> Json:
        """A whole object with its defaults."""
        made: Json = filling.defaulted(self.structure, {key: raw[key] for key in raw if key not in _ALWAYS})
        return {**{key: raw[key] for key in _ALWAYS if key in raw}, **made}

    def shown(self, raw: Raw) -> Raw:
        """A stored object as this version has it."""
        body = {key: raw[key] for key in raw if key not in _ALWAYS}
        made = filling.pruned(self.structure, filling.defaulted(self.stored_structure, body))
        if self.version == self.stored_version and made == body:
            return raw
        return {"apiVersion": self.api_version, "kind": self.kind, "metadata": raw["metadata"], **made}

    def kept(self, raw: Json) -> Json:
        """An object of this version as it is stored."""
        if self.version == self.stored_version:
            return raw
        return {**raw, "apiVersion": f"{self.group}/{self.stored_version}"}

    def changed(self, old: Raw, new: Raw) -> bool:
        """Whether anything counts as a new generation: what is not metadata, nor a status with its own endpoint."""
        quiet = {"metadata", "apiVersion", "status"} if self.has_status else {"metadata", "apiVersion"}
        return any(old.get(key) != new.get(key) for key in (old.keys() | new.keys()) - quiet)


def errors(structure: Raw, namespaced: bool, has_rules: bool, new: Raw, old: Raw | None) -> Errors:
    """Everything that is wrong with an object: its metadata, and what its schema says."""
    view = checks.typed(new, definitions.CustomObject)
    if isinstance(view, FieldError):
        return [view]
    before = checks.typed(old, definitions.CustomObject) if old is not None else None
    was = before.metadata if isinstance(before, definitions.CustomObject) else None
    found = [*meta.metadata(view.metadata, was, namespaced=namespaced), *values.errors(structure, new, ROOT)]
    if not has_rules:
        return found
    if any(error.type in _BLOCKING for error in found):
        return [*found, expressions.NOT_CHECKED]
    return [*found, *expressions.errors(structure, new, old, ROOT)]


def made(definition: Raw, version: Raw) -> CustomKind:
    """The kind of one version of a definition that has been validated."""
    spec, names = definition["spec"], definition.get("status", {}).get("acceptedNames") or {}
    structure = structure_of(version)
    stored = next(each for each in spec["versions"] if each.get("storage"))
    subresources = version.get("subresources") or {}
    namespaced = spec["scope"] == "Namespaced"

    has_rules = expressions.used(structure)

    def rules(new: Raw, old: Raw | None, gates: FeatureGates) -> Errors:
        return errors(structure, namespaced, has_rules, new, old)

    return CustomKind(
        names["kind"],
        spec["group"],
        version["name"],
        names["plural"],
        names.get("singular", ""),
        definitions.CustomObject,
        tuple(names.get("shortNames") or ()),
        namespaced,
        tuple(name for name in ("status", "scale") if name in subresources),
        status_keeps_metadata=True,
        needs_revision=True,
        validate=rules,
        validate_status=rules,
        selectable=tuple(_selectable(version)),
        categories=tuple(names.get("categories") or ()),
        deprecation=_deprecation(version, spec["group"], names["kind"]),
        structure=structure,
        stored_structure=structure_of(stored),
        stored_version=stored["name"],
        list_name=names.get("listKind") or f"{names['kind']}List",
        scale=subresources.get("scale") or {},
        columns=tuple(version.get("additionalPrinterColumns") or ()),
    )


def structure_of(version: Raw) -> Mapping[str, Any]:
    found: Mapping[str, Any] = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    return found


def _selectable(version: Raw) -> list[str]:
    paths = (jsonpath.fields(entry["jsonPath"]) for entry in version.get("selectableFields") or ())
    return [".".join(path) for path in paths if path]


def _deprecation(version: Raw, group: str, kind: str) -> str:
    if not version.get("deprecated"):
        return ""
    said: str = version.get("deprecationWarning") or f"{group}/{version['name']} {kind} is deprecated"
    return said
