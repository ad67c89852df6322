"""The Job controller: brings a Job's pods to where its spec wants them, and its status to where the pods are."""

from __future__ import annotations

from collections.abc import Sequence

from muster.api import writes
from muster.api.calls import Response
from muster.api.gates import FeatureGates
from muster.api.instant import SECOND, Instant
from muster.api.machine import DELETED, Effect, Event, Listed, Observed, Refused, Woken, Write, Written
from muster.api.object import Object
from muster.controllers.jobs.groups import COMPONENT, JobGroups
from muster.controllers.jobs.members import TRACKING, Member
from muster.controllers.jobs.state import (
    BREATH,
    CREATE,
    DELETE,
    JOBS,
    LOOK,
    ORPHAN,
    PODS,
    RELEASE,
    SETTLE,
    STATUS,
    JobState,
)
from muster.controllers.jobs.sync import Sync
from muster.controllers.writing import AGAIN, Pending, controller_of, event, without_finalizer

ORPHAN_CHECK: Instant = 5 * SECOND
"""How long the Job of a pod may be unseen before the server is asked for it."""
CONTROLLER = "kubernetes.io/job-controller"


class Jobs:
    """All Jobs. Pods have names that a restarted controller makes again, and a finalizer until the status has counted
    them, so that nothing is made or counted twice."""

    def __init__(self, gates: FeatureGates) -> None:
        self._groups = JobGroups(gates)
        self._pending = Pending()
        self._sync = Sync(self._groups, self._pending)
        self.resources: tuple[str, ...] = (JOBS, *self._groups.resources, PODS)
        self._jobs: dict[str, JobState] = {}
        self._job_of: dict[str, str] = {}
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
                return [*effects, *known.wake(now + AGAIN)] if known else effects
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
        effects = [*self._sync.let_go_of_all(state), *state.wake(None)]
        self._tidy(state)
        return effects

    def _pod_seen(self, pod: Object, now: Instant) -> list[Effect]:
        owner = controller_of(pod)
        if owner is None:
            return self._orphan_seen(pod, now)
        if owner.get("kind") != "Job":
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
            return state.wake(now + (BREATH if state.goes_on and not state.creating else SETTLE))
        if state.gone:
            return self._sync.let_go_of_all(state)
        state.place = (pod.namespace, owner.get("name", ""))
        return state.wake(now + ORPHAN_CHECK)

    def _orphan_seen(self, pod: Object, now: Instant) -> list[Effect]:
        """A pod that no Job has any more: nobody counts it, so that nothing may hold it."""
        state = self._drop_pod(pod.uid)
        effects = state.wake(now + SETTLE) if state is not None and state.job is not None else []
        if TRACKING in (pod.meta.get("finalizers") or ()):
            effects.append(Write(without_finalizer(PODS, pod, TRACKING), None))
        return effects

    def _pod_gone(self, pod: Object, now: Instant) -> list[Effect]:
        state = self._drop_pod(pod.uid)
        if state is None:
            state = self._jobs.get((controller_of(pod) or {}).get("uid", ""))
            if state is not None and state.creating.pop(pod.name, None) is None:
                return []
        return state.wake(now + SETTLE) if state is not None and state.job is not None else []

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

    def _woken(self, uid: str, now: Instant) -> list[Effect]:
        state = self._jobs.get(uid)
        if state is None:
            return []
        state.timer = None
        if state.gone:
            return self._sync.let_go_of_all(state)
        if state.job is None:
            return [Write(writes.get(JOBS, *state.place), (ORPHAN, uid, ""))]
        if len(self._listed) < len(self.resources):
            return []
        return [*self._sync.pods(state, now), *self._sync.status(state, now)]

    def _written(self, what: str, uid: str, key: str, seen: bool, response: Response, now: Instant) -> Sequence[Effect]:
        state = self._jobs.get(uid)
        if state is None:
            return ()
        if what == CREATE:
            effects = self._created(state, key)
            if state.refusals:  # it was one to try whether the server takes pods again; now all may follow
                state.refusals = 0
                effects += state.wake(now)
            return effects
        elif what == LOOK:
            owner = controller_of(Object(response.body))
            if owner is None or owner.get("uid") != uid:
                state.creating.pop(key, None)
                state.taken.add(key)
                return state.wake(now + AGAIN)
            return self._created(state, key)
        elif what == RELEASE and key in state.leaving:
            return self._sync.delete(state, key)
        elif what == ORPHAN and Object(response.body).uid != uid:
            return self._job_gone(uid, now)
        elif seen:
            return state.wake(now + SETTLE)
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
            if state.refused(now) and what == CREATE and state.job is not None:
                effects.append(self._says_refused(state.job, response, now))
        elif what == ORPHAN and status == 404:
            return self._job_gone(uid, now)
        elif what in (RELEASE, DELETE) and status != 404:
            state.leaving.discard(key)
        return [*effects, *state.wake(max(now + AGAIN, state.retry_at))]

    @staticmethod
    def _says_refused(job: Object, response: Response, now: Instant) -> Effect:
        problem = response.body.get("message", "") if isinstance(response.body, dict) else ""
        message = f"Error creating: {problem or response.status}"
        return event(job.raw, "FailedCreate", message, component=COMPONENT, now=now, warning=True)

    def _act_on(self, uids: Sequence[str], now: Instant) -> list[Effect]:
        """Brings the pods of these Jobs in order at once; their status follows when things have settled."""
        if len(self._listed) < len(self.resources):
            return []
        effects: list[Effect] = []
        for uid in uids:
            state = self._jobs.get(uid)
            if state is not None and state.job is not None:
                effects += [*self._sync.pods(state, now), *state.wake(now + SETTLE)]
        return effects
