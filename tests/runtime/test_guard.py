"""A server that others can reach knows its clients, or does not start."""

from __future__ import annotations

import asyncio
import http.client
import ssl
from pathlib import Path
from typing import Any

import pytest

from muster.api.gates import FeatureGates
from muster.cli import up
from muster.cli.app import run
from muster.runtime.guard import Exposure, Guard, Unsafe, guard
from muster.runtime.http import application, listen
from muster.runtime.wiring import Setup, alone

TOKEN = "a-token-of-at-least-16"


def status_of(known: Guard, **sent: Any) -> int | str:
    """What GET /version is answered, or the error that the connection fails with."""

    async def served() -> int | str:
        server = alone(Setup(FeatureGates()), ())
        app = application(server.local.handle, server.local.changes, guard=known.admits if known.asks else None)
        runner, port = await listen(app, 0, tls=known.tls)
        try:
            return await asyncio.to_thread(ask, port, **sent)
        finally:
            server.worker.close()
            await runner.cleanup()

    return asyncio.run(served())


def ask(port: int, token: str = "", certificate: Path | None = None, ca: Path | None = None) -> int | str:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    if ca is None:
        connection: http.client.HTTPConnection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    else:
        context = ssl.create_default_context(cafile=str(ca))
        if certificate is not None:
            context.load_cert_chain(certificate, certificate.with_suffix(".key"))
        connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=5, context=context)
    try:
        connection.request("GET", "/version", headers=headers)
        return connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        return type(error).__name__
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("host", "option", "why"),
    [
        ("0.0.0.0", "--host", "--tls-cert and --tls-key"),
        ("192.0.2.1", "--host", "can be reached from other machines"),
        ("::", "--host", "can be reached from other machines"),
        ("some.name", "--host", "can be reached from other machines"),
    ],
)
def test_an_address_that_others_reach_needs_tls(host, option, why):
    with pytest.raises(Unsafe, match=f"^{option}: ") as found:
        guard(Exposure(host))
    assert why in str(found.value)


def test_tls_alone_does_not_know_clients(certificates):
    with pytest.raises(Unsafe, match=r"^--host: .*--token-file or --client-ca"):
        guard(Exposure("0.0.0.0", certificates / "server.pem", certificates / "server.key"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"key": None}, "--tls-key: --tls-cert is given"),
        ({"certificate": None}, "--tls-cert: --tls-key is given"),
        ({"key": Path("/nowhere")}, "--tls-key: /nowhere: No such file"),
        ({"key": "client.key"}, "--tls-cert/--tls-key: "),
        ({"client_ca": "tokens"}, "--client-ca: "),
        ({"tokens": "server.key"}, "--token-file: "),
        ({"tokens": Path("/dev/null")}, "--token-file: /dev/null has no token"),
    ],
)
def test_each_wrong_file_is_named_by_its_option(certificates, change, message):
    given: dict[str, Any] = {"certificate": "server.pem", "key": "server.key", "tokens": "tokens"} | change
    paths = {name: certificates / file if isinstance(file, str) else file for name, file in given.items()}
    with pytest.raises(Unsafe) as found:
        guard(Exposure("0.0.0.0", **paths))
    assert str(found.value).startswith(message)


def test_tokens_let_in_whoever_has_one(certificates):
    pem, key, tokens = (certificates / name for name in ("server.pem", "server.key", "tokens"))
    known = guard(Exposure("0.0.0.0", pem, key, tokens=tokens))
    ca = certificates / "ca.pem"
    assert status_of(known, ca=ca, token=TOKEN) == 200
    assert status_of(known, ca=ca, token=TOKEN + "x") == 401
    assert status_of(known, ca=ca) == 401
    assert isinstance(status_of(known), str), "plain HTTP was answered"


def test_certificates_let_in_whoever_has_one_of_the_ca(certificates):
    pem, key, ca = (certificates / name for name in ("server.pem", "server.key", "ca.pem"))
    known = guard(Exposure("0.0.0.0", pem, key, client_ca=ca))
    assert status_of(known, ca=ca, certificate=certificates / "client.pem") == 200
    assert status_of(known, ca=ca) != 200
    assert status_of(known, ca=ca, certificate=certificates / "stranger.pem") != 200


def test_with_both_either_is_enough(certificates):
    pem, key, ca, tokens = (certificates / name for name in ("server.pem", "server.key", "ca.pem", "tokens"))
    known = guard(Exposure("0.0.0.0", pem, key, ca, tokens))
    assert status_of(known, ca=ca, certificate=certificates / "client.pem") == 200
    assert status_of(known, ca=ca, token=TOKEN) == 200
    assert status_of(known, ca=ca) == 401


def test_the_command_refuses_at_the_option(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(up, "calm_collector", lambda: None)  # it is for a process that serves nothing but a cluster
    for command in ("api-server", "up"):
        assert run([command, "--host", "0.0.0.0"]) == 2
        assert "muster: --host: 0.0.0.0 can be reached" in capsys.readouterr().err
        assert run([command, "--tls-key", "server.key"]) == 2
        assert "muster: --tls-cert: --tls-key is given" in capsys.readouterr().err
    assert run(["api-server", "--controllers", "jobz"]) == 2
    assert 'did you mean "jobs"?' in capsys.readouterr().err
    (tmp_path / "thesis").write_text("dear")
    for command in ("api-server", "up"):
        assert run([command, "--port", "0", "--data", str(tmp_path)]) == 2
        assert "muster: --data: " in capsys.readouterr().err


def command_over_tls(known: Guard, *arguments: str, scheme: str = "https") -> int:
    """The exit code of a command against a server with this guard."""

    async def served() -> int:
        server = alone(Setup(FeatureGates()), ())
        app = application(server.local.handle, server.local.changes, guard=known.admits)
        runner, port = await listen(app, 0, tls=known.tls)
        try:
            return await asyncio.to_thread(run, [*arguments, "--server", f"{scheme}://127.0.0.1:{port}"])
        finally:
            server.worker.close()
            await runner.cleanup()

    return asyncio.run(served())


def test_commands_speak_tls_and_show_a_token(certificates, capsys, monkeypatch):
    pem, key, tokens = (certificates / name for name in ("server.pem", "server.key", "tokens"))
    known = guard(Exposure("0.0.0.0", pem, key, tokens=tokens))
    ask_for = ("get", "namespaces", "-o", "name")
    assert command_over_tls(known, *ask_for) == 1
    said = capsys.readouterr().err
    assert "certificate verify failed" in said and "set $MUSTER_CA to the file of the CA" in said
    monkeypatch.setenv("MUSTER_CA", str(certificates / "ca.pem"))
    assert command_over_tls(known, *ask_for) == 1
    assert "wants to know who asks: set $MUSTER_TOKEN" in capsys.readouterr().err
    monkeypatch.setenv("MUSTER_TOKEN", TOKEN)
    assert command_over_tls(known, *ask_for) == 0
    assert "namespace/default" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("server", "variables", "message"),
    [
        ("https://127.0.0.1:1", {"MUSTER_CA": "/nowhere"}, "$MUSTER_CA: /nowhere: No such file"),
        ("https://127.0.0.1:1", {"MUSTER_CA": "/dev/null"}, "$MUSTER_CA: /dev/null: no certificates in PEM form"),
        ("http://192.0.2.1:1", {"MUSTER_TOKEN": TOKEN}, "over http others could read it on its way to 192.0.2.1"),
        ("http://127.0.0.1:1", {"MUSTER_TOKEN": "a\nb"}, "$MUSTER_TOKEN: want printable ASCII letters"),
    ],
)
def test_what_a_command_cannot_use_is_named_by_its_variable(server, variables, message, capsys, monkeypatch):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert run(["get", "pods", "--server", server]) == 2
    assert message in capsys.readouterr().err


def test_plain_http_to_a_server_of_tls_says_so(certificates, capsys):
    pem, key, tokens = (certificates / name for name in ("server.pem", "server.key", "tokens"))
    known = guard(Exposure("0.0.0.0", pem, key, tokens=tokens))
    assert command_over_tls(known, "get", "pods", scheme="http") == 1
    assert "if it speaks TLS, name it https://127.0.0.1:" in capsys.readouterr().err


def test_a_welcome_names_an_address_that_clients_can_use(certificates):
    pem, key, ca = (certificates / name for name in ("server.pem", "server.key", "ca.pem"))
    known = guard(Exposure("0.0.0.0", pem, key, client_ca=ca))
    told = up.welcome("https://0.0.0.0:7077", 16, FeatureGates(), known=known)
    assert "muster is up at https://0.0.0.0:7077" in told and told.count("0.0.0.0") == 1
    assert "https://NAME:7077" in told and "NAME is one of those in its certificate" in told
    assert "muster apply" not in told and "--client-certificate" in told


def test_a_welcome_says_what_clients_need(certificates):
    pem, key, tokens = (certificates / name for name in ("server.pem", "server.key", "tokens"))
    known = guard(Exposure("0.0.0.0", pem, key, tokens=tokens))
    told = up.welcome("https://0.0.0.0:7077", 16, FeatureGates(), known=known)
    assert "export MUSTER_CA=" in told and "export MUSTER_TOKEN=" in told
    assert "MUSTER_TOKEN" not in up.welcome("http://127.0.0.1:7077", 16, FeatureGates())
