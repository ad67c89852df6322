"""Webhooks: which are asked about a write, what they are told, and what their answers mean."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NamedTuple
from urllib.parse import quote

import jsonpatch
import msgspec

from muster.api import admission, catalog
from muster.api.cel import programs
from muster.apiserver import status
from muster.apiserver.admission_attempt import DELETE, Attempt, chosen_version, selected
from muster.apiserver.admission_conditions import Unclear, hold, values
from muster.apiserver.asking import Ask, Asking, Heard
from muster.apiserver.log import Raw
from muster.apiserver.storage import Store

Json = dict[str, Any]

MUTATING = catalog.MUTATING_WEBHOOK_CONFIGURATION.resource
VALIDATING = catalog.VALIDATING_WEBHOOK_CONFIGURATION.resource
API_VERSION, REVIEW = "admission.k8s.io/v1", "AdmissionReview"
MOST_WARNINGS = 20


@dataclass(frozen=True, slots=True)
class Hook:
    """One webhook of a configuration."""

    configuration: str
    spec: Raw

    @property
    def name(self) -> str:
        return str(self.spec["name"])

    @property
    def fails(self) -> bool:
        """Whether a write fails that the webhook could not be asked about."""
        return bool(self.spec["failurePolicy"] == "Fail")


def hooks(attempt: Attempt, resource: str) -> Iterator[Hook]:
    """All webhooks, by the names of their configurations, in the order they have there."""
    for raw in sorted(attempt.call.store.all(resource), key=lambda raw: str(raw["metadata"]["name"])):
        for spec in raw.get("webhooks") or ():
            yield Hook(raw["metadata"]["name"], spec)


def concerned(hook: Hook, attempt: Attempt) -> str | None:
    """The version in which a webhook wants to be asked about a write; None: it does not.

    Raises:
        Failure: a condition has no value, and the webhook's failurePolicy is Fail.
    """
    spec = hook.spec
    version = chosen_version(attempt, spec.get("rules") or (), spec["matchPolicy"])
    if version is None or not selected(attempt, spec):
        return None
    conditions = spec.get("matchConditions") or ()
    if not conditions:
        return version
    given = values(attempt, version)
    try:
        wanted = hold(conditions, lambda text: programs.compiled(text, admission.OBJECT).evaluate(given))
    except Unclear as failure:
        if not hook.fails:
            return None
        raise status.forbidden(attempt.call.kind, attempt.name, f"{hook.name}: {failure}") from None
    return version if wanted else None


# --- validating --------------------------------------------------------------------------------------------------


def check(attempt: Attempt) -> None:
    """Asks every validating webhook that is concerned, all at once.

    Raises:
        Failure: one denies the write, or could not be asked and is not to be ignored.
        Asking: answers are missing.
    """
    wanted = [(hook, version) for hook in hooks(attempt, VALIDATING) if (version := concerned(hook, attempt))]
    found = [_answer(hook, attempt, version, 0) for hook, version in wanted]
    missing = tuple(one for one in found if isinstance(one, Ask))
    if missing:
        raise Asking(missing)
    for (hook, _), heard in zip(wanted, found, strict=True):
        assert isinstance(heard, Heard)
        _allowed(hook, attempt, heard)


# --- mutating ----------------------------------------------------------------------------------------------------


def mutated(attempt: Attempt) -> Raw | None:
    """The object as the mutating webhooks, asked one after the other, want it.

    One that says IfNeeded is asked once more if others have changed the object after it.

    Raises:
        Failure: one denies the write, or could not be asked and is not to be ignored.
        Asking: an answer is missing.
    """
    asked: list[tuple[Hook, Raw | None]] = []
    for hook in list(hooks(attempt, MUTATING)):
        attempt, wanted = _asked(hook, attempt, 0)
        if wanted:
            asked.append((hook, attempt.object))
    for hook, left in asked:
        if hook.spec["reinvocationPolicy"] == "IfNeeded" and left != attempt.object:
            attempt, _ = _asked(hook, attempt, 1)
    return attempt.object


def _asked(hook: Hook, attempt: Attempt, turn: int) -> tuple[Attempt, bool]:
    version = concerned(hook, attempt)
    if version is None:
        return attempt, False
    heard = _answer(hook, attempt, version, turn)
    if isinstance(heard, Ask):
        raise Asking((heard,))
    response = _allowed(hook, attempt, heard)
    if response is None or not response.get("patch") or attempt.operation == DELETE:
        return attempt, True
    made = _patched(hook, attempt, version, response)
    return attempt.with_object(made), True


def _patched(hook: Hook, attempt: Attempt, version: str, response: Raw) -> Raw:
    if response.get("patchType") != "JSONPatch":
        raise _broken(hook, f"patchType {response.get('patchType')!r} is none; the only one there is is JSONPatch")
    given, _ = attempt.seen(version)
    try:
        operations = msgspec.json.decode(base64.b64decode(response["patch"], validate=True))
        made = jsonpatch.JsonPatch(operations).apply(given)
    except Exception as failure:  # what a webhook sends may be wrong in any way
        raise _broken(hook, f"the patch cannot be applied: {failure}") from None
    if not isinstance(made, dict) or not isinstance(made.get("metadata"), dict):
        raise _broken(hook, "the patch leaves no object")
    return made | {"apiVersion": (attempt.object or {})["apiVersion"]}


def _broken(hook: Hook, why: str) -> status.Failure:
    return status.internal_error(f'admission webhook "{hook.name}": {why}')


# --- questions and answers ---------------------------------------------------------------------------------------


def _answer(hook: Hook, attempt: Attempt, version: str, turn: int) -> Heard | Ask:
    """What was heard of this question, or the question."""
    if attempt.dry_run and hook.spec["sideEffects"] not in ("None", "NoneOnDryRun"):
        raise status.bad_request(f'admission webhook "{hook.name}" does not support dry run')
    spec, client = hook.spec, hook.spec["clientConfig"]
    if "v1" not in spec["admissionReviewVersions"]:
        return Heard(failure="it only speaks versions of AdmissionReview that are gone; v1 is needed")
    address = _address(attempt.call.store, client)
    if isinstance(address, Heard):
        return address
    made, old = attempt.seen(version)
    request = attempt.request(version) | {"object": made, "oldObject": old}
    key = _key(hook, turn, request)
    known = attempt.call.state.heard.get(key)
    if known is not None:
        return known
    bundle = base64.b64decode(client.get("caBundle") or "")
    review = {"kind": REVIEW, "apiVersion": API_VERSION}
    review |= {"request": {"uid": attempt.call.state.fresh_uid(), **request}}  # type: ignore[dict-item]
    url = f"{address.url}?timeout={quote(str(spec['timeoutSeconds']))}s"
    return Ask(key, hook.name, url, bundle, spec["timeoutSeconds"], review, address.server_name)


class _Address(NamedTuple):
    url: str
    server_name: str = ""


def _address(store: Store, client: Raw) -> _Address | Heard:
    """Where a webhook listens; of a service, where its ExternalName points, since nothing runs behind others here."""
    if client.get("url") is not None:
        return _Address(client["url"])
    wanted = client["service"]
    namespace, name = wanted["namespace"], wanted["name"]
    found = store.get(catalog.SERVICE.resource, namespace, name)
    if found is None:
        return Heard(failure=f'service {namespace}/{name}: service "{name}" not found')
    spec = found["spec"]
    if spec.get("type") != "ExternalName":
        why = "nothing runs behind services here; make it one of type ExternalName, or give clientConfig.url instead"
        return Heard(failure=f"service {namespace}/{name}: {why}")
    path = str(wanted.get("path") or "/")
    url = f"https://{spec['externalName']}:{wanted.get('port', 443)}/{path.removeprefix('/')}"
    return _Address(url, f"{name}.{namespace}.svc")


def _key(hook: Hook, turn: int, request: Raw) -> bytes:
    text = msgspec.json.encode([hook.configuration, hook.name, turn, request], order="deterministic")
    return blake2b(text, digest_size=16).digest()


def _allowed(hook: Hook, attempt: Attempt, heard: Heard) -> Raw | None:
    """The response of a webhook that allows the write; None: it could not be asked, and does not matter."""
    try:
        response = _response(heard)
    except ValueError as failure:
        if not hook.fails:
            attempt.call.warnings.append(f'webhook "{hook.name}" is ignored: {failure}')
            return None
        raise status.internal_error(
            f'failed calling webhook "{hook.name}": failed to call webhook: {failure}'
        ) from None
    warnings = response.get("warnings")
    if isinstance(warnings, list):
        attempt.call.warnings.extend(str(one) for one in warnings[:MOST_WARNINGS])
    if response["allowed"]:
        return response
    raise _denied(hook, response.get("status"))


def _response(heard: Heard) -> Raw:
    if heard.failure:
        raise ValueError(heard.failure)
    body = heard.body
    if not isinstance(body, Mapping) or (body.get("apiVersion"), body.get("kind")) != (API_VERSION, REVIEW):
        raise ValueError(f"expected webhook response of {API_VERSION}, Kind={REVIEW}")
    response = body.get("response")
    if not isinstance(response, Mapping):
        raise ValueError("webhook response was absent")
    if not isinstance(response.get("allowed"), bool):
        raise ValueError("webhook response.allowed is no boolean")
    if response.get("patch") and not isinstance(response["patch"], str):
        raise ValueError("webhook response.patch is no string")
    return response


def _denied(hook: Hook, result: Any) -> status.Failure:
    said: Raw = result if isinstance(result, Mapping) else {}
    code, reason = said.get("code"), str(said.get("reason") or "")
    by = f'admission webhook "{hook.name}" denied the request'
    why = said.get("message") or reason
    message = f"{by}: {why}" if why else f"{by} without explanation"
    known = code if isinstance(code, int) and 400 <= code < 600 else 400
    details = said.get("details")
    return status.Failure(known, reason, message, details=details if isinstance(details, Mapping) else None)
