"""The Job controller by itself: what it makes for one Job, without a cluster around it."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from muster.api import catalog
from muster.api.calls import MERGE_PATCH, Response
from muster.api.gates import FeatureGates
from muster.api.machine import ADDED, MODIFIED, Event, Listed, Observed, Refused, Write, Written
from muster.api.object import Object
from muster.apiserver.patch import merged
from muster.controllers.jobs import Jobs
from muster.sim.world import START

Json = Mapping[str, Any]
MOST_EVENTS = 1_000


@dataclass(slots=True)
class Made:
    """The scheduling objects that were made or changed, as they are in the end, and the group that the pods name."""

    workloads: list[Json] = field(default_factory=list)
    pod_groups: list[Json] = field(default_factory=list)
    composite_pod_groups: list[Json] = field(default_factory=list)
    pod_scheduling_group: str | None = None


def run_job(job: Json, *, gates: FeatureGates, previous: Json | None = None, existing: Sequence[Json] = ()) -> Made:
    """Shows the controller a Job (`previous` first, then its update) among `existing` objects; every write succeeds.

    Objects keep the uids that they are given.
    """
    machine = Jobs(gates)
    echo = _Echo(machine.resources)
    _tell(machine, echo, echo.listed([previous or job, *existing]))
    if previous is not None:
        _tell(machine, echo, echo.changed(job))
    return echo.made()


def _tell(machine: Jobs, echo: _Echo, events: Sequence[Event]) -> None:
    """Tells these events and everything that follows from them."""
    waiting = deque(events)
    for _ in range(MOST_EVENTS):
        if not waiting:
            return
        for effect in machine.handle(waiting.popleft(), START):
            if type(effect) is Write:
                waiting.extend(echo.carry_out(effect))
    raise RuntimeError(f"the Job controller is not at rest after {MOST_EVENTS} events")


class _Echo:
    """Says yes to every write, and shows what was written to whoever watches the resource."""

    def __init__(self, watched: Sequence[str]) -> None:
        self._watched = watched
        self._objects: dict[tuple[str, str], Json] = {}
        self._written: dict[tuple[str, str], None] = {}
        self._revision = 0

    def listed(self, objects: Sequence[Json]) -> list[Event]:
        for raw in objects:
            kind = {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "Workload", **raw}
            self._store(catalog.by_kind(kind["apiVersion"], kind["kind"]).plural, kind)
        return [
            Listed(resource, [Object(raw) for (plural, _), raw in self._objects.items() if plural == resource])
            for resource in self._watched
        ]

    def changed(self, job: Json) -> list[Event]:
        before = self._objects["jobs", job["metadata"]["name"]]
        kept = {key: before[key] for key in ("status",) if key in before}
        meta = {**job["metadata"], "generation": before["metadata"]["generation"] + 1}
        return [Observed("jobs", MODIFIED, Object(self._store("jobs", {**kept, **job, "metadata": meta})))]

    def carry_out(self, write: Write) -> list[Event]:
        """A create or a merge patch is kept and shown; anything else is answered and forgotten."""
        request, body = write.request, write.request.body
        parts = request.path.strip("/").split("/")
        if request.method == "POST" and parts[-1] != "events":
            meta = dict(body["metadata"])
            meta.setdefault("name", f"{meta.get('generateName', 'made-')}{self._revision}")
            return self._shown(write, 201, parts[-1], ADDED, {**body, "metadata": meta})
        place = parts[-3:-1] if parts[-1] == "status" else parts[-2:]
        old = self._objects.get((place[0], place[1]))
        if request.method == "PATCH" and request.content_type == MERGE_PATCH and old is not None:
            return self._shown(write, 200, place[0], MODIFIED, merged(old, body))
        return [] if write.tag is None else [_answer(write, Response(200, body))]

    def made(self) -> Made:
        found = [self._objects[place] for place in self._written]
        groups = [
            (raw["spec"].get("schedulingGroup") or {}).get("podGroupName") for raw in found if raw["kind"] == "Pod"
        ]
        return Made(
            [raw for raw in found if raw["kind"] == "Workload"],
            [raw for raw in found if raw["kind"] == "PodGroup"],
            [raw for raw in found if raw["kind"] == "CompositePodGroup"],
            groups[-1] if groups else None,
        )

    def _shown(self, write: Write, status: int, plural: str, change: str, raw: Json) -> list[Event]:
        stored = self._store(plural, raw)
        self._written[plural, stored["metadata"]["name"]] = None
        shown: list[Event] = [Observed(plural, change, Object(stored))] if plural in self._watched else []
        return shown if write.tag is None else [_answer(write, Response(status, stored)), *shown]

    def _store(self, plural: str, raw: Json) -> Json:
        self._revision += 1
        meta = {"namespace": "default", "generation": 1, **raw["metadata"], "resourceVersion": str(self._revision)}
        meta.setdefault("uid", f"uid-of-{raw['kind']}-{meta['name']}")
        meta.setdefault("creationTimestamp", "2026-01-01T00:00:00Z")
        stored = self._objects[plural, meta["name"]] = {**raw, "metadata": meta}
        return stored


def _answer(write: Write, response: Response) -> Written | Refused:
    return Written(write.tag, response) if response.ok else Refused(write.tag, response)
