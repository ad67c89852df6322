"""A write as policies and webhooks see it, and whom they concern: rules, selectors, equivalent versions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from muster.api import catalog
from muster.apiserver import ownership
from muster.apiserver.custom import registry
from muster.apiserver.custom.kinds import CustomKind
from muster.apiserver.log import Raw
from muster.apiserver.selection import selector_matches
from muster.apiserver.state import Call

Json = dict[str, Any]

CREATE, UPDATE, DELETE = "CREATE", "UPDATE", "DELETE"
_OPTIONS = {CREATE: "CreateOptions", UPDATE: "UpdateOptions", DELETE: "DeleteOptions"}
_SAID = ("fieldManager", "fieldValidation")
EXEMPT = frozenset(
    kind.resource
    for kind in (
        catalog.VALIDATING_ADMISSION_POLICY,
        catalog.VALIDATING_ADMISSION_POLICY_BINDING,
        catalog.VALIDATING_WEBHOOK_CONFIGURATION,
        catalog.MUTATING_WEBHOOK_CONFIGURATION,
    )
)
"""What says who is asked is itself never asked about, so that a broken one can be removed."""
USER = {"username": "muster:user", "groups": ["system:masters", "system:authenticated"]}
"""Nobody is told apart here: whoever may call the server may do everything."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One write, before it happens."""

    call: Call
    operation: str
    name: str
    object: Raw | None
    """What is to be; None for a deletion."""
    old: Raw | None
    """What is; None for a creation."""
    subresource: str
    kind: tuple[str, str, str]
    """Group, version and kind of the body: a Binding's, not a pod's."""
    dry_run: bool
    options: Raw

    def seen(self, version: str) -> tuple[Json | None, Json | None]:
        """Object and old object in another version of the kind, without who owns what."""
        return self._shown(self.object, version), self._shown(self.old, version)

    def _shown(self, raw: Raw | None, version: str) -> Json | None:
        if raw is None:
            return None
        made = ownership.undressed(raw) if "metadata" in raw else dict(raw)
        if version != self.kind[1]:
            made["apiVersion"] = f"{self.kind[0]}/{version}"
        return made

    def request(self, version: str) -> Json:
        """The request, as a policy or a webhook is told of it, but for the objects."""
        group, own, kind = self.kind
        target = self.call.kind
        about: Json = {
            "kind": {"group": group, "version": version if own == target.version else own, "kind": kind},
            "resource": {"group": target.group, "version": version, "resource": target.plural},
            "requestKind": {"group": group, "version": own, "kind": kind},
            "requestResource": {"group": target.group, "version": target.version, "resource": target.plural},
        }
        if self.subresource:
            about["subResource"] = about["requestSubResource"] = self.subresource
        said = {key: self.call.request.query[key] for key in _SAID if self.call.request.query.get(key)}
        options = {"kind": _OPTIONS[self.operation], "apiVersion": "meta.k8s.io/v1", **said, **self.options}
        if self.dry_run:
            options["dryRun"] = ["All"]
        if self.name:
            about["name"] = self.name
        if self.namespace:
            about["namespace"] = self.namespace
        return about | {"operation": self.operation, "userInfo": USER, "dryRun": self.dry_run, "options": options}

    @property
    def namespace(self) -> str:
        """Of a namespace itself, its own name, as in a real server."""
        return self.name if self.call.kind is catalog.NAMESPACE else self.call.namespace

    @property
    def space(self) -> Raw | None:
        """The namespace that the object is in."""
        if not self.call.namespace:
            return None
        found = self.call.store.get(catalog.NAMESPACE.plural, "", self.call.namespace)
        return None if found is None else ownership.undressed(found)

    def with_object(self, made: Raw) -> Attempt:
        return replace(self, object=made)


def versions(attempt: Attempt, policy: str) -> Iterator[str]:
    """The version of the request; with the match policy Equivalent the others that are served, too."""
    kind = attempt.call.kind
    yield kind.version
    if policy == "Equivalent" and isinstance(kind, CustomKind):
        for other in registry.served(attempt.call.store):
            if (other.group, other.plural) == (kind.group, kind.plural) and other.version != kind.version:
                yield other.version


def chosen_version(attempt: Attempt, rules: Sequence[Raw], policy: str) -> str | None:
    """The version in which the first rule that is about this write wants to see it; None: no rule is."""
    for version in versions(attempt, policy):
        if any(_covers(rule, attempt, version) for rule in rules):
            return version
    return None


def _covers(rule: Raw, attempt: Attempt, version: str) -> bool:
    kind = attempt.call.kind
    return (
        _lists(rule["operations"], attempt.operation)
        and _lists(rule["apiGroups"], kind.group)
        and _lists(rule["apiVersions"], version)
        and any(_names(resource, kind.plural, attempt.subresource) for resource in rule["resources"])
        and _in_scope(rule.get("scope", "*"), attempt)
        and (not rule.get("resourceNames") or attempt.name in rule["resourceNames"])
    )


def _lists(said: Sequence[str], value: str) -> bool:
    return "*" in said or value in said


def _names(said: str, plural: str, subresource: str) -> bool:
    resource, _, sub = said.partition("/")
    return resource in ("*", plural) and sub in ("*", subresource)


def _in_scope(scope: str, attempt: Attempt) -> bool:
    inside = bool(attempt.call.namespace) and attempt.call.kind is not catalog.NAMESPACE
    return scope == "*" or inside == (scope == "Namespaced")


def selected(attempt: Attempt, chooser: Raw) -> bool:
    """Whether the namespaceSelector and the objectSelector of a webhook or a policy choose this write."""
    return _space_selected(attempt, chooser.get("namespaceSelector")) and _object_selected(
        attempt, chooser.get("objectSelector")
    )


def _space_selected(attempt: Attempt, selector: Raw | None) -> bool:
    if not selector:
        return True
    if attempt.call.kind is catalog.NAMESPACE:
        return _labelled(attempt.object if attempt.object is not None else attempt.old, selector)
    return not attempt.call.namespace or _labelled(attempt.space, selector)


def _object_selected(attempt: Attempt, selector: Raw | None) -> bool:
    return not selector or _labelled(attempt.object, selector) or _labelled(attempt.old, selector)


def _labelled(raw: Raw | None, selector: Raw) -> bool:
    if raw is None:
        return False
    labels: Mapping[str, str] = (raw.get("metadata") or {}).get("labels") or {}
    return selector_matches(selector, labels)
