"""What `muster scheduler` asks of a server, as rules of RBAC: no verb more, and none less."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from muster.api import catalog

WRITES: Sequence[tuple[str, str, tuple[str, ...]]] = (
    ("", "pods", ("delete",)),
    ("", "pods/binding", ("create",)),
    ("", "pods/status", ("patch",)),
    ("", "events", ("create", "patch")),
    ("", "persistentvolumeclaims", ("patch",)),
    ("", "persistentvolumes", ("patch",)),
    ("resource.k8s.io", "resourceclaims", ("create", "patch")),
    ("resource.k8s.io", "resourceclaims/status", ("patch",)),
    ("scheduling.k8s.io", "podgroups", ("patch",)),
    ("scheduling.k8s.io", "podgroups/status", ("patch",)),
    ("scheduling.k8s.io", "compositepodgroups", ("patch",)),
    ("scheduling.k8s.io", "compositepodgroups/status", ("patch",)),
)
"""Group, resource and verbs: bindings, conditions, evictions, recorded plans, claims."""
Rule = Mapping[str, Any]


def rules(watched: Iterable[str]) -> list[Rule]:
    """Those of the ClusterRole, for a scheduler that watches these resources."""
    made: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for resource in watched:
        made.setdefault((catalog.by_resource(resource).group, ("list", "watch")), []).append(resource)
    for group, resource, verbs in WRITES:
        made.setdefault((group, verbs), []).append(resource)
    return [
        {"apiGroups": [group], "resources": sorted(resources), "verbs": list(verbs)}
        for (group, verbs), resources in sorted(made.items())
    ]


def lease_rules(name: str) -> list[Rule]:
    """Those of the Role in the namespace of the Lease: a name can be held to once the object is there."""
    group = "coordination.k8s.io"
    return [
        {"apiGroups": [group], "resources": ["leases"], "verbs": ["create"]},
        {"apiGroups": [group], "resources": ["leases"], "resourceNames": [name], "verbs": ["get", "update"]},
    ]
