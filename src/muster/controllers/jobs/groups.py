"""The Workload and the PodGroup that the Job controller makes for a Job (B18-B26)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

from muster.api import writes
from muster.api.calls import Response
from muster.api.gates import FeatureGates
from muster.api.instant import SECOND, Instant
from muster.api.machine import DELETED, Effect, Write
from muster.api.object import Object
from muster.controllers.membership import Membership
from muster.controllers.pod_status import deleted
from muster.controllers.writing import Pending, controller_of, event
from muster.workloadbuilder import BuildError, pod_group_name
from muster.workloadbuilder.adapters import job as adapter
from muster.workloadbuilder.materialize import leaf_templates

WORKLOADS, POD_GROUPS = "workloads", "podgroups"
COMPONENT = "job-controller"
Json = Mapping[str, Any]
_Place = tuple[str, str]  # namespace, name


class Group(NamedTuple):
    """What a Job's pods are to be created with. `ready` False: not yet, the group comes first.

    `again`: something that was made vanished at once; look again then, and not before.
    """

    ready: bool
    name: str | None = None
    again: Instant | None = None


class JobGroups:
    """Workloads and PodGroups as far as Jobs are concerned; makes those of a Job and keeps their counts up to date."""

    def __init__(self, gates: FeatureGates) -> None:
        self._on = gates.workload_with_job
        self.resources: tuple[str, ...] = (WORKLOADS, POD_GROUPS) if self._on else ()
        self._known: dict[str, dict[_Place, Object]] = {WORKLOADS: {}, POD_GROUPS: {}}
        self._owned: dict[str, dict[str, _Place]] = {WORKLOADS: {}, POD_GROUPS: {}}
        self._waiting: Membership[str, str] = Membership()
        self._pending = Pending()
        self._made: dict[str, dict[tuple[str, str, str], Instant]] = {}
        self._rest: dict[str, Instant] = {}

    # -- what is there

    def listed(self, resource: str, objects: Sequence[Object]) -> None:
        self._known[resource].clear()
        self._owned[resource].clear()
        self._pending.listed()
        for obj in objects:
            self._put(resource, obj)

    def observed(self, resource: str, change: str, obj: Object) -> Sequence[str]:
        """Takes the change in; returns the uids of the Jobs that it may concern."""
        place = (obj.namespace, obj.name)
        key = (resource, *place)
        if change == DELETED:
            self._known[resource].pop(place, None)
            self._pending.forget(key)
            gone = _controller_uid(obj) or ""
            if self._owned[resource].get(gone) == place:
                del self._owned[resource][gone]
        else:
            self._pending.observed(key, obj.revision)
            self._put(resource, obj)
        owner = _controller_uid(obj)
        waiting = self._waiting.of(obj.namespace)
        return [*waiting, owner] if owner and owner not in waiting else list(waiting)

    def written(self, key: tuple[str, str, str], response: Response, job: Object | None, now: Instant) -> list[Effect]:
        """One of its writes was carried out: what was created is known at once."""
        resource, namespace, name = key
        seen = self._pending.written(key, response)
        if response.status != 201:
            return []
        obj = Object(response.body)
        if not seen and (namespace, name) not in self._known[resource]:
            self._put(resource, obj)
        if job is None:
            return []
        message = f"Created {obj.kind} {name}"
        return [event(job.raw, f"{obj.kind}Created", message, component=COMPONENT, now=now)]

    def refused(self, key: tuple[str, str, str], response: Response, job: Object | None, now: Instant) -> list[Effect]:
        """One of its writes was refused. That the object exists is no failure: the watch will show it."""
        self._pending.forget(key)
        if job is None or response.status in (0, 409):
            return []
        problem = response.body.get("message") if isinstance(response.body, Mapping) else response.status
        return [_says(job, "FailedWorkloadCreate", f"{key[0]} {key[2]}: {problem}", now)]

    def forget(self, uid: str, namespace: str) -> None:
        self._waiting.discard(namespace, uid)
        self._made.pop(uid, None)

    def _put(self, resource: str, obj: Object) -> None:
        place = (obj.namespace, obj.name)
        self._known[resource][place] = obj
        owner = _controller_uid(obj)
        if owner:
            self._owned[resource][owner] = place

    # -- what a Job needs

    def settle(self, job: Object, used: str | None, started: bool, now: Instant) -> tuple[list[Effect], Group]:
        """Makes what is missing, one write at a time.

        Args:
            used: the group that pods of this Job name already, if they do.
            started: whether the Job has pods or a start time.
        """
        raw = job.raw
        if not self._on or not adapter.wants_group(raw):
            return [], Group(True)
        place = self._owned[POD_GROUPS].get(job.uid)
        if place is not None:
            self._waiting.discard(job.namespace, job.uid)
            return self._update(job), Group(True, place[1])
        if started and used is None:
            return [], Group(True)  # it began without a group and goes on without one (B22)
        self._waiting.discard(job.namespace, job.uid)
        delegated = adapter.delegated_template(raw) is not None
        effects = self._delegated(job, now) if delegated else self._own(job, now)
        return effects, Group(False, again=self._rest.pop(job.uid, None))

    def _own(self, job: Object, now: Instant) -> list[Effect]:
        place = (job.namespace, adapter.workload_name_of(job.raw))
        workload = self._known[WORKLOADS].get(place)
        if workload is None:
            return self._make_workload(job, now)
        if _controller_uid(workload) != job.uid:
            return self._blocked(job, workload, now)
        return self._make_group(job, lambda: adapter.compile_group(job.raw, workload.raw), now)

    def _make_workload(self, job: Object, now: Instant) -> list[Effect]:
        try:
            made = adapter.builder_for(job.raw).build_workload()
        except BuildError as problem:
            return [_says(job, "FailedWorkloadCompilation", str(problem), now)]
        return self._create(WORKLOADS, made, job, now)

    def _delegated(self, job: Object, now: Instant) -> list[Effect]:
        workload = self._workload_of_parent(job)
        if workload is None:
            self._waiting.add(job.namespace, job.uid)
            parent = adapter.controller_of(job.raw) or {}
            message = f"{parent.get('kind')} {parent.get('name')} has no Workload yet; the pods wait for it"
            return [_says(job, "FailedWorkloadCompilation", message, now)]
        name = self._free_name(job, workload)
        return self._make_group(job, lambda: adapter.compile_delegated_group(job.raw, workload.raw, name), now)

    def _free_name(self, job: Object, workload: Object) -> str:
        """As for any group (B12), or with the Job's own name where several Jobs share a template."""
        template = adapter.delegated_template(job.raw) or ""
        name = pod_group_name(workload.name, template)
        taken = self._known[POD_GROUPS].get((job.namespace, name))
        return name if taken is None else pod_group_name(adapter.workload_name_of(job.raw), template)

    def _workload_of_parent(self, job: Object) -> Object | None:
        """The Workload of the controller that the Job belongs to: owned by it, naming it, or the only candidate."""
        parent, template = adapter.controller_of(job.raw) or {}, adapter.delegated_template(job.raw)
        place = self._owned[WORKLOADS].get(parent.get("uid", ""))
        if place is not None:
            return self._known[WORKLOADS][place]
        unclaimed = []
        for (namespace, _), workload in self._known[WORKLOADS].items():
            if namespace != job.namespace or _controller_uid(workload) is not None:
                continue
            reference = (workload.raw.get("spec") or {}).get("controllerRef")
            if _names(reference, parent):
                return workload
            if not reference:
                unclaimed += [workload for each in leaf_templates(workload.raw) if each.get("name") == template]
        return unclaimed[0] if len(unclaimed) == 1 else None

    def _make_group(self, job: Object, compile_: Any, now: Instant) -> list[Effect]:
        try:
            made = compile_()
        except BuildError as problem:
            return [_says(job, "FailedWorkloadCompilation", str(problem), now)]
        there = self._known[POD_GROUPS].get((job.namespace, made["metadata"]["name"]))
        return self._create(POD_GROUPS, made, job, now) if there is None else self._blocked(job, there, now)

    def _blocked(self, job: Object, there: Object, now: Instant) -> list[Effect]:
        """Someone else's object has the name; it is not taken over (B24)."""
        self._waiting.add(job.namespace, job.uid)
        message = f"{there.kind} {there.name} is there and not controlled by this Job: it is left alone, no pod is made"
        return [_says(job, "FailedWorkloadCreate", message, now)]

    def _create(self, resource: str, made: dict[str, Any], job: Object, now: Instant) -> list[Effect]:
        """Makes it, once a second at most: the collector may be deleting what a Job owns that is about to go."""
        key = (resource, job.namespace, made["metadata"]["name"])
        if key in self._pending:
            return []
        times = self._made.setdefault(job.uid, {})
        if now < times.get(key, now - SECOND) + SECOND:
            self._rest[job.uid] = times[key] + SECOND
            return []
        times[key] = now
        self._pending.begin(key)
        return [Write(writes.create(made), (*key, job.uid))]

    # -- later changes (B21)

    def _update(self, job: Object) -> list[Effect]:
        """Brings a gang's count in line with the Job, in objects that the Job controls (B24)."""
        scheduling = job.raw["spec"].get("scheduling") or {}
        if (scheduling.get("schedulingPolicy") or {}).get("gang") is None or adapter.controller_of(job.raw) is not None:
            return []
        try:
            wanted = adapter.builder_for(job.raw).build_workload()["spec"]["podGroupTemplates"][0]
        except BuildError:
            return []
        count = wanted["schedulingPolicy"]["gang"]["minCount"]
        effects: list[Effect] = []
        workload = self._known[WORKLOADS].get((job.namespace, adapter.workload_name_of(job.raw)))
        if workload is not None and _controller_uid(workload) == job.uid:
            effects += self._update_workload(workload, wanted["name"], count, job.uid)
        group = self._known[POD_GROUPS].get(self._owned[POD_GROUPS][job.uid])
        if group is not None:
            effects += self._update_group(group, count, job.uid)
        return effects

    def _update_workload(self, workload: Object, template: str, count: int, uid: str) -> list[Effect]:
        templates = workload.raw["spec"].get("podGroupTemplates") or []
        changed = [_with_count(each, count) if each.get("name") == template else each for each in templates]
        if changed == templates:
            return []
        body = {"metadata": {"resourceVersion": workload.revision}, "spec": {"podGroupTemplates": changed}}
        return self._patch(WORKLOADS, workload, body, uid)

    def _update_group(self, group: Object, count: int, uid: str) -> list[Effect]:
        gang = (group.raw["spec"].get("schedulingPolicy") or {}).get("gang")
        if gang is None or gang.get("minCount") == count or deleted(group):
            return []
        body = {"spec": {"schedulingPolicy": {"gang": {"minCount": count}}}}
        return self._patch(POD_GROUPS, group, body, uid)

    def _patch(self, resource: str, obj: Object, body: Json, uid: str) -> list[Effect]:
        key: tuple[str, str, str] = (resource, obj.namespace, obj.name)
        if key in self._pending:
            return []
        self._pending.begin(key, obj.revision)
        tag: Hashable = (*key, uid)
        return [Write(writes.patch(resource, obj.namespace, obj.name, body), tag)]


def _with_count(template: Json, count: int) -> Json:
    policy = template.get("schedulingPolicy") or {}
    if policy.get("gang") is None or policy["gang"].get("minCount") == count:
        return template
    return {**template, "schedulingPolicy": {"gang": {**policy["gang"], "minCount": count}}}


def _controller_uid(obj: Object) -> str | None:
    reference = controller_of(obj)
    return None if reference is None else reference.get("uid")


def _names(reference: Json | None, parent: Json) -> bool:
    """Whether a controllerRef means this owner."""
    group = parent.get("apiVersion", "").rpartition("/")[0]
    return bool(reference) and (
        (reference or {}).get("kind") == parent.get("kind")
        and (reference or {}).get("name") == parent.get("name")
        and ((reference or {}).get("apiGroup") or "") == group
    )


def _says(job: Object, reason: str, message: str, now: Instant) -> Write:
    return event(job.raw, reason, message, component=COMPONENT, now=now, warning=True)
