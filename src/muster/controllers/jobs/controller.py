"""The Job controller: brings a Job's pods to where its spec wants them, and its status to where the pods are."""

from __future__ import annotations

from collections.abc import Sequence

from muster.api import writes
from muster.api.calls import Response
from muster.api.gates import FeatureGates
from muster.api.instant import SECOND, Instant
from muster.api.machine import DELETED, Effect, Event, Listed, Observed, Refused, WakeAt, Woken, Write, Written
from muster.api.object import Object
from muster.controllers.jobs import status as job_status
from muster.controllers.jobs.groups import COMPONENT, JobGroups
from muster.controllers.jobs.manifests import PodTemplate
from muster.controllers.jobs.members import TRACKING, Member, Stage
from muster.controllers.jobs.progress import (
    Progress,
    deadline,
    failure,
    is_complete,
    measure,
    replaces_only_failed,
    start_time,
    wanted_active,
)
from muster.controllers.jobs.state import Creation, JobState, group_used, new_pods, surplus
from muster.controllers.jobs.status import CRITERIA_MET, FAILURE_TARGET, SUSPENDED
from muster.controllers.pod_status import deleted
from muster.controllers.writing import AGAIN, Pending, controller_of, event, without_finalizer

SETTLE: Instant = SECOND
"""How long changes of pods are collected before the status is written."""
ORPHAN_CHECK: Instant = 5 * SECOND
"""How long the Job of a pod may be unseen before the server is asked for it."""
CONTROLLER = "kubernetes.io/job-controller"

JOBS, PODS = "jobs", "pods"
SYNC, CREATE, LOOK, RELEASE, DELETE, STATUS, ORPHAN = (
    "sync", "create", "look", "release", "delete", "status", "orphan",
)  # fmt: skip


class Jobs:
    """All Jobs. Pods have names that a restarted controller makes again, and a finalizer until the status has counted
    them, so that nothing is made or counted twice."""

    def __init__(self, gates: FeatureGates) -> None:
        self._groups = JobGroups(gates)
        self.resources: tuple[str, ...] = (JOBS, *self._groups.resources, PODS)
        self._jobs: dict[str, JobState] = {}
        self._job_of: dict[str, str] = {}
        self._pending = Pending()
        self._listed: set[str] = set()

    def handle(self, event: Event, now: Instant) -> Sequence[Effect]:
        if type(event) is Observed:
            return self._observed(event.resource, event.change, event.object, now)
        match event:
            case Listed(resource, objects):
                return self._all(resource, objects, now)
            case Woken((_, str(uid))):
                return self._woken(uid, now)
            case Written((str(resource), str(namespace), str(name), str(uid)), response):
                known = self._jobs.get(uid)
                key = (resource, namespace, name)
                effects = self._groups.written(key, response, known.job if known else None, now)
                return [*effects, *self._act_on((uid,), now)]
            case Refused((str(resource), str(namespace), str(name), str(uid)), response):
                known = self._jobs.get(uid)
                key = (resource, namespace, name)
                effects = self._groups.refused(key, response, known.job if known else None, now)
                return [*effects, *self._wake(known, now + AGAIN)] if known else effects
            case Written((str(what), str(uid), str(key)) as tag, response):
                return self._written(what, uid, key, self._pending.written(tag, response), response, now)
            case Refused((str(what), str(uid), str(key)) as tag, response):
                self._pending.forget(tag)
                return self._refused(what, uid, key, response, now)
        return ()

    # -- what is seen

    def _observed(self, resource: str, change: str, obj: Object, now: Instant) -> list[Effect]:
        if resource == PODS:
            return self._pod_gone(obj, now) if change == DELETED else self._pod_seen(obj, now)
        if resource == JOBS:
            return self._job_gone(obj.uid, now) if change == DELETED else self._job_seen(obj, now)
        return self._act_on(self._groups.observed(resource, change, obj), now)

    def _all(self, resource: str, objects: Sequence[Object], now: Instant) -> list[Effect]:
        first = len(self._listed) < len(self.resources)
        self._listed.add(resource)
        there = {obj.uid for obj in objects}
        effects: list[Effect] = []
        if resource == PODS:
            for uid in [uid for uid in self._job_of if uid not in there]:
                self._drop_pod(uid)
            for state in self._jobs.values():
                state.relisted()
            self._pending.listed()
            for pod in objects:
                effects += self._pod_seen(pod, now)
        elif resource == JOBS:
            for uid in [uid for uid, state in self._jobs.items() if state.job and uid not in there]:
                effects += self._job_gone(uid, now)
            self._pending.listed()
            for job in objects:
                effects += self._job_seen(job, now)
        else:
            self._groups.listed(resource, objects)
        if len(self._listed) == len(self.resources) and (first or resource != JOBS):
            effects += self._act_on(tuple(self._jobs), now)
        return effects

    def _job_seen(self, job: Object, now: Instant) -> list[Effect]:
        if job.raw["spec"].get("managedBy", CONTROLLER) != CONTROLLER:
            return []
        state = self._state(job.uid)
        self._pending.observed((STATUS, job.uid, ""), job.revision)
        if state.job is not None and state.job.revision == job.revision:
            return []
        state.job, state.place, state.gone = job, (job.namespace, job.name), False
        return self._act_on((job.uid,), now)

    def _job_gone(self, uid: str, now: Instant) -> list[Effect]:
        state = self._jobs.get(uid)
        if state is None:
            return []
        state.job, state.gone = None, True
        state.creating.clear()
        self._pending.forget((STATUS, uid, ""))
        self._groups.forget(uid, state.place[0])
        effects = [*self._let_go_of_all(state), *self._wake(state, None)]
        self._tidy(state)
        return effects

    def _pod_seen(self, pod: Object, now: Instant) -> list[Effect]:
        owner = controller_of(pod)
        if owner is None or owner.get("kind") != "Job":
            return []
        uid, state = pod.uid, self._state(owner["uid"])
        known = state.tally.members.get(uid)
        if self._pending:
            for what in (RELEASE, DELETE):
                self._pending.observed((what, state.uid, uid), pod.revision)
        if known is not None and known.pod.revision == pod.revision:
            return []
        self._job_of[uid] = state.uid
        state.put(Member.of(pod), now)
        if state.job is not None:
            return self._wake(state, now + SETTLE)
        if state.gone:
            return self._let_go_of_all(state)
        state.place = (pod.namespace, owner.get("name", ""))
        return self._wake(state, now + ORPHAN_CHECK)

    def _pod_gone(self, pod: Object, now: Instant) -> list[Effect]:
        state = self._drop_pod(pod.uid)
        if state is None:
            state = self._jobs.get((controller_of(pod) or {}).get("uid", ""))
            if state is not None and state.creating.pop(pod.name, None) is None:
                return []
        return self._wake(state, now + SETTLE) if state is not None and state.job is not None else []

    def _drop_pod(self, uid: str) -> JobState | None:
        owner = self._job_of.pop(uid, None)
        if owner is None:
            return None
        state = self._jobs[owner]
        state.drop(uid)
        for what in (RELEASE, DELETE):
            self._pending.forget((what, owner, uid))
        self._tidy(state)
        return state

    def _state(self, uid: str) -> JobState:
        state = self._jobs.get(uid)
        if state is None:
            state = self._jobs[uid] = JobState(uid)
        return state

    def _tidy(self, state: JobState) -> None:
        if state.job is None and not state.tally and not state.creating:
            self._jobs.pop(state.uid, None)

    # -- timers and answers

    def _wake(self, state: JobState, at: Instant | None) -> list[Effect]:
        """Makes sure that the Job is looked at by then; None takes the timer back."""
        if at is None:
            if state.timer is None:
                return []
        elif state.timer is not None and state.timer <= at:
            return []
        state.timer = at
        return [WakeAt(at, (SYNC, state.uid))]

    def _woken(self, uid: str, now: Instant) -> list[Effect]:
        state = self._jobs.get(uid)
        if state is None:
            return []
        state.timer = None
        if state.gone:
            return self._let_go_of_all(state)
        if state.job is None:
            return [Write(writes.get(JOBS, *state.place), (ORPHAN, uid, ""))]
        return [*self._act(state, now), *self._report(state, now)]

    def _written(self, what: str, uid: str, key: str, seen: bool, response: Response, now: Instant) -> Sequence[Effect]:
        state = self._jobs.get(uid)
        if state is None:
            return ()
        if what == CREATE:
            state.refusals = 0
            return self._created(state, key)
        elif what == LOOK:
            owner = controller_of(Object(response.body))
            if owner is None or owner.get("uid") != uid:
                state.creating.pop(key, None)
                state.taken.add(key)
                return self._wake(state, now + AGAIN)
            return self._created(state, key)
        elif what == RELEASE and key in state.leaving:
            return self._delete(state, key)
        elif what == ORPHAN and Object(response.body).uid != uid:
            return self._job_gone(uid, now)
        elif seen:
            return self._wake(state, now + SETTLE)
        return ()

    @staticmethod
    def _created(state: JobState, name: str) -> list[Effect]:
        """The server has the pod; unless it may be gone again, the watch will show it."""
        creation = state.creating.get(name)
        if creation is None:
            return []
        if creation.listed:
            creation.listed = False
            return [Write(writes.get(PODS, state.place[0], name), (LOOK, state.uid, name))]
        creation.answered = True
        return []

    def _refused(self, what: str, uid: str, key: str, response: Response, now: Instant) -> Sequence[Effect]:
        state = self._jobs.get(uid)
        if state is None:
            return ()
        status, effects = response.status, []
        if what == CREATE and status in (0, 409) and key in state.creating:
            return [Write(writes.get(PODS, state.place[0], key), (LOOK, uid, key))]
        if what in (CREATE, LOOK):
            state.creating.pop(key, None)
            state.refused(now)
            if what == CREATE and state.job is not None:
                effects.append(self._says_refused(state.job, response, now))
        elif what == ORPHAN and status == 404:
            return self._job_gone(uid, now)
        elif what in (RELEASE, DELETE) and status != 404:
            state.leaving.discard(key)
        return [*effects, *self._wake(state, max(now + AGAIN, state.retry_at))]

    @staticmethod
    def _says_refused(job: Object, response: Response, now: Instant) -> Effect:
        problem = response.body.get("message", "") if isinstance(response.body, dict) else ""
        message = f"Error creating: {problem or response.status}"
        return event(job.raw, "FailedCreate", message, component=COMPONENT, now=now, warning=True)

    # -- pods

    def _act_on(self, uids: Sequence[str], now: Instant) -> list[Effect]:
        effects: list[Effect] = []
        for uid in uids:
            state = self._jobs.get(uid)
            if state is not None and state.job is not None:
                effects += [*self._act(state, now), *self._wake(state, now + SETTLE)]
        return effects

    def _act(self, state: JobState, now: Instant) -> list[Effect]:
        """Makes and deletes pods; lets go of those that are counted. The status follows when things have settled."""
        job = state.job
        if job is None or len(self._listed) < len(self.resources):
            return []
        progress = measure(job.raw, state.tally)
        if deleted(job):
            return self._let_go_of_all(state)
        effects = self._let_go(state, progress.counted)
        if job_status.is_finished(job.raw):
            return effects + self._remove(state, 0)
        if self._verdict(state, progress, now) is not None or job.raw["spec"].get("suspend"):
            return effects + self._remove(state, 0)
        return effects + self._grow_or_shrink(state, job, progress, now)

    def _grow_or_shrink(self, state: JobState, job: Object, progress: Progress, now: Instant) -> list[Effect]:
        begun = bool(state.tally or state.creating) or start_time(job.raw) is not None
        effects, group = self._groups.settle(job, group_used(state), begun, now)
        if state.started is None and group.ready:
            state.started = now
        wanted = wanted_active(job.raw, progress, state.active)
        effects += self._remove(state, wanted)
        missing = wanted - state.there
        if replaces_only_failed(job.raw):
            missing -= state.tally.ending
        if missing <= 0 or not group.ready:
            return effects
        at = state.may_create_at()
        if at > now:
            return effects + self._wake(state, at)
        template = PodTemplate(job.raw, group.name)
        for name, index in list(new_pods(state, progress, missing)):
            state.creating[name] = Creation(index)
            effects.append(Write(writes.create(template.pod(name, index)), (CREATE, state.uid, name)))
        return effects

    def _remove(self, state: JobState, wanted: int) -> list[Effect]:
        """Deletes active pods until so many are left. They first lose their finalizer, so that they do not count."""
        effects: list[Effect] = []
        state.leaving |= {member.uid for member in surplus(state, wanted)}
        for uid in sorted(state.leaving):
            member = state.tally.members[uid]
            if member.tracked:
                effects += self._let_go(state, [member])
            else:
                effects += self._delete(state, member.uid)
        return effects

    def _delete(self, state: JobState, uid: str) -> list[Effect]:
        member, key = state.tally.members.get(uid), (DELETE, state.uid, uid)
        if member is None or key in self._pending or member.stage is not Stage.ACTIVE:
            return []
        self._pending.begin(key, member.pod.revision)
        return [Write(writes.delete(PODS, member.pod.namespace, member.name, uid=uid), key)]

    def _let_go(self, state: JobState, members: Sequence[Member]) -> list[Effect]:
        """Takes the finalizer off pods whose end is on record, or that are not to count."""
        effects: list[Effect] = []
        for member in members:
            key = (RELEASE, state.uid, member.uid)
            if key not in self._pending:
                self._pending.begin(key, member.pod.revision)
                effects.append(Write(without_finalizer(PODS, member.pod, TRACKING), key))
        return effects

    def _let_go_of_all(self, state: JobState) -> list[Effect]:
        """Nobody will count the pods of a Job that is gone."""
        return self._let_go(state, list(state.tally.uncounted.values()))

    # -- status

    def _verdict(self, state: JobState, progress: Progress, now: Instant) -> job_status.Verdict | None:
        """How the Job ends, once that is decided."""
        assert state.job is not None
        job = state.job.raw
        for type_ in (CRITERIA_MET, FAILURE_TARGET):
            there = job_status.condition(job, type_)
            if there.get("status") == "True":
                return type_, there.get("reason", ""), there.get("message", "")
        failed = failure(job, progress, self._started(state, state.job), now)
        if failed is not None:
            return FAILURE_TARGET, *failed
        if is_complete(job, progress, state.active):
            return CRITERIA_MET, "CompletionsReached", "Reached expected number of succeeded pods"
        return None

    def _report(self, state: JobState, now: Instant) -> list[Effect]:
        """Writes the status if it is not what it should be."""
        job, key = state.job, (STATUS, state.uid, "")
        if job is None or deleted(job) or len(self._listed) < len(self.resources):
            return []
        if key in self._pending:
            return self._wake(state, now + SETTLE)
        progress = measure(job.raw, state.tally)
        verdict = self._verdict(state, progress, now)
        wanted = job_status.wanted_status(
            job.raw,
            state.tally,
            progress,
            leaving=len(state.leaving),
            verdict=verdict,
            started=self._started(state, job) or (now if verdict else None),
            now=now,
        )
        effects = self._until_deadline(state, job, now)
        patch = job_status.changes(job.raw.get("status") or {}, wanted)
        if not patch:
            return effects
        self._pending.begin(key, job.revision)
        body = {"metadata": {"resourceVersion": job.revision}, "status": patch}
        effects.append(Write(writes.patch(JOBS, job.namespace, job.name, body, subresource="status"), key))
        return effects + _news(job, wanted["conditions"], now)

    @staticmethod
    def _started(state: JobState, job: Object) -> Instant | None:
        """The start time that the status should have; resuming sets it anew, and a Job without its group has none."""
        there = start_time(job.raw)
        if job.raw["spec"].get("suspend"):
            state.started = None
        elif there is None or job_status.has(job.raw, SUSPENDED):
            return state.started
        return there

    def _until_deadline(self, state: JobState, job: Object, now: Instant) -> list[Effect]:
        ends = deadline(job.raw, self._started(state, job))
        if ends is None or ends <= now or job_status.is_finished(job.raw):
            return []
        return self._wake(state, ends)


def _news(job: Object, conditions: Sequence[dict[str, str]], now: Instant) -> list[Effect]:
    """Events for conditions that are about to become True (or, of Suspended, False)."""
    effects: list[Effect] = []
    for condition in conditions:
        before = job_status.condition(job.raw, condition["type"])
        if before.get("status") == condition["status"]:
            continue
        if condition["type"] == SUSPENDED:
            reason = "Suspended" if condition["status"] == "True" else "Resumed"
        elif condition["type"] == job_status.COMPLETE:
            reason = "Completed"
        elif condition["type"] == job_status.FAILED:
            reason = condition.get("reason", "Failed")
        else:
            continue
        warning = condition["type"] == job_status.FAILED
        effects.append(
            event(job.raw, reason, condition.get("message", ""), component=COMPONENT, now=now, warning=warning)
        )
    return effects
