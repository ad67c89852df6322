"""Rules for what pods are given: ConfigMap, Secret, ServiceAccount."""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from collections.abc import Iterable, Mapping

from muster.api import settings
from muster.api.validation import checks, small
from muster.api.validation.checks import Errors
from muster.api.validation.field import ROOT, Path

MOST_BYTES = 1 << 20
"""All values together."""
_KEY = re.compile(r"[-._a-zA-Z0-9]+", re.ASCII)
_LONGEST_KEY = 253
_NEEDED = {
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
}
"""Keys without which a Secret of a type is of no use."""


def _config_map(new: settings.ConfigMap, old: settings.ConfigMap | None) -> Errors:
    errors = _keys(new.data, ROOT / "data") + _keys(new.binary_data, ROOT / "binaryData")
    for key in new.binary_data:
        if key in new.data:
            errors.append((ROOT / "data").key(key).invalid(key, f"duplicate of key present in binaryData: {key}"))
    plain = sum(len(value.encode()) for value in new.data.values())
    errors += _size(plain + _encoded(new.binary_data), ROOT)
    if old is not None and old.immutable:
        errors += _kept(new.immutable, new.data == old.data, ROOT / "data")
        errors += _kept(True, new.binary_data == old.binary_data, ROOT / "binaryData")
    return errors


def _secret(new: settings.Secret, old: settings.Secret | None) -> Errors:
    errors = _keys(new.data, ROOT / "data") + _size(_encoded(new.data), ROOT / "data")
    errors += [(ROOT / "data").key(key).required() for key in _NEEDED.get(new.type, ()) if key not in new.data]
    if old is not None:
        errors += checks.unchanged(new.type, old.type, ROOT / "type")
        if old.immutable:
            errors += _kept(new.immutable, new.data == old.data, ROOT / "data")
    return errors


def _service_account(new: settings.ServiceAccount, old: settings.ServiceAccount | None) -> Errors:
    return []


def _keys(keys: Iterable[str], path: Path) -> Errors:
    errors: Errors = []
    for key in keys:
        if len(key) > _LONGEST_KEY or key in (".", "..") or not _KEY.fullmatch(key):
            message = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
            errors.append(path.key(key).invalid(key, message))
    return errors


def _size(total: int, path: Path) -> Errors:
    return [path.too_long(MOST_BYTES)] if total > MOST_BYTES else []


def _encoded(values: Mapping[str, str]) -> int:
    return sum(_decoded_length(value) for value in values.values())


def _decoded_length(value: str) -> int:
    try:
        return len(b64decode(value))
    except binascii.Error:
        return len(value)


def _kept(immutable: bool, same: bool, path: Path) -> Errors:
    """What is immutable stays so, with all that it holds."""
    message = "field is immutable when `immutable` is set"
    errors = [] if immutable else [(ROOT / "immutable").forbidden(message)]
    return errors if same else [*errors, path.forbidden(message)]


config_map = small.rules(settings.ConfigMap, _config_map)
secret = small.rules(settings.Secret, _secret)
service_account = small.rules(settings.ServiceAccount, _service_account)
