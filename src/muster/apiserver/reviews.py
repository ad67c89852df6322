"""Questions that are answered at once: who am I, and what may I do. Nothing of them is stored.

There are no users to tell apart and no roles: whoever reaches the server may do all that it serves, and that is said.
"""

from __future__ import annotations

from typing import Any

from muster.api import catalog
from muster.api.calls import Response
from muster.apiserver import decode, status
from muster.apiserver.admission_attempt import USER
from muster.apiserver.state import Call

Json = dict[str, Any]

WHY = "this cluster has no roles: whoever reaches it may do everything that it serves"
_EVERYTHING: Json = {
    "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    "incomplete": False,
}


def answer(call: Call) -> Response:
    """POST of a question: 201 and the question with its answer as the status."""
    call.dry_run()
    asked = decode.new_object(call)
    meta = asked.get("metadata") or {}
    if call.namespace and meta.get("namespace") not in (None, "", call.namespace):
        raise status.bad_request("the namespace of the object does not match the namespace on the request")
    place = {"namespace": call.namespace} if call.namespace else {}
    made: Json = {**asked, "metadata": {**meta, **place}}
    errors = call.kind.validate(made, None, call.gates)
    if errors:
        raise status.invalid(call.kind, meta.get("name") or "", errors)
    return Response(201, {**made, "status": _status(call)})


def _status(call: Call) -> Json:
    if call.kind is catalog.SELF_SUBJECT_REVIEW:
        return {"userInfo": USER}
    if call.kind is catalog.SELF_SUBJECT_RULES_REVIEW:
        return _EVERYTHING
    return {"allowed": True, "reason": WHY}
