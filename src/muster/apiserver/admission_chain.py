"""The steps that users add to the road of a write: mutating webhooks, then policies, then validating webhooks.

`mutating` is called after the server's own admission and before an object is validated, `validating` after that and
before it is stored. Both do nothing, and cost next to nothing, as long as there is neither a policy nor a webhook.
"""

from __future__ import annotations

from typing import Any

from muster.apiserver import admission_policies as policies
from muster.apiserver import admission_webhooks as webhooks
from muster.apiserver import status
from muster.apiserver.admission_attempt import CREATE, DELETE, EXEMPT, UPDATE, Attempt
from muster.apiserver.log import Raw
from muster.apiserver.state import Call, State

Json = dict[str, Any]

_USERS = ("labels", "annotations", "ownerReferences", "finalizers")


def hooked(state: State) -> bool:
    """Whether any webhook may have to be called."""
    store = state.store
    return bool(store.count(webhooks.MUTATING, "") or store.count(webhooks.VALIDATING, ""))


def mutating(call: Call, made: Json, old: Raw | None) -> Json:
    """An object as webhooks want it, prepared anew if they have changed it.

    Raises:
        Failure: one denies the write.
        Asking: answers are missing.
    """
    if not call.store.count(webhooks.MUTATING, "") or call.kind.resource in EXEMPT:
        return made
    changed = webhooks.mutated(_attempt(call, made, old))
    if changed is None or changed is made:
        return made
    cleaned, findings = call.schema.clean(changed)
    if findings.wrong:
        said = "; ".join(map(str, findings.wrong[:5]))
        raise status.internal_error(f"what the mutating webhooks made is no {call.kind.kind}: {said}")
    meta = {key: value for key, value in made["metadata"].items() if key not in _USERS}
    meta |= {key: value for key, value in (cleaned.get("metadata") or {}).items() if key in _USERS and value}
    if call.subresource:
        return {**cleaned, "metadata": meta}
    return call.kind.prepare({**cleaned, "metadata": meta}, old, call.gates)


def validating(call: Call, made: Raw, old: Raw | None) -> None:
    """Asks policies and validating webhooks about a version that is to be stored.

    Raises:
        Failure: one denies the write.
        Asking: answers are missing.
    """
    if _unwatched(call):
        return
    _validated(_attempt(call, made, old))


def connected(call: Call, body: Raw, kind: tuple[str, str, str], old: Raw | None = None, *, dry_run: bool) -> Raw:
    """Asks about a body of a kind of its own (Binding, Eviction, Scale) at a subresource; as it is to be taken.

    Raises:
        Failure: a policy or webhook denies it.
        Asking: answers are missing.
    """
    if _unwatched(call) and not call.store.count(webhooks.MUTATING, ""):
        return body
    group, version, name = kind
    shown = {"apiVersion": f"{group}/{version}" if group else version, "kind": name, **body}
    operation = CREATE if old is None else UPDATE
    attempt = Attempt(call, operation, call.name, shown, old, call.subresource, kind, dry_run, {})
    if call.store.count(webhooks.MUTATING, ""):
        changed = webhooks.mutated(attempt)
        assert changed is not None
        attempt = attempt.with_object(changed)
    _validated(attempt)
    return attempt.object or body


def deleting(call: Call, old: Raw, options: Raw, *, dry_run: bool) -> None:
    """Asks about a deletion.

    Raises:
        Failure: a policy or webhook denies it.
        Asking: answers are missing.
    """
    mutates = call.store.count(webhooks.MUTATING, "")
    if (_unwatched(call) and not mutates) or call.kind.resource in EXEMPT:
        return
    said = {key: value for key, value in options.items() if key not in ("kind", "apiVersion", "dryRun")}
    name = old["metadata"]["name"]
    attempt = Attempt(call, DELETE, name, None, old, "", _gvk(call), dry_run, said)
    if mutates:
        webhooks.mutated(attempt)
    _validated(attempt)


def _unwatched(call: Call) -> bool:
    store = call.store
    return call.kind.resource in EXEMPT or not (
        store.count(policies.BINDINGS, "") or store.count(webhooks.VALIDATING, "")
    )


def _attempt(call: Call, made: Raw, old: Raw | None) -> Attempt:
    operation = CREATE if old is None else UPDATE
    name = made["metadata"]["name"]
    return Attempt(call, operation, name, made, old, call.subresource, _gvk(call), call.dry_run(), {})


def _gvk(call: Call) -> tuple[str, str, str]:
    return call.kind.group, call.kind.version, call.kind.kind


def _validated(attempt: Attempt) -> None:
    if attempt.call.store.count(policies.BINDINGS, ""):
        policies.check(attempt)
    if attempt.call.store.count(webhooks.VALIDATING, ""):
        webhooks.check(attempt)
