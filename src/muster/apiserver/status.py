"""Status bodies: what every failure, and every success without an object, looks like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from muster.api.calls import Response
from muster.api.catalog import Kind
from muster.api.validation.field import FieldError, Path

Cause = Mapping[str, str]


class Failure(Exception):
    """A call that the server refuses. Its Status is the answer."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        *,
        details: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.metadata = metadata or {}
        self.code = code
        self.reason = reason
        self.details = details
        self.headers = headers or {}

    @property
    def body(self) -> dict[str, Any]:
        """The Status."""
        status: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.metadata,
            "status": "Failure",
            "message": str(self),
            "reason": self.reason,
        }
        if self.details:
            status["details"] = self.details
        status["code"] = self.code
        return status

    @property
    def response(self) -> Response:
        return Response(self.code, self.body, self.headers)


def success(kind: Kind | None = None, name: str = "", uid: str = "", *, code: int = 200) -> Response:
    """A Status that says that it worked, about an object if one is named."""
    body: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    if kind is not None:
        body["details"] = _about(kind, name) | ({"uid": uid} if uid else {})
    else:
        body["code"] = code
    return Response(code, body)


def bad_request(message: str, causes: Sequence[Cause] = ()) -> Failure:
    return Failure(400, "BadRequest", message, details={"causes": list(causes)} if causes else None)


def forbidden(kind: Kind, name: str, message: str, causes: Sequence[Cause] = ()) -> Failure:
    details = _about(kind, name) | ({"causes": list(causes)} if causes else {})
    return Failure(403, "Forbidden", f"{_named(kind, name)} is forbidden: {message}", details=details)


def not_found(kind: Kind, name: str) -> Failure:
    return Failure(404, "NotFound", f"{_named(kind, name)} not found", details=_about(kind, name))


def no_such_path(message: str = "the server could not find the requested resource") -> Failure:
    return Failure(404, "NotFound", message)


def method_not_allowed(message: str) -> Failure:
    return Failure(405, "MethodNotAllowed", message)


def not_acceptable(accept: str) -> Failure:
    message = f"only application/json is served, and Accept: {accept} does not admit it"
    return Failure(406, "NotAcceptable", message)


def already_exists(kind: Kind, name: str) -> Failure:
    return Failure(409, "AlreadyExists", f"{_named(kind, name)} already exists", details=_about(kind, name))


def conflict(kind: Kind, name: str, why: str) -> Failure:
    message = f"Operation cannot be fulfilled on {_named(kind, name)}: {why}"
    return Failure(409, "Conflict", message, details=_about(kind, name))


def deletion_conflict(kind: Kind, name: str, why: str) -> Failure:
    of = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
    about = {"name": name, **({"group": kind.group} if kind.group else {}), "kind": kind.kind}
    return Failure(409, "Conflict", f'Operation cannot be fulfilled on {of} "{name}": {why}', details=about)


def binding_conflict(name: str, why: str) -> Failure:
    """A pod that cannot be bound as it is: the Status names the subresource."""
    message = f'Operation cannot be fulfilled on pods/binding "{name}": {why}'
    return Failure(409, "Conflict", message, details={"name": name, "kind": "pods/binding"})


def modified(kind: Kind, name: str) -> Failure:
    why = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(kind, name, why)


def expired(message: str, goes_on: str = "") -> Failure:
    """With `goes_on`, a token for the rest of the list as it is now."""
    return Failure(410, "Expired", message, metadata={"continue": goes_on} if goes_on else None)


def storage_full(why: str) -> Failure:
    message = f"nothing can be written until there is room again: {why}; what is stored can be read"
    return Failure(507, "InsufficientStorage", message)


def too_large(limit: int) -> Failure:
    message = f"Request entity too large: limit is {limit} bytes"
    return Failure(413, "RequestEntityTooLarge", message)


def unsupported_media_type(given: str, supported: Sequence[str]) -> Failure:
    message = (
        f"the body of the request was in an unknown format - accepted media types include: {', '.join(supported)}"
        f"; Content-Type was {given or 'not set'}"
    )
    return Failure(415, "UnsupportedMediaType", message)


def invalid(kind: Kind, name: str, errors: Sequence[FieldError]) -> Failure:
    """The object breaks rules: one cause per field error."""
    listed = ", ".join(str(error) for error in errors)
    said = f"[{listed}]" if len(errors) > 1 else listed
    details = {"name": name, "group": kind.group, "kind": kind.kind, "causes": _causes(errors)}
    shown = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
    return Failure(422, "Invalid", f'{shown} "{name}" is invalid: {said}', details=details)


def unprocessable_options(error: FieldError, options: str = "ListOptions") -> Failure:
    """Query parameters contradict each other, or one is missing."""
    details = {"group": "meta.k8s.io", "kind": options, "causes": _causes([error])}
    return Failure(422, "Invalid", f'{options}.meta.k8s.io "" is invalid: {error}', details=details)


_OPTIONS = {"POST": "CreateOptions", "PUT": "UpdateOptions", "PATCH": "PatchOptions", "DELETE": "DeleteOptions"}


def bad_options(method: str, error: FieldError) -> Failure:
    """A query parameter of a write has a value that there is not."""
    return unprocessable_options(error, _OPTIONS.get(method, "ListOptions"))


def unprocessable_patch(patch: Any, message: str) -> Failure:
    """A patch is fine as such, and its outcome has fields that the kind has not."""
    shown = patch.decode("utf-8", "replace") if isinstance(patch, bytes) else patch
    error = Path("patch").invalid(shown, message)
    return Failure(422, "Invalid", f' "" is invalid: {error}', details={"causes": _causes([error])})


def apply_conflict(message: str, causes: Sequence[Cause]) -> Failure:
    """Others own fields that an apply would change."""
    return Failure(409, "Conflict", message, details={"causes": list(causes)})


def unprocessable(message: str) -> Failure:
    return Failure(422, "Invalid", message)


def too_many_requests(kind: Kind, name: str, message: str, cause: Cause, *, retry_after: int = 0) -> Failure:
    details = _about(kind, name) | {"causes": [cause]}
    if retry_after:
        details["retryAfterSeconds"] = retry_after
    headers = {"Retry-After": str(retry_after)} if retry_after else {}
    return Failure(429, "TooManyRequests", message, details=details, headers=headers)


def internal_error(message: str) -> Failure:
    details = {"causes": [{"message": message}]}
    return Failure(500, "InternalError", f"Internal error occurred: {message}", details=details)


def not_implemented(message: str) -> Failure:
    return Failure(501, "NotImplemented", message)


def revision_too_large(asked: int, present: int) -> Failure:
    message = f"Timeout: Too large resource version: {asked}, current: {present}"
    details = {
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": 1,
    }
    return Failure(504, "Timeout", message, details=details)


def _about(kind: Kind, name: str) -> dict[str, Any]:
    about = {"name": name, "group": kind.group, "kind": kind.plural}
    return {key: value for key, value in about.items() if value}


def _named(kind: Kind, name: str) -> str:
    resource = f"{kind.plural}.{kind.group}" if kind.group else kind.plural
    return f'{resource} "{name}"'


def _causes(errors: Sequence[FieldError]) -> list[dict[str, str]]:
    return [{"reason": error.reason, "message": error.body, "field": error.field} for error in errors]
