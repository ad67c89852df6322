"""The DaemonSet controller: one pod on every node that its template admits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from muster.api import writes
from muster.api.calls import Response
from muster.api.instant import Instant
from muster.api.machine import DELETED, Effect, Write
from muster.api.object import Object
from muster.controllers.apps import pods
from muster.controllers.apps.care import CHECK, DELETE, STATUS, Care, reference_to
from muster.controllers.apps.daemon.eligible import NOWHERE, Eligible, on_node, target_of
from muster.controllers.apps.daemon.keeping import Keeping, changes
from muster.controllers.apps.daemon.slots import Daemons
from muster.controllers.apps.owner import Owner
from muster.controllers.apps.revisions import POD_LABEL, REVISION, REVISIONS, SEEK, Revisions, Settled
from muster.controllers.pod_status import deleted
from muster.workloadbuilder.names import hash_text

KIND, DAEMON_SETS, PODS, NODES = "DaemonSet", "daemonsets", "pods", "nodes"
COMPONENT = "daemonset-controller"
_LONGEST_BASE = 52
"""So that a pod's name still is a DNS label, as host names must be."""


class DaemonSets(Care):
    """All DaemonSets. A change of a pod costs its place, a change of a node its place in every set."""

    def __init__(self) -> None:
        super().__init__(KIND, DAEMON_SETS, PODS, COMPONENT, REVISIONS, NODES)
        self._revisions = Revisions(KIND, POD_LABEL, self.pending)
        self._nodes: dict[str, Object] = {}
        self._daemons: dict[str, Daemons] = {}

    # -- nodes, revisions, pods

    def others(self, resource: str, change: str, obj: Object, now: Instant) -> list[Effect]:
        if resource == REVISIONS:
            uids = self._revisions.gone(obj) if change == DELETED else self._revisions.seen(obj)
            return [effect for uid in uids for effect in self.look_at(uid, now)]
        before = self._nodes.pop(obj.name, None)
        if change != DELETED:
            self._nodes[obj.name] = obj
            if before is not None and _place(before) == _place(obj):
                return []
        for daemons in self._daemons.values():
            self._judge(daemons, obj.name)
        return [effect for uid in self._daemons for effect in self.look_at(uid, now)]

    def others_listed(self, resource: str, objects: Sequence[Object], now: Instant) -> list[Effect]:
        self.pending.listed()
        if resource == REVISIONS:
            self._revisions.listed(objects)
            return []
        before, self._nodes = self._nodes, {node.name: node for node in objects}
        for daemons in self._daemons.values():
            for name in {**before, **self._nodes}:
                self._judge(daemons, name)
        return []

    def _judge(self, daemons: Daemons, name: str) -> None:
        """Whether the node of this name is to have a pod."""
        node, slot = self._nodes.get(name), daemons.slot(name)
        slot.there = node is not None
        slot.verdict = NOWHERE if node is None else daemons.eligible.on(node)
        daemons.dirty[name] = None

    def touched(self, uid: str, child: Object, now: Instant) -> list[Effect]:
        daemons = self._daemons.get(uid)
        if daemons is not None:
            self._place_pod(daemons, uid, child)
        return []

    def _place_pod(self, daemons: Daemons, uid: str, child: Object) -> None:
        there = self.children.get(child.uid)
        node, before = target_of(child), daemons.names.get(child.name)
        if before is not None and before != node:
            daemons.slot(before).pods.pop(child.uid, None)
            daemons.dirty[before] = None
        slot = daemons.slot(node)
        if there is not None and self.children.owner(there) == uid:
            slot.pods[child.uid] = child
            daemons.names[child.name] = node
        else:
            slot.pods.pop(child.uid, None)
            daemons.names.pop(child.name, None)
        daemons.dirty[node] = None

    def owner_gone(self, owner: Owner, now: Instant) -> list[Effect]:
        self._revisions.forget(owner.uid)
        self._daemons.pop(owner.uid, None)
        return []

    def written(self, what: str, owner: Owner, key: str, response: Response, now: Instant) -> list[Effect]:
        if what == SEEK:
            self._revisions.found(owner, key, response)
            return owner.wake(now)
        return []

    def refused(self, what: str, owner: Owner, key: str, response: Response, now: Instant) -> list[Effect]:
        pod = self.children.get(key) if what == DELETE else None
        if pod is not None:
            self.touched(owner.uid, pod, now)
        return self._revisions.refused(owner, key, response.status) if what == REVISION else []

    # -- one look

    def adopt(self, owner: Owner) -> list[Effect]:
        return [*super().adopt(owner), *self._revisions.adopt(owner)]

    def sync(self, owner: Owner, now: Instant) -> list[Effect]:
        if deleted(owner.object):
            return []
        if self.adoptable(owner) or self._revisions.adoptable(owner):
            if owner.asked:
                return []
            owner.asked = True
            get = writes.get(DAEMON_SETS, owner.object.namespace, owner.object.name)
            return [Write(get, (CHECK, owner.uid, ""))]
        settled = self._revisions.settle(owner)
        if settled.update is None:
            return settled.effects
        daemons = self._current(owner, settled.update)
        keeping = Keeping(self, owner, daemons, now)
        effects = settled.effects + keeping.look()
        effects += self._create(owner, daemons, now)
        soon = daemons.next(now)
        effects += owner.wake(soon) if soon is not None else []
        return effects + self._tidy(owner, daemons, settled) + self._report(owner, daemons)

    def _current(self, owner: Owner, update: Object) -> Daemons:
        """Its places, judged by the template as it is now."""
        daemons = self._daemons.get(owner.uid)
        if daemons is None:
            daemons = self._daemons[owner.uid] = Daemons()
            for pod in self.children.of(owner.uid):
                self._place_pod(daemons, owner.uid, pod)
        template = owner.spec.get("template") or {}
        if daemons.template is not template and daemons.template != template:
            daemons.eligible = Eligible(template)
            for name in self._nodes:
                self._judge(daemons, name)
        daemons.template = template
        revision = (update.meta.get("labels") or {}).get(POD_LABEL) or update.name
        generation = owner.object.meta.get("generation")
        if (daemons.hash, daemons.generation) != (revision, generation):
            daemons.hash, daemons.generation = revision, generation
            daemons.dirty.update(dict.fromkeys(daemons.slots))
        for name in [name for name in daemons.asked if name not in owner.creating]:
            daemons.answered(name)
        return daemons

    def _create(self, owner: Owner, daemons: Daemons, now: Instant) -> list[Effect]:
        """Asks for the pods that are lacking, at most so many at a time."""
        if not daemons.lacking:
            if not owner.creating:
                owner.pace = 1
            return []
        if now < owner.retry_at:
            return owner.wake(owner.retry_at)
        effects: list[Effect] = []
        for node in list(daemons.lacking)[: owner.room()]:
            made = self._new_pod(owner, daemons, node)
            name = made["metadata"]["name"]
            del daemons.lacking[node]
            daemons.slot(node).creating = name
            daemons.names[name] = daemons.asked[name] = node
            daemons.dirty[node] = None
            effects += [self.create(owner, made), self.says(owner, "SuccessfulCreate", f"Created pod: {name}", now)]
        return effects

    @staticmethod
    def _new_pod(owner: Owner, daemons: Daemons, node: str) -> dict[str, Any]:
        """The pod of a node: its name is the same again after a restart, so that it is not made twice."""
        raw, attempt = owner.object.raw, 0
        while True:
            hashed = hash_text(f"{owner.uid}/{node}/{daemons.hash}/{attempt}")
            name = f"{owner.object.name[:_LONGEST_BASE]}-{hashed}"
            if name not in daemons.names and name not in owner.taken:
                break
            attempt += 1
        template = owner.spec.get("template") or {}
        made = pods.from_template(
            template, name, owner.object.namespace, reference_to(raw, KIND), f"{owner.object.name}-"
        )
        made["metadata"]["labels"] = {**made["metadata"]["labels"], POD_LABEL: daemons.hash}
        made["spec"] = on_node(made["spec"], node)
        return made

    def _tidy(self, owner: Owner, daemons: Daemons, settled: Settled) -> list[Effect]:
        """Deletes revisions beyond the limit that no pod has."""
        limit = owner.spec.get("revisionHistoryLimit")
        if len(settled.all) - 1 <= (10 if limit is None else limit):
            return []
        used = {
            (pod.meta.get("labels") or {}).get(POD_LABEL)
            for slot in daemons.slots.values()
            for pod in slot.pods.values()
        }
        live = {each.name for each in settled.all if (each.meta.get("labels") or {}).get(POD_LABEL) in used}
        return self._revisions.surplus(owner, settled, live)

    def _report(self, owner: Owner, daemons: Daemons) -> list[Effect]:
        """Writes the status if it is not what it should be."""
        changed = changes(owner, daemons.total, self._revisions.collisions(owner))
        return self.patch_self(owner, {"status": changed}, STATUS) if changed else []


def _place(node: Object) -> tuple[object, object]:
    """What of a node decides who may be there."""
    return node.meta.get("labels"), (node.raw.get("spec") or {}).get("taints")
