"""All controllers of an embedded cluster."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from muster.api.gates import FeatureGates
from muster.api.instant import SECOND, Instant
from muster.api.machine import Machine
from muster.controllers.apps import DaemonSets, Deployments, ReplicaSets, StatefulSets
from muster.controllers.collector import Collector
from muster.controllers.disruption import Disruption
from muster.controllers.hollow import Hollow
from muster.controllers.jobs import Jobs
from muster.controllers.nodes import Nodes
from muster.controllers.podgroups import PodGroups
from muster.controllers.resourceclaims import ResourceClaims
from muster.controllers.volumes import Claims, Drivers, Volumes


def makers(
    gates: FeatureGates,
    *,
    run: bool = True,
    start_delay: Instant = SECOND,
    stop_delay: Instant = SECOND,
    volumes: bool = True,
    apps: bool = True,
) -> dict[str, Callable[[], Machine]]:
    """Name -> a function that makes the machine anew.

    Args:
        gates: which kinds are served; Jobs also reads WorkloadWithJob.
        run: whether kubelets run pods. False is for conformance: pods stay as they are, deletions end at once, budgets
            keep the status they were created with.
        start_delay: microseconds from bound to running.
        stop_delay: microseconds that a pod takes to end once it is deleted, at most its grace period.
        volumes: whether claims get volumes and pods their own claims. False is for whoever does that himself.
        apps: whether ReplicaSets and the other kinds of group apps get their pods.
    """
    made: dict[str, Callable[[], Machine]] = {
        "jobs": partial(Jobs, gates),
        "collector": partial(Collector, gates),
        "nodes": Nodes,
        "resourceclaims": partial(ResourceClaims, gates),
        "hollow": partial(Hollow, run=run, start_delay=start_delay, stop_delay=stop_delay),
    }
    if gates.enabled("GenericWorkload"):
        made["podgroups"] = partial(PodGroups, gates)
    if run:
        made["disruption"] = Disruption
    if volumes:
        made["volumes"] = Volumes
        made["claims"] = Claims
        made["drivers"] = Drivers
    if apps:
        made["deployments"] = Deployments
        made["replicasets"] = ReplicaSets
        made["statefulsets"] = StatefulSets
        made["daemonsets"] = DaemonSets
    return made


def controllers(
    gates: FeatureGates,
    *,
    run: bool = True,
    start_delay: Instant = SECOND,
    stop_delay: Instant = SECOND,
    volumes: bool = True,
    apps: bool = True,
) -> tuple[Machine, ...]:
    """One of each (see `makers`)."""
    made = makers(gates, run=run, start_delay=start_delay, stop_delay=stop_delay, volumes=volumes, apps=apps)
    return tuple(make() for make in made.values())
