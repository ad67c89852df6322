"""pods/binding: a pod gets its node."""

from __future__ import annotations

from typing import Any

from muster.api.calls import Response
from muster.api.instant import to_time
from muster.api.validation.field import Path
from muster.apiserver import admission_chain, decode, deletion, status
from muster.apiserver.log import Raw
from muster.apiserver.schema import schema
from muster.apiserver.state import Call

Json = dict[str, Any]
TARGET = Path("target")


def bind(call: Call) -> Response:
    """POST of a Binding to a pod: 201 and a Status. Once only, and not for a gated or a terminating pod (409)."""
    binding: Raw = decode.part(call, schema("v1", "Binding"), "v1", "Binding")
    meta, target = binding.get("metadata") or {}, binding.get("target") or {}
    call.name = call.name or meta.get("name") or ""
    if (meta.get("name") or call.name) != call.name or (meta.get("namespace") or call.namespace) != call.namespace:
        raise status.bad_request(
            f"the Binding is about {meta.get('namespace', '')}/{meta.get('name', '')}, "
            f"the path about {call.namespace}/{call.name}"
        )
    _check_target(call, target)
    binding = admission_chain.connected(call, binding, ("", "v1", "Binding"), dry_run=call.dry_run())
    meta, target = binding.get("metadata") or {}, binding.get("target") or {}
    pod = call.stored()
    _check_pod(call, pod, meta)
    refused = call.state.refuse_binding
    if refused and (
        f"{call.namespace}/{call.name}" in refused or (call.namespace == "default" and call.name in refused)
    ):
        raise status.forbidden(call.kind, call.name, "binding is refused")
    if not call.dry_run():
        call.store.put(call.kind.resource, call.namespace, call.name, bound(call, pod, target["name"], meta))
    return status.success(code=201)


def _check_target(call: Call, target: Raw) -> None:
    errors = []
    if target.get("kind") not in (None, "", "Node"):
        errors.append((TARGET / "kind").not_supported(target["kind"], ["Node", "<empty>"]))
    if not call.name:
        errors.append(Path("metadata.name").required())
    if not target.get("name"):
        errors.append((TARGET / "name").required())
    if errors:
        raise status.invalid(call.kind, call.name, errors)


def _check_pod(call: Call, pod: Raw, wanted: Raw) -> None:
    meta, spec = pod["metadata"], pod["spec"]
    deletion.check_preconditions(call.kind, pod, wanted)
    if "deletionTimestamp" in meta:
        why = f"pod {call.name} is being deleted, cannot be assigned to a host"
        raise status.binding_conflict(call.name, why)
    if spec.get("nodeName"):
        why = f'pod {call.name} is already assigned to node "{spec["nodeName"]}"'
        raise status.binding_conflict(call.name, why)
    if spec.get("schedulingGates"):
        why = f"pod {call.name} has non-empty .spec.schedulingGates"
        raise status.binding_conflict(call.name, why)


def bound(call: Call, pod: Raw, node: str, wanted: Raw) -> Json:
    """The pod on its node: labels and annotations of the Binding, PodScheduled True, no nomination any more."""
    meta = dict(pod["metadata"])
    for key in ("annotations", "labels"):
        if wanted.get(key):
            meta[key] = {**meta.get(key, {}), **wanted[key]}
    before = pod.get("status", {})
    others = [condition for condition in before.get("conditions", ()) if condition.get("type") != "PodScheduled"]
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": to_time(call.now)}
    after = {**before, "conditions": [*others, scheduled]}
    after.pop("nominatedNodeName", None)
    return {**pod, "metadata": meta, "spec": {**pod["spec"], "nodeName": node}, "status": after}
