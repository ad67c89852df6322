"""CustomResourceDefinitions (apiextensions.k8s.io/v1): typed, so that the rules may read them as they are."""

from __future__ import annotations

from typing import Any

from msgspec import field

from muster.api.meta import Condition, ObjectMeta, Part


class ValidationRule(Part, frozen=True):
    rule: str = ""
    message: str = ""
    message_expression: str = ""
    reason: str | None = None
    field_path: str = ""
    optional_old_self: bool | None = None


class SchemaProps(Part, frozen=True):
    """One place of a schema. Only its types count: the rules read it raw."""

    ref: str | None = field(name="$ref", default=None)
    type: str = ""
    description: str = ""
    title: str = ""
    format: str = ""
    pattern: str = ""
    id: str = ""
    default: Any = None
    nullable: bool = False
    unique_items: bool = False
    exclusive_maximum: bool = False
    exclusive_minimum: bool = False
    maximum: float | None = None
    minimum: float | None = None
    multiple_of: float | None = None
    max_items: int | None = None
    max_length: int | None = None
    max_properties: int | None = None
    min_items: int | None = None
    min_length: int | None = None
    min_properties: int | None = None
    required: tuple[str, ...] = ()
    enum: tuple[Any, ...] = ()
    properties: dict[str, SchemaProps] = {}  # noqa: RUF012
    additional_properties: bool | SchemaProps | None = None
    items: SchemaProps | None = None
    all_of: tuple[SchemaProps, ...] = ()
    any_of: tuple[SchemaProps, ...] = ()
    one_of: tuple[SchemaProps, ...] = ()
    not_: SchemaProps | None = field(name="not", default=None)
    int_or_string: bool = field(name="x-kubernetes-int-or-string", default=False)
    embedded: bool = field(name="x-kubernetes-embedded-resource", default=False)
    preserves: bool | None = field(name="x-kubernetes-preserve-unknown-fields", default=None)
    list_type: str | None = field(name="x-kubernetes-list-type", default=None)
    map_type: str | None = field(name="x-kubernetes-map-type", default=None)
    map_keys: tuple[str, ...] = field(name="x-kubernetes-list-map-keys", default=())
    validations: tuple[ValidationRule, ...] = field(name="x-kubernetes-validations", default=())


class Validation(Part, frozen=True):
    schema: SchemaProps | None = field(name="openAPIV3Schema", default=None)


class ScaleSubresource(Part, frozen=True):
    spec_replicas_path: str = ""
    status_replicas_path: str = ""
    label_selector_path: str | None = None


class Subresources(Part, frozen=True):
    status: dict[str, Any] | None = None
    scale: ScaleSubresource | None = None


class PrinterColumn(Part, frozen=True):
    name: str = ""
    type: str = ""
    format: str = ""
    description: str = ""
    priority: int = 0
    json_path: str = ""


class SelectableField(Part, frozen=True):
    json_path: str = ""


class Version(Part, frozen=True):
    name: str = ""
    served: bool = False
    storage: bool = False
    deprecated: bool = False
    deprecation_warning: str | None = None
    schema: Validation | None = None
    subresources: Subresources | None = None
    additional_printer_columns: tuple[PrinterColumn, ...] = ()
    selectable_fields: tuple[SelectableField, ...] = ()


class Names(Part, frozen=True):
    plural: str = ""
    singular: str = ""
    kind: str = ""
    list_kind: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()


class Conversion(Part, frozen=True):
    strategy: str = ""
    webhook: dict[str, Any] | None = None


class DefinitionSpec(Part, frozen=True):
    group: str = ""
    scope: str = ""
    names: Names = Names()
    versions: tuple[Version, ...] = ()
    conversion: Conversion | None = None
    preserve_unknown_fields: bool = False


class DefinitionStatus(Part, frozen=True):
    accepted_names: Names = Names()
    conditions: tuple[Condition, ...] = ()
    stored_versions: tuple[str, ...] = ()


class CustomResourceDefinition(Part, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: DefinitionSpec = DefinitionSpec()
    status: DefinitionStatus = DefinitionStatus()


class CustomObject(Part, frozen=True):
    """An object of a user's own kind: of what it says only the metadata is the same everywhere."""

    metadata: ObjectMeta = ObjectMeta()
