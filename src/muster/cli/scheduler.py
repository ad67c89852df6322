"""`muster scheduler`: the scheduler by itself, on an API server that runs elsewhere."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from muster.api.validation import names
from muster.cli.failure import FAILED, USAGE, Failure
from muster.engine.profile import Profile, ProfileError
from muster.runtime.collector import calm_collector
from muster.runtime.config import load_profile
from muster.runtime.configuration import load_settings
from muster.runtime.fields import Wrong
from muster.runtime.guard import Exposure, Guard, Unsafe, guard
from muster.runtime.http import is_loopback
from muster.runtime.remote.access import NoAccess, Source, in_cluster, kubeconfig
from muster.runtime.remote.serve import Post, identity, schedule
from muster.runtime.remote.session import Duty
from muster.runtime.settings import Settings
from muster.runtime.telemetry import Log, hear_notes, log_to_stderr

__all__ = ["Door", "Exposure", "Wanted", "run"]

LOG = Log("scheduler")


class Door(NamedTuple):
    """How to reach the server."""

    kubeconfig: Path | None
    context: str | None
    in_cluster: bool


class Wanted(NamedTuple):
    door: Door
    config: Path | None
    scheduler_name: str | None
    profile: Path | None
    leader_elect: bool | None
    where: Exposure
    port: int
    verbose: bool


def run(wanted: Wanted) -> int:
    """Checks everything first, then schedules until a signal."""
    settings = _settings(wanted)
    source = _source(wanted.door, settings)
    duty = _duty(wanted, settings)
    known = _guard(wanted.where)
    log_to_stderr(verbose=wanted.verbose)
    hear_notes("leader")
    for remark in settings.ignored:
        LOG.warning(f"ignored: {remark}")
    return _run(Post(source, duty, wanted.where.host, wanted.port, known))


def _run(post: Post) -> int:
    """
    Raises:
        Failure: the server cannot be reached, or the port cannot be used.
    """
    calm_collector()
    profiles = ", ".join(post.duty.profiles)

    def ready(url: str, server: str) -> None:
        print(
            f"muster scheduler places pods with schedulerName {profiles} on {server}; it answers at {url}", flush=True
        )

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


def _settings(wanted: Wanted) -> Settings:
    """The configuration file, with what options say instead."""
    try:
        settings = Settings() if wanted.config is None else load_settings(wanted.config)
    except Wrong as error:
        raise Failure(f"--config: {error}", USAGE) from None
    if wanted.scheduler_name is not None or wanted.profile is not None:
        if len(settings.profiles) > 1:
            raise Failure("--scheduler-name, --profile: the --config file has several profiles; say it there", USAGE)
        ((name, profile),) = settings.profiles.items()
        settings = replace(settings, profiles={_name(wanted.scheduler_name, name): _profile(wanted.profile, profile)})
    if wanted.leader_elect is not None:
        settings = replace(settings, lease=replace(settings.lease, elect=wanted.leader_elect))
    return settings


def _name(given: str | None, default: str) -> str:
    if given is not None and (fault := names.dns_subdomain(given)):
        raise Failure(f'--scheduler-name: "{given}" is no schedulerName: {fault}', USAGE)
    return given or default


def _profile(given: Path | None, default: Profile) -> Profile:
    try:
        return default if given is None else load_profile(given)
    except ProfileError as error:
        raise Failure(f"--profile: {error}", USAGE) from None


def _source(door: Door, settings: Settings) -> Source:
    file, context = door.kubeconfig or settings.kubeconfig, door.context or settings.context
    if door.in_cluster:
        if door.kubeconfig is not None or door.context is not None:
            raise Failure("--in-cluster: give either it or --kubeconfig (and --context), not both", USAGE)
        return in_cluster()
    if file is None and not os.environ.get("KUBECONFIG"):
        raise Failure("say which server: --kubeconfig FILE (or $KUBECONFIG), or --in-cluster inside a pod", USAGE)
    return kubeconfig(file, context)


def _duty(wanted: Wanted, settings: Settings) -> Duty:
    return Duty(settings.profiles, settings.lease.terms(identity()), settings.gates, settings.preemption)


def _guard(where: Exposure) -> Guard | None:
    """What is asked of clients; None: only those of this machine get more than the probes."""
    if not is_loopback(where.host) and where.certificate is None and where.key is None:
        return None
    try:
        known = guard(where)
    except Unsafe as error:
        raise Failure(str(error), USAGE) from None
    return known if known.asks else None
