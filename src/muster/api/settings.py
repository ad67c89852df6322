"""Typed views of what pods are given: ConfigMap, Secret, ServiceAccount."""

# ruff: noqa: RUF012  (msgspec makes a new dict of an empty default for every instance)

from __future__ import annotations

from muster.api.meta import ObjectMeta, Part


class ConfigMap(Part, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    data: dict[str, str] = {}
    binary_data: dict[str, str] = {}
    """In base64."""
    immutable: bool = False


class Secret(Part, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    type: str = ""
    data: dict[str, str] = {}
    """In base64."""
    immutable: bool = False


class ServiceAccount(Part, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    automount_service_account_token: bool | None = None
