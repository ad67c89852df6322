"""pods/eviction: a deletion that a PodDisruptionBudget may refuse."""

from __future__ import annotations

from typing import Any

from muster.api import catalog
from muster.api.calls import Response
from muster.api.instant import to_time
from muster.apiserver import admission_chain, decode, deletion, selection, status
from muster.apiserver.log import Raw
from muster.apiserver.schema import schema
from muster.apiserver.state import Call

Json = dict[str, Any]

REFUSED = "Cannot evict pod as it would violate the pod's disruption budget."
MOST_DISRUPTED = 2_000
"""Evicted pods that a budget may not have seen leave yet."""


def evict(call: Call) -> Response:
    """POST of an Eviction: 201 and a Status, or 429 while a budget does not allow it."""
    eviction = decode.part(call, schema("policy/v1", "Eviction"), "policy/v1", "Eviction")
    meta = eviction.get("metadata") or {}
    about = (meta.get("namespace") or call.namespace, meta.get("name") or call.name)
    if about != (call.namespace, call.name):
        raise status.bad_request(
            f"the Eviction is about {'/'.join(about)}, the path about {call.namespace}/{call.name}"
        )
    options = eviction.get("deleteOptions") or {}
    deletion.check_options(call, options)
    dry_run = call.dry_run(options)
    pod = call.stored()
    admission_chain.connected(call, eviction, ("policy", "v1", "Eviction"), dry_run=dry_run)
    deletion.check_to_delete(catalog.POD, pod, options.get("preconditions") or {})
    if not _unprotected(pod):
        _spend_budget(call, pod, dry_run)
    if not dry_run:
        if _lingers(pod, options):
            pod = call.store.put("pods", call.namespace, call.name, _marked(call, pod))
        unconditional = {key: value for key, value in options.items() if key != "preconditions"}
        deletion.delete_object(call.store, catalog.POD, pod, unconditional, call.now)
    return status.success(code=201)


def _unprotected(pod: Raw) -> bool:
    """Budgets do not speak of pods that run nothing, or that go anyway."""
    phase = pod.get("status", {}).get("phase", "Pending")
    return phase in ("Succeeded", "Failed", "Pending") or "deletionTimestamp" in pod["metadata"]


def _spend_budget(call: Call, pod: Raw, dry_run: bool) -> None:
    budgets = [budget for budget in call.store.all("poddisruptionbudgets", call.namespace) if _covers(budget, pod)]
    if len(budgets) > 1:
        raise status.internal_error(
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        )
    if not budgets or _healthy_enough_without(budgets[0], pod):
        return
    budget = budgets[0]
    name, had = budget["metadata"]["name"], budget.get("status") or {}
    _check_budget(call, budget, had)
    if not dry_run:
        disrupted = {**had.get("disruptedPods", {}), call.name: to_time(call.now)}
        left = {**had, "disruptionsAllowed": had["disruptionsAllowed"] - 1, "disruptedPods": disrupted}
        made = {**budget, "metadata": dict(budget["metadata"]), "status": left}
        call.store.put("poddisruptionbudgets", call.namespace, name, made)


def _covers(budget: Raw, pod: Raw) -> bool:
    wanted = budget.get("spec", {}).get("selector")
    return wanted is not None and selection.selector_matches(wanted, pod["metadata"].get("labels") or {})


def _healthy_enough_without(budget: Raw, pod: Raw) -> bool:
    """A pod that is not ready disrupts nobody: it goes if the policy says so, or if enough others are healthy."""
    conditions = pod.get("status", {}).get("conditions", ())
    if any(entry.get("type") == "Ready" and entry.get("status") == "True" for entry in conditions):
        return False
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    had = budget.get("status") or {}
    needs, has = int(had.get("desiredHealthy", 0)), int(had.get("currentHealthy", 0))
    return 0 < needs <= has


def _check_budget(call: Call, budget: Raw, had: Raw) -> None:
    name = budget["metadata"]["name"]
    if had.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        cause = {
            "reason": "DisruptionBudget",
            "message": f"The disruption budget {name} is still being processed by the server.",
        }
        raise status.too_many_requests(call.kind, call.name, REFUSED, cause, retry_after=10)
    if len(had.get("disruptedPods", {})) > MOST_DISRUPTED:
        why = f"the disruption budget {name} has more than {MOST_DISRUPTED} evicted pods that are not gone"
        raise status.forbidden(call.kind, call.name, why)
    if had.get("disruptionsAllowed", 0) <= 0:
        needs, has = had.get("desiredHealthy", 0), had.get("currentHealthy", 0)
        cause = {
            "reason": "DisruptionBudget",
            "message": f"The disruption budget {name} needs {needs} healthy pods and has {has} currently",
        }
        raise status.too_many_requests(call.kind, call.name, REFUSED, cause)


def _lingers(pod: Raw, options: Json) -> bool:
    """Whether the pod will be seen terminating, so that its status should say why."""
    gone = not pod["spec"].get("nodeName") or options.get("gracePeriodSeconds") == 0
    return not gone and "deletionTimestamp" not in pod["metadata"]


def _marked(call: Call, pod: Raw) -> Json:
    before = pod.get("status", {})
    others = [entry for entry in before.get("conditions", ()) if entry.get("type") != "DisruptionTarget"]
    target = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
        "lastTransitionTime": to_time(call.now),
    }
    return {**pod, "metadata": dict(pod["metadata"]), "status": {**before, "conditions": [*others, target]}}
