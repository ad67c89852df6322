"""`muster up`: an embedded cluster on loopback until Ctrl-C."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from muster.api.gates import WORKLOAD_AWARE, FeatureGates
from muster.cli.failure import USAGE, Failure
from muster.cli.manifests import load
from muster.controllers.fleet import Shape, node_manifests
from muster.engine.profile import ProfileError
from muster.runtime.collector import calm_collector
from muster.runtime.config import load_profile
from muster.runtime.serve import serve, serve_controlled
from muster.runtime.telemetry import log_to_stderr
from muster.runtime.wiring import Setup, assemble

Sizes = tuple[int | None, int | None, int | None, int | None]
"""Zones, racks per zone, nodes per rack, accelerators per node; None: the default."""
DEFAULT_SIZES = (2, 2, 4, 8)


class Wanted(NamedTuple):
    port: int
    shape: Sizes
    fleet: Path | None
    gates: str
    profile: Path | None
    kubeconfig: Path | None
    verbose: bool


def run(wanted: Wanted) -> int:
    """Checks everything first, then serves until a signal."""
    nodes = fleet(wanted.shape, wanted.fleet)
    try:
        gates = FeatureGates.parse(wanted.gates, FeatureGates.of(*WORKLOAD_AWARE))
    except ValueError as error:
        raise Failure(f"--feature-gates: {error}", USAGE) from None
    try:
        profile = load_profile(wanted.profile)
    except ProfileError as error:
        raise Failure(f"--profile: {error}", USAGE) from None
    log_to_stderr(verbose=wanted.verbose)
    return _run(_serve(wanted, Setup(gates=gates, profile=profile), nodes))


def run_controlled(port: int) -> int:
    """An empty cluster on a clock that a conformance driver moves."""
    log_to_stderr(verbose=False)
    return _run(serve_controlled(port, lambda url: print(f"muster, controlled, is up at {url}", flush=True)))


def fleet(sizes: Sizes, file: Path | None) -> list[Mapping[str, Any]]:
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
            return [*node_manifests(Shape(zones=zones, racks=racks, nodes=nodes, gpus=gpus))]
        except ValueError as error:
            raise Failure(f"--zones/--racks/--nodes/--gpus: {error}", USAGE) from None
    manifests = load([str(file)], "default")
    for one in manifests:
        if one.kind.kind != "Node":
            raise Failure(
                f"--fleet: {one.source}: kind: {one.kind.kind} is no Node; a fleet file has nodes only", USAGE
            )
    return [one.body for one in manifests]


async def _serve(wanted: Wanted, setup: Setup, nodes: Sequence[Mapping[str, Any]]) -> int:
    cluster = assemble(setup)
    for node in nodes:
        answer = cluster.create(node)
        if not answer.ok:
            raise Failure(f"--fleet: {answer.body['message']}", USAGE)

    def ready(url: str) -> None:
        print(welcome(url, len(nodes), setup.gates), flush=True)
        if wanted.kubeconfig is not None:
            _write_kubeconfig(wanted.kubeconfig, url)

    await serve(cluster, wanted.port, ready)
    return 0


def _run(serving: Any) -> int:
    calm_collector()
    try:
        import uvloop

        runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
    except ImportError:
        runner = asyncio.Runner()
    with runner:
        try:
            runner.run(serving)
        except OSError as error:
            raise Failure(f"--port: {error.strerror or error}; give another one, or 0 for a free one", USAGE) from None
    return 0


def welcome(url: str, nodes: int, gates: FeatureGates) -> str:
    """What to type next."""
    return f"""\
muster is up at {url} with {nodes} hollow nodes; Ctrl-C ends it, and nothing is kept.
  muster apply -f examples/gang.yaml      create a gang
  muster get pods                         see where it runs
  muster explain                          see what waits, and why
  kubectl --server {url} get nodes
feature gates: {gates or "the defaults of Kubernetes"}"""


def kubeconfig(url: str) -> str:
    """A kubeconfig file for this server: no credentials, since it listens on loopback only."""
    return f"""\
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


def _write_kubeconfig(path: Path, url: str) -> None:
    try:
        path.write_text(kubeconfig(url), encoding="utf-8")
    except OSError as error:
        raise Failure(f"--kubeconfig: {path}: {error.strerror}; name a file that can be written", USAGE) from None
    print(f"kubeconfig written: export KUBECONFIG={path}", flush=True)
