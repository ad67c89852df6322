"""Which claims a pod or a group gets from templates, and what these look like (D14, D18, D19)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from muster.api.object import Object
from muster.workloadbuilder.names import MOST, hash_text

ENTRY = "resource.kubernetes.io/pod-claim-name"
"""Annotation of a claim that was made from a template: the entry of its owner that it was made for."""
_LONGEST_BASE = MOST - 12


class Entry(NamedTuple):
    """One of `spec.resourceClaims`, of a pod or of a group."""

    name: str
    claim: str
    """The claim that it names, or ""."""
    template: str
    """The template that it names, or ""."""


def entries(obj: Object) -> Iterator[Entry]:
    for raw in (obj.raw.get("spec") or {}).get("resourceClaims") or ():
        yield Entry(
            raw.get("name") or "", raw.get("resourceClaimName") or "", raw.get("resourceClaimTemplateName") or ""
        )


def recorded(obj: Object) -> Mapping[str, str]:
    """What the status of a pod or group says of claims that were made for it: entry -> name of the claim."""
    statuses = (obj.raw.get("status") or {}).get("resourceClaimStatuses") or ()
    return {status.get("name") or "": status.get("resourceClaimName") or "" for status in statuses}


def manifest(owner: Object, entry: Entry, template: Object, again: int) -> dict[str, Any]:
    """The claim of an owner for an entry. `again` counts names that turned out to be taken."""
    spec = template.raw.get("spec") or {}
    meta = spec.get("metadata") or {}
    base = f"{owner.name}-{entry.name}"[:_LONGEST_BASE].rstrip("-.")
    reference = {
        "apiVersion": owner.raw["apiVersion"],
        "kind": owner.raw["kind"],
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    metadata: dict[str, Any] = {
        "name": f"{base}-{hash_text(f'{owner.uid}/{entry.name}/{again}')}",
        "namespace": owner.namespace,
        "annotations": {**(meta.get("annotations") or {}), ENTRY: entry.name},
        "ownerReferences": [reference],
    }
    if meta.get("labels"):
        metadata["labels"] = dict(meta["labels"])
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": metadata,
        "spec": spec.get("spec") or {},
    }
