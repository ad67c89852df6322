"""Webhooks that are really called: over TLS, in time, for users and for the scheduler, before and after a restart."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web

from muster.controllers.fleet import Shape
from muster.testing.builders import gang_manifest, pod_manifest
from served import serving

PODS = "/api/v1/namespaces/default/pods"
RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
SMALL = Shape(zones=1, racks=1, nodes=2, gpus=0)
WITHIN = 20.0


class Hooks:
    """A server of webhooks in a thread: what each path answers, and what was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.answers: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {"allow": lambda _: {"allowed": True}}
        self.release: asyncio.Event
        self.loop: asyncio.AbstractEventLoop
        self.port = 0

    async def run(self, context: ssl.SSLContext, ready: Future[Any]) -> None:
        self.release, self.loop, ended = asyncio.Event(), asyncio.get_running_loop(), asyncio.Event()
        app = web.Application()
        app.router.add_post("/{what}", self._answer)
        runner = web.AppRunner(app, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
        self.port = runner.addresses[0][1]

        def stop() -> None:
            self.release.set()
            ended.set()

        ready.set_result(lambda: self.loop.call_soon_threadsafe(stop))
        await ended.wait()
        await runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        what = request.match_info["what"]
        review = await request.json()
        self.asked.append((what, review["request"]))
        if what == "slow":
            await self.release.wait()
        if what == "error":
            return web.Response(status=503)
        if what == "elsewhere":
            return web.Response(status=302, headers={"Location": "/allow"})
        if what == "text":
            return web.Response(text="allowed")
        if what == "endless":
            return web.Response(body=b" " * (3 * 1024 * 1024 + 1))
        made = {"uid": review["request"]["uid"], **self.answers[what](review["request"])}
        return web.json_response({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": made})


@pytest.fixture
def listen(certificates) -> Iterator[Callable[..., Hooks]]:
    """Starts servers of webhooks with a certificate of that name."""
    started = []

    def start(certificate: str = "server") -> Hooks:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificates / f"{certificate}.pem", certificates / f"{certificate}.key")
        hooks, ready = Hooks(), Future[Any]()
        thread = threading.Thread(target=lambda: asyncio.run(hooks.run(context, ready)), daemon=True)
        thread.start()
        started.append((ready.result(timeout=10), thread))
        return hooks

    yield start
    for stop, thread in started:
        stop()
        thread.join(timeout=10)


@pytest.fixture
def hooks(listen) -> Hooks:
    return listen()


@pytest.fixture
def bundle(certificates) -> Callable[[str], str]:
    return lambda name: base64.b64encode((certificates / f"{name}.pem").read_bytes()).decode()


@pytest.fixture
def cluster() -> Iterator[Any]:
    with serving(fleet=SMALL) as served:
        yield served


def call(url: str, method: str, path: str, body: Any = None) -> tuple[int, dict[str, Any], Any]:
    """Status, body and headers."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url + path, data, {"Content-Type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=WITHIN) as answer:
            return answer.status, json.load(answer), answer.headers
    except urllib.error.HTTPError as answer:
        return answer.code, json.load(answer), answer.headers


def hook(port: int, path: str = "allow", ca: str = "", **spec: Any) -> dict[str, Any]:
    client = {"url": f"https://127.0.0.1:{port}/{path}"} | ({"caBundle": ca} if ca else {})
    named = {"name": f"{path}.hooks.example", "clientConfig": client, "rules": [RULE], "sideEffects": "None"}
    return {**named, "admissionReviewVersions": ["v1"], **spec}


def configured(url: str, kind: str, *hooks: Any, name: str = "hooks") -> None:
    body = {"metadata": {"name": name}, "webhooks": list(hooks)}
    path = f"/apis/admissionregistration.k8s.io/v1/{kind.lower()}webhookconfigurations"
    status, answer, _ = call(url, "POST", path, body)
    assert status == 201, answer


def created(url: str, name: str = "p", query: str = "", **labels: str) -> tuple[int, dict[str, Any], Any]:
    return call(url, "POST", PODS + query, pod_manifest(name, labels=labels or {"app": "x"}))


def eventually(holds: Callable[[], bool]) -> None:
    deadline, pause = time.monotonic() + WITHIN, threading.Event()
    while not holds():
        assert time.monotonic() < deadline, "it did not come"
        pause.wait(0.02)


def bound(url: str) -> dict[str, bool]:
    pods = call(url, "GET", PODS)[1]["items"]
    return {pod["metadata"]["name"]: bool(pod["spec"].get("nodeName")) for pod in pods}


# --- who is trusted ----------------------------------------------------------------------------------------------


def test_a_webhook_whose_certificate_the_bundle_vouches_for_is_asked(cluster, hooks, bundle):
    hooks.answers["deny"] = lambda _: {"allowed": False, "status": {"code": 403, "message": "no"}, "warnings": ["hm"]}
    configured(cluster.url, "Validating", hook(hooks.port, "deny", bundle("ca")))
    status, answer, headers = created(cluster.url)
    assert (status, answer["message"]) == (403, 'admission webhook "deny.hooks.example" denied the request: no')
    assert headers["Warning"] == '299 - "hm"'
    assert [(what, asked["operation"], asked["name"]) for what, asked in hooks.asked] == [("deny", "CREATE", "p")]
    assert bound(cluster.url) == {}


@pytest.mark.parametrize(("certificate", "ca"), [("server", ""), ("server", "stranger"), ("service", "ca")])
def test_one_with_a_wrong_certificate_is_told_nothing(cluster, listen, bundle, certificate, ca):
    hooks = listen(certificate)
    spec = hook(hooks.port, "allow", bundle(ca) if ca else "")
    configured(cluster.url, "Validating", spec)
    status, answer, _ = created(cluster.url)
    assert status == 500 and hooks.asked == []
    assert re.search(r'failed calling webhook "allow.hooks.example": .*certificate', answer["message"], re.I)
    assert " object at 0x" not in answer["message"]


def test_a_service_is_called_where_its_external_name_points_and_has_to_be_itself(cluster, listen, bundle):
    hooks = listen("service")
    service = {"service": {"namespace": "default", "name": "hooks", "port": hooks.port, "path": "/allow"}}
    spec = hook(hooks.port, clientConfig={**service, "caBundle": bundle("ca")})
    configured(cluster.url, "Validating", spec)
    assert 'service "hooks" not found' in created(cluster.url)[1]["message"]
    body = {"metadata": {"name": "hooks"}, "spec": {"type": "ExternalName", "externalName": "127.0.0.1"}}
    assert call(cluster.url, "POST", "/api/v1/namespaces/default/services", body)[0] == 201
    assert created(cluster.url)[0] == 201 and [what for what, _ in hooks.asked] == ["allow"]


# --- what fails --------------------------------------------------------------------------------------------------


def test_a_slow_one_is_waited_for_as_long_as_it_says_and_then_ignored_or_not(cluster, hooks, bundle):
    for policy in ("Ignore", "Fail"):
        selector = {"matchLabels": {"policy": policy}}
        spec = hook(
            hooks.port, "slow", bundle("ca"), timeoutSeconds=1, failurePolicy=policy, objectSelector=selector
        )  # fmt: skip
        configured(cluster.url, "Validating", spec, name=policy.lower())
    with ThreadPoolExecutor(2) as at_once:
        ignored = at_once.submit(created, cluster.url, "i", policy="Ignore")
        failed = at_once.submit(created, cluster.url, "f", policy="Fail")
    status, _, headers = ignored.result()
    assert status == 201 and "context deadline exceeded" in headers["Warning"]
    status, answer, _ = failed.result()
    assert status == 500 and "context deadline exceeded" in answer["message"] and "timeout=1s" in answer["message"]


def test_others_go_on_while_one_waits(cluster, hooks, bundle):
    spec = hook(hooks.port, "slow", bundle("ca"), timeoutSeconds=30, objectSelector={"matchLabels": {"slow": "yes"}})
    hooks.answers["slow"] = lambda _: {"allowed": True}
    configured(cluster.url, "Validating", spec)
    waiting = Future[Any]()
    thread = threading.Thread(target=lambda: waiting.set_result(created(cluster.url, "late", slow="yes")))
    thread.start()
    eventually(lambda: bool(hooks.asked))
    assert created(cluster.url, "quick")[0] == 201 and not waiting.done()
    hooks.loop.call_soon_threadsafe(hooks.release.set)
    assert waiting.result(timeout=WITHIN)[0] == 201
    thread.join()


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("error", "the server answered 503"),
        ("elsewhere", "the server answered 302"),
        ("text", "JSON"),
        ("endless", "the answer is longer than"),
    ],
)
def test_an_answer_that_is_none_is_a_failure(cluster, hooks, bundle, path, why):
    configured(cluster.url, "Validating", hook(hooks.port, path, bundle("ca")))
    status, answer, _ = created(cluster.url)
    assert status == 500 and why in answer["message"], answer["message"]
    assert len(hooks.asked) == 1


def test_nobody_there_is_a_failure_too(cluster):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    configured(cluster.url, "Validating", hook(port, failurePolicy="Ignore"))
    assert created(cluster.url)[0] == 201
    configured(cluster.url, "Mutating", hook(port), name="strict")
    status, answer, _ = created(cluster.url, "q")
    where = f'Post "https://127.0.0.1:{port}/allow?timeout=10s"'
    assert status == 500 and answer["message"].endswith(
        f"{where}: cannot connect to 127.0.0.1:{port}: Connection refused"
    )


# --- who is asked ------------------------------------------------------------------------------------------------


def test_conditions_and_dry_runs_and_second_turns(cluster, hooks, bundle):
    def labelling(key: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
        step = [{"op": "add", "path": f"/metadata/labels/{key}", "value": "1"}]
        return lambda _: {
            "allowed": True,
            "patchType": "JSONPatch",
            "patch": base64.b64encode(json.dumps(step).encode()).decode(),
        }

    hooks.answers |= {"one": labelling("one"), "two": labelling("two")}
    only = [{"name": "only-p", "expression": "object.metadata.name.startsWith('p')"}]
    first = hook(hooks.port, "one", bundle("ca"), reinvocationPolicy="IfNeeded", matchConditions=only)
    second = hook(hooks.port, "two", bundle("ca"), sideEffects="NoneOnDryRun")
    configured(cluster.url, "Mutating", first, second)
    status, answer, _ = created(cluster.url, "p", "?dryRun=All")
    assert status == 201 and answer["metadata"]["labels"] == {"app": "x", "one": "1", "two": "1"}
    assert [(what, asked["dryRun"]) for what, asked in hooks.asked] == [("one", True), ("two", True), ("one", True)]
    assert bound(cluster.url) == {}
    hooks.asked.clear()
    assert created(cluster.url, "q")[1]["metadata"]["labels"] == {"app": "x", "two": "1"}
    assert [(what, asked["dryRun"]) for what, asked in hooks.asked] == [("two", False)]


def test_what_the_scheduler_writes_is_asked_about_and_tried_again_when_it_was_refused(cluster, hooks, bundle):
    refused: set[str] = set()

    def once(request: dict[str, Any]) -> dict[str, Any]:
        first = request["name"] not in refused
        refused.add(request["name"])
        return {"allowed": not first, "status": {"message": "not yet"}}

    hooks.answers["bind"] = once
    rule = {**RULE, "resources": ["pods/binding"]}
    configured(cluster.url, "Validating", hook(hooks.port, "bind", bundle("ca"), rules=[rule]))
    group = gang_manifest("g", 2)
    assert call(cluster.url, "POST", "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups", group)[0] == 201
    for name in ("g-0", "g-1"):
        assert call(cluster.url, "POST", PODS, pod_manifest(name, group="g"))[0] == 201
    assert created(cluster.url, "alone")[0] == 201
    eventually(lambda: bound(cluster.url) == {"alone": True, "g-0": True, "g-1": True})
    assert refused == {"alone", "g-0", "g-1"}
    kinds = {(asked["kind"]["kind"], asked["subResource"], asked["operation"]) for _, asked in hooks.asked}
    assert kinds == {("Binding", "binding", "CREATE")}


def test_the_example_of_the_documentation_labels_the_pods_of_a_gang(cluster, certificates, bundle):
    root = Path(__file__).resolve().parents[2]
    example: dict[str, Any] = {"__name__": "example"}
    exec(compile((root / "examples" / "admission" / "webhook.py").read_text(), "webhook.py", "exec"), example)
    server = example["server"](certificates / "server.pem", certificates / "server.key", 0)
    serving = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    serving.start()
    try:
        page = (root / "docs" / "how-to" / "admission.md").read_text()
        (text,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
        given = yaml.safe_load(text.replace("8443", str(server.server_port)).replace("CERTIFICATE", bundle("ca")))
        configured(cluster.url, "Mutating", *given["webhooks"])
        status, answer, headers = call(cluster.url, "POST", PODS, pod_manifest("g-0", group="g"))
        assert (status, answer["metadata"]["labels"]["team"]) == (201, "unknown")
        assert headers["Warning"] == '299 - "the label team was missing"'
        assert "team" not in created(cluster.url)[1]["metadata"]["labels"]
    finally:
        server.shutdown()
        server.server_close()
        serving.join(timeout=10)


# --- after a restart ---------------------------------------------------------------------------------------------


def test_with_data_they_are_asked_again_after_a_restart_and_what_they_refused_is_not_there(tmp_path, hooks, bundle):
    hooks.answers["deny"] = lambda _: {"allowed": False}
    selector = {"matchLabels": {"bad": "yes"}}
    with serving(fleet=SMALL, data=tmp_path / "data") as served:
        spec = hook(hooks.port, "deny", bundle("ca"), objectSelector=selector)
        configured(served.url, "Validating", spec)
        assert created(served.url, "bad", bad="yes")[0] == 400 and created(served.url, "good")[0] == 201
    with serving(fleet=SMALL, data=tmp_path / "data") as served:
        assert set(bound(served.url)) == {"good"}
        assert created(served.url, "bad", bad="yes")[0] == 400 and created(served.url, "better")[0] == 201
        assert set(bound(served.url)) == {"good", "better"}
    assert [what for what, _ in hooks.asked] == ["deny", "deny"]


def test_a_cluster_starts_again_though_nobody_answers_for_its_nodes(tmp_path):
    command = [sys.executable, "-m", "muster.cli", "up", "--port", "0", "--data", str(tmp_path / "data")]
    command += ["--zones", "1", "--racks", "1", "--nodes", "1"]

    def started() -> tuple[subprocess.Popen[str], str]:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert process.stdout is not None
        said = process.stdout.readline()
        found = re.search(r"http://\S+", said)
        assert found is not None, said + process.stdout.read()
        return process, found[0]

    def ended(process: subprocess.Popen[str]) -> None:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=WITHIN)

    process, url = started()
    try:
        configured(url, "Validating", hook(1, rules=[{**RULE, "operations": ["*"], "resources": ["*"]}]))
    finally:
        ended(process)
    process, url = started()
    try:
        assert len(call(url, "GET", "/api/v1/nodes")[1]["items"]) == 1
        assert created(url)[0] == 500
    finally:
        ended(process)
