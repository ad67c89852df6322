"""The configuration file of `muster scheduler`: its own form, or kube-scheduler's. Wrong files are refused by field.

apiVersion: muster.dev/v1
kind: SchedulerConfiguration
profiles:                       # one for each schedulerName that is answered to
  - schedulerName: muster       # and everything that a profile file has
    topologyLevels: [example.com/rack]
leaderElection:
  leaderElect: true
  leaseDuration: 15s
  renewDeadline: 10s
  retryPeriod: 2s
  resourceNamespace: kube-system
  resourceName: muster-scheduler
clientConnection:
  kubeconfig: ./kubeconfig      # --kubeconfig stands above it
  context: admin
preemption: true
featureGates: {}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from muster.api.gates import FeatureGates
from muster.api.instant import SECOND, Instant
from muster.api.validation import names
from muster.engine.profile import Profile, ProfileError
from muster.plugins import default_profile
from muster.runtime.config import FIELDS as PROFILE_FIELDS
from muster.runtime.config import known_plugins, profile_from
from muster.runtime.fields import Field, Wrong
from muster.runtime.remote.election import Terms

API_VERSION, KIND = "muster.dev/v1", "SchedulerConfiguration"
NAME = "muster"
"""The schedulerName that is answered to where none is given: who does not name it keeps the scheduler they have."""


@dataclass(frozen=True)
class Lease:
    """The election, before it is known who takes part."""

    elect: bool = True
    namespace: str = "kube-system"
    name: str = "muster-scheduler"
    hold: Instant = 15 * SECOND
    renew: Instant = 10 * SECOND
    retry: Instant = 2 * SECOND

    def terms(self, identity: str) -> Terms | None:
        if not self.elect:
            return None
        return Terms(identity, self.namespace, self.name, self.hold, self.renew, self.retry)


@dataclass(frozen=True)
class Settings:
    """What a file says."""

    profiles: Mapping[str, Profile] = field(default_factory=lambda: {NAME: default_profile()})
    lease: Lease = Lease()
    kubeconfig: Path | None = None
    context: str | None = None
    preemption: bool = True
    gates: FeatureGates = field(default_factory=FeatureGates)
    ignored: tuple[str, ...] = ()
    """Fields of kube-scheduler's form that have no meaning here, each with why."""


def read_own(root: Field, path: Path) -> Settings:
    """
    Raises:
        Wrong: names the field and what to write.
    """
    root.only(
        "apiVersion", "kind", "profiles", "leaderElection", "clientConnection", "preemption", "featureGates"
    )  # fmt: skip
    client = root.at("clientConnection").only("kubeconfig", "context")
    return Settings(
        _profiles(root.at("profiles")),
        read_lease(root.at("leaderElection")),
        read_kubeconfig(client.at("kubeconfig"), path),
        client.at("context").text("") or None,
        root.at("preemption").flag(True),
        _gates(root.at("featureGates")),
    )


def read_kubeconfig(given: Field, path: Path) -> Path | None:
    """A file name; one that is relative is so to the configuration file."""
    text = given.text("", "./kubeconfig")
    return path.parent / Path(text).expanduser() if text else None


def read_lease(given: Field, *more: str) -> Lease:
    """
    Raises:
        Wrong: names the field.
    """
    known = ("leaderElect", "leaseDuration", "renewDeadline", "retryPeriod", "resourceNamespace", "resourceName")
    given.only(*known, *more)
    plain = Lease()
    made = Lease(
        given.at("leaderElect").flag(plain.elect),
        _label(given.at("resourceNamespace"), plain.namespace),
        _label(given.at("resourceName"), plain.name),
        given.at("leaseDuration").duration(plain.hold),
        given.at("renewDeadline").duration(plain.renew),
        given.at("retryPeriod").duration(plain.retry),
    )
    try:
        made.terms("somebody")
    except ValueError as error:
        raise Wrong(f"{given.path}.{error}") from None
    return made


def read_name(given: Field, known: Mapping[str, object]) -> str:
    """The schedulerName of a profile."""
    name = given.text(None, NAME)
    if fault := names.dns_subdomain(name):
        raise given.wrong(f'"{name}" is no schedulerName: {fault}')
    if name in known:
        raise given.wrong(f'"{name}" has a profile already; give each its own schedulerName')
    return name


def _label(given: Field, default: str) -> str:
    text = given.text(default)
    if fault := names.dns_subdomain(text):
        raise given.wrong(f'"{text}" is no name: {fault}')
    return text


def _profiles(given: Field) -> Mapping[str, Profile]:
    made: dict[str, Profile] = {}
    try:
        known = known_plugins()
        for entry in given.items("{schedulerName, plugins, ...}"):
            entry.only("schedulerName", *PROFILE_FIELDS)
            name = read_name(entry.at("schedulerName"), made)
            fields = {key: value for key, value in entry.value.items() if key != "schedulerName"}
            made[name] = profile_from(fields, entry.path, known)
    except ProfileError as error:
        raise Wrong(str(error)) from None
    if given.given and not made:
        raise given.wrong("has no entry; list a profile, or leave the field out")
    return made or Settings().profiles


def _gates(given: Field) -> FeatureGates:
    if not given.given:
        return FeatureGates()
    if not isinstance(given.value, Mapping):
        raise given.wrong("must be a mapping from gates to true or false")
    for name in given.value:
        given.at(str(name)).flag(False)
    try:
        return FeatureGates().changed(given.value)
    except ValueError as error:
        raise given.wrong(str(error)) from None
