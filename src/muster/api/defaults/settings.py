"""Defaults of what pods are given."""

from __future__ import annotations

from base64 import b64encode

from muster.api.defaults import parts
from muster.api.defaults.parts import Json, Raw
from muster.api.gates import FeatureGates


def secret(obj: Json, old: Raw | None, gates: FeatureGates) -> None:
    """A Secret without a type is Opaque; `stringData` is only written: it goes into `data`, in base64."""
    obj.setdefault("type", "Opaque")
    plain = obj.pop("stringData", None)
    if plain:
        encoded = {key: b64encode(str(value).encode()).decode() for key, value in plain.items()}
        obj["data"] = parts.copied(obj, "data") | encoded
