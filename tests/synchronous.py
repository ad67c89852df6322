"""A driver for tests: a dictionary for an API server, decisions taken at once, answers and watch events by hand."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from muster.api.calls import STRATEGIC_PATCH, Request, Response
from muster.api.gates import FeatureGates
from muster.api.instant import Instant, to_time
from muster.api.machine import ADDED, DELETED, MODIFIED, Listed, Observed, Refused, WakeAt, Woken, Write, Written
from muster.api.object import Object
from muster.engine.decide import decide
from muster.model.keys import Key
from muster.model.records import EntryKey, EntryKind
from muster.plugins import default_profile
from muster.scheduler.effects import Decide
from muster.scheduler.events import Decided
from muster.scheduler.machine import Scheduler
from muster.scheduler.slots import PLAN

START: Instant = 1_767_225_600_000_000
SECOND: Instant = 1_000_000
PLURALS = {
    "Pod": "pods",
    "Node": "nodes",
    "PodGroup": "podgroups",
    "CompositePodGroup": "compositepodgroups",
    "Namespace": "namespaces",
    "PersistentVolume": "persistentvolumes",
    "PersistentVolumeClaim": "persistentvolumeclaims",
    "StorageClass": "storageclasses",
    "CSINode": "csinodes",
    "CSIDriver": "csidrivers",
    "CSIStorageCapacity": "csistoragecapacities",
    "VolumeAttachment": "volumeattachments",
}
WIDE = frozenset({"Node", "PersistentVolume", "StorageClass", "CSINode", "CSIDriver", "VolumeAttachment"})
"""Kinds that are in no namespace."""
GENERIC = FeatureGates.of("GenericWorkload")

Json = dict[str, Any]


class Driver:
    """Carries out what the scheduler asks for. `held` keeps decisions and answers back until `release`."""

    def __init__(self, gates: FeatureGates = GENERIC, **options: Any) -> None:
        self.gates, self.options = gates, options
        self.now = START
        self.objects: dict[str, dict[tuple[str, str], Json]] = {plural: {} for plural in PLURALS.values()}
        self.events: list[Json] = []
        self.requests: list[Request] = []
        self.decisions = 0
        self.timers: dict[str, Instant] = {}
        self.refuse: dict[str, int] = {}
        self.lose = 0
        """So many of the next status patches are refused."""
        self.held: list[Decide] | None = None
        self._revision = 0
        self._todo: deque[Any] = deque()
        self.restart()

    # -- what a user does

    def create(self, *manifests: Json) -> None:
        for manifest in manifests:
            self.put({**manifest, "metadata": {**manifest["metadata"]}}, ADDED)
        self.run()

    def stored(self, manifest: Json) -> Json:
        """Gives an object what the server gives it."""
        meta = manifest["metadata"]
        self._revision += 1
        meta.setdefault("uid", f"uid-{meta['name']}-{self._revision}")
        if manifest["kind"] not in WIDE:
            meta.setdefault("namespace", "default")
        meta.setdefault("creationTimestamp", to_time(self.now))
        meta.setdefault("generation", 1)
        meta["resourceVersion"] = str(self._revision)
        self.objects[PLURALS[manifest["kind"]]][_place(manifest)] = manifest
        return manifest

    def put(self, manifest: Json, change: str) -> None:
        self._todo.append(Observed(PLURALS[manifest["kind"]], change, Object(self.stored(manifest))))

    def change(self, kind: str, name: str, edit: Callable[[Json], None], namespace: str = "default") -> None:
        """Edits a copy of an object and stores it."""
        old = self.objects[PLURALS[kind]][("" if kind in WIDE else namespace, name)]
        new = copy.deepcopy(old)
        edit(new)
        if new.get("spec") != old.get("spec"):
            new["metadata"]["generation"] += 1
        self.put(new, MODIFIED)
        self.run()

    def delete(self, kind: str, *names: str) -> None:
        for name in names:
            gone = copy.deepcopy(self.objects[PLURALS[kind]].pop(("" if kind in WIDE else "default", name)))
            self._revision += 1
            gone["metadata"]["resourceVersion"] = str(self._revision)
            self._todo.append(Observed(PLURALS[kind], DELETED, Object(gone)))
        self.run()

    def restart(self) -> None:
        """A fresh scheduler that is told everything."""
        self.scheduler = Scheduler(default_profile(), gates=self.gates, **self.options)
        self.timers = {}
        self._todo.clear()
        self.relist()

    def relist(self) -> None:
        for resource in self.scheduler.resources:
            self._todo.append(Listed(resource, [Object(raw) for raw in self.objects.get(resource, {}).values()]))
        self.run()

    # -- time

    def run(self) -> None:
        """Until nothing is left to be done at this instant."""
        while self._todo:
            self.tell(self._todo.popleft())

    def tell(self, event: Any) -> None:
        for effect in self.scheduler.handle(event, self.now):
            if isinstance(effect, Decide):
                self._decide(effect)
            elif isinstance(effect, WakeAt):
                self.timers.pop(effect.tag, None)
                if effect.at is not None:
                    self.timers[effect.tag] = effect.at
            else:
                self._write(effect)

    def advance(self, seconds: float) -> None:
        """Moves the clock, stopping at every timer on the way."""
        self.run()
        target = self.now + int(seconds * SECOND)
        while self.timers and min(self.timers.values()) <= target:
            tag = min(self.timers, key=lambda tag: (self.timers[tag], tag))
            self.now = max(self.now, self.timers.pop(tag))
            self._todo.append(Woken(tag))
            self.run()
        self.now = target

    def _decide(self, asked: Decide) -> None:
        if self.held is not None:
            self.held.append(asked)
        else:
            self._todo.append(self.answer(asked))

    def answer(self, asked: Decide) -> Decided:
        self.decisions += 1
        decision = decide(asked.snapshot, asked.heads, asked.profile, now=self.now, budget=asked.budget)
        return Decided(asked.ticket, decision)

    def hold_decisions(self) -> None:
        self.held = []

    def release(self) -> None:
        """Answers the decisions that were held back, and holds none any more."""
        held, self.held = self.held or [], None
        self._todo.extend(self.answer(asked) for asked in held)
        self.run()

    # -- the server

    def _write(self, effect: Write) -> None:
        request = effect.request
        self.requests.append(request)
        response = self._carry_out(request)
        if effect.tag is not None:
            self._todo.append((Written if response.ok else Refused)(effect.tag, response))

    def _carry_out(self, request: Request) -> Response:
        parts = request.path.split("/")
        if request.path.endswith("/binding"):
            return self._bind(parts[-2], request.body)
        if "events" in parts:
            self.events.append(request.body)
            return Response(201, request.body)
        if parts[-2].startswith("persistentvolume"):
            return self._patch_volume(parts[-2], parts[-1], request.body)
        if request.content_type != STRATEGIC_PATCH:
            return self._annotate(parts[-2], parts[-1], request.body)
        resource, name = parts[-3], parts[-2]
        old = self.objects[resource].get(("default", name))
        if old is None:
            return _status(404)
        if self.lose:
            self.lose -= 1
            return _status(503)
        if old["metadata"]["uid"] != request.body["metadata"]["uid"]:
            return _status(409)
        self.put(_patched(old, request.body["status"]), MODIFIED)
        return Response(200, {})

    def _annotate(self, resource: str, name: str, body: Any) -> Response:
        """The plan of a group: set by a merge patch, removed by a JSON patch if it is what it is thought to be."""
        old = self.objects[resource].get(("default", name))
        if f"plan:{name}" in self.refuse or old is None:
            return _status(self.refuse.get(f"plan:{name}", 404))
        new = copy.deepcopy(old)
        notes = new["metadata"].setdefault("annotations", {})
        if isinstance(body, list):
            if notes.get(PLAN) != body[0]["value"]:
                return _status(422)
            del notes[PLAN]
        elif old["metadata"]["uid"] != body["metadata"]["uid"]:
            return _status(409)
        else:
            notes.update(body["metadata"]["annotations"])
        self.put(new, MODIFIED)
        return Response(200, {})

    def plan(self, name: str, kind: str = "PodGroup") -> str | None:
        """The plan that a group carries."""
        text: str | None = self.objects[PLURALS[kind]][("default", name)]["metadata"].get("annotations", {}).get(PLAN)
        return text

    def _patch_volume(self, resource: str, name: str, body: Json) -> Response:
        """A merge patch of a volume or a claim, as far as the scheduler sends one."""
        old = self.objects[resource].get(("" if resource == "persistentvolumes" else "default", name))
        if name in self.refuse or old is None:
            return _status(self.refuse.get(name, 404))
        if (
            body["metadata"].get("resourceVersion", old["metadata"]["resourceVersion"])
            != (old["metadata"]["resourceVersion"])
        ):
            return _status(409)
        new = copy.deepcopy(old)
        new["metadata"].setdefault("annotations", {}).update(body["metadata"]["annotations"])
        new["spec"].update(body.get("spec", {}))
        self.put(new, MODIFIED)
        return Response(200, {})

    def _bind(self, name: str, body: Json) -> Response:
        if name in self.refuse:
            return _status(self.refuse[name])
        old = self.objects["pods"].get(("default", name))
        if old is None:
            return _status(404)
        if old["metadata"]["uid"] != body["metadata"]["uid"] or old["spec"].get("nodeName"):
            return _status(409)
        new = copy.deepcopy(old)
        new["spec"]["nodeName"] = body["target"]["name"]
        self.put(new, MODIFIED)
        return Response(201, {})

    # -- what tests look at

    def nodes_of(self, *names: str) -> list[str | None]:
        return [self.objects["pods"][("default", name)]["spec"].get("nodeName") for name in names]

    def bound(self) -> set[str]:
        return {name for (_, name), pod in self.objects["pods"].items() if pod["spec"].get("nodeName")}

    def condition(self, kind: str, name: str) -> Json | None:
        """The scheduling condition of a pod or group."""
        wanted = "PodScheduled" if kind == "Pod" else "PodGroupInitiallyScheduled"
        conditions = self.objects[PLURALS[kind]][("default", name)].get("status", {}).get("conditions", ())
        return next((condition for condition in conditions if condition["type"] == wanted), None)

    def told(self, kind: str, name: str) -> list[tuple[str, str]]:
        """(reason, message) of the events about an object."""
        return [
            (event["reason"], event["message"])
            for event in self.events
            if event.get("involvedObject", {}).get("kind") == kind and event["involvedObject"]["name"] == name
        ]

    def group(self, name: str) -> EntryKey:
        return EntryKey(EntryKind.POD_GROUP, Key("default", name))

    def pod(self, name: str) -> EntryKey:
        return EntryKey(EntryKind.POD, Key("default", name))


def _place(manifest: Json) -> tuple[str, str]:
    return manifest["metadata"].get("namespace", ""), manifest["metadata"]["name"]


def _patched(old: Json, status: Json) -> Json:
    new = copy.deepcopy(old)
    there = new.setdefault("status", {})
    for condition in status.get("conditions", ()):
        known = {entry["type"]: entry for entry in there.get("conditions", ())}
        known[condition["type"]] = {**known.get(condition["type"], {}), **condition}
        there["conditions"] = list(known.values())
    if "nominatedNodeName" in status:
        there["nominatedNodeName"] = status["nominatedNodeName"]
    return new


def _status(code: int) -> Response:
    return Response(code, {"kind": "Status", "message": f"answered {code}"})


def names(prefix: str, numbers: Iterable[int]) -> list[str]:
    return [f"{prefix}{number}" for number in numbers]
