"""`muster up`: an embedded cluster until Ctrl-C."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from muster.api import catalog, writes
from muster.api.calls import Request, Response
from muster.api.gates import WORKLOAD_AWARE, FeatureGates
from muster.api.instant import to_time
from muster.cli.client import CA, DEFAULT_SERVER, TOKEN, VARIABLE
from muster.cli.failure import USAGE, Failure
from muster.cli.manifests import STRICT, Manifest, load
from muster.controllers.fleet import Shape, node_manifests
from muster.engine.profile import ProfileError
from muster.runtime.clock import SystemClock
from muster.runtime.collector import calm_collector
from muster.runtime.config import load_profile
from muster.runtime.guard import Exposure, Guard, Unsafe, guard
from muster.runtime.journal import Unusable, Unwritten
from muster.runtime.serve import OPEN, serve, serve_controlled
from muster.runtime.telemetry import log_to_stderr
from muster.runtime.wiring import Setup, assemble

Sizes = tuple[int | None, int | None, int | None, int | None]
"""Zones, racks per zone, nodes per rack, accelerators per node; None: the default."""
DEFAULT_SIZES = (2, 2, 4, 8)
WILD = ("0.0.0.0", "[::]")
"""Hosts to listen on, but not to call."""
OURS = "# Written by muster up; it may be overwritten."
"""First line of a kubeconfig file, by which its own files are known."""


class Wanted(NamedTuple):
    port: int
    shape: Sizes
    fleet: Path | None
    gates: str
    target: str
    profile: Path | None
    kubeconfig: Path | None
    verbose: bool
    data: Path | None = None
    where: Exposure = Exposure()


def run(wanted: Wanted) -> int:
    """Checks everything first, then serves until a signal."""
    nodes = fleet(wanted.shape, wanted.fleet)
    try:
        gates = FeatureGates.parse(wanted.gates, FeatureGates.of(*WORKLOAD_AWARE))
    except ValueError as error:
        raise Failure(f"--feature-gates: {error}", USAGE) from None
    try:
        gates = gates.aiming_at(wanted.target)
    except ValueError as error:
        raise Failure(f"--target: {error}", USAGE) from None
    try:
        profile = load_profile(wanted.profile)
    except ProfileError as error:
        raise Failure(f"--profile: {error}", USAGE) from None
    known = guarded(wanted.where, wanted.kubeconfig)
    log_to_stderr(verbose=wanted.verbose)
    return run_loop(_serve(wanted, Setup(gates=gates, profile=profile, data=wanted.data), nodes, known))


def guarded(where: Exposure, kubeconfig: Path | None) -> Guard:
    """What `where` asks of clients.

    Raises:
        Failure: it is not safe, or the kubeconfig file would be of no use there, or of harm to another.
    """
    try:
        known = guard(where)
    except Unsafe as error:
        raise Failure(str(error), USAGE) from None
    if kubeconfig is not None:
        if known.tls is not None or known.asks:
            why = "it would hold no credentials; write one with your CA and token or certificate"
            raise Failure(f"--kubeconfig: {why}", USAGE)
        check_kubeconfig(kubeconfig)
    return known


def run_controlled(port: int, data: Path | None = None) -> int:
    """An empty cluster on a clock that a conformance driver moves."""
    log_to_stderr(verbose=False)
    return run_loop(serve_controlled(port, lambda url: print(f"muster, controlled, is up at {url}", flush=True), data))


def fleet(sizes: Sizes, file: Path | None) -> list[Manifest]:
    """The nodes to begin with.

    Raises:
        Failure: the shape is impossible, the file has something else than nodes, or both are given.
    """
    if file is not None and any(size is not None for size in sizes):
        raise Failure("--fleet: give either a file or --zones/--racks/--nodes/--gpus, not both", USAGE)
    if file is None:
        given = zip(sizes, DEFAULT_SIZES, strict=True)
        zones, racks, nodes, gpus = (default if size is None else size for size, default in given)
        try:
            made = node_manifests(Shape(zones=zones, racks=racks, nodes=nodes, gpus=gpus), to_time(SystemClock().now()))
            return [Manifest(catalog.NODE, "", node["metadata"]["name"], node, "the fleet") for node in made]
        except ValueError as error:
            raise Failure(f"--zones/--racks/--nodes/--gpus: {error}", USAGE) from None
    try:
        manifests = load([str(file)], "default")
    except Failure as failure:
        raise Failure(f"--fleet: {failure}", USAGE) from None
    for one in manifests:
        if one.kind.kind != "Node":
            raise Failure(
                f"--fleet: {one.source}: kind: {one.kind.kind} is no Node; a fleet file has nodes only", USAGE
            )
    return manifests


async def _serve(wanted: Wanted, setup: Setup, nodes: Sequence[Manifest], known: Guard) -> int:
    cluster = assemble(setup)
    for node in nodes:
        if wanted.data is not None and node.name and cluster.call(Request("GET", node.kind.path(None, node.name))).ok:
            continue
        answer = await cluster.local.ask(replace(writes.create(node.body), query=STRICT))
        assert isinstance(answer, Response)
        if not answer.ok:
            raise Failure(f"--fleet: {node.source}: {answer.body['message']}", USAGE)

    def ready(url: str) -> None:
        if wanted.kubeconfig is not None:
            write_kubeconfig(wanted.kubeconfig, url)
        print(welcome(url, len(nodes), setup.gates, wanted.kubeconfig, wanted.data, known), flush=True)

    await serve(cluster, wanted.port, ready, wanted.where.host, known)
    return 0


def run_loop(serving: Any) -> int:
    """Runs a server to its end.

    Raises:
        Failure: its port or its directory cannot be used.
    """
    calm_collector()
    try:
        import uvloop

        runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
    except ImportError:
        runner = asyncio.Runner()
    with runner:
        try:
            runner.run(serving)
        except Unusable as error:
            raise Failure(f"--data: {error}", USAGE) from None
        except Unwritten as error:
            raise Failure(f"--data: cannot be written: {error}", USAGE) from None
        except OSError as error:
            raise Failure(f"--port: {error.strerror or error}; give another one, or 0 for a free one", USAGE) from None
    return 0


def welcome(
    url: str,
    nodes: int,
    gates: FeatureGates,
    kubeconfig: Path | None = None,
    data: Path | None = None,
    known: Guard = OPEN,
) -> str:
    """What to type next, in another terminal."""
    kept = "nothing is kept" if data is None else f"everything is kept in {data}"
    lines = [f"muster is up at {url} with {nodes} hollow nodes; Ctrl-C ends it, and {kept}."]
    if any(f"//{wild}:" in url for wild in WILD) and known.tls is not None:
        url = f"https://NAME:{url.rpartition(':')[2]}"
        lines.append("NAME is one of those in its certificate that lead to this machine.")
    if known.certificates and not known.tokens:
        options = "--certificate-authority FILE --client-certificate FILE --client-key FILE"
        lines.append(f"kubectl --server {url} {options} works: see docs/how-to/durable.md")
        return "\n".join([*lines, f"feature gates: {gates!s}" if str(gates) else "feature gates: none"])
    lines += ["In another terminal:", "  . .venv/bin/activate                    put muster on your path"]
    if url != DEFAULT_SERVER:
        lines.append(f"  export {VARIABLE}={url}")
    if known.tls is not None:
        lines.append(f"  export {CA}=FILE                     the CA of its certificate")
    if known.tokens:
        lines.append(f"  export {TOKEN}=...                   one of its tokens")
    lines += [
        "  muster apply -f examples/gang.yaml      create a gang",
        "  muster get pods                         see where it runs",
        "  muster explain                          see what waits, and why",
    ]
    if kubeconfig is not None:
        lines.append(f"  export KUBECONFIG={kubeconfig.absolute()}")
    options = " --certificate-authority FILE --token ..." if known.tokens and known.tls is not None else ""
    lines.append(f"kubectl --server {url}{options} works too: see docs/how-to/kubectl.md")
    return "\n".join([*lines, f"feature gates: {gates!s}" if str(gates) else "feature gates: none"])


def kubeconfig(url: str) -> str:
    """A kubeconfig file for this server: no credentials, since it is only written where none are asked for."""
    return f"""\
{OURS}
apiVersion: v1
kind: Config
clusters:
  - name: muster
    cluster: {{server: "{url}"}}
users:
  - name: anyone
    user: {{}}
contexts:
  - name: muster
    context: {{cluster: muster, user: anyone}}
current-context: muster
"""


def check_kubeconfig(path: Path) -> None:
    """Whether the file can be written without loss.

    Raises:
        Failure: it is somebody else's, or it cannot be written.
    """
    try:
        first = path.read_text(encoding="utf-8").partition("\n")[0]
    except FileNotFoundError:
        _check_folder(path)
        return
    except (OSError, UnicodeDecodeError):
        first = ""
    if first != OURS:
        raise Failure(f"--kubeconfig: {path} exists and was not written by muster; name a new file", USAGE)
    if not os.access(path, os.W_OK):
        raise _unwritable(path, "not writable")


def _check_folder(path: Path) -> None:
    if not path.parent.is_dir():
        raise _unwritable(path, f"no directory {path.parent}")
    if not os.access(path.parent, os.W_OK):
        raise _unwritable(path, f"{path.parent} is not writable")


def _unwritable(path: Path, why: str) -> Failure:
    return Failure(f"--kubeconfig: {path}: {why}; name a file that can be written", USAGE)


def write_kubeconfig(path: Path, url: str) -> None:
    try:
        path.write_text(kubeconfig(url), encoding="utf-8")
    except OSError as error:
        raise _unwritable(path, error.strerror or str(error)) from None
