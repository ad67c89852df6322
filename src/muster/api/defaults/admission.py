"""Defaults of the kinds of admissionregistration.k8s.io/v1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from muster.api.gates import FeatureGates

Raw = Mapping[str, Any]
Json = dict[str, Any]

TIMEOUT, PORT = 10, 443


def policy(obj: Json, old: Raw | None, gates: FeatureGates) -> None:
    _spec(obj, {"failurePolicy": "Fail"}, "matchConstraints")


def binding(obj: Json, old: Raw | None, gates: FeatureGates) -> None:
    _spec(obj, {}, "matchResources")


def _spec(obj: Json, defaults: Json, match: str) -> None:
    given = obj.get("spec", {})
    if not isinstance(given, Mapping):
        return
    spec = {**defaults, **given}
    if isinstance(spec.get(match), Mapping):
        spec[match] = _match(spec[match])
    obj["spec"] = spec


def validating_webhooks(obj: Json, old: Raw | None, gates: FeatureGates) -> None:
    _webhooks(obj, {})


def mutating_webhooks(obj: Json, old: Raw | None, gates: FeatureGates) -> None:
    _webhooks(obj, {"reinvocationPolicy": "Never"})


def _webhooks(obj: Json, defaults: Json) -> None:
    given = obj.get("webhooks")
    if isinstance(given, list):
        obj["webhooks"] = [defaults | _webhook(each) if isinstance(each, Mapping) else each for each in given]


def _match(given: Raw) -> Json:
    made: Json = {"matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {}, **given}
    for key in ("resourceRules", "excludeResourceRules"):
        made |= _scoped(made, key)
    return made


def _scoped(given: Raw, key: str) -> Json:
    rules = given.get(key)
    if not isinstance(rules, list):
        return {}
    return {key: [{"scope": "*", **rule} if isinstance(rule, Mapping) else rule for rule in rules]}


def _webhook(given: Raw) -> Json:
    made: Json = {
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "namespaceSelector": {},
        "objectSelector": {},
        "timeoutSeconds": TIMEOUT,
        **given,
    }
    made |= _scoped(made, "rules")
    client = made.get("clientConfig")
    if isinstance(client, Mapping) and isinstance(client.get("service"), Mapping):
        made["clientConfig"] = {**client, "service": {"port": PORT, **client["service"]}}
    return made
