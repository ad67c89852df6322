"""What the kubelets have set aside for whom, as far as no status tells yet, and which pods wait to be resized."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

from muster.api.instant import Instant
from muster.api.object import Object
from muster.api.quantity import amount
from muster.controllers import pod_status, resizing
from muster.controllers.membership import Membership
from muster.controllers.pod_status import TERMINAL, deleted, phase
from muster.controllers.resizing import Amounts, Report


class Sizes:
    """A fold over nodes and the pods on them.

    Nothing is counted while nobody is resized: only a node where somebody grew has its newcomers checked for room.

    Args:
        delay: microseconds from a granted resize to one that is carried out.
    """

    def __init__(self, delay: Instant) -> None:
        self._delay = delay
        self._pods: dict[str, dict[str, Object]] = {}
        """Node -> uid -> pod, of those that hold room."""
        self._unsettled: Membership[str, str] = Membership()
        self._admitted: dict[str, Mapping[str, Any]] = {}
        """Uid -> the spec with which a pod that has not started was first seen."""
        self._granted: dict[str, Amounts] = {}
        """Uid -> what was granted and is not reported yet."""
        self._allocatable: dict[str, Mapping[str, Any]] = {}
        self._grown: set[str] = set()
        """Nodes on which somebody was given more, or may have been."""
        self._starting: set[str] = set()
        """Uids of pods that were started, which is not seen yet."""

    # -- as things change

    def node(self, node: Object) -> bool:
        """Whether its resources are others by now."""
        given = (node.raw.get("status") or {}).get("allocatable") or {}
        before, self._allocatable[node.name] = self._allocatable.get(node.name), given
        return before != given

    def node_gone(self, name: str) -> None:
        self._allocatable.pop(name, None)
        self._grown.discard(name)

    def seen(self, pod: Object, node: str, *, written: bool) -> None:
        """A pod on the node; `written`: whatever was granted to it has been reported."""
        uid, state = pod.uid, phase(pod)
        if state in TERMINAL:
            self.gone(pod, node)
            return
        self._pods.setdefault(node, {})[uid] = pod
        if written and uid in self._granted and self._granted[uid] == resizing.allocated(pod):
            del self._granted[uid]
        if (pod.meta.get("generation") or 0) > 1:
            self._grown.add(node)
        if state == "Running":
            self._starting.discard(uid)
            self._admitted.pop(uid, None)
        else:
            self._admitted.setdefault(uid, pod.raw.get("spec") or {})
        if state == "Running" and not deleted(pod) and resizing.unsettled(pod):
            self._unsettled.add(node, uid)
        else:
            self._unsettled.discard(node, uid)

    def gone(self, pod: Object, node: str) -> None:
        """It holds no room any more."""
        there = self._pods.get(node, {})
        there.pop(pod.uid, None)
        if not there:
            self._pods.pop(node, None)
        self._unsettled.discard(node, pod.uid)
        self._granted.pop(pod.uid, None)
        self._admitted.pop(pod.uid, None)
        self._starting.discard(pod.uid)

    def written(self, uid: str) -> None:
        """The last report on the pod is known to all, or was refused."""
        self._granted.pop(uid, None)
        self._starting.discard(uid)

    # -- decisions

    def consider(self, node: str, busy: Set[str], now: Instant) -> list[Report]:
        """What there is to report; nothing of pods with a report under way (`busy`)."""
        waiting = [uid for uid in self._unsettled.of(node) if uid not in busy]
        if not waiting:
            return []
        there = self._pods[node]
        held = {uid: self._held(pod) for uid, pod in there.items()}
        reports = resizing.consider(self._room(node), held, [there[uid] for uid in waiting], now)
        for report in reports:
            if report.grants is not None:
                self._granted[report.pod.uid] = report.grants
                self._grown.add(node)
        return reports

    def started(self, pod: Object, now: Instant) -> Report:
        """A pod starts, with what it was admitted for; or has to fail, since its room was given to a resize."""
        node, admitted = pod_status.node_of(pod), self._admitted.get(pod.uid)
        lacking = self._lacking(node, pod) if node in self._grown else ""
        if lacking:
            message = f"Node didn't have enough resource: {lacking}"
            return Report(pod, pod_status.refused(pod, lacking, message, now))
        self._starting.add(pod.uid)
        return Report(pod, pod_status.running(pod, now, admitted))

    def due(self, pod: Object) -> Instant | None:
        """When a resize of it will be carried out."""
        return resizing.due(pod, self._delay)

    def _lacking(self, node: str, pod: Object) -> str:
        """Of which resource there is too little for a pod beside those that have started; "": of none."""
        free, wants = dict(self._room(node)), self._held(pod)
        for uid, other in self._pods.get(node, {}).items():
            if uid != pod.uid and (uid in self._starting or phase(other) == "Running"):
                for name, taken in self._held(other).items():
                    free[name] = free.get(name, 0) - taken
        room = self._room(node)
        return next((name for name, asked in sorted(wants.items()) if name in room and asked > free[name]), "")

    def _held(self, pod: Object) -> Amounts:
        granted, admitted = self._granted.get(pod.uid), self._admitted.get(pod.uid)
        known = resizing.allocated(pod) if admitted is None else resizing.desired({"spec": admitted})
        if granted is None:
            return known
        return {name: max(granted.get(name, 0), known.get(name, 0)) for name in granted.keys() | known.keys()}

    def _room(self, node: str) -> Amounts:
        return {name: amount(name, given) for name, given in self._allocatable.get(node, {}).items()}
