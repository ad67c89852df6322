"""Rules for webhook configurations."""

from __future__ import annotations

import base64
import binascii
import ipaddress
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from muster.api import admission
from muster.api.gates import FeatureGates
from muster.api.validation import checks, matching, names, policies
from muster.api.validation.checks import Errors
from muster.api.validation.field import ROOT, Path

Raw = Mapping[str, Any]

REVIEW_VERSIONS = ("v1", "v1beta1")
SIDE_EFFECTS = ("None", "NoneOnDryRun")
REINVOCATION = ("IfNeeded", "Never")
LONGEST_TIMEOUT = 30
_FORM = "desired format: https://host[/path]"


def validating(new: Raw, old: Raw | None, gates: FeatureGates) -> Errors:
    errors, readable = policies.metadata(new, old, admission.ValidatingWebhookConfiguration)
    return errors + _webhooks(new) if readable else errors


def mutating(new: Raw, old: Raw | None, gates: FeatureGates) -> Errors:
    errors, readable = policies.metadata(new, old, admission.MutatingWebhookConfiguration)
    if not readable:
        return errors
    errors += _webhooks(new)
    for index, each in enumerate(new.get("webhooks") or ()):
        path = ROOT / "webhooks" // index / "reinvocationPolicy"
        errors += checks.one_of(each["reinvocationPolicy"], path, REINVOCATION)
    return errors


def _webhooks(new: Raw) -> Errors:
    errors: Errors = []
    seen = set[str]()
    for index, each in enumerate(new.get("webhooks") or ()):
        path, name = ROOT / "webhooks" // index, each.get("name") or ""
        errors += _webhook(each, path)
        if name and name in seen:
            errors.append((path / "name").duplicate(name))
        seen.add(name)
    return errors


def _webhook(each: Raw, path: Path) -> Errors:
    errors = _name(each.get("name") or "", path / "name")
    errors += matching.rules(each.get("rules") or (), path / "rules")
    errors += checks.one_of(each["failurePolicy"], path / "failurePolicy", matching.FAILURE)
    errors += checks.one_of(each["matchPolicy"], path / "matchPolicy", matching.MATCH)
    effects = each.get("sideEffects")
    if effects is None:
        errors.append((path / "sideEffects").required(f"must specify one of {', '.join(SIDE_EFFECTS)}"))
    else:
        errors += checks.one_of(effects, path / "sideEffects", SIDE_EFFECTS)
    seconds = each["timeoutSeconds"]
    if not 1 <= seconds <= LONGEST_TIMEOUT:
        why = f"the timeout value must be between 1 and {LONGEST_TIMEOUT} seconds"
        errors.append((path / "timeoutSeconds").invalid(seconds, why))
    errors += matching.selector(each["namespaceSelector"], path / "namespaceSelector")
    errors += matching.selector(each["objectSelector"], path / "objectSelector")
    errors += _client(each.get("clientConfig") or {}, path / "clientConfig")
    errors += _versions(each.get("admissionReviewVersions") or (), path / "admissionReviewVersions")
    return errors + matching.conditions(each.get("matchConditions") or (), path / "matchConditions", admission.OBJECT)


def _name(name: str, path: Path) -> Errors:
    errors = checks.text(name, path, names.dns_subdomain)
    if not errors and name.count(".") < 2:
        errors.append(path.invalid(name, "should be a domain with at least three segments separated by dots"))
    return errors


def _versions(given: Sequence[str], path: Path) -> Errors:
    if not given:
        return [path.required(f"must specify one of {', '.join(REVIEW_VERSIONS)}")]
    errors: Errors = []
    for index, version in enumerate(given):
        errors += checks.formatted(version, path // index, names.dns_label)
        if version in given[:index]:
            errors.append((path // index).invalid(version, "duplicate version"))
    if not any(version in REVIEW_VERSIONS for version in given):
        why = f"must include at least one of {', '.join(REVIEW_VERSIONS)}"
        errors.append(path.invalid(list(given), why))
    return errors


def _client(given: Raw, path: Path) -> Errors:
    url, service = given.get("url"), given.get("service")
    if (url is None) == (service is None):
        return [path.required("exactly one of url or service is required")]
    errors = _bundle(given.get("caBundle"), path / "caBundle")
    if url is not None:
        return errors + _url(url, path / "url")
    assert service is not None
    for key in ("name", "namespace"):
        if not service.get(key):
            errors.append((path / "service" / key).required("service name is required" if key == "name" else ""))
    return errors + checks.in_range(service["port"], path / "service" / "port", 1, 65_535)


def _bundle(given: Any, path: Path) -> Errors:
    if not given:
        return []
    try:
        text = base64.b64decode(given, validate=True)
    except (binascii.Error, ValueError):
        return [path.invalid("", "must be the base64 form of certificates in PEM")]
    if b"-----BEGIN CERTIFICATE-----" in text:
        return []
    return [path.invalid("", "unable to load root certificates: no certificate in PEM form in it")]


def _url(url: str, path: Path) -> Errors:
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as problem:
        return [path.required(f"url must be a valid URL: {problem}; {_FORM}")]
    errors: Errors = []
    if parts.scheme != "https" and not (parts.scheme == "http" and _is_here(host)):
        why = f"'https' is the only allowed URL scheme, but for http to this machine; {_FORM}"
        errors.append(path.invalid(parts.scheme, why))
    if not host:
        errors.append(path.invalid(parts.netloc, f"host must be specified; {_FORM}"))
    if parts.username is not None:
        errors.append(path.invalid(parts.username, "user information is not permitted in the URL"))
    if parts.fragment:
        errors.append(path.invalid(parts.fragment, "fragments are not permitted in the URL"))
    if parts.query:
        errors.append(path.invalid(parts.query, "query parameters are not permitted in the URL"))
    return errors


def _is_here(host: str | None) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host or "").is_loopback
    except ValueError:
        return False
