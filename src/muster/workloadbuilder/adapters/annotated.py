"""StatefulSets and Deployments: one group of all pods, where an annotation asks for it.

Facts: apps/v1. A StatefulSet that is OrderedReady makes a pod only when the one before it is ready.
"""

from __future__ import annotations

from collections.abc import Sequence

from muster.workloadbuilder.adapters import roles
from muster.workloadbuilder.adapters.fields import Field
from muster.workloadbuilder.adapters.view import Group, View
from muster.workloadbuilder.items import Block

TEMPLATE = "pods"


def view(owner: Field, related: Sequence[Block] = ()) -> View:
    spec, meta = owner / "spec", owner / "metadata"
    template, replicas = spec / "template", (spec / "replicas").number(1)
    said = (meta / "annotations").mapping()
    if not any(key in said for key in roles.SCHEDULING):
        return View(None, nothing=f"it asks for none: annotate it, for example with {roles.POLICY}: gang")
    nothing = roles.own_group([template]) or ("" if replicas else "it has no replicas")
    if nothing:
        return View(None, nothing=nothing)
    wish = roles.Wish(replicas, "basic", priority_class=roles.one_priority([template]))
    item = roles.leaf(TEMPLATE, wish, meta)
    gang = item.user.policy is not None and "gang" in (item.user.policy.leaf or {})
    kind = (owner / "kind").text()
    ordered = (spec / "podManagementPolicy").text("OrderedReady") == "OrderedReady"
    minimum = (
        ((item.user.policy.leaf or {}).get("gang") or {}).get("minCount") or replicas
        if gang and item.user.policy
        else 1
    )
    if kind == "StatefulSet" and ordered and minimum > 1:
        (spec / "podManagementPolicy").wrong(
            "a gang needs podManagementPolicy: Parallel; otherwise pod 1 waits for pod 0, and pod 0 for the gang"
        )
    selector = spec / "selector"
    if not selector.mapping():
        selector.errors.append(selector.place.required("it tells the pods apart"))
    why = f"{minimum} of {replicas} pods start together, or none does" if gang else "pods are scheduled one by one"
    return View(item, [Group(TEMPLATE, why, selector.mapping())], _notes(kind, gang))


def _notes(kind: str, gang: bool) -> list[str]:
    if kind == "Deployment" and gang:
        return ["old and new pods of a rolling update, the surge included, are in the same group"]
    return []
