"""The columns of Deployments, DaemonSets, CronJobs, and of what pods are given."""

from __future__ import annotations

from muster.apiserver.cells import AGE, NAME, Cell, at, text
from muster.apiserver.log import Raw
from muster.apiserver.sheet import NONE, Column, Sheet


def _ready(obj: Raw, sheet: Sheet) -> str:
    ready = (obj.get("status") or {}).get("readyReplicas", 0)
    return f"{ready}/{obj['spec'].get('replicas', 1)}"


def _count(*fields: str) -> Cell:
    def cell(obj: Raw, sheet: Sheet) -> int:
        return sum(len(obj.get(field) or ()) for field in fields)

    return cell


def _node_selector(obj: Raw, sheet: Sheet) -> str:
    wanted = obj["spec"].get("template", {}).get("spec", {}).get("nodeSelector") or {}
    return ",".join(f"{key}={wanted[key]}" for key in sorted(wanted)) or NONE


def _controller(obj: Raw, sheet: Sheet) -> str:
    """Kind, group and name of its controller."""
    for owner in obj["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            group = owner.get("apiVersion", "").rpartition("/")[0]
            kind = owner.get("kind", "").lower()
            return f"{kind}.{group}/{owner.get('name')}" if group else f"{kind}/{owner.get('name')}"
    return NONE


def _suspended(obj: Raw, sheet: Sheet) -> str:
    return str(bool(obj["spec"].get("suspend")))


def _last_scheduled(obj: Raw, sheet: Sheet) -> str:
    last = (obj.get("status") or {}).get("lastScheduleTime")
    return sheet.age(last) if last else NONE


DEPLOYMENT = (
    NAME,
    Column("Ready", _ready),
    Column("Up-to-date", at("status.updatedReplicas", 0), "integer"),
    Column("Available", at("status.availableReplicas", 0), "integer"),
    AGE,
)
DAEMON_SET = (
    NAME,
    Column("Desired", at("status.desiredNumberScheduled", 0), "integer"),
    Column("Current", at("status.currentNumberScheduled", 0), "integer"),
    Column("Ready", at("status.numberReady", 0), "integer"),
    Column("Up-to-date", at("status.updatedNumberScheduled", 0), "integer"),
    Column("Available", at("status.numberAvailable", 0), "integer"),
    Column("Node Selector", _node_selector),
    AGE,
)
CONTROLLER_REVISION = (
    NAME,
    Column("Controller", _controller),
    Column("Revision", at("revision", 0), "integer"),
    AGE,
)
CRON_JOB = (
    NAME,
    Column("Schedule", at("spec.schedule")),
    Column("Timezone", text("spec.timeZone", NONE)),
    Column("Suspend", _suspended),
    Column("Active", lambda obj, sheet: len((obj.get("status") or {}).get("active") or ()), "integer"),
    Column("Last Schedule", _last_scheduled),
    AGE,
)
CONFIG_MAP = (NAME, Column("Data", _count("data", "binaryData"), "integer"), AGE)
SECRET = (NAME, Column("Type", at("type")), Column("Data", _count("data"), "integer"), AGE)
SERVICE_ACCOUNT = (NAME, Column("Secrets", _count("secrets"), "integer"), AGE)
