"""Status of PodDisruptionBudgets: how many of their pods may be disrupted now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from muster.api import selectors, writes
from muster.api.core import PodDisruptionBudget
from muster.api.instant import MINUTE, SECOND, Instant, from_time
from muster.api.machine import DELETED, Effect, Event, Listed, Observed, Refused, WakeAt, Woken, Write, Written
from muster.api.object import Object
from muster.controllers.pod_status import TERMINAL, deleted, is_ready, phase
from muster.controllers.writing import AGAIN, Pending, with_condition

SETTLE: Instant = SECOND // 5
"""How long changes of pods are collected before a status is written."""
DISRUPTION_LASTS: Instant = 2 * MINUTE
"""How long a granted eviction may take to show."""
_Place = tuple[str, str]


@dataclass(slots=True)
class _Budget:
    """A budget with the pods it covers, by uid. Pods that have ended are not covered."""

    object: Object
    covers: selectors.Selector
    pods: dict[str, bool] = field(default_factory=dict)
    """Whether each is healthy."""
    healthy: dict[str, str] = field(default_factory=dict)
    """Names of those that are."""
    due: Instant | None = None

    def put(self, pod: Object) -> bool:
        """Takes a pod in; True if the counts have changed."""
        if phase(pod) in TERMINAL or not self.covers.matches(pod.meta.get("labels") or {}):
            return self.drop(pod.uid)
        healthy = is_ready(pod) and not deleted(pod)
        if self.pods.get(pod.uid) == healthy:
            return False
        self.pods[pod.uid] = healthy
        if healthy:
            self.healthy[pod.uid] = pod.name
        else:
            self.healthy.pop(pod.uid, None)
        return True

    def drop(self, uid: str) -> bool:
        self.healthy.pop(uid, None)
        return self.pods.pop(uid, None) is not None


class Disruption:
    """Keeps the status of every budget. The scale that percentages refer to is the number of pods that it covers."""

    resources: tuple[str, ...] = ("poddisruptionbudgets", "pods")

    def __init__(self) -> None:
        self._budgets: dict[str, dict[str, _Budget]] = {}
        self._pods: dict[str, dict[str, Object]] = {}
        self._pending = Pending()
        self._listed = False

    def handle(self, event: Event, now: Instant) -> Sequence[Effect]:
        match event:
            case Observed("pods", change, pod):
                return self._pod_changed(pod, change == DELETED, now)
            case Observed(_, change, obj):
                return self._budget_gone(obj) if change == DELETED else self._budget_seen(obj, now)
            case Listed("pods", pods):
                return self._pods_listed(pods, now)
            case Listed(_, budgets):
                return self._budgets_listed(budgets, now)
            case Woken((str(namespace), str(name))):
                return self._report((namespace, name), now)
            case Written((str(), str()) as place, response):
                self._pending.written(place, response)
            case Refused((str(namespace), str(name)) as place, _):
                self._pending.forget(place)
                budget = self._budgets.get(namespace, {}).get(name)
                return self._soon(budget, now + AGAIN) if budget is not None else ()
        return ()

    # -- what is seen

    def _pods_listed(self, pods: Sequence[Object], now: Instant) -> list[Effect]:
        self._pods.clear()
        for pod in pods:
            self._pods.setdefault(pod.namespace, {})[pod.uid] = pod
        self._listed = True
        effects: list[Effect] = []
        for namespace in self._budgets.values():
            for budget in namespace.values():
                self._cover(budget)
                effects += self._soon(budget, now)
        return effects

    def _budgets_listed(self, budgets: Sequence[Object], now: Instant) -> list[Effect]:
        self._budgets.clear()
        self._pending.listed()
        return [effect for budget in budgets for effect in self._budget_seen(budget, now)]

    def _budget_seen(self, obj: Object, now: Instant) -> Sequence[Effect]:
        place = (obj.namespace, obj.name)
        self._pending.observed(place, obj.revision)
        known = self._budgets.get(obj.namespace, {}).get(obj.name)
        if known is not None and known.object.raw.get("spec") == obj.raw.get("spec"):
            known.object = obj
            return self._soon(known, now + SETTLE)
        budget = _Budget(obj, selectors.of(obj.view(PodDisruptionBudget).spec.selector))
        self._budgets.setdefault(obj.namespace, {})[obj.name] = budget
        self._cover(budget)
        return self._soon(budget, now)

    def _budget_gone(self, obj: Object) -> Sequence[Effect]:
        self._budgets.get(obj.namespace, {}).pop(obj.name, None)
        self._pending.forget((obj.namespace, obj.name))
        return [WakeAt(None, (obj.namespace, obj.name))]

    def _cover(self, budget: _Budget) -> None:
        budget.pods.clear()
        budget.healthy.clear()
        for pod in self._pods.get(budget.object.namespace, {}).values():
            budget.put(pod)

    def _pod_changed(self, pod: Object, gone: bool, now: Instant) -> Sequence[Effect]:
        pods = self._pods.setdefault(pod.namespace, {})
        if gone:
            pods.pop(pod.uid, None)
        else:
            pods[pod.uid] = pod
        budgets = self._budgets.get(pod.namespace)
        if not budgets:
            return ()
        effects: list[Effect] = []
        for budget in budgets.values():
            if budget.drop(pod.uid) if gone else budget.put(pod):
                effects += self._soon(budget, now + SETTLE)
        return effects

    # -- what is written

    def _soon(self, budget: _Budget, at: Instant) -> Sequence[Effect]:
        if budget.due is not None and budget.due <= at:
            return ()
        budget.due = at
        return [WakeAt(at, (budget.object.namespace, budget.object.name))]

    def _report(self, place: _Place, now: Instant) -> Sequence[Effect]:
        budget = self._budgets.get(place[0], {}).get(place[1])
        if budget is None or not self._listed:
            return ()
        budget.due = None
        if place in self._pending:
            return self._soon(budget, now + AGAIN)
        old = budget.object.raw.get("status") or {}
        wanted = _status(budget, now)
        changed = {key: value for key, value in wanted.items() if old.get(key) != value and (key in old or value != {})}
        effects = list(self._soon(budget, now + DISRUPTION_LASTS)) if wanted["disruptedPods"] else []
        if not changed:
            return effects
        if "disruptedPods" in changed:
            gone = {name: None for name in old["disruptedPods"] if name not in changed["disruptedPods"]}
            changed["disruptedPods"] = {**gone, **changed["disruptedPods"]}
        self._pending.begin(place, budget.object.revision)
        body = {"metadata": {"resourceVersion": budget.object.revision}, "status": changed}
        patch = writes.patch("poddisruptionbudgets", place[0], place[1], body, subresource="status")
        return [*effects, Write(patch, place)]


def _status(budget: _Budget, now: Instant) -> dict[str, Any]:
    spec = budget.object.raw.get("spec") or {}
    old = budget.object.raw.get("status") or {}
    expected = len(budget.pods)
    desired = desired_healthy(spec.get("minAvailable"), spec.get("maxUnavailable"), expected)
    disrupted = _still_disrupted(budget, old.get("disruptedPods") or {}, now)
    healthy = len(budget.healthy) - len(disrupted)
    allowed = max(0, healthy - desired) if expected else 0
    conditions = with_condition(
        old.get("conditions") or (),
        "DisruptionAllowed",
        "True" if allowed else "False",
        now,
        reason="SufficientPods" if allowed else "InsufficientPods",
        message="",
    )
    return {
        "observedGeneration": budget.object.meta.get("generation") or 0,
        "expectedPods": expected,
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "disruptionsAllowed": allowed,
        "disruptedPods": disrupted,
        "conditions": conditions,
    }


def _still_disrupted(budget: _Budget, disrupted: Mapping[str, str], now: Instant) -> dict[str, str]:
    """Pods whose eviction was granted and whose deletion has not been seen; after a while it is taken for failed."""
    names = set(budget.healthy.values()) if disrupted else ()
    return {name: at for name, at in disrupted.items() if name in names and from_time(at) + DISRUPTION_LASTS > now}


def desired_healthy(min_available: int | str | None, max_unavailable: int | str | None, expected: int) -> int:
    """How many pods must stay healthy; percentages are rounded up, in whichever direction they count."""
    if max_unavailable is not None:
        return max(0, expected - _scaled(max_unavailable, expected))
    if min_available is not None:
        return _scaled(min_available, expected)
    return 0


def _scaled(value: int | str, expected: int) -> int:
    if isinstance(value, str) and value.endswith("%"):
        return -(-int(value[:-1]) * expected // 100)
    return int(value)
