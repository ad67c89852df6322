"""How to reach an API server, and who asks: kubeconfig files and service accounts, read by the official package.

Of the package `kubernetes` (extra `cluster`) only the configuration loader is used: it is right on tokens, files of
tokens, client certificates, basic authentication and exec plugins alike. It is slow to import, so it is imported late.
"""

from __future__ import annotations

import hashlib
import logging
import os
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from muster.api.instant import SECOND, Instant

FRESH_FOR = 60 * SECOND
"""Files may be rewritten at any time: they are read again after this long, as client-go does with tokens."""
EARLY = 10 * SECOND
"""Credentials with an end are asked for anew so long before it."""
MISSING = "needs the official client's configuration loader: pip install 'muster-scheduler[cluster]'"
TOKEN_FILE = "/var/run/secrets/kubernetes.io/serviceaccount/token"
CA_FILE = "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt"


class NoAccess(Exception):
    """It cannot be said how to reach the server, or who asks; the text names the file or option and the fix."""


@dataclass(frozen=True)
class Access:
    """Where a server is, and what shows who asks. Its `repr` tells no secret."""

    server: str
    authorization: str = field(default="", repr=False)
    """The header of that name; "" where a certificate says it, or nothing."""
    tls: ssl.SSLContext | None = field(default=None, repr=False, compare=False)
    server_name: str = ""
    """What its certificate has to be for; "": the host of the address."""
    proxy: str = field(default="", repr=False)
    identity: str = ""
    """A digest of everything that connections are made with: while it is the same, they are kept."""
    fresh_until: Instant | None = None
    """When to load it again; None: once the server says 401."""


Source = Callable[[Instant], Access]
"""Loads an Access; may take its time (an exec plugin), so it is called on a thread. Raises NoAccess."""


def plain(server: str) -> Source:
    """A server that asks nobody who they are, on this machine."""
    return lambda now: Access(server.rstrip("/"), identity=server)


def in_cluster(token_file: str = TOKEN_FILE, ca_file: str = CA_FILE) -> Source:
    """The service account of the pod that this process runs in."""

    def load(now: Instant) -> Access:
        incluster = _loader().incluster_config
        try:
            made = _configuration()
            incluster.InClusterConfigLoader(
                token_filename=token_file, cert_filename=ca_file, try_refresh_token=False
            ).load_and_set(made)
        except incluster.ConfigException as error:
            raise NoAccess(f"--in-cluster: {error} Is this a pod with a service account?") from None
        return _access(made, now, now + FRESH_FOR, "--in-cluster")

    return load


def kubeconfig(path: Path | None, context: str | None = None) -> Source:
    """A kubeconfig file; None: $KUBECONFIG (several files, as kubectl reads them), else ~/.kube/config."""

    def load(now: Instant) -> Access:
        kube = _loader().kube_config
        paths = str(path) if path is not None else os.environ.get("KUBECONFIG") or str(Path.home() / ".kube" / "config")
        where = f"--kubeconfig: {paths}"
        _check_readable(paths, where)
        made = _configuration()
        with _overheard() as said:
            try:
                merged = kube.KubeConfigMerger(paths).config
                if merged is None:
                    raise NoAccess(f"{where}: is empty; want a kubeconfig with clusters, users and contexts")
                loader = kube.KubeConfigLoader(config_dict=merged, active_context=context, config_base_path=None)
                loader.load_and_set(made)
            except kube.ConfigException as error:
                raise NoAccess(f"{where}: {_sentence(error)}") from None
            except NoAccess:
                raise
            except Exception as error:  # whatever a wrong file makes the loader stumble over
                raise NoAccess(f"{where}: {type(error).__name__}: {_sentence(error)}") from None
        if said:
            raise NoAccess(f"{where}: {_sentence(said[0])}")
        expiry = getattr(loader, "expiry", None)
        user = getattr(loader, "_user", None)
        execs = user is not None and "exec" in user
        return _access(made, now, _instant(expiry) - EARLY if expiry else None if execs else now + FRESH_FOR, where)

    return load


def _check_readable(paths: str, where: str) -> None:
    for one in paths.split(os.pathsep):
        try:
            Path(one).expanduser().read_bytes()
        except FileNotFoundError:
            if os.pathsep not in paths:
                raise NoAccess(f"{where}: no such file; name one, or use --in-cluster inside a pod") from None
        except OSError as error:
            raise NoAccess(f"{where}: {error.strerror}") from None


def _access(made: Any, now: Instant, fresh_until: Instant | None, where: str) -> Access:
    server = str(made.host).rstrip("/")
    if not server.startswith(("http://", "https://")):
        raise NoAccess(f"{where}: clusters[].cluster.server: {server!r} is no http:// or https:// address")
    header = str(made.api_key.get("BearerToken") or made.api_key.get("authorization") or "").strip()
    tls, digest = _tls(made, where) if server.startswith("https://") else (None, "")
    name, proxy = str(made.tls_server_name or ""), str(made.proxy or "")
    identity = f"{server} {digest} {name} {proxy}"
    if fresh_until is not None and fresh_until <= now:
        fresh_until = now + EARLY
    return Access(server, header, tls, name, proxy, identity, fresh_until)


def _tls(made: Any, where: str) -> tuple[ssl.SSLContext, str]:
    """The context of connections, and a digest of all that went into it."""
    digest = hashlib.sha256(str(bool(made.verify_ssl)).encode())
    named = (("certificate-authority", made.ssl_ca_cert), ("client-certificate", made.cert_file))
    for field_name, file in (*named, ("client-key", made.key_file)):
        if file:
            try:
                digest.update(Path(file).read_bytes())
            except OSError as error:
                raise NoAccess(f"{where}: {field_name}: {file}: {error.strerror}") from None
    try:
        context = ssl.create_default_context(cafile=made.ssl_ca_cert or None)
    except ssl.SSLError:
        raise NoAccess(f"{where}: certificate-authority: no certificates in PEM form") from None
    # Kubernetes' own clients take certificates that lack the key identifiers of RFC 5280; strict checking would not.
    context.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", 0)
    if not made.verify_ssl:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if made.cert_file:
        try:
            context.load_cert_chain(made.cert_file, made.key_file or None)
        except ssl.SSLError as error:
            why = f"client-certificate, client-key: not a certificate and its key in PEM form ({error.reason})"
            raise NoAccess(f"{where}: {why}") from None
    return context, digest.hexdigest()


def _loader() -> Any:
    try:
        import kubernetes.config.incluster_config
        import kubernetes.config.kube_config
    except ImportError:
        raise NoAccess(f"muster scheduler {MISSING}") from None
    return kubernetes.config


def _configuration() -> Any:
    from kubernetes.client import Configuration

    return Configuration()


@contextmanager
def _overheard() -> Iterator[list[str]]:
    """What the loader writes to the log instead of raising it: an exec plugin that failed."""
    said: list[str] = []

    class Ear(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            said.append(record.getMessage())

    ear, root = Ear(logging.ERROR), logging.getLogger()
    root.addHandler(ear)
    try:
        yield said
    finally:
        root.removeHandler(ear)


def _sentence(error: object) -> str:
    return " ".join(str(error).split())


def _instant(moment: datetime) -> Instant:
    return int(moment.astimezone(UTC).timestamp() * SECOND)
