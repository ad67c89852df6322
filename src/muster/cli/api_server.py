"""`muster api-server`: the API server without a scheduler, until Ctrl-C."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from muster.api.gates import WORKLOAD_AWARE, FeatureGates
from muster.cli.failure import USAGE, Failure, nearest
from muster.cli.up import guarded, run_loop, write_kubeconfig
from muster.runtime.guard import Exposure, Guard
from muster.runtime.serve import serve_alone
from muster.runtime.telemetry import log_to_stderr
from muster.runtime.wiring import Setup, alone, controllers

__all__ = ["Exposure", "Wanted", "run"]

EVERY = "all"


class Wanted(NamedTuple):
    port: int
    where: Exposure
    data: Path | None
    controllers: str
    gates: str
    target: str
    kubeconfig: Path | None


def run(wanted: Wanted) -> int:
    """Checks everything first, then serves until a signal."""
    setup = Setup(gates=_gates(wanted), data=wanted.data)
    chosen = _chosen(wanted.controllers, controllers(setup))
    known = guarded(wanted.where, wanted.kubeconfig)
    log_to_stderr(verbose=False)
    return run_loop(_serve(wanted, setup, chosen, known))


def _gates(wanted: Wanted) -> FeatureGates:
    try:
        gates = FeatureGates.parse(wanted.gates, FeatureGates.of(*WORKLOAD_AWARE))
    except ValueError as error:
        raise Failure(f"--feature-gates: {error}", USAGE) from None
    try:
        return gates.aiming_at(wanted.target)
    except ValueError as error:
        raise Failure(f"--target: {error}", USAGE) from None


def _chosen(text: str, known: tuple[str, ...]) -> tuple[str, ...]:
    if text == EVERY:
        return known
    chosen = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    for name in chosen:
        if name not in known:
            listed = ", ".join(known)
            raise Failure(
                f'--controllers: no controller is called "{name}"; known: {listed}{nearest(name, known)}', USAGE
            )
    return chosen


async def _serve(wanted: Wanted, setup: Setup, chosen: tuple[str, ...], known: Guard) -> None:
    server = alone(setup, chosen)

    def ready(url: str) -> None:
        if wanted.kubeconfig is not None:
            write_kubeconfig(wanted.kubeconfig, url)
        kept = "nothing is kept" if wanted.data is None else f"everything is kept in {wanted.data}"
        running = ", ".join(chosen) or "none"
        print(f"muster api-server is up at {url}; Ctrl-C ends it, and {kept}. Controllers: {running}.", flush=True)

    await serve_alone(server, wanted.port, wanted.where.host, known, ready)
