"""A small HTTP client for the commands: one connection, JSON in and out, mistakes in plain words."""

from __future__ import annotations

import http.client
import os
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from muster.cli.failure import USAGE, Failure, warn

DEFAULT_SERVER = "http://127.0.0.1:7077"
VARIABLE = "MUSTER_SERVER"
TOKEN, CA = "MUSTER_TOKEN", "MUSTER_CA"
"""Variables with a bearer token, and with the file of the CA that a server's certificate is checked against."""
UNAUTHORIZED = 401
TIMEOUT = 30.0
"""Seconds to wait for one answer."""


class Answer(NamedTuple):
    status: int
    body: Mapping[str, Any]

    @property
    def ok(self) -> bool:
        return self.status < 300


class Client:
    """Talks to one server. `server` None: $MUSTER_SERVER, else where `muster up` listens by default."""

    def __init__(self, server: str | None = None) -> None:
        self.server = (server or os.environ.get(VARIABLE) or DEFAULT_SERVER).rstrip("/")
        self._connection = _connection(self.server)
        self._token = _token(self._connection)
        self._warned: set[str] = set()

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> Answer:
        """One request.

        Raises:
            Failure: nobody answers there, or what answers is no API server.
        """
        target = _target(path, query)
        payload = None if body is None else msgspec.json.encode(body)
        headers = {"Content-Type": content_type, "Accept": accept, "User-Agent": "muster"} | self._token
        try:
            self._connection.request(method, target, payload, headers)
            response = self._connection.getresponse()
            text = response.read()
        except (OSError, http.client.HTTPException, UnicodeError) as error:
            self._connection.close()
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise Failure(f"cannot reach {self.server} ({reason}); {self._way_out(error)}") from None
        self._tell(warnings_in(response.headers.get("Warning", "")))
        return self._read(path, response.status, text)

    def _tell(self, warnings: list[str]) -> None:
        """What the server warns of, each only once."""
        for text in warnings:
            if text not in self._warned:
                self._warned.add(text)
                warn(text)

    def _read(self, path: str, status: int, text: bytes) -> Answer:
        """The answer, of a shape that its readers can rely on."""
        try:
            body = msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError):
            raise self._stranger("something that is not JSON") from None
        answer = Answer(status, body)
        if status == UNAUTHORIZED:
            raise Failure(f"{self.server} wants to know who asks: set ${TOKEN} to one of its tokens")
        if not isinstance(body, dict) or not (_is_muster(path, body) if answer.ok else _is_refusal(body)):
            raise self._stranger(f"HTTP {status} with something that is not of Muster")
        return answer

    def _way_out(self, error: Exception) -> str:
        """What helps where nobody answers, or nobody who can be understood."""
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            return f"set ${CA} to the file of the CA of its certificate, and use a name that is in the certificate"
        if isinstance(error, http.client.HTTPException | ConnectionResetError) and self.server.startswith("http:"):
            return f"if it speaks TLS, name it https:{self.server.partition(':')[2]} with --server or ${VARIABLE}"
        return "start one with `muster up`, or name it with --server"

    def _stranger(self, what: str) -> Failure:
        return Failure(f"{self.server} answered {what}; is it a `muster up` server?")

    def get(self, path: str, query: Mapping[str, str] | None = None, accept: str = "application/json") -> Any:
        """The body of a GET.

        Raises:
            Failure: the server refuses; carries its own words.
        """
        answer = self.call("GET", path, query=query, accept=accept)
        if not answer.ok:
            raise Failure(told(answer))
        return answer.body


def warnings_in(header: str) -> list[str]:
    """The texts of a header `Warning`: `299 - "text"`, separated by commas."""
    found = re.findall(r'299 \S+ "((?:[^"\\]|\\.)*)"', header)
    return [re.sub(r"\\(.)", r"\1", text) for text in found]


def _connection(server: str) -> http.client.HTTPConnection:
    """To `http://HOST:PORT`, or `https://HOST:PORT`."""
    scheme, host, port = _address(server)
    if scheme == "http":
        return http.client.HTTPConnection(host, port or 80, timeout=TIMEOUT)
    import ssl  # takes a while, and is rarely needed

    file = os.environ.get(CA)
    try:
        context = ssl.create_default_context(cafile=file)
    except ssl.SSLError:
        raise Failure(f"${CA}: {file}: no certificates in PEM form", USAGE) from None
    except OSError as error:
        raise Failure(f"${CA}: {file}: {error.strerror or error}", USAGE) from None
    return http.client.HTTPSConnection(host, port or 443, timeout=TIMEOUT, context=context)


def _address(server: str) -> tuple[str, str, int | None]:
    try:
        parts = urlsplit(server)
        told = parts.scheme in ("http", "https") and server == f"{parts.scheme}://{parts.netloc}"
        if told and parts.hostname and not re.search(r"[\s@]", server):
            return parts.scheme, parts.hostname, parts.port
    except ValueError:
        pass
    raise Failure(f"--server (or ${VARIABLE}) must look like {DEFAULT_SERVER}, not {server!r}", USAGE)


def _token(connection: http.client.HTTPConnection) -> dict[str, str]:
    """The header that says who asks, if a token is given. Nobody else gets to read it."""
    token = os.environ.get(TOKEN, "").strip()
    if not token:
        return {}
    if not token.isascii() or not token.isprintable():
        raise Failure(f"${TOKEN}: want printable ASCII letters", USAGE)
    if not isinstance(connection, http.client.HTTPSConnection) and connection.host not in (
        "127.0.0.1",
        "localhost",
        "::1",
    ):
        raise Failure(f"${TOKEN}: over http others could read it on its way to {connection.host}; use https", USAGE)
    return {"Authorization": f"Bearer {token}"}


def _is_muster(path: str, body: Mapping[str, Any]) -> bool:
    """Whether a success is what that path answers: verdicts, a list of objects, or an object."""
    if path.startswith("/muster/v1/queue"):
        return _all(body.get("waiting"), _is_verdict)
    if path.startswith("/muster/"):
        return _is_verdict(body) or not path.startswith("/muster/v1/why/")
    kind = body.get("kind")
    if kind == "Table":
        return _all(body.get("columnDefinitions"), _is_column) and _all(body.get("rows"), _is_row)
    if isinstance(kind, str) and kind.endswith("List"):
        return _all(body.get("items"), _is_object)
    return kind == "Status" or (isinstance(kind, str) and _is_object(body))


def _is_verdict(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(value.get(key), str) for key in ("sentence", "namespace"))


def _is_column(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("name"), str)


def _is_row(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("cells"), list)


def _is_object(value: Any) -> bool:
    meta = value.get("metadata") if isinstance(value, dict) else None
    return isinstance(meta, dict) and isinstance(meta.get("name"), str)


def _all(values: Any, are: Callable[[Any], bool]) -> bool:
    return isinstance(values, list) and all(map(are, values))


def _is_refusal(body: Mapping[str, Any]) -> bool:
    return isinstance(body.get("message"), str)


def _target(path: str, query: Mapping[str, str] | None) -> str:
    """The request target; what is odd in a name or a selector stays part of it."""
    try:
        return quote(path) + (f"?{urlencode(query)}" if query else "")
    except UnicodeEncodeError as error:
        raise Failure(f"{error.object!r} is not UTF-8 text", USAGE) from None


def told(answer: Answer) -> str:
    """A refusal in the server's own words: each wrong field on a line of its own, where the Status names fields."""
    message = answer.body["message"] or f"HTTP {answer.status}"
    details = answer.body.get("details")
    causes = details.get("causes") if isinstance(details, dict) else None
    fields = [
        f"  {cause['field']}: {cause.get('message', '')}"
        for cause in (causes if isinstance(causes, list) else [])
        if isinstance(cause, dict) and isinstance(cause.get("field"), str)
    ]
    if len(fields) < 2:
        return message
    subject = message.split(": ", 1)[0] if ": " in message else message
    return "\n".join([f"{subject}:", *fields])
