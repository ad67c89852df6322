"""Why nodes said no, in the words of Kubernetes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from muster.model.devices import MOST_USERS, ClaimFlaw
from muster.model.diagnosis import Reason, Rejection
from muster.model.volumes import ONE_POD, Flaw


def node_reason(rejection: Rejection) -> str:
    """Why nodes said no, without their number."""
    return _NODE_REASONS[rejection.reason](rejection.detail)


def _taint(detail: str) -> str:
    """`key=value:effect` as `{key: value}`; only the key is sure to be there."""
    key, _, value = detail.rpartition(":")[0].partition("=") if ":" in detail else detail.partition("=")
    return f"node(s) had untolerated taint {{{key}: {value}}}" if detail else "node(s) had untolerated taints"


_SINGLE = "pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode"
_FLAWS: Mapping[Flaw, str] = {
    Flaw.MISSING: 'persistentvolumeclaim "{}" not found',
    Flaw.TERMINATING: 'persistentvolumeclaim "{}" is being deleted',
    Flaw.LOST: 'persistentvolumeclaim "{}" lost its volume',
    Flaw.NOT_OWNED: 'persistentvolumeclaim "{}" was not created for the pod',
    Flaw.UNBOUND: "pod has unbound immediate PersistentVolumeClaims",
    Flaw.CLASS_MISSING: 'storageclass "{}" not found',
    Flaw.VOLUME_MISSING: 'persistentvolumeclaim bound to non-existent persistentvolume "{}"',
    Flaw.IN_USE: f'persistentvolumeclaim "{{}}" is used by another pod and has {ONE_POD} access mode',
}


def _claim(detail: str) -> str:
    flaw, _, name = detail.partition("/")
    return _FLAWS[Flaw(flaw)].format(name)


_CLAIM_FLAWS: Mapping[ClaimFlaw, str] = {
    ClaimFlaw.MISSING: 'resourceclaim "{}" not found',
    ClaimFlaw.UNMADE: 'no resourceclaim has been created for pod claim "{}" yet',
    ClaimFlaw.NOT_OWNED: 'resourceclaim "{}" was not created for the pod',
    ClaimFlaw.TERMINATING: 'resourceclaim "{}" is being deleted',
    ClaimFlaw.FULL: f'resourceclaim "{{}}" is reserved for {MOST_USERS} consumers already',
}


def _device_claim(detail: str) -> str:
    flaw, _, name = detail.partition("/")
    return _CLAIM_FLAWS[ClaimFlaw(flaw)].format(name)


_NODE_REASONS: Mapping[Reason, Callable[[str], str]] = {
    Reason.NODE_UNSCHEDULABLE: lambda _: "node(s) were unschedulable",
    Reason.NODE_TAINTED: _taint,
    Reason.NODE_SELECTOR: lambda _: "node(s) didn't match Pod's node affinity/selector",
    Reason.NODE_FEATURES: lambda _: "node(s) didn't match Pod's required features",
    Reason.HOST_PORTS: lambda _: "node(s) didn't have free ports for the requested pod ports",
    Reason.INSUFFICIENT: lambda detail: "Too many pods" if detail == "pods" else f"Insufficient {detail}",
    Reason.CLAIM: _claim,
    Reason.VOLUME_AFFINITY: lambda _: "node(s) had volume node affinity conflict",
    Reason.VOLUME_ZONE: lambda _: "node(s) had no available volume zone",
    Reason.NO_VOLUMES: lambda _: "node(s) didn't find available persistent volumes to bind",
    Reason.NO_STORAGE: lambda _: "node(s) did not have enough free storage",
    Reason.DRIVER_MISSING: lambda detail: f"node(s) did not have the CSI driver {detail}",
    Reason.VOLUME_LIMIT: lambda _: "node(s) exceed max volume count",
    Reason.DISK_CONFLICT: lambda _: "node(s) had no available disk",
    Reason.DEVICE_CLAIM: _device_claim,
    Reason.DEVICE_AWAY: lambda _: "resourceclaim not available on the node",
    Reason.NO_DEVICES: lambda _: "cannot allocate all claims",
    Reason.CLAIM_SHARED: lambda _: f"node(s) had a {_SINGLE}",
    Reason.NOMINATED_AWAY: lambda _: "node(s) had their room held for a nominated pod",
    Reason.TOPOLOGY_SPREAD: lambda _: "node(s) didn't match pod topology spread constraints",
    Reason.POD_AFFINITY: lambda _: "node(s) didn't match pod affinity rules",
    Reason.POD_ANTI_AFFINITY: lambda _: "node(s) didn't match pod anti-affinity rules",
    Reason.EXISTING_ANTI_AFFINITY: lambda _: "node(s) didn't satisfy existing pods anti-affinity rules",
    Reason.TAKEN_BY_MEMBERS: lambda _: "node(s) had their room taken by other members of the group",
}
