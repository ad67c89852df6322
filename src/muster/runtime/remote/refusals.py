"""What the server does not let this process do, said once, with what would change it."""

from __future__ import annotations

from collections.abc import Mapping

from muster.api.calls import Request, Response
from muster.runtime.telemetry import Log

LOG = Log("client")
UNAUTHORIZED, FORBIDDEN = 401, 403
_PASSING = frozenset({408, 410, 429})
"""Refusals of a list or watch that say nothing but: come back."""
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete", "GET": "get"}


def verb_of(request: Request) -> str:
    """The verb of RBAC for a call that is no list or watch."""
    return _VERBS.get(request.method, request.method.lower())


def resource_of(path: str) -> tuple[str, str]:
    """Group and resource of a path, with its subresource: `("", "pods/binding")`."""
    parts = path.split("/")
    group, rest = (parts[2], parts[4:]) if parts[1] == "apis" else ("", parts[3:])
    if rest[:1] == ["namespaces"] and len(rest) > 2:
        rest = rest[2:]
    return group, f"{rest[0]}/{rest[2]}" if len(rest) > 2 else rest[0] if rest else ""


def object_of(request: Request) -> str:
    """What names the object of a write: its path without a subresource; writes of one are made one after another."""
    parts = request.path.split("/")
    at = 5 if parts[1] == "apis" else 4  # behind group or core, version
    if len(parts) > at + 1 and parts[at - 1] == "namespaces":
        at += 2
    if len(parts) > at:
        return "/".join(parts[: at + 1])
    meta = request.body.get("metadata") if isinstance(request.body, Mapping) else None
    name = meta.get("name") if isinstance(meta, Mapping) else None
    return f"{request.path}/{name}" if name else ""


class Refusals:
    """Refusals by what they refuse. Each is logged when it begins, and told for as long as it lasts."""

    def __init__(self) -> None:
        self.standing: dict[tuple[str, str], str] = {}
        """By verb and resource the sentence that says what is wrong."""

    def note(self, verb: str, group: str, resource: str, answer: Response) -> None:
        """Takes down how a call ended; a success ends an earlier refusal."""
        key = verb, resource
        if answer.ok:
            if self.standing and self.standing.pop(key, ""):
                LOG.note("works again", verb=verb, resource=resource)
            return
        sentence = self._sentence(verb, group, resource, answer)
        if sentence and key not in self.standing:
            LOG.warning(sentence)
        if sentence:
            self.standing[key] = sentence

    def _sentence(self, verb: str, group: str, resource: str, answer: Response) -> str:
        message = answer.body.get("message", "") if isinstance(answer.body, Mapping) else ""
        if answer.status == UNAUTHORIZED:
            return f"cannot {verb} {resource}: the server does not know who asks (401 {message}): renew the credentials"
        if answer.status == FORBIDDEN:
            where = f'apiGroups: ["{group}"], resources: ["{resource}"], verbs: ["{verb}"]'
            return f"cannot {verb} {resource} (403 {message}): grant it in a ClusterRole with {where}"
        if verb in ("list", "watch") and answer.status in range(400, 500) and answer.status not in _PASSING:
            return f"cannot {verb} {resource} ({answer.status} {message}); trying again"
        return ""
