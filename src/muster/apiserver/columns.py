"""The columns of every served kind, as `kubectl get` shows them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from muster.api.instant import SECOND, from_time
from muster.apiserver.log import Raw
from muster.apiserver.pod_cells import ready, restarts, shown_status
from muster.apiserver.sheet import NONE, UNKNOWN, UNSET, Column, Sheet, condition, duration, scheduled, selector

Cell = Callable[[Raw, Sheet], Any]

WIDE = 1
_ROLE = "node-role.kubernetes.io/"
_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def _at(path: str, absent: Any = "") -> Cell:
    """The value at a path such as `spec.nodeName`."""
    steps = path.split(".")

    def cell(raw: Raw, sheet: Sheet) -> Any:
        value: Any = raw
        for step in steps:
            value = (value or {}).get(step)
        return absent if value in (None, "") else value

    return cell


def _text(path: str, absent: Any = "") -> Cell:
    inner = _at(path, absent)
    return lambda raw, sheet: (
        str(inner(raw, sheet)).lower() if inner(raw, sheet) in (True, False) else str(inner(raw, sheet))
    )


def _flag(path: str, absent: bool = False) -> Cell:
    inner = _at(path, absent)
    return lambda raw, sheet: "true" if inner(raw, sheet) else "false"


NAME = Column("Name", _at("metadata.name"), description="The name of the object, unique in its namespace.")
AGE = Column(
    "Age",
    lambda raw, sheet: sheet.age(raw["metadata"].get("creationTimestamp")),
    description="Time since it was created.",
)
GENERIC = (NAME, AGE)


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
    Column("Version", _at(f"{_NODE_INFO}.kubeletVersion")),
    Column("Internal-IP", _address("InternalIP"), priority=WIDE),
    Column("External-IP", _address("ExternalIP"), priority=WIDE),
    Column("OS-Image", _at(f"{_NODE_INFO}.osImage", UNKNOWN), priority=WIDE),
    Column("Kernel-Version", _at(f"{_NODE_INFO}.kernelVersion", UNKNOWN), priority=WIDE),
    Column("Container-Runtime", _at(f"{_NODE_INFO}.containerRuntimeVersion", UNKNOWN), priority=WIDE),
)
POD = (
    NAME,
    Column("Ready", ready),
    Column("Status", shown_status),
    Column("Restarts", restarts),
    AGE,
    Column("IP", _at("status.podIP", NONE), priority=WIDE),
    Column("Node", _at("spec.nodeName", NONE), priority=WIDE),
    Column("Nominated Node", _at("status.nominatedNodeName", NONE), priority=WIDE),
    Column("Readiness Gates", _gates, priority=WIDE),
)
NAMESPACE = (NAME, Column("Status", _at("status.phase")), AGE)


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
    Column("Priority", _text("spec.priority", "0"), priority=WIDE),
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
    Column("Value", _at("value", 0), "integer"),
    Column("Global-Default", _at("globalDefault", False), "boolean"),
    AGE,
    Column("PreemptionPolicy", _at("preemptionPolicy", "PreemptLowerPriority")),
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


JOB = (
    NAME,
    Column("Status", _job_status),
    Column("Completions", _completions),
    Column("Duration", _job_duration),
    AGE,
    Column("Containers", _containers("name"), priority=WIDE),
    Column("Images", _containers("image"), priority=WIDE),
    Column("Selector", lambda job, sheet: selector(job["spec"].get("selector")), priority=WIDE),
)
PDB = (
    NAME,
    Column("Min Available", _text("spec.minAvailable", "N/A")),
    Column("Max Unavailable", _text("spec.maxUnavailable", "N/A")),
    Column("Allowed Disruptions", _at("status.disruptionsAllowed", 0), "integer"),
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
    Column("Type", _at("type")),
    Column("Reason", _at("reason")),
    Column("Object", _involved),
    Column("Subobject", _at("involvedObject.fieldPath"), priority=WIDE),
    Column("Source", _source, priority=WIDE),
    Column("Message", lambda event, sheet: (event.get("message") or "").strip()),
    Column("First Seen", _first_seen, priority=WIDE),
    Column("Count", lambda event, sheet: event.get("count") or 1, "integer", WIDE),
    Column("Name", _at("metadata.name"), priority=WIDE),
)


# --- storage and devices -----------------------------------------------------------------------------------------


def _modes(path: str) -> Cell:
    inner = _at(path, ())
    return lambda raw, sheet: ",".join(_MODES.get(mode, mode) for mode in inner(raw, sheet))


def _volume_status(raw: Raw, sheet: Sheet) -> str:
    phase: str = raw.get("status", {}).get("phase") or ""
    return "Terminating" if "deletionTimestamp" in raw["metadata"] else phase


def _claim(volume: Raw, sheet: Sheet) -> str:
    claim = volume.get("spec", {}).get("claimRef")
    return f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else ""


def _class_name(raw: Raw, sheet: Sheet) -> str:
    annotations = raw["metadata"].get("annotations") or {}
    name: str = raw["metadata"]["name"]
    return f"{name} (default)" if annotations.get(_DEFAULT_CLASS) == "true" else name


def _claim_state(claim: Raw, sheet: Sheet) -> str:
    status = claim.get("status") or {}
    states = ["deleted"] if "deletionTimestamp" in claim["metadata"] else []
    states += ["allocated"] if status.get("allocation") else []
    states += ["reserved"] if status.get("reservedFor") else []
    return ",".join(states) or "pending"


_ATTRIBUTES = Column("VolumeAttributesClass", _at("spec.volumeAttributesClassName", UNSET))
_VOLUME_MODE = Column("VolumeMode", _at("spec.volumeMode", UNSET), priority=WIDE)
VOLUME = (
    NAME,
    Column("Capacity", _at("spec.capacity.storage")),
    Column("Access Modes", _modes("spec.accessModes")),
    Column("Reclaim Policy", _at("spec.persistentVolumeReclaimPolicy")),
    Column("Status", _volume_status),
    Column("Claim", _claim),
    Column("StorageClass", _at("spec.storageClassName")),
    _ATTRIBUTES,
    Column("Reason", _at("status.reason")),
    AGE,
    _VOLUME_MODE,
)
CLAIM = (
    NAME,
    Column("Status", _volume_status),
    Column("Volume", _at("spec.volumeName")),
    Column("Capacity", _at("status.capacity.storage")),
    Column("Access Modes", _modes("status.accessModes")),
    Column("StorageClass", _at("spec.storageClassName")),
    _ATTRIBUTES,
    AGE,
    _VOLUME_MODE,
)
STORAGE_CLASS = (
    Column("Name", _class_name),
    Column("Provisioner", _at("provisioner")),
    Column("ReclaimPolicy", _at("reclaimPolicy", "Delete")),
    Column("VolumeBindingMode", _at("volumeBindingMode", "Immediate")),
    Column("AllowVolumeExpansion", _flag("allowVolumeExpansion")),
    AGE,
)
CSI_DRIVER = (
    NAME,
    Column("AttachRequired", _flag("spec.attachRequired", True), "boolean"),
    Column("PodInfoOnMount", _flag("spec.podInfoOnMount"), "boolean"),
    Column("StorageCapacity", _flag("spec.storageCapacity"), "boolean"),
    AGE,
)
CSI_NODE = (NAME, Column("Drivers", lambda raw, sheet: len(raw.get("spec", {}).get("drivers") or ()), "integer"), AGE)
CAPACITY = (NAME, Column("StorageClassName", _at("storageClassName")), Column("Capacity", _at("capacity")), AGE)
ATTACHMENT = (
    NAME,
    Column("Attacher", _at("spec.attacher")),
    Column("PV", _at("spec.source.persistentVolumeName")),
    Column("Node", _at("spec.nodeName")),
    Column("Attached", _flag("status.attached"), "boolean"),
    AGE,
)
RESOURCE_CLAIM = (NAME, Column("State", _claim_state), AGE)
RESOURCE_SLICE = (
    NAME,
    Column("Node", _at("spec.nodeName", NONE)),
    Column("Driver", _at("spec.driver")),
    Column("Pool", _at("spec.pool.name")),
    AGE,
)

_STORAGE = "storage.k8s.io"
KINDS: dict[tuple[str, str], tuple[Column, ...]] = {
    ("", "Node"): NODE,
    ("", "Pod"): POD,
    ("", "Namespace"): NAMESPACE,
    ("", "Event"): EVENT,
    ("", "PersistentVolume"): VOLUME,
    ("", "PersistentVolumeClaim"): CLAIM,
    ("batch", "Job"): JOB,
    ("policy", "PodDisruptionBudget"): PDB,
    ("scheduling.k8s.io", "PriorityClass"): PRIORITY_CLASS,
    ("scheduling.k8s.io", "Workload"): WORKLOAD,
    ("scheduling.k8s.io", "PodGroup"): GROUP,
    ("scheduling.k8s.io", "CompositePodGroup"): GROUP,
    ("node.k8s.io", "RuntimeClass"): (NAME, Column("Handler", _at("handler")), AGE),
    ("coordination.k8s.io", "Lease"): (NAME, Column("Holder", _at("spec.holderIdentity")), AGE),
    ("resource.k8s.io", "ResourceClaim"): RESOURCE_CLAIM,
    ("resource.k8s.io", "ResourceSlice"): RESOURCE_SLICE,
    (_STORAGE, "StorageClass"): STORAGE_CLASS,
    (_STORAGE, "CSIDriver"): CSI_DRIVER,
    (_STORAGE, "CSINode"): CSI_NODE,
    (_STORAGE, "CSIStorageCapacity"): CAPACITY,
    (_STORAGE, "VolumeAttachment"): ATTACHMENT,
}
