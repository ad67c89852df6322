"""Who may use a server that others can reach: TLS, and tokens or client certificates."""

from __future__ import annotations

import hashlib
import ssl
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

from muster.runtime.http import LOOPBACK, is_loopback

SHORTEST_TOKEN = 16


class Unsafe(ValueError):
    """The server must not be reached like this; the message begins with the option to change."""


@dataclass(frozen=True)
class Exposure:
    """Where a server listens, and how it knows its clients."""

    host: str = LOOPBACK
    certificate: Path | None = None
    key: Path | None = None
    client_ca: Path | None = None
    tokens: Path | None = None


@dataclass(frozen=True)
class Guard:
    """What `http.application` and `http.listen` need to serve by an exposure."""

    tls: ssl.SSLContext | None
    tokens: frozenset[bytes]
    certificates: bool

    @property
    def asks(self) -> bool:
        """Whether a client has to say who it is."""
        return bool(self.tokens) or self.certificates

    def admits(self, request: web.Request) -> bool:
        """Whether it has a token of ours, or (the handshake has checked it) a certificate of the client CA."""
        if self.certificates and request.transport is not None and request.transport.get_extra_info("peercert"):
            return True
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        return scheme.lower() == "bearer" and _digest(token.strip()) in self.tokens


def guard(exposure: Exposure) -> Guard:
    """
    Raises:
        Unsafe: an address that others reach lacks TLS or a way to know clients, or a file is not what it should be.
    """
    given = exposure.certificate, exposure.key
    if (given[0] is None) != (given[1] is None):
        missing, there = ("--tls-key", "--tls-cert") if given[1] is None else ("--tls-cert", "--tls-key")
        raise Unsafe(f"{missing}: {there} is given; give both or neither")
    if exposure.client_ca is not None and exposure.certificate is None:
        raise Unsafe("--client-ca: client certificates need TLS; give --tls-cert and --tls-key too")
    if not is_loopback(exposure.host):
        if exposure.certificate is None:
            raise Unsafe(
                f"--host: {exposure.host} can be reached from other machines; give --tls-cert and --tls-key, "
                f"and --token-file or --client-ca, or listen on {LOOPBACK}"
            )
        if exposure.tokens is None and exposure.client_ca is None:
            raise Unsafe(
                f"--host: {exposure.host} can be reached from other machines, and anyone could do anything; "
                "give --token-file or --client-ca"
            )
    tokens = frozenset() if exposure.tokens is None else _tokens(exposure.tokens)
    return Guard(_tls(exposure, bool(tokens)), tokens, exposure.client_ca is not None)


def _digest(token: str) -> bytes:
    """What is compared instead of the token, so that the time it takes tells nothing of it."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


def _tokens(file: Path) -> frozenset[bytes]:
    """One token a line; what follows a comma (a name, as in Kubernetes' static token files), and # lines, are notes."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise Unsafe(f"--token-file: {file}: {getattr(error, 'strerror', None) or 'no UTF-8 text'}") from None
    found = [line.partition(",")[0].strip() for line in lines if line.strip() and not line.startswith("#")]
    for number, token in enumerate(found, 1):
        if len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
            raise Unsafe(f"--token-file: {file}: token {number}: want at least {SHORTEST_TOKEN} characters, no spaces")
    if not found:
        raise Unsafe(f"--token-file: {file} has no token; write one a line")
    return frozenset(map(_digest, found))


def _tls(exposure: Exposure, tokens: bool) -> ssl.SSLContext | None:
    if exposure.certificate is None or exposure.key is None:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    files: Collection[tuple[str, Path | None]] = (
        ("--tls-cert", exposure.certificate),
        ("--tls-key", exposure.key),
        ("--client-ca", exposure.client_ca),
    )
    for option, file in files:
        if file is not None:
            try:
                file.read_bytes()
            except OSError as error:
                raise Unsafe(f"{option}: {file}: {error.strerror}") from None
    try:
        context.load_cert_chain(exposure.certificate, exposure.key, password="")
    except (OSError, ValueError) as error:
        why = getattr(error, "reason", None) or error
        raise Unsafe(f"--tls-cert/--tls-key: no certificate with its key, unencrypted, in PEM form: {why}") from None
    if exposure.client_ca is not None:
        try:
            context.load_verify_locations(exposure.client_ca)
        except OSError as error:
            raise Unsafe(f"--client-ca: {exposure.client_ca}: no certificates in PEM form: {error}") from None
        context.verify_mode = ssl.CERT_OPTIONAL if tokens else ssl.CERT_REQUIRED
    return context
