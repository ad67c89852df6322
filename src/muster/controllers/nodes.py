"""Node lifecycle: what a node's conditions mean for the pods on it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from muster.api import writes
from muster.api.calls import STRATEGIC_PATCH
from muster.api.instant import SECOND, Instant, from_time, to_time
from muster.api.machine import DELETED, Effect, Event, Listed, Observed, Refused, WakeAt, Woken, Write, Written
from muster.api.object import Object
from muster.controllers.annotations import is_lost
from muster.controllers.membership import Membership
from muster.controllers.pod_status import TERMINAL, deleted, node_of, phase
from muster.controllers.taints import NO_EXECUTE, evicted_at, managed_taints
from muster.controllers.writing import AGAIN, Pending, condition_status, with_condition

MONITOR_GRACE: Instant = 40 * SECOND
"""How long a kubelet may be silent before its node is Ready=Unknown (node-monitor-grace-period)."""
QUARANTINE: Instant = 40 * SECOND
"""How long a node must be gone before its pods are deleted; a watch may show the pod first."""

LOST, EVICT, GONE, NODE = "lost", "evict", "gone", "node"


class Nodes:
    """Taints nodes by their conditions, evicts what does not tolerate them, deletes the pods of nodes that are gone."""

    resources: tuple[str, ...] = ("nodes", "pods")

    def __init__(self) -> None:
        self._nodes: dict[str, Object] = {}
        self._pods: dict[str, Object] = {}
        self._on: Membership[str, str] = Membership()
        self._lost_since: dict[str, Instant] = {}
        self._gone: set[str] = set()
        self._first_seen: dict[tuple[str, str], Instant] = {}
        self._evict: dict[str, Instant] = {}
        self._pending = Pending()

    def handle(self, event: Event, now: Instant) -> Sequence[Effect]:
        if type(event) is Observed:
            gone, obj = event.change == DELETED, event.object
            if event.resource == "pods":
                return self._pod_gone(obj) if gone else self._pod_seen(obj, now)
            return self._node_gone(obj.name, now) if gone else self._node_seen(obj, now)
        match event:
            case Listed("pods", objects):
                return self._pods_listed(objects, now)
            case Listed("nodes", objects):
                return self._nodes_listed(objects, now)
            case Woken((str(what), str(key))):
                return self._woken(what, key, now)
            case Written((str(what), str(key)) as tag, response):
                self._pending.written(tag, response)
                return self._absent_after_all(key) if what == GONE else ()
            case Refused((str(what), str(key)) as tag, response):
                self._pending.forget(tag)
                return self._refused(what, key, response.status, now)
        return ()

    # -- nodes

    def _nodes_listed(self, objects: Sequence[Object], now: Instant) -> list[Effect]:
        there = {node.name for node in objects}
        effects: list[Effect] = []
        for name in [name for name in self._nodes if name not in there]:
            effects += self._node_gone(name, now)
        self._pending.listed()
        for node in objects:
            effects += self._node_seen(node, now)
        return effects

    def _node_seen(self, node: Object, now: Instant) -> list[Effect]:
        name = node.name
        before = self._nodes.get(name)
        self._nodes[name] = node
        self._pending.observed((NODE, name), node.revision)
        effects: list[Effect] = []
        if name in self._gone:
            self._gone.discard(name)
            effects.append(WakeAt(None, (GONE, name)))
        effects += self._watch_over(node, now)
        effects += self._settle(node, now)
        if before is None or _no_execute(before) != _no_execute(node):
            for uid in self._on.of(name):
                effects += self._consider(self._pods[uid], now)
        return effects

    def _node_gone(self, name: str, now: Instant) -> list[Effect]:
        self._nodes.pop(name, None)
        self._pending.forget((NODE, name))
        for key in [key for key in self._first_seen if key[0] == name]:
            del self._first_seen[key]
        effects: list[Effect] = []
        if self._lost_since.pop(name, None) is not None:
            effects.append(WakeAt(None, (LOST, name)))
        for uid in self._on.of(name):
            effects += self._never_mind(uid)
        return effects + self._quarantine(name, now)

    def _watch_over(self, node: Object, now: Instant) -> list[Effect]:
        """Counts how long a lost node has been silent."""
        name = node.name
        if not is_lost(node.meta.get("annotations") or {}):
            return [WakeAt(None, (LOST, name))] if self._lost_since.pop(name, None) is not None else []
        if condition_status(node, "Ready") == "Unknown":
            self._lost_since.pop(name, None)
            return []
        if name in self._lost_since:
            return []
        self._lost_since[name] = now
        return [WakeAt(now + MONITOR_GRACE, (LOST, name))]

    def _silent(self, name: str, now: Instant) -> list[Effect]:
        """The kubelet has been silent for too long."""
        node = self._nodes.get(name)
        if node is None or name not in self._lost_since:
            return []
        conditions = (node.raw.get("status") or {}).get("conditions") or ()
        for type_ in [each["type"] for each in conditions if each["type"] != "Ready"] + ["Ready"]:
            conditions = with_condition(
                conditions,
                type_,
                "Unknown",
                now,
                reason="NodeStatusUnknown",
                message="Kubelet stopped posting node status.",
            )
        return [Write(writes.patch_status("nodes", "", name, {"conditions": conditions}), (LOST, name))]

    def _settle(self, node: Object, now: Instant) -> list[Effect]:
        """Gives the node the taints that its conditions ask for."""
        taints: Sequence[Mapping[str, Any]] = (node.raw.get("spec") or {}).get("taints") or ()
        wanted = managed_taints(node.raw, taints, to_time(now))
        key = (NODE, node.name)
        if wanted is None or key in self._pending:
            return []
        self._pending.begin(key, node.revision)
        body = {"metadata": {"resourceVersion": node.revision}, "spec": {"taints": wanted}}
        return [Write(writes.patch("nodes", "", node.name, body), key)]

    # -- pods

    def _pods_listed(self, objects: Sequence[Object], now: Instant) -> list[Effect]:
        there = {pod.uid for pod in objects}
        effects: list[Effect] = []
        for uid in [uid for uid in self._pods if uid not in there]:
            effects += self._pod_gone(self._pods[uid])
        for pod in objects:
            effects += self._pod_seen(pod, now)
        return effects

    def _pod_seen(self, pod: Object, now: Instant) -> Sequence[Effect]:
        node, uid = node_of(pod), pod.uid
        if not node:
            return ()
        self._pending.observed((EVICT, uid), pod.revision)
        if uid not in self._pods:
            self._on.add(node, uid)
        self._pods[uid] = pod
        if node not in self._nodes:
            return self._quarantine(node, now)
        return self._consider(pod, now)

    def _pod_gone(self, pod: Object) -> Sequence[Effect]:
        known = self._pods.pop(pod.uid, None)
        if known is None:
            return ()
        self._on.discard(node_of(known), pod.uid)
        self._pending.forget((EVICT, pod.uid))
        return self._never_mind(pod.uid)

    def _consider(self, pod: Object, now: Instant) -> Sequence[Effect]:
        """When this pod has to go because of its node's NoExecute taints, if at all."""
        node = self._nodes[node_of(pod)]
        taints = _no_execute(node)
        if not taints or deleted(pod) or phase(pod) in TERMINAL:
            return self._never_mind(pod.uid) if self._evict else ()
        since = [self._since(node.name, taint, pod, now) for taint in taints]
        at = evicted_at(taints, since, (pod.raw.get("spec") or {}).get("tolerations") or ())
        if at is None:
            return self._never_mind(pod.uid)
        if at <= now:
            self._evict.pop(pod.uid, None)
            return self._evict_now(pod, now)
        if self._evict.get(pod.uid) == at:
            return ()
        self._evict[pod.uid] = at
        return [WakeAt(at, (EVICT, pod.uid))]

    def _since(self, node: str, taint: Mapping[str, Any], pod: Object, now: Instant) -> Instant:
        """From when on the pod has had to tolerate the taint."""
        added = taint.get("timeAdded")
        if added:
            there = from_time(added)
        else:
            there = self._first_seen.setdefault((node, f"{taint['key']}={taint.get('value', '')}"), now)
        return max(there, _bound_at(pod, there))

    def _never_mind(self, uid: str) -> Sequence[Effect]:
        return [WakeAt(None, (EVICT, uid))] if self._evict.pop(uid, None) is not None else ()

    def _evict_now(self, pod: Object, now: Instant) -> Sequence[Effect]:
        key = (EVICT, pod.uid)
        if key in self._pending:
            return ()
        self._pending.begin(key, pod.revision)
        reason, message = "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint"
        delete = writes.delete("pods", pod.namespace, pod.name, uid=pod.uid)
        return [Write(_disrupted(pod, reason, message, now)), Write(delete, key)]

    # -- nodes that are gone

    def _quarantine(self, name: str, now: Instant) -> list[Effect]:
        if name in self._gone or name not in self._on:
            return []
        self._gone.add(name)
        return [WakeAt(now + QUARANTINE, (GONE, name))]

    def _absent_after_all(self, name: str) -> Sequence[Effect]:
        """The node exists; its watch event will come."""
        self._gone.discard(name)
        return ()

    def _collect(self, name: str, now: Instant) -> list[Effect]:
        """The node is gone for good: its pods go too, without waiting for a kubelet."""
        self._gone.discard(name)
        effects: list[Effect] = []
        for uid in self._on.of(name):
            pod = self._pods[uid]
            if phase(pod) not in TERMINAL:
                message = "PodGC: node no longer exists"
                effects.append(Write(_disrupted(pod, "DeletionByPodGC", message, now, failed=True)))
            effects.append(
                Write(writes.delete("pods", pod.namespace, pod.name, uid=uid, grace_seconds=0), (EVICT, uid))
            )
        return effects

    # -- timers and answers

    def _woken(self, what: str, key: str, now: Instant) -> Sequence[Effect]:
        if what == LOST:
            return self._silent(key, now)
        if what == NODE:
            return self._settle(self._nodes[key], now) if key in self._nodes else ()
        if what == EVICT:
            self._evict.pop(key, None)
            pod = self._pods.get(key)
            return self._consider(pod, now) if pod is not None and node_of(pod) in self._nodes else ()
        if what == GONE and key in self._gone and key not in self._nodes:
            return [Write(writes.get("nodes", "", key), (GONE, key))]
        return ()

    def _refused(self, what: str, key: str, status: int, now: Instant) -> Sequence[Effect]:
        if what == GONE:
            if key in self._nodes or key not in self._gone:
                return ()
            return self._collect(key, now) if status == 404 else [WakeAt(now + AGAIN, (GONE, key))]
        if what == EVICT and status in (404, 409):
            return ()  # it is gone, or another one by now
        return [WakeAt(now + AGAIN, (what, key))]


def _no_execute(node: Object) -> list[Mapping[str, Any]]:
    taints: Iterable[Mapping[str, Any]] = (node.raw.get("spec") or {}).get("taints") or ()
    return [taint for taint in taints if taint.get("effect") == NO_EXECUTE]


def _bound_at(pod: Object, otherwise: Instant) -> Instant:
    for condition in (pod.raw.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "True":
            at = condition.get("lastTransitionTime")
            return from_time(at) if at else otherwise
    return otherwise


def _disrupted(pod: Object, reason: str, message: str, now: Instant, *, failed: bool = False) -> Any:
    """Says on the pod why it is about to go."""
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": reason,
        "message": message,
        "lastTransitionTime": to_time(now),
    }
    status: dict[str, Any] = {"conditions": [condition]}
    if failed:
        status["phase"] = "Failed"
    body = {"metadata": {"uid": pod.uid}, "status": status}
    return writes.patch("pods", pod.namespace, pod.name, body, STRATEGIC_PATCH, subresource="status")
