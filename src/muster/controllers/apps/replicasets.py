"""The ReplicaSet controller: as many pods of a template as its spec says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

from muster.api.calls import Response
from muster.api.instant import Instant
from muster.api.machine import Effect
from muster.api.object import Object
from muster.controllers.apps import pods
from muster.controllers.apps.care import DELETE, STATUS, Care, reference_to
from muster.controllers.apps.names import pod_names
from muster.controllers.apps.owner import BATCH, Owner
from muster.controllers.pod_status import TERMINAL, deleted, phase
from muster.controllers.writing import controller_of, with_condition

KIND, REPLICA_SETS, PODS = "ReplicaSet", "replicasets", "pods"
COMPONENT = "replicaset-controller"
FAILURE = "ReplicaFailure"


class ReplicaSets(Care):
    """All ReplicaSets, those of Deployments and those of users."""

    def __init__(self) -> None:
        super().__init__(KIND, REPLICA_SETS, PODS, COMPONENT)

    def may_adopt(self, child: Object) -> bool:
        return pods.is_active(child)

    def made(self, owner: Owner, child: Object, now: Instant) -> list[Effect]:
        return [self.says(owner, "SuccessfulCreate", f"Created pod: {child.name}", now)]

    def written(self, what: str, owner: Owner, key: str, response: Response, now: Instant) -> list[Effect]:
        if what != DELETE:
            return []
        pod = self.children.get(key) or Object(response.body)
        return [self.says(owner, "SuccessfulDelete", f"Deleted pod: {pod.name}", now)]

    def sync(self, owner: Owner, now: Instant) -> list[Effect]:
        mine, waits, effects = self.claim(owner)
        if owner.creating and self._shrinks(owner):
            return effects  # whoever waits for its pods to go must not be told of numbers without those on their way
        active = [pod for pod in mine if pods.is_active(pod)]
        if not deleted(owner.object) and not waits:
            effects += self._grow_or_shrink(owner, active, now)
        return effects + self._report(owner, mine, active, now)

    def _shrinks(self, owner: Owner) -> bool:
        there = sum(pods.is_active(pod) for pod in self.children.of(owner.uid))
        return there + len(owner.creating) > (owner.spec.get("replicas") or 0)

    def _grow_or_shrink(self, owner: Owner, active: Sequence[Object], now: Instant) -> list[Effect]:
        staying = [pod for pod in active if not self.leaving(owner, pod)]
        lacking = (owner.spec.get("replicas") or 0) - len(staying) - len(owner.creating)
        if lacking < 0:
            return self._shrink(owner, staying, -lacking)
        if lacking == 0:
            if not owner.creating:
                owner.pace = 1
                if owner.problem is not None:
                    owner.problem = None
            return []
        if now < owner.retry_at:
            return owner.wake(owner.retry_at)
        return self._grow(owner, min(lacking, owner.room()))

    def _grow(self, owner: Owner, number: int) -> list[Effect]:
        raw = owner.object.raw
        reference, template = reference_to(raw, KIND), owner.spec.get("template") or {}
        used = {pod.name for pod in self.children.of(owner.uid)}
        namespace, prefix = owner.object.namespace, f"{owner.object.name}-"
        effects: list[Effect] = []
        free = owner.free(pod_names(owner.object.name, owner.uid), used)
        for name in islice(free, number):
            made = pods.from_template(template, name, namespace, reference, prefix)
            effects.append(self.create(owner, made))
        return effects

    def _shrink(self, owner: Owner, staying: Sequence[Object], number: int) -> list[Effect]:
        related = [pod for pod in self._related(owner) if pods.is_active(pod)]
        effects: list[Effect] = []
        for pod in pods.dispensable(staying, pods.by_node(related))[: min(number, BATCH)]:
            effects += self.delete(owner, pod)
        return effects

    def _related(self, owner: Owner) -> list[Object]:
        """Pods of all ReplicaSets that the same controller has: a rollout takes old ones where new ones crowd."""
        controller = controller_of(owner.object)
        if controller is None:
            return self.children.of(owner.uid)
        found: list[Object] = []
        for each in self.inside(owner.object.namespace):
            other = controller_of(each.object)
            if other is not None and other.get("uid") == controller.get("uid"):
                found += self.children.of(each.uid)
        return found

    def _report(self, owner: Owner, mine: Sequence[Object], active: Sequence[Object], now: Instant) -> list[Effect]:
        """Writes the status if it is not what it should be."""
        spec, old = owner.spec, owner.status
        labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
        counted = pods.count(active, labels, spec.get("minReadySeconds") or 0, now, partial(self.leaving, owner))
        effects = owner.wake(counted.next) if counted.next is not None else []
        wanted: dict[str, Any] = {
            "replicas": counted.there,
            "fullyLabeledReplicas": counted.labelled,
            "readyReplicas": counted.ready,
            "availableReplicas": counted.available,
            "terminatingReplicas": sum(1 for pod in mine if deleted(pod) and phase(pod) not in TERMINAL),
            "observedGeneration": owner.object.meta.get("generation") or 0,
            "conditions": _conditions(old.get("conditions") or (), owner, now),
        }
        patch = {key: value or None for key, value in wanted.items() if (old.get(key) or 0) != (value or 0)}
        if not patch:
            return effects
        return effects + self.patch_self(owner, {"status": patch}, STATUS)


def _conditions(there: Sequence[Mapping[str, Any]], owner: Owner, now: Instant) -> Sequence[Mapping[str, Any]]:
    """ReplicaFailure while pods are refused, and nothing else."""
    if owner.problem is None:
        return [each for each in there if each.get("type") != FAILURE]
    reason, message = owner.problem
    return with_condition(there, FAILURE, "True", now, reason=reason, message=message)
