"""Formats of names, labels and references: each function returns what is wrong, or None.

Rules and wording are those of Kubernetes' `validation` package; results for short-lived names are not kept, those of
label keys and resource names are.
"""

from __future__ import annotations

import re
from functools import lru_cache

LABEL_LENGTH = 63
SUBDOMAIN_LENGTH = 253

_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", re.ASCII)
_DNS_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", re.ASCII)
_QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]", re.ASCII)
_PORT_NAME = re.compile(r"(?=.*[a-z])[a-z0-9]+(-[a-z0-9]+)*", re.ASCII)

_LABEL_TEXT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (for example 'my-name' or '123-abc')"
)
_SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (for example 'example.com')"
)
_QUALIFIED_TEXT = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(for example 'MyName' or 'my.name'); a DNS subdomain and '/' may stand in front (for example 'example.com/MyName')"
)
_VALUE_TEXT = (
    "a valid label value must be empty or consist of alphanumeric characters, '-', '_' or '.', and must start and end "
    "with an alphanumeric character (for example 'my_value' or '12345')"
)


def dns_label(value: str) -> str | None:
    """RFC 1123 label, at most 63 characters."""
    if len(value) > LABEL_LENGTH:
        return f"must be no more than {LABEL_LENGTH} characters"
    return None if _DNS_LABEL.fullmatch(value) else _LABEL_TEXT


def dns_subdomain(value: str) -> str | None:
    """RFC 1123 subdomain, at most 253 characters."""
    if len(value) > SUBDOMAIN_LENGTH:
        return f"must be no more than {SUBDOMAIN_LENGTH} characters"
    return None if _DNS_SUBDOMAIN.fullmatch(value) else _SUBDOMAIN_TEXT


def label_key(value: str) -> str | None:
    """A qualified name: label and annotation keys, resources, finalizers, gates, topology keys."""
    if len(value) > SUBDOMAIN_LENGTH + 1 + LABEL_LENGTH:
        return f"must be no more than {SUBDOMAIN_LENGTH + 1 + LABEL_LENGTH} characters"
    return _label_key(value)


@lru_cache(maxsize=16_384)
def _label_key(value: str) -> str | None:
    prefix, slash, name = value.rpartition("/")
    if slash and (problem := dns_subdomain(prefix)):
        return f"prefix part {problem}"
    if not name:
        return "name part must not be empty"
    if len(name) > LABEL_LENGTH:
        return f"name part must be no more than {LABEL_LENGTH} characters"
    return None if _QUALIFIED.fullmatch(name) else f"name part {_QUALIFIED_TEXT}"


def label_value(value: str) -> str | None:
    """Empty, or up to 63 characters like the name part of a key."""
    return f"must be no more than {LABEL_LENGTH} characters" if len(value) > LABEL_LENGTH else _label_value(value)


@lru_cache(maxsize=16_384)
def _label_value(value: str) -> str | None:
    return None if not value or _QUALIFIED.fullmatch(value) else _VALUE_TEXT


def path_segment(value: str) -> str | None:
    """What may stand between two slashes of a URL."""
    if value in (".", ".."):
        return f"may not be {value!r}"
    return next((f"may not contain {character!r}" for character in "/%" if character in value), None)


def port_name(value: str) -> str | None:
    """An IANA service name."""
    if len(value) > 15:
        return "must be no more than 15 characters"
    if _PORT_NAME.fullmatch(value):
        return None
    return "must contain only lower case letters, digits and single '-' between them, and at least one letter"


def is_extended_resource(name: str) -> bool:
    """A domain-qualified resource outside kubernetes.io, counted in whole units."""
    prefix, slash, _ = name.partition("/")
    return bool(slash) and not prefix.endswith("kubernetes.io") and not name.startswith("requests.")


def is_huge_page(name: str) -> bool:
    return name.startswith("hugepages-")
