"""The columns of every served kind, as `kubectl get` shows them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from muster.api import events
from muster.api.instant import SECOND, from_time
from muster.apiserver import admission_columns as admission
from muster.apiserver import app_columns as apps
from muster.apiserver import quota_columns as quotas
from muster.apiserver import volume_columns as volumes
from muster.apiserver.cells import AGE, NAME, WIDE, Cell, at, text
from muster.apiserver.log import Raw
from muster.apiserver.pod_cells import ready, restarts, shown_status
from muster.apiserver.sheet import NONE, UNKNOWN, Column, Sheet, condition, duration, scheduled, selector

_ROLE = "node-role.kubernetes.io/"


# --- nodes and pods ----------------------------------------------------------------------------------------------


def _node_status(node: Raw, sheet: Sheet) -> str:
    said = {"True": "Ready", "False": "NotReady"}.get(condition(node, "Ready").get("status", ""))
    if said is None:
        said = "NotReady" if condition(node, "Ready") else "Unknown"
    return f"{said},SchedulingDisabled" if node.get("spec", {}).get("unschedulable") else said


def _roles(node: Raw, sheet: Sheet) -> str:
    labels = node["metadata"].get("labels") or {}
    roles = {label.removeprefix(_ROLE) for label in labels if label.startswith(_ROLE)}
    roles |= {labels[label] for label in ("kubernetes.io/role",) if labels.get(label)}
    return ",".join(sorted(roles - {""})) or NONE


def _address(kind: str) -> Cell:
    def cell(node: Raw, sheet: Sheet) -> str:
        addresses = node.get("status", {}).get("addresses") or ()
        return next((entry["address"] for entry in addresses if entry.get("type") == kind), NONE)

    return cell


def _gates(pod: Raw, sheet: Sheet) -> str:
    wanted = [gate["conditionType"] for gate in pod["spec"].get("readinessGates") or ()]
    met = sum(condition(pod, kind).get("status") == "True" for kind in wanted)
    return f"{met}/{len(wanted)}" if wanted else NONE


_NODE_INFO = "status.nodeInfo"
NODE = (
    NAME,
    Column("Status", _node_status),
    Column("Roles", _roles),
    AGE,
    Column("Version", at(f"{_NODE_INFO}.kubeletVersion")),
    Column("Internal-IP", _address("InternalIP"), priority=WIDE),
    Column("External-IP", _address("ExternalIP"), priority=WIDE),
    Column("OS-Image", at(f"{_NODE_INFO}.osImage", UNKNOWN), priority=WIDE),
    Column("Kernel-Version", at(f"{_NODE_INFO}.kernelVersion", UNKNOWN), priority=WIDE),
    Column("Container-Runtime", at(f"{_NODE_INFO}.containerRuntimeVersion", UNKNOWN), priority=WIDE),
)
POD = (
    NAME,
    Column("Ready", ready),
    Column("Status", shown_status),
    Column("Restarts", restarts),
    AGE,
    Column("IP", at("status.podIP", NONE), priority=WIDE),
    Column("Node", at("spec.nodeName", NONE), priority=WIDE),
    Column("Nominated Node", at("status.nominatedNodeName", NONE), priority=WIDE),
    Column("Readiness Gates", _gates, priority=WIDE),
)
NAMESPACE = (NAME, Column("Status", at("status.phase")), AGE)


# --- groups ------------------------------------------------------------------------------------------------------


def _min_count(group: Raw, sheet: Sheet) -> Any:
    gang = (group.get("spec", {}).get("schedulingPolicy") or {}).get("gang")
    return NONE if gang is None else gang.get("minCount", gang.get("minGroupCount", NONE))


def _members(*, bound: bool) -> Cell:
    def cell(group: Raw, sheet: Sheet) -> int:
        meta = group["metadata"]
        count = sheet.pods_of if group["kind"] == "PodGroup" else sheet.groups_of
        return count(meta["namespace"], meta["name"], bound=bound)

    return cell


def _group_status(group: Raw, sheet: Sheet) -> str:
    if "deletionTimestamp" in group["metadata"]:
        return "Terminating"
    said = scheduled(group)
    if said == "True":
        return "Scheduled"
    entry = condition(group, f"{group['kind']}InitiallyScheduled")
    return str(entry.get("reason") or "Pending") if said == "False" else "Pending"


def _parent(group: Raw, sheet: Sheet) -> str:
    parent: str = group.get("spec", {}).get("parentCompositePodGroupName") or NONE
    return parent


def _topology(group: Raw, sheet: Sheet) -> str:
    wanted = (group.get("spec", {}).get("schedulingConstraints") or {}).get("topology") or ()
    return ",".join(entry.get("key", "") for entry in wanted) or NONE


GROUP = (
    NAME,
    Column("Min", _min_count, description="Members that are needed before any of them starts."),
    Column("Members", _members(bound=False), "integer", description="Members that there are and that are not over."),
    Column("Bound", _members(bound=True), "integer", description="Members that have a place."),
    Column("Status", _group_status),
    AGE,
    Column("Parent", _parent, priority=WIDE),
    Column("Topology", _topology, priority=WIDE),
    Column("Priority", text("spec.priority", "0"), priority=WIDE),
)


def _templates(workload: Raw, sheet: Sheet) -> int:
    spec = workload.get("spec", {})
    return len(spec.get("podGroupTemplates") or ()) + len(spec.get("compositePodGroupTemplates") or ())


def _controller(workload: Raw, sheet: Sheet) -> str:
    owner = workload.get("spec", {}).get("controllerRef")
    return f"{owner.get('kind')}/{owner.get('name')}" if owner else NONE


WORKLOAD = (NAME, Column("Templates", _templates, "integer"), Column("Controller", _controller), AGE)
PRIORITY_CLASS = (
    NAME,
    Column("Value", at("value", 0), "integer"),
    Column("Global-Default", at("globalDefault", False), "boolean"),
    AGE,
    Column("PreemptionPolicy", at("preemptionPolicy", "PreemptLowerPriority")),
)


# --- jobs and budgets --------------------------------------------------------------------------------------------


def _job_status(job: Raw, sheet: Sheet) -> str:
    if "deletionTimestamp" in job["metadata"]:
        return "Terminating"
    for kind, said in (("Complete", "Complete"), ("Failed", "Failed"), ("Suspended", "Suspended")):
        if condition(job, kind).get("status") == "True":
            return said
    for kind, said in (("FailureTarget", "FailureTarget"), ("SuccessCriteriaMet", "SuccessCriteriaMet")):
        if condition(job, kind).get("status") == "True":
            return said
    return "Running"


def _completions(job: Raw, sheet: Sheet) -> str:
    spec, done = job["spec"], job.get("status", {}).get("succeeded", 0)
    if spec.get("completions") is not None:
        return f"{done}/{spec['completions']}"
    parallelism = spec.get("parallelism") or 0
    return f"{done}/1 of {parallelism}" if parallelism > 1 else f"{done}/1"


def _job_duration(job: Raw, sheet: Sheet) -> str:
    status = job.get("status", {})
    if not status.get("startTime"):
        return ""
    end = from_time(status["completionTime"]) if status.get("completionTime") else sheet.now
    return duration((end - from_time(status["startTime"])) // SECOND)


def _containers(field: str) -> Cell:
    def cell(raw: Raw, sheet: Sheet) -> str:
        spec = (raw.get("spec", {}).get("template") or {}).get("spec") or {}
        return ",".join(container.get(field, "") for container in spec.get("containers") or ())

    return cell


def _replicas(name: str) -> Column:
    where = {"Desired": "spec.replicas", "Current": "status.replicas", "Ready": "status.readyReplicas"}[name]
    return Column(name, at(where, 0), "integer")


def _selector(raw: Raw, sheet: Sheet) -> str:
    given = raw.get("spec", {}).get("selector")
    flat = given and not {"matchLabels", "matchExpressions"} & given.keys()
    return selector({"matchLabels": given} if flat else given)


def _ready_of(raw: Raw, sheet: Sheet) -> str:
    return f"{raw.get('status', {}).get('readyReplicas', 0)}/{raw.get('spec', {}).get('replicas', 1)}"


def _ports(service: Raw, sheet: Sheet) -> str:
    ports = service.get("spec", {}).get("ports") or ()
    said = [
        f"{port['port']}{':' + str(port['nodePort']) if port.get('nodePort') else ''}/{port.get('protocol', 'TCP')}"
        for port in ports
    ]
    return ",".join(said) or NONE


def _external(service: Raw, sheet: Sheet) -> str:
    spec = service.get("spec", {})
    if spec.get("type") == "ExternalName":
        return str(spec.get("externalName", NONE))
    ingress = ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    given = [entry.get("ip") or entry.get("hostname", "") for entry in ingress] + list(spec.get("externalIPs") or ())
    return ",".join(given) or ("<pending>" if spec.get("type") == "LoadBalancer" else NONE)


_WORKS_ON = (
    Column("Containers", _containers("name"), priority=WIDE),
    Column("Images", _containers("image"), priority=WIDE),
)
_SELECTOR = Column("Selector", _selector, priority=WIDE)
REPLICAS = (NAME, *map(_replicas, ("Desired", "Current", "Ready")), AGE, *_WORKS_ON, _SELECTOR)
STATEFUL_SET = (NAME, Column("Ready", _ready_of), AGE, *_WORKS_ON)
SERVICE = (
    NAME,
    Column("Type", at("spec.type", "ClusterIP")),
    Column("Cluster-IP", at("spec.clusterIP", NONE)),
    Column("External-IP", _external),
    Column("Port(s)", _ports),
    AGE,
    _SELECTOR,
)
JOB = (
    NAME,
    Column("Status", _job_status),
    Column("Completions", _completions),
    Column("Duration", _job_duration),
    AGE,
    *_WORKS_ON,
    _SELECTOR,
)
PDB = (
    NAME,
    Column("Min Available", text("spec.minAvailable", "N/A")),
    Column("Max Unavailable", text("spec.maxUnavailable", "N/A")),
    Column("Allowed Disruptions", at("status.disruptionsAllowed", 0), "integer"),
    AGE,
)


# --- events ------------------------------------------------------------------------------------------------------


def _last_seen(event: Raw, sheet: Sheet) -> str:
    series = event.get("series") or {}
    last = series.get("lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime")
    first = event.get("firstTimestamp") or event.get("eventTime") or event["metadata"].get("creationTimestamp")
    count = series.get("count") or event.get("count") or 0
    if count > 1:
        return f"{sheet.age(last or first)} (x{count} over {sheet.age(first)})"
    return sheet.age(last or first)


def _involved(event: Raw, sheet: Sheet) -> str:
    about = event.get("involvedObject") or {}
    kind, name = about.get("kind", "").lower(), about.get("name", "")
    return f"{kind}/{name}" if name else kind


def _source(event: Raw, sheet: Sheet) -> str:
    source = event.get("source") or {}
    component = source.get("component") or event.get("reportingComponent") or ""
    return f"{component}, {source['host']}" if source.get("host") else component


def _first_seen(event: Raw, sheet: Sheet) -> str:
    return sheet.age(event.get("firstTimestamp") or event.get("eventTime"))


EVENT = (
    Column("Last Seen", _last_seen),
    Column("Type", at("type")),
    Column("Reason", at("reason")),
    Column("Object", _involved),
    Column("Subobject", at("involvedObject.fieldPath"), priority=WIDE),
    Column("Source", _source, priority=WIDE),
    Column("Message", lambda event, sheet: (event.get("message") or "").strip()),
    Column("First Seen", _first_seen, priority=WIDE),
    Column("Count", lambda event, sheet: event.get("count") or 1, "integer", WIDE),
    Column("Name", at("metadata.name"), priority=WIDE),
)


def _as_stored(column: Column) -> Column:
    return replace(column, cell=lambda event, sheet: column.cell(events.stored(event), sheet))


_STORAGE = "storage.k8s.io"
_ADMISSION = "admissionregistration.k8s.io"
KINDS: dict[tuple[str, str], tuple[Column, ...]] = {
    ("", "Node"): NODE,
    ("", "Pod"): POD,
    ("", "Namespace"): NAMESPACE,
    ("", "Event"): EVENT,
    ("events.k8s.io", "Event"): tuple(map(_as_stored, EVENT)),
    ("", "PersistentVolume"): volumes.VOLUME,
    ("", "PersistentVolumeClaim"): volumes.CLAIM,
    ("", "Service"): SERVICE,
    ("", "ReplicationController"): REPLICAS,
    ("", "ConfigMap"): apps.CONFIG_MAP,
    ("", "Secret"): apps.SECRET,
    ("", "ServiceAccount"): apps.SERVICE_ACCOUNT,
    ("", "ResourceQuota"): quotas.QUOTA,
    ("", "LimitRange"): quotas.LIMIT_RANGE,
    (_ADMISSION, "ValidatingAdmissionPolicy"): admission.POLICY,
    (_ADMISSION, "ValidatingAdmissionPolicyBinding"): admission.BINDING,
    (_ADMISSION, "ValidatingWebhookConfiguration"): admission.WEBHOOKS,
    (_ADMISSION, "MutatingWebhookConfiguration"): admission.WEBHOOKS,
    ("apps", "ControllerRevision"): apps.CONTROLLER_REVISION,
    ("apps", "ReplicaSet"): REPLICAS,
    ("apps", "StatefulSet"): STATEFUL_SET,
    ("apps", "DaemonSet"): (*apps.DAEMON_SET, *_WORKS_ON, _SELECTOR),
    ("apps", "Deployment"): (*apps.DEPLOYMENT, *_WORKS_ON, _SELECTOR),
    ("batch", "CronJob"): apps.CRON_JOB,
    ("batch", "Job"): JOB,
    ("policy", "PodDisruptionBudget"): PDB,
    ("scheduling.k8s.io", "PriorityClass"): PRIORITY_CLASS,
    ("scheduling.k8s.io", "Workload"): WORKLOAD,
    ("scheduling.k8s.io", "PodGroup"): GROUP,
    ("scheduling.k8s.io", "CompositePodGroup"): GROUP,
    ("node.k8s.io", "RuntimeClass"): (NAME, Column("Handler", at("handler")), AGE),
    ("coordination.k8s.io", "Lease"): (NAME, Column("Holder", at("spec.holderIdentity")), AGE),
    ("resource.k8s.io", "ResourceClaim"): volumes.RESOURCE_CLAIM,
    ("resource.k8s.io", "ResourceSlice"): volumes.RESOURCE_SLICE,
    (_STORAGE, "StorageClass"): volumes.STORAGE_CLASS,
    (_STORAGE, "CSIDriver"): volumes.CSI_DRIVER,
    (_STORAGE, "CSINode"): volumes.CSI_NODE,
    (_STORAGE, "CSIStorageCapacity"): volumes.CAPACITY,
    (_STORAGE, "VolumeAttachment"): volumes.ATTACHMENT,
}
