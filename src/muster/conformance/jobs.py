"""The Job controller by itself: what it makes for one Job, without a cluster around it."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from muster.api import catalog
from muster.api.calls import Request, Response
from muster.api.gates import FeatureGates
from muster.api.machine import ADDED, MODIFIED, Event, Listed, Machine, Observed, Refused, Write, Written
from muster.api.object import Object
from muster.controllers.jobs import Jobs
from muster.sim.world import START

Json = Mapping[str, Any]
MOST_EVENTS = 1_000


@dataclass(slots=True)
class Made:
    """The scheduling objects that were made, and the group that the pods name."""

    workloads: list[Json] = field(default_factory=list)
    pod_groups: list[Json] = field(default_factory=list)
    composite_pod_groups: list[Json] = field(default_factory=list)
    pod_scheduling_group: str | None = None


def run_job(job: Json, *, gates: FeatureGates, previous: Json | None = None, existing: Sequence[Json] = ()) -> Made:
    """Shows the controller a Job (`previous` first, then its update) among `existing` objects; every write succeeds.

    Objects keep the uids that they are given.
    """
    machine, made = Jobs(gates), Made()
    events = deque(_start(machine, previous or job, existing))
    if previous is not None:
        events.append(Observed("jobs", MODIFIED, Object(_stored(job, 2))))
    for number in range(MOST_EVENTS):
        if not events:
            return made
        for effect in machine.handle(events.popleft(), START):
            if type(effect) is Write:
                events.extend(_carry_out(machine, effect.request, effect.tag, made, number + 10))
    raise RuntimeError(f"the Job controller is not at rest after {MOST_EVENTS} events")


def _start(machine: Machine, job: Json, existing: Sequence[Json]) -> list[Event]:
    objects: dict[str, list[Object]] = {resource: [] for resource in machine.resources}
    for raw in (job, *existing):
        kind = {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "Workload", **raw}
        plural = catalog.by_kind(kind["apiVersion"], kind["kind"]).plural
        if plural in objects:
            objects[plural].append(Object(_stored(kind, 1)))
    return [Listed(resource, found) for resource, found in objects.items()]


def _stored(raw: Json, revision: int) -> dict[str, Any]:
    meta = {"namespace": "default", "generation": 1, "resourceVersion": str(revision), **raw["metadata"]}
    meta.setdefault("uid", f"uid-of-{raw['kind']}-{meta['name']}")
    meta.setdefault("creationTimestamp", "2026-01-01T00:00:00Z")
    return {**raw, "metadata": meta}


def _carry_out(machine: Machine, request: Request, tag: Hashable, made: Made, revision: int) -> list[Event]:
    """A create gives the object back and shows it to the machine; anything else is answered and forgotten."""
    if request.method != "POST" or "/events" in request.path:
        return [] if tag is None else [_answer(tag, Response(200, request.body))]
    meta = dict(request.body["metadata"])
    meta.setdefault("name", f"{meta.get('generateName', 'made-')}{revision}")
    raw = _stored({**request.body, "metadata": meta}, revision)
    _note(made, raw)
    plural = request.path.rsplit("/", 1)[-1]
    shown: list[Event] = [Observed(plural, ADDED, Object(raw))] if plural in machine.resources else []
    return shown if tag is None else [_answer(tag, Response(201, raw)), *shown]


def _answer(tag: Hashable, response: Response) -> Written | Refused:
    return Written(tag, response) if response.ok else Refused(tag, response)


def _note(made: Made, raw: Json) -> None:
    match raw["kind"]:
        case "Workload":
            made.workloads.append(raw)
        case "PodGroup":
            made.pod_groups.append(raw)
        case "CompositePodGroup":
            made.composite_pod_groups.append(raw)
        case "Pod":
            made.pod_scheduling_group = (raw["spec"].get("schedulingGroup") or {}).get("podGroupName")
