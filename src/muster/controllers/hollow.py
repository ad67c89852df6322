"""Hollow kubelets: what happens to a pod once it is bound."""

from __future__ import annotations

from collections.abc import Sequence

from muster.api import writes
from muster.api.calls import Request
from muster.api.instant import SECOND, Instant
from muster.api.machine import (
    DELETED,
    Effect,
    Event,
    Listed,
    Observed,
    Refused,
    WakeAt,
    Woken,
    Write,
    Written,
)
from muster.api.object import Object
from muster.controllers import pod_status
from muster.controllers.annotations import exit_code, is_lost, run_time
from muster.controllers.membership import Membership
from muster.controllers.pod_status import TERMINAL, deleted, node_of, phase
from muster.controllers.resizing import Report, carried_out
from muster.controllers.sizes import Sizes
from muster.controllers.writing import AGAIN, Pending, condition_status, event, with_condition

POD, NODE = "pod", "node"
COMPONENT = "hollow-kubelet"


class Hollow:
    """All kubelets of the cluster in one machine. A pod is bound, starts, runs, ends; or is deleted, and ends then.

    Args:
        run: False leaves pods as they are and ends deletions at once, whatever the node (for conformance).
        start_delay: microseconds from bound to running.
        stop_delay: microseconds that a deleted pod takes to end, at most its grace period.
        resize_delay: microseconds from a granted resize to one that is carried out.
    """

    resources: tuple[str, ...] = ("nodes", "pods")

    def __init__(
        self,
        *,
        run: bool = True,
        start_delay: Instant = SECOND,
        stop_delay: Instant = SECOND,
        resize_delay: Instant = SECOND,
    ) -> None:
        self._run = run
        self._start_delay = start_delay
        self._stop_delay = stop_delay
        self._held = False
        self._nodes: set[str] = set()
        self._lost: set[str] = set()
        self._pods: dict[str, Object] = {}
        self._on: Membership[str, str] = Membership()
        self._due: dict[str, Instant] = {}
        self._finishing: set[str] = set()
        self._finished: set[str] = set()
        self._pending = Pending()
        self._sizes = Sizes(resize_delay)

    def hold(self) -> None:
        """From now on deleted pods stay terminating (conformance: `termination: hold`)."""
        self._held = True

    def finish(self, now: Instant) -> Sequence[Effect]:
        """Ends what `hold` held, and holding itself; the driver carries out the effects."""
        self._held = False
        return [effect for pod in list(self._pods.values()) if deleted(pod) for effect in self._look(pod, now)]

    def handle(self, event: Event, now: Instant) -> Sequence[Effect]:
        if type(event) is Observed:
            gone, obj = event.change == DELETED, event.object
            if event.resource == "pods":
                return self._pod_gone(obj, now) if gone else self._pod_seen(obj, now)
            return self._node_gone(obj.name) if gone else self._node_seen(obj, now)
        match event:
            case Listed("pods", objects):
                return self._pods_listed(objects, now)
            case Listed("nodes", objects):
                return self._nodes_listed(objects, now)
            case Woken((_, str(uid))):
                return self._woken(uid, now)
            case Written((str(kind), str(key)) as tag, response):
                return self._written(kind, key, self._pending.written(tag, response), now)
            case Refused((str(kind), str(key)) as tag, response):
                self._pending.forget(tag)
                return self._refused(key, response.status, now) if kind == POD else ()
        return ()

    # -- nodes

    def _nodes_listed(self, objects: Sequence[Object], now: Instant) -> list[Effect]:
        self._nodes.clear()
        self._lost.clear()
        return [effect for node in objects for effect in self._node_seen(node, now)]

    def _node_seen(self, node: Object, now: Instant) -> Sequence[Effect]:
        name = node.name
        returned = name not in self._nodes or name in self._lost
        self._nodes.add(name)
        self._pending.observed((NODE, name), node.revision)
        if is_lost(node.meta.get("annotations") or {}):
            self._lost.add(name)
            return ()
        self._lost.discard(name)
        effects: list[Effect] = []
        if self._run and (self._sizes.node(node) or returned):
            effects += self._settle(name, now)
        if self._run and condition_status(node, "Ready") in (None, "Unknown"):
            effects += self._report_ready(node, now)
        if returned:
            for uid in self._on.of(name):
                effects += self._look(self._pods[uid], now)
        return effects

    def _node_gone(self, name: str) -> Sequence[Effect]:
        self._nodes.discard(name)
        self._lost.discard(name)
        self._sizes.node_gone(name)
        self._pending.forget((NODE, name))
        return ()

    def _report_ready(self, node: Object, now: Instant) -> Sequence[Effect]:
        key = (NODE, node.name)
        if key in self._pending:
            return ()
        self._pending.begin(key, node.revision)
        conditions = with_condition(
            (node.raw.get("status") or {}).get("conditions") or (),
            "Ready",
            "True",
            now,
            reason="KubeletReady",
            message="kubelet is posting ready status",
        )
        return [Write(writes.patch_status("nodes", "", node.name, {"conditions": conditions}), key)]

    # -- pods

    def _pods_listed(self, objects: Sequence[Object], now: Instant) -> list[Effect]:
        there = {obj.uid for obj in objects}
        effects: list[Effect] = []
        for uid in [uid for uid in self._pods if uid not in there]:
            effects += self._pod_gone(self._pods[uid], now)
        self._pending.listed()
        for obj in objects:
            effects += self._pod_seen(obj, now, settle=False)
        for node in dict.fromkeys(map(node_of, objects)) if self._run else ():
            effects += self._settle(node, now)  # Not before all who hold room are known.
        return effects

    def _pod_seen(self, pod: Object, now: Instant, *, settle: bool = True) -> Sequence[Effect]:
        node, uid = node_of(pod), pod.uid
        if not node:
            return ()
        self._pending.observed((POD, uid), pod.revision)
        known = self._pods.get(uid)
        if known is not None and known.revision == pod.revision:
            return ()
        self._pods[uid] = pod
        if known is None:
            self._on.add(node, uid)
        if not self._run:
            return self._look(pod, now)
        self._sizes.seen(pod, node, written=(POD, uid) not in self._pending)
        return [*self._look(pod, now), *(self._settle(node, now) if settle else ())]

    def _pod_gone(self, pod: Object, now: Instant) -> Sequence[Effect]:
        known = self._pods.pop(pod.uid, None)
        if known is None:
            return ()
        self._on.discard(node_of(known), pod.uid)
        self._pending.forget((POD, pod.uid))
        self._finishing.discard(pod.uid)
        self._finished.discard(pod.uid)
        self._sizes.gone(known, node_of(known))
        return [*self._wait(pod.uid, None), *self._settle(node_of(known), now)]

    def _settle(self, node: str, now: Instant) -> Sequence[Effect]:
        """Grants, defers or refuses what pods on a node wish to be resized to, and says so."""
        if node in self._lost or node not in self._nodes:
            return ()
        busy = {uid for uid in self._on.of(node) if (POD, uid) in self._pending}
        effects: list[Effect] = []
        for report in self._sizes.consider(node, busy, now):
            effects += self._report(report)
            if report.reason:
                wrong = report.reason in ("ResizeDeferred", "ResizeInfeasible")
                said = event(report.pod.raw, report.reason, report.message, component=COMPONENT, now=now, warning=wrong)
                effects.append(said)
        return effects

    def _report(self, report: Report) -> Sequence[Effect]:
        pod, key = report.pod, (POD, report.pod.uid)
        self._pending.begin(key, pod.revision)
        body = {"metadata": {"resourceVersion": pod.revision, "uid": pod.uid}, "status": report.status}
        return [Write(writes.patch("pods", pod.namespace, pod.name, body, subresource="status"), key)]

    def _look(self, pod: Object, now: Instant) -> Sequence[Effect]:
        """What is next for this pod: a timer, or nothing."""
        node = node_of(pod)
        if node in self._lost or (self._run and node not in self._nodes):
            return self._wait(pod.uid, None)
        if deleted(pod):
            return self._look_at_deleted(pod, now)
        current = phase(pod)
        if not self._run or current in TERMINAL:
            return self._wait(pod.uid, None)
        if current != "Running":
            return self._wait(pod.uid, self._due.get(pod.uid, now + self._start_delay))
        try:
            runs = run_time(pod.meta.get("annotations") or {})
            exit_code(pod.meta.get("annotations") or {})
        except ValueError as problem:
            return [event(pod.raw, "InvalidAnnotation", str(problem), component=COMPONENT, now=now, warning=True)]
        ends = None if runs is None else pod_status.started_at(pod, now) + runs
        times = [at for at in (ends, self._sizes.due(pod)) if at is not None]
        return self._wait(pod.uid, min(times, default=None))

    def _look_at_deleted(self, pod: Object, now: Instant) -> Sequence[Effect]:
        if self._held or pod.uid in self._finished:
            return self._wait(pod.uid, None)
        if not self._run:
            return self._act(pod, now)
        grace = pod.meta.get("deletionGracePeriodSeconds")
        takes = self._stop_delay if grace is None else min(self._stop_delay, grace * SECOND)
        if phase(pod) in TERMINAL:
            takes = 0
        return self._wait(pod.uid, min(self._due.get(pod.uid, now + takes), now + takes))

    def _wait(self, uid: str, at: Instant | None) -> Sequence[Effect]:
        if self._due.get(uid) == at:
            return ()
        if at is None:
            del self._due[uid]
        else:
            self._due[uid] = at
        return [WakeAt(at, (POD, uid))]

    def _written(self, kind: str, uid: str, seen: bool, now: Instant) -> Sequence[Effect]:
        if kind != POD:
            return ()
        pod = self._pods.get(uid)
        if pod is not None and uid in self._finishing:
            self._finished.add(uid)
        if not seen:
            return ()
        self._sizes.written(uid)
        return self._woken(uid, now)

    def _refused(self, uid: str, status: int, now: Instant) -> Sequence[Effect]:
        if 400 <= status < 500:
            self._sizes.written(uid)
        if uid not in self._pods or (uid in self._finishing and status in (404, 409)):
            return ()  # it is gone, or another one by now; the watch will say so
        return self._wait(uid, now + AGAIN)

    def _woken(self, uid: str, now: Instant) -> Sequence[Effect]:
        self._due.pop(uid, None)
        pod = self._pods.get(uid)
        if pod is None:
            return ()
        node = node_of(pod)
        if node in self._lost or (self._run and node not in self._nodes):
            return ()
        return self._act(pod, now)

    def _act(self, pod: Object, now: Instant) -> Sequence[Effect]:
        """The pod's time has come: start it, end it, or finish its deletion."""
        key = (POD, pod.uid)
        if key in self._pending:
            return ()
        if deleted(pod):
            if self._held or pod.uid in self._finished:
                return ()
            self._finishing.add(pod.uid)
            self._pending.begin(key, pod.revision)
            return self._finish_deletion(pod, now)
        current = phase(pod)
        if not self._run or current in TERMINAL:
            return ()
        if current != "Running":
            return self._report(self._sizes.started(pod, now))
        annotations = pod.meta.get("annotations") or {}
        runs = run_time(annotations)
        if runs is not None and pod_status.started_at(pod, now) + runs <= now:
            return self._report(Report(pod, pod_status.ended(pod, exit_code(annotations), now)))
        resized = self._sizes.due(pod)
        if resized is None or resized > now:
            return [*self._look(pod, now), *self._settle(node_of(pod), now)]
        report = carried_out(pod, now)
        return [*self._report(report), event(pod.raw, report.reason, report.message, component=COMPONENT, now=now)]

    def _finish_deletion(self, pod: Object, now: Instant) -> Sequence[Effect]:
        ends: Request = writes.delete("pods", pod.namespace, pod.name, uid=pod.uid, grace_seconds=0)
        if not self._run or phase(pod) in TERMINAL or not pod.meta.get("finalizers"):
            return [Write(ends, (POD, pod.uid))]
        # Something else holds the object; say that the containers have ended, so that their room counts as free.
        failed = writes.patch_status("pods", pod.namespace, pod.name, pod_status.ended(pod, 137, now))
        return [Write(failed), Write(ends, (POD, pod.uid))]
