"""`muster scheduler`: the scheduler by itself, on an API server that runs elsewhere."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import NamedTuple

from muster.cli.failure import FAILED, USAGE, Failure
from muster.engine.profile import Profile, ProfileError
from muster.runtime.collector import calm_collector
from muster.runtime.config import load_profile
from muster.runtime.guard import Exposure, Guard, Unsafe, guard
from muster.runtime.http import is_loopback
from muster.runtime.remote.access import NoAccess, Source, in_cluster, kubeconfig
from muster.runtime.remote.election import Terms
from muster.runtime.remote.serve import Post, identity, schedule
from muster.runtime.remote.session import Duty
from muster.runtime.telemetry import log_to_stderr

__all__ = ["Door", "Exposure", "Wanted", "run"]

NAME = "muster"
"""The schedulerName that is answered to by default: whoever does not name it keeps the scheduler that it has."""


class Door(NamedTuple):
    """How to reach the server."""

    kubeconfig: Path | None
    context: str | None
    in_cluster: bool


class Wanted(NamedTuple):
    door: Door
    scheduler_name: str | None
    profile: Path | None
    leader_elect: bool | None
    where: Exposure
    port: int
    verbose: bool


def run(wanted: Wanted) -> int:
    """Checks everything first, then schedules until a signal."""
    source = _source(wanted.door)
    duty = _duty(wanted)
    known = _guard(wanted.where)
    log_to_stderr(verbose=wanted.verbose)
    post = Post(source, duty, wanted.where.host, wanted.port, known)
    return _run(post)


def _run(post: Post) -> int:
    """
    Raises:
        Failure: the server cannot be reached, or the port cannot be used.
    """
    calm_collector()
    names = ", ".join(post.duty.profiles)

    def ready(url: str, server: str) -> None:
        print(f"muster scheduler places pods with schedulerName {names} on {server}; it answers at {url}", flush=True)

    try:
        import uvloop

        runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
    except ImportError:
        runner = asyncio.Runner()
    with runner:
        try:
            runner.run(schedule(post, ready))
        except NoAccess as error:
            raise Failure(str(error), FAILED) from None
        except OSError as error:
            raise Failure(f"--port: {error.strerror or error}; give another one, or 0 for a free one", USAGE) from None
    return 0


def _source(door: Door) -> Source:
    if door.in_cluster:
        if door.kubeconfig is not None or door.context is not None:
            raise Failure("--in-cluster: give either it or --kubeconfig (and --context), not both", USAGE)
        return in_cluster()
    if door.kubeconfig is None and not os.environ.get("KUBECONFIG"):
        raise Failure("say which server: --kubeconfig FILE (or $KUBECONFIG), or --in-cluster inside a pod", USAGE)
    return kubeconfig(door.kubeconfig, door.context)


def _duty(wanted: Wanted) -> Duty:
    try:
        profile: Profile = load_profile(wanted.profile)
    except ProfileError as error:
        raise Failure(f"--profile: {error}", USAGE) from None
    name = wanted.scheduler_name or NAME
    terms = None if wanted.leader_elect is False else Terms(identity())
    return Duty({name: profile}, terms)


def _guard(where: Exposure) -> Guard | None:
    """What is asked of clients; None: only those of this machine get more than the probes."""
    if not is_loopback(where.host) and where.certificate is None and where.key is None:
        return None
    try:
        known = guard(where)
    except Unsafe as error:
        raise Failure(str(error), USAGE) from None
    return known if known.asks else None
