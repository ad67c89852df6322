"""Pending pods that look at each other, for the shapes spread and pod-affinity."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from muster.bench.fleet import SERVICES, Manifest, pod

RACK, ZONE, HOST = "topology.muster.dev/rack", "topology.kubernetes.io/zone", "kubernetes.io/hostname"


def spread_singles(count: int) -> Iterator[Manifest]:
    """Replicas of ten services: at most one more in a rack than in the emptiest, and rather not two on a node."""
    return (_spread(number) for number in range(count))


def _spread(number: int) -> Manifest:
    service = f"service-{number % SERVICES}"
    constraints = [
        {
            "maxSkew": 1,
            "topologyKey": key,
            "whenUnsatisfiable": when,
            "labelSelector": {"matchLabels": {"app": service}},
            "nodeTaintsPolicy": "Honor",
        }
        for key, when in ((RACK, "DoNotSchedule"), (HOST, "ScheduleAnyway"))
    ]
    return pod(f"spread-{number:05d}", service, cpu="500m", memory="1Gi", topologySpreadConstraints=constraints)


def sociable_singles(count: int) -> Iterator[Manifest]:
    """Replicas of ten services: each service within one zone, one replica a node, by preference near the next one."""
    return (_sociable(number) for number in range(count))


def _sociable(number: int) -> Manifest:
    service = number % SERVICES
    other = _term(RACK, (service + 1) % SERVICES)
    affinity = {
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [_term(ZONE, service)],
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 10, "podAffinityTerm": other}],
        },
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_term(HOST, service)]},
    }
    return pod(f"sociable-{number:05d}", f"service-{service}", cpu="500m", memory="1Gi", affinity=affinity)


def _term(key: str, service: int) -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": f"service-{service}"}}}
