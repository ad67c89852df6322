"""Calls over HTTP: made again when that helps, never when it does not; credentials renewed; time limits kept."""

from __future__ import annotations

import asyncio
import gzip
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml
from aiohttp import web

from muster.api.calls import Request, Response
from muster.runtime.clock import SystemClock
from muster.runtime.guard import Exposure, guard
from muster.runtime.remote.access import Access, NoAccess, Source, in_cluster, kubeconfig, plain
from muster.runtime.remote.lines import Lines
from muster.runtime.remote.refusals import Refusals, object_of, resource_of
from muster.runtime.remote.retry import Backoff, pause
from muster.runtime.remote.transport import Transport

Use = Callable[[Transport], Awaitable[Any]]
PODS = Request("GET", "/api/v1/pods")
TOKEN = "a-token-of-at-least-16"


def asked(handler: Any, use: Use, source: Callable[[str], Source] = plain, tls: Any = None) -> Any:
    """What comes of using a transport to a server that answers every request by `handler`."""

    async def run() -> Any:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", handler)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
        address = f"{'https' if tls else 'http'}://127.0.0.1:{runner.addresses[0][1]}"
        transport = Transport(source(address), SystemClock(), Random(1))
        await transport.begin()
        try:
            return await use(transport)
        finally:
            await transport.close()
            await runner.cleanup()

    return asyncio.run(run())


class Answers:
    """Answers in order, the last one for ever; remembers what was asked."""

    def __init__(self, *answers: web.Response | tuple[int, Any]) -> None:
        self.left, self.asked = list(answers), list[web.Request]()

    async def __call__(self, request: web.Request) -> web.Response:
        self.asked.append(request)
        await request.read()
        status, body = self.left.pop(0) if len(self.left) > 1 else self.left[0]
        headers = {"Retry-After": "0"} if status == 429 else {}
        return web.Response(status=status, text=json.dumps(body), headers=headers)


@pytest.mark.parametrize("failure", [429, 500, 502, 503, 504])
def test_a_call_that_fails_for_now_is_made_again(failure):
    answers = Answers((failure, {}), (failure, {}), (200, {"items": []}))
    got = asked(answers, lambda transport: transport.call(PODS))
    assert got.status == 200 and len(answers.asked) == 3


@pytest.mark.parametrize("final", [400, 401, 403, 404, 409, 410, 422])
def test_a_call_that_is_decided_is_not_made_again(final):
    answers = Answers((final, {"message": "no"}))
    got = asked(answers, lambda transport: transport.call(PODS))
    assert got.status == final and len(answers.asked) == 1


def test_a_429_without_a_time_is_a_decision_and_one_with_a_time_is_kept():
    random = Random(1)
    assert pause(Response(429, {}), 1, random) is None
    assert pause(Response(429, {}, {"retry-after": "3"}), 1, random) == pytest.approx(3, abs=0.2)
    assert 5 <= (pause(Response(503, {}), 30, random, Backoff(longest=5.0)) or 0) <= 10


def test_a_server_that_is_not_there_is_an_answer_with_status_0_in_words():
    async def use(transport: Transport) -> Response:
        return await transport.call(PODS, within=0.0)

    async def run() -> Response:
        transport = Transport(plain("http://127.0.0.1:1"), SystemClock(), Random(1))
        await transport.begin()
        try:
            return await use(transport)
        finally:
            await transport.close()

    got = asyncio.run(run())
    assert got.status == 0 and not got.ok
    assert got.body["message"].startswith("cannot reach http://127.0.0.1:1: ")


def test_whoever_may_not_write_any_more_sends_nothing():
    answers = Answers((500, {}))
    left = [1.0, 1.0, 0.0]
    got = asked(answers, lambda transport: transport.call(PODS, may=lambda: left.pop(0)))
    assert got.status == 0 and len(answers.asked) == 1, "the second attempt was not begun"


def test_a_process_that_stood_still_before_it_sent_sends_nothing():
    answers = Answers((200, {}))
    for connections in (0, 1):  # one is made, one is there already

        async def use(transport: Transport, connections: int = connections) -> Response:
            for _ in range(connections):
                await transport.call(PODS)
            left = [5.0, 0.0, 0.0]
            return await transport.call(PODS, may=lambda: left.pop(0))

        before = len(answers.asked)
        got = asked(answers, use)
        assert got.status == 0 and "does not lead" in got.body["message"]
        assert len(answers.asked) == before + connections


def test_a_call_lasts_no_longer_than_it_may():
    async def slow(_: web.Request) -> web.Response:
        await asyncio.sleep(5)
        return web.Response()

    got = asked(slow, lambda transport: transport.call(PODS, may=lambda: 0.1, patient=False))
    assert got.status == 0 and "in time" in got.body["message"]


def test_compressed_answers_are_read():
    async def compressed(request: web.Request) -> web.Response:
        assert "gzip" in request.headers["Accept-Encoding"]
        body = gzip.compress(b'{"items": [1, 2]}')
        return web.Response(body=body, headers={"Content-Encoding": "gzip", "Content-Type": "application/json"})

    assert asked(compressed, lambda transport: transport.call(PODS)).body == {"items": [1, 2]}


def test_an_answer_that_is_no_json_is_told_as_it_came():
    async def proxy(_: web.Request) -> web.Response:
        return web.Response(status=404, text="<html>not here</html>")

    got = asked(proxy, lambda transport: transport.call(PODS))
    assert got.status == 404 and got.body["message"] == "<html>not here</html>"


def test_a_token_that_is_refused_is_loaded_again_once():
    tokens = ["old", "new"]

    async def guarded(request: web.Request) -> web.Response:
        known = request.headers.get("Authorization") == "Bearer new"
        return web.Response(status=200 if known else 401, text="{}")

    def source(address: str) -> Source:
        return lambda now: Access(address, f"Bearer {tokens.pop(0) if len(tokens) > 1 else tokens[0]}", identity="x")

    async def many(transport: Transport) -> list[int]:
        return [got.status for got in await asyncio.gather(*(transport.call(PODS) for _ in range(10)))]

    assert asked(guarded, many, source) == [200] * 10


def test_a_token_that_is_stale_is_read_again_before_it_is_shown():
    loaded: list[int] = []

    def source(address: str) -> Source:
        def load(now: int) -> Access:
            loaded.append(now)
            return Access(address, f"Bearer {len(loaded)}", identity="x", fresh_until=now + 1)

        return load

    answers = Answers((200, {}))

    async def twice(transport: Transport) -> None:
        await asyncio.sleep(0.01)
        await transport.call(PODS)

    asked(answers, twice, source)
    assert answers.asked[0].headers["Authorization"] == "Bearer 2"


def test_lines_are_whole_however_they_were_cut():
    text = b'{"a":1}\n\n{"b":2}\n{"c":' + b"3" * 300_000 + b"}\n"
    for size in (1, 7, 1000, len(text)):
        lines = Lines()
        found = [line for at in range(0, len(text), size) for line in lines.feed(text[at : at + size])]
        assert found == [line for line in text.split(b"\n") if line]


# -- who asks


def written(folder: Path, user: dict[str, Any], **cluster: Any) -> Path:
    file = folder / "config"
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:6443", **cluster}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    file.write_text(yaml.safe_dump(config))
    return file


def plugin(folder: Path, status: dict[str, Any], code: int = 0) -> dict[str, Any]:
    """An exec plugin that gives these credentials."""
    said = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}
    script = folder / "plugin.py"
    script.write_text(f"import sys\nprint({json.dumps(json.dumps(said))})\nsys.exit({code})\n")
    return {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": sys.executable,
            "args": [str(script)],
            "interactiveMode": "Never",
        }
    }


def test_tokens_files_of_tokens_and_passwords_are_shown(tmp_path):
    assert kubeconfig(written(tmp_path, {"token": "abc"}))(0).authorization == "Bearer abc"
    (tmp_path / "token").write_text("from-file\n")
    assert kubeconfig(written(tmp_path, {"tokenFile": str(tmp_path / "token")}))(0).authorization == "Bearer from-file"
    basic = kubeconfig(written(tmp_path, {"username": "me", "password": "pw"}))(0)
    assert basic.authorization == "Basic bWU6cHc="


def test_an_exec_plugin_is_asked_and_its_end_is_heeded(tmp_path):
    ends = {"token": "fresh", "expirationTimestamp": "2100-01-01T00:00:00Z"}
    access = kubeconfig(written(tmp_path, plugin(tmp_path, ends)))(0)
    assert access.authorization == "Bearer fresh"
    assert access.fresh_until == (4102444800 - 10) * 1_000_000
    assert kubeconfig(written(tmp_path, plugin(tmp_path, {"token": "t"})))(0).fresh_until is None


def test_an_exec_plugin_that_fails_is_an_error_with_its_reason(tmp_path):
    with pytest.raises(NoAccess, match="exec: process returned 3"):
        kubeconfig(written(tmp_path, plugin(tmp_path, {"token": "t"}, code=3)))(0)


def test_a_client_certificate_and_a_ca_make_a_connection(tmp_path, certificates):
    tls = guard(Exposure("127.0.0.1", certificates / "server.pem", certificates / "server.key",
                         certificates / "ca.pem")).tls  # fmt: skip
    user = {"client-certificate": str(certificates / "client.pem"), "client-key": str(certificates / "client.key")}
    ca = {"certificate-authority": str(certificates / "ca.pem")}

    async def who(request: web.Request) -> web.Response:
        assert request.transport is not None
        return web.json_response({"known": bool(request.transport.get_extra_info("peercert"))})

    def source(user: dict[str, Any], **cluster: Any) -> Callable[[str], Source]:
        return lambda address: kubeconfig(written(tmp_path, user, **{**cluster, "server": address}))

    got = asked(who, lambda transport: transport.call(PODS), source(user, **ca), tls)
    assert got.body == {"known": True}
    stranger = {"certificate-authority": str(certificates / "stranger.pem")}
    refused = asked(who, lambda transport: transport.call(PODS, patient=False), source(user, **stranger), tls)
    assert refused.status == 0 and "certificate" in refused.body["message"].lower()
    named = {**ca, "tls-server-name": "elsewhere.example"}
    other = asked(who, lambda transport: transport.call(PODS, patient=False), source(user, **named), tls)
    assert other.status == 0 and "elsewhere.example" in other.body["message"]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda config: config.pop("current-context"), "current-context"),
        (lambda config: config["contexts"][0]["context"].update(cluster="nope"), "nope"),
        (lambda config: config["clusters"][0]["cluster"].update(server="127.0.0.1"), "server: '127.0.0.1' is no http"),
        (lambda config: config["clusters"][0]["cluster"].update({"certificate-authority": "/nowhere"}), "nowhere"),
        (lambda config: config["users"][0]["user"].update({"client-certificate": "/nowhere"}), "nowhere"),
    ],
)
def test_a_wrong_kubeconfig_is_named_with_what_is_wrong(tmp_path, change, why):
    file = written(tmp_path, {})
    config = yaml.safe_load(file.read_text())
    change(config)
    file.write_text(yaml.safe_dump(config))
    with pytest.raises(NoAccess) as found:
        kubeconfig(file)(0)
    assert str(found.value).startswith(f"--kubeconfig: {file}: ") and why in str(found.value)


def test_a_kubeconfig_that_is_not_there_or_no_yaml_is_an_error(tmp_path):
    with pytest.raises(NoAccess, match="no such file"):
        kubeconfig(tmp_path / "missing")(0)
    (tmp_path / "bad").write_text("{")
    with pytest.raises(NoAccess, match=r"--kubeconfig: .*bad: "):
        kubeconfig(tmp_path / "bad")(0)


def test_a_context_can_be_named(tmp_path):
    with pytest.raises(NoAccess, match="other"):
        kubeconfig(written(tmp_path, {}), "other")(0)


def test_a_pod_shows_its_service_account_and_elsewhere_that_is_an_error(tmp_path, monkeypatch, certificates):
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(NoAccess, match=r"^--in-cluster: .*Is this a pod"):
        in_cluster()(0)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    (tmp_path / "token").write_text("of-the-pod\n")
    access = in_cluster(str(tmp_path / "token"), str(certificates / "ca.pem"))(5)
    assert access.server == "https://10.0.0.1:443" and access.authorization.lower() == "bearer of-the-pod"
    assert access.fresh_until == 5 + 60_000_000


def test_secrets_are_not_in_what_is_printed(tmp_path):
    access = kubeconfig(written(tmp_path, {"token": "very-secret"}))(0)
    assert "very-secret" not in repr(access)


# -- what is refused


def test_a_refusal_names_the_verb_and_the_resource_once_until_it_ends(caplog):
    refusals = Refusals()
    no = Response(403, {"message": 'User "x" cannot patch resource "pods/status"'})
    for _ in range(3):
        refusals.note("patch", "", "pods/status", no)
    (record,) = caplog.records
    assert 'apiGroups: [""], resources: ["pods/status"], verbs: ["patch"]' in record.getMessage()
    refusals.note("patch", "", "pods/status", Response(200, {}))
    assert refusals.standing == {}


@pytest.mark.parametrize(
    ("path", "group", "resource", "name"),
    [
        ("/api/v1/namespaces/d/pods/p/binding", "", "pods/binding", "/api/v1/namespaces/d/pods/p"),
        ("/api/v1/nodes/n", "", "nodes", "/api/v1/nodes/n"),
        ("/api/v1/namespaces/d", "", "namespaces", "/api/v1/namespaces/d"),
        ("/apis/g.io/v1/namespaces/d/things/t/status", "g.io", "things/status", "/apis/g.io/v1/namespaces/d/things/t"),
        ("/apis/g.io/v1/things/t", "g.io", "things", "/apis/g.io/v1/things/t"),
    ],
)
def test_paths_are_read_as_rbac_reads_them(path, group, resource, name):
    assert resource_of(path) == (group, resource)
    assert object_of(Request("PATCH", path, body={})) == name


def test_a_new_object_is_one_with_its_later_self():
    created = Request("POST", "/api/v1/namespaces/d/events", body={"metadata": {"name": "e"}})
    assert object_of(created) == object_of(Request("PATCH", "/api/v1/namespaces/d/events/e", body={}))
    assert object_of(Request("POST", "/api/v1/namespaces/d/pods", body={"metadata": {"generateName": "p-"}})) == ""
