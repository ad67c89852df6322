"""What a StatefulSet wants, and its pods as it sees them: by ordinal, which is part of their names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from muster.api.instant import Instant
from muster.api.object import Object
from muster.controllers.apps import pods
from muster.controllers.apps.amounts import count_of
from muster.controllers.apps.care import reference_to
from muster.controllers.apps.revisions import POD_LABEL
from muster.controllers.pod_status import TERMINAL, phase

KIND, PODS = "StatefulSet", "pods"
NAME_LABEL = "statefulset.kubernetes.io/pod-name"
INDEX_LABEL = "apps.kubernetes.io/pod-index"
_NAME = re.compile(r"(.*)-(0|[1-9][0-9]{0,8})", re.DOTALL | re.ASCII)
Raw = Mapping[str, Any]


class Wanted(NamedTuple):
    """The part of a spec that says which pods there are to be; `ordered` pods come and go one after the other."""

    start: int
    replicas: int
    ordered: bool
    on_delete: bool
    partition: int
    max_unavailable: int
    min_ready_seconds: int

    @property
    def ordinals(self) -> range:
        return range(self.start, self.start + self.replicas)

    @property
    def kept_back(self) -> range:
        """Ordinals that a rolling update leaves at the current revision."""
        return range(self.start, self.start + (0 if self.on_delete else self.partition))


def wanted_by(spec: Raw) -> Wanted:
    strategy = spec.get("updateStrategy") or {}
    rolling = strategy.get("rollingUpdate") or {}
    replicas = spec.get("replicas", 1)
    given = rolling.get("maxUnavailable")
    return Wanted(
        start=(spec.get("ordinals") or {}).get("start") or 0,
        replicas=replicas,
        ordered=spec.get("podManagementPolicy", "OrderedReady") == "OrderedReady",
        on_delete=strategy.get("type") == "OnDelete",
        partition=rolling.get("partition") or 0,
        max_unavailable=max(1, count_of(1 if given is None else given, replicas, round_up=False)),
        min_ready_seconds=spec.get("minReadySeconds") or 0,
    )


class Replica(NamedTuple):
    """One pod. `leaving`: it is being deleted, or its deletion was asked for. `next`: when it will be available."""

    ordinal: int
    pod: Object
    revision: str
    ready: bool
    available: bool
    ended: bool
    leaving: bool
    next: Instant | None


def ordinal_of(set_name: str, pod_name: str) -> int | None:
    """None: it is no name of a pod of this set."""
    found = _NAME.fullmatch(pod_name)
    return int(found[2]) if found is not None and found[1] == set_name else None


def replica(pod: Object, ordinal: int, wanted: Wanted, *, leaving: bool, now: Instant) -> Replica:
    at = pods.available_at(pod, wanted.min_ready_seconds) if phase(pod) == "Running" else None
    revision = (pod.meta.get("labels") or {}).get(POD_LABEL) or ""
    ended, available = phase(pod) in TERMINAL, at is not None and at <= now
    return Replica(
        ordinal, pod, revision, at is not None, available, ended, leaving, None if at is None or available else at
    )


def identity(name: str, ordinal: int) -> dict[str, str]:
    """The labels that say which one of the set a pod is."""
    return {NAME_LABEL: name, INDEX_LABEL: str(ordinal)}


def new_pod(owner: Raw, template: Raw, ordinal: int, revision: str) -> dict[str, Any]:
    """The pod of an ordinal, made from the template of this revision."""
    meta, spec = owner["metadata"], owner["spec"]
    name = f"{meta['name']}-{ordinal}"
    made = pods.from_template(template, name, meta["namespace"], reference_to(owner, KIND), f"{meta['name']}-")
    made["metadata"]["labels"] = {
        **made["metadata"]["labels"],
        POD_LABEL: revision,
        **identity(name, ordinal),
    }
    inside = {**made["spec"], "hostname": name}
    if spec.get("serviceName"):
        inside["subdomain"] = spec["serviceName"]
    claims = [each["metadata"]["name"] for each in spec.get("volumeClaimTemplates") or ()]
    if claims:
        own = [
            {"name": each, "persistentVolumeClaim": {"claimName": claim_name(each, meta["name"], ordinal)}}
            for each in claims
        ]
        inside["volumes"] = own + [each for each in inside.get("volumes") or () if each.get("name") not in claims]
    made["spec"] = inside
    return made


def claim_name(template: str, set_name: str, ordinal: int) -> str:
    return f"{template}-{set_name}-{ordinal}"
