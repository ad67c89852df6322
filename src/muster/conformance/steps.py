"""Runs the steps of one case through a driver."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from muster.api import catalog
from muster.api.calls import MERGE_PATCH, Request, Response
from muster.api.instant import MINUTE, SECOND, Instant
from muster.conformance.cases import Case, CaseError
from muster.conformance.drivers import Driver
from muster.conformance.expect import differences
from muster.conformance.observed import DEFAULT, Observed, node_of, served, split
from muster.conformance.shorthands import Manifest, manifests, numbered

_DURATION = re.compile(r"^(\d+)(ms|s|m|h)$")
_UNITS = {"ms": 1_000, "s": SECOND, "m": MINUTE, "h": 60 * MINUTE}
_CAUSES = {
    "FieldValueRequired": "Required",
    "FieldValueInvalid": "Invalid",
    "FieldValueTypeInvalid": "Invalid",
    "FieldValueForbidden": "Forbidden",
    "FieldValueDuplicate": "Duplicate",
    "FieldValueTooMany": "TooMany",
    "FieldValueNotSupported": "NotSupported",
    "FieldValueTooLong": "TooLong",
}


class Unmet(Exception):
    """The cluster did not do what the case says; the arguments are sentences."""


def duration(text: Any) -> Instant:
    """`30s`, `5m`, `200ms`, `1h` in microseconds.

    Raises:
        CaseError: it is none of these.
    """
    match = _DURATION.match(text) if isinstance(text, str) else None
    if match is None:
        raise CaseError(f"a duration is a number with ms, s, m or h such as 30s, not {text!r}")
    return int(match[1]) * _UNITS[match[2]]


@dataclass(slots=True)
class Run:
    """One case on its way through a driver."""

    case: Case
    driver: Driver
    namespaces: set[str] = field(default_factory=lambda: {DEFAULT, "kube-system"})
    members: dict[str, set[str]] = field(default_factory=dict)
    """PodGroup -> the pods that the case created in it and has not deleted."""

    def steps(self) -> None:
        """Runs every step.

        Raises:
            Unmet: an expectation does not hold, or a call ended otherwise than the case says.
            CaseError: a step cannot be understood.
        """
        for number, (action, argument) in enumerate(self.case.steps, 1):
            try:
                getattr(self, "_" + action)(argument)
            except Unmet as unmet:
                raise Unmet(*(f"step {number}: {sentence}" for sentence in unmet.args)) from None
            except CaseError as error:
                raise CaseError(f"{self.case.path}: step {number} ({action}): {error}") from None
            self.driver.settle()

    # -- what a user does

    def _create(self, items: Any) -> None:
        for item in _listed(items):
            for manifest in manifests(item, priority=None if self.case.priority_admission else 0):
                response = self._post(manifest)
                if not response.ok:
                    raise Unmet(f"creating {_named(manifest)} was refused: {_message(response)}")
                self._remember(manifest)
                if "pdb" in item:
                    self._fill_budget(response.body)

    def _post(self, manifest: Manifest) -> Response:
        kind = _kind(manifest)
        namespace = (manifest.get("metadata") or {}).get("namespace", DEFAULT) if kind.namespaced else None
        if namespace is not None:
            self._ensure(namespace)
        if kind.kind == "Namespace":
            self.namespaces.add(manifest["metadata"]["name"])
        self.driver.tick(SECOND)
        return self.driver.call(Request("POST", kind.path(namespace), body=copy.deepcopy(manifest)))

    def _fill_budget(self, budget: Mapping[str, Any]) -> None:
        """The status that its controller would write, taking every bound pod for a healthy one."""
        meta, spec = budget["metadata"], budget["spec"]
        wanted = spec["selector"].get("matchLabels", {})
        pods = [
            pod
            for (namespace, _), pod in Observed(self.driver.call).every("Pod").items()
            if namespace == meta["namespace"] and wanted.items() <= (pod["metadata"].get("labels") or {}).items()
        ]
        healthy = sum(bool(node_of(pod)) for pod in pods)
        floor = spec["minAvailable"] if "minAvailable" in spec else len(pods) - spec["maxUnavailable"]
        status = {
            "observedGeneration": meta.get("generation", 1),
            "expectedPods": len(pods),
            "currentHealthy": healthy,
            "desiredHealthy": max(0, floor),
            "disruptionsAllowed": max(0, healthy - max(0, floor)),
        }
        self._patch(
            [{"kind": budget["kind"], "name": meta["name"], "subresource": "status", "merge": {"status": status}}]
        )

    def _ensure(self, namespace: str) -> None:
        """Namespaces that a case only mentions are created on the way."""
        if namespace not in self.namespaces:
            self.namespaces.add(namespace)
            body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
            self.driver.call(Request("POST", _kind(body).path(None), body=body))

    def _remember(self, manifest: Manifest) -> None:
        group = ((manifest.get("spec") or {}).get("schedulingGroup") or {}).get("podGroupName")
        if manifest["kind"] == "Pod" and group:
            space = manifest["metadata"].get("namespace", DEFAULT)
            prefix = "" if space == DEFAULT else f"{space}/"
            self.members.setdefault(prefix + group, set()).add(prefix + manifest["metadata"].get("name", ""))

    def _delete(self, items: Any) -> None:
        for kind, name in (pair for item in _listed(items) for pair in _deleted(item)):
            response = self.driver.call(Request("DELETE", _path(kind, name)))
            if not response.ok:
                raise Unmet(f"deleting {kind} {name} was refused: {_message(response)}")
            for names in self.members.values():
                names.discard(name)

    def _patch(self, items: Any) -> None:
        for item in _listed(items):
            response = self._merge(item)
            if not response.ok:
                raise Unmet(f"patching {item['kind']} {item['name']} was refused: {_message(response)}")

    def _status(self, items: Any) -> None:
        self._patch([{"subresource": "status", **item} for item in _listed(items)])

    def _merge(self, item: Mapping[str, Any]) -> Response:
        for key in ("kind", "name", "merge"):
            if key not in item:
                raise CaseError(f"a patch needs {key}: {item!r}")
        path = _path(item["kind"], _spaced(item))
        if "subresource" in item:
            path += f"/{item['subresource']}"
        body = copy.deepcopy(item["merge"])
        return self.driver.call(Request("PATCH", path, body=body, content_type=MERGE_PATCH))

    def _reject(self, item: Any) -> None:
        if not isinstance(item, dict) or ("object" in item) == ("patch" in item):
            raise CaseError("reject wants exactly one of object and patch")
        response = self._post(item["object"]) if "object" in item else self._merge(item["patch"])
        what = _named(item.get("object") or item["patch"])
        if response.ok:
            raise Unmet(f"{what} was accepted")
        if response.status >= 500:
            raise Unmet(f"{what} broke the server: {response.status} {_message(response)}")
        wanted = item.get("errors") or []
        found = errors_of(response.body)
        if wanted and not same_errors(found, wanted):
            raise Unmet(
                f"{what} was refused with {[e['type'] + ' ' + e['field'] for e in found]}, "
                f"not with {[e['type'] + ' ' + e['field'] for e in wanted]}: {_message(response)}"
            )

    # -- what is expected

    def _expect(self, expected: Any) -> None:
        if not isinstance(expected, dict):
            raise CaseError("expect wants a mapping")
        self.driver.quiesce()
        found = differences(Observed(self.driver.call, self.members), expected)
        if found:
            raise Unmet(*found)

    # -- what happens to the cluster

    def _advance(self, text: Any) -> None:
        self.driver.advance(duration(text))

    def _restart(self, what: Any) -> None:
        _only(what, "scheduler")
        self.driver.restart()

    def _pause(self, what: Any) -> None:
        _only(what, "scheduler")
        self.driver.settle()
        self.driver.pause()

    def _resume(self, what: Any) -> None:
        _only(what, "scheduler")
        self.driver.resume()

    def _refuse(self, what: Any) -> None:
        if not isinstance(what, dict) or set(what) != {"bind"} or not isinstance(what["bind"], list):
            raise CaseError("refuse wants {bind: [pods]}")
        self.driver.refuse_binds(["/".join(split(name)) for name in what["bind"]])

    def _termination(self, mode: Any) -> None:
        _only(mode, "hold", "finish")
        self.driver.hold_terminations(mode == "hold")


def errors_of(status: Any) -> list[dict[str, str]]:
    """The field errors of a Status: `field`, `type`, `message`; without causes its reason stands for one."""
    body = status if isinstance(status, dict) else {}
    causes = (body.get("details") or {}).get("causes") or []
    if not causes:
        return [{"field": "", "type": body.get("reason", ""), "message": body.get("message", "")}]
    return [
        {
            "field": cause.get("field", ""),
            "type": _CAUSES.get(cause.get("reason", ""), cause.get("reason", "")),
            "message": cause.get("message", ""),
        }
        for cause in causes
    ]


def same_errors(found: list[dict[str, str]], wanted: list[dict[str, str]]) -> bool:
    """Whether these are exactly the wanted ones, in any order; a wanted message is a part of the found one."""
    rest = list(found)
    for want in wanted:
        for have in rest:
            if (have["field"], have["type"]) == (want["field"], want["type"]) and want.get("message", "") in have[
                "message"
            ]:
                rest.remove(have)
                break
        else:
            return False
    return not rest


def _deleted(item: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if "kind" in item:
        yield item["kind"], _spaced(item)
    elif "pods" in item:
        yield from (("Pod", name) for name in numbered(item["pods"], item["count"], item.get("start", 1)))
    elif "pod" in item:
        yield "Pod", item["pod"]
    elif "node" in item:
        yield "Node", item["node"]
    else:
        raise CaseError(f"delete wants kind and name, pods and count, pod, or node; not {item!r}")


def _spaced(item: Mapping[str, Any]) -> str:
    return f"{item['namespace']}/{item['name']}" if "namespace" in item else str(item["name"])


def _kind(manifest: Mapping[str, Any]) -> catalog.Kind:
    try:
        return catalog.by_kind(manifest.get("apiVersion", ""), manifest.get("kind", ""))
    except ValueError as error:
        raise CaseError(str(error)) from None


def _path(kind: str, name: str) -> str:
    entries = served(kind)
    if not entries:
        raise CaseError(f"no kind {kind!r} is known")
    namespace, name = split(name)
    return f"{entries[0].path(namespace if entries[0].namespaced else None)}/{name}"


def _listed(items: Any) -> list[Any]:
    found = items if isinstance(items, list) else [items]
    for item in found:
        if not isinstance(item, dict):
            raise CaseError(f"want a mapping, not {item!r}")
    return found


def _only(what: Any, *allowed: str) -> None:
    if what not in allowed:
        raise CaseError(f"want {' or '.join(allowed)}, not {what!r}")


def _named(manifest: Mapping[str, Any]) -> str:
    name = manifest.get("name") or (manifest.get("metadata") or {}).get("name", "")
    return f"{manifest.get('kind')} {name}"


def _message(response: Response) -> str:
    body = response.body
    text = body.get("message") if isinstance(body, dict) else None
    return f"{response.status} {text or body!r}"
