"""Objects as tables, YAML, JSON or names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from muster.api.catalog import Kind
from muster.api.instant import MINUTE, SECOND, from_time
from muster.api.storage import DEFAULT_CLASS
from muster.cli.failure import shown
from muster.runtime.clock import SystemClock

Raw = Mapping[str, Any]
Column = tuple[str, Callable[[Raw], str]]

AS_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
OUTPUTS = ("table", "yaml", "json", "name")


def _plain(body: Raw) -> Raw:
    """Without the notes on who owns which field, which are long and for programs."""
    if "items" in body:
        return {**body, "items": [_plain(item) for item in body["items"]]}
    meta = body.get("metadata") or {}
    return {**body, "metadata": {key: value for key, value in meta.items() if key != "managedFields"}}


def show(kind: Kind, body: Raw, output: str, *, with_namespace: bool) -> None:
    """Prints one object, or a list of them."""
    body = _plain(body)
    items: Sequence[Raw] = body.get("items", [body])
    if output == "json":
        import json

        print(json.dumps(body, indent=2))
    elif output == "yaml":
        import yaml

        print(yaml.safe_dump(body, sort_keys=False, width=120), end="")
    elif output == "name":
        for item in items:
            print(label(kind, item["metadata"]["name"]))
    elif not items:
        print(f"no {kind.plural} found")
    else:
        if kind.kind == "Event":
            items = sorted(items, key=_last_seen)
        columns = _columns(kind.kind)
        head = [("NAMESPACE", lambda item: _at(item, "metadata.namespace")), *columns] if with_namespace else columns
        print(table([name for name, _ in head], [[value(item) for _, value in head] for item in items]))


def show_tables(kind: Kind, tables: Sequence[Raw], *, with_namespace: bool) -> None:
    """Prints Tables that the server has made of objects of a kind that Muster has no columns for."""
    shown = [index for index, one in enumerate(tables[0]["columnDefinitions"]) if not one.get("priority")]
    head = [str(tables[0]["columnDefinitions"][index]["name"]).upper() for index in shown]
    rows = [row for body in tables for row in body["rows"]]
    lines = [["" if row["cells"][index] is None else str(row["cells"][index]) for index in shown] for row in rows]
    if not rows:
        print(f"no {kind.plural} found")
        return
    if with_namespace:
        head = ["NAMESPACE", *head]
        lines = [[_at(row, "object.metadata.namespace"), *line] for row, line in zip(rows, lines, strict=True)]
    print(table(head, lines))


def label(kind: Kind, name: str) -> str:
    """What people call an object: `podgroup.scheduling.k8s.io/training`."""
    return f"{kind.singular}{f'.{kind.group}' if kind.group else ''}/{name}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as their longest cell, two spaces apart; a row is one line, whatever is in its cells."""
    lines = [list(head), *([shown(cell) or "-" for cell in row] for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def has_columns(kind: Kind) -> bool:
    """Whether it is shown in columns chosen here, not in those of the server."""
    return kind.kind in _COLUMNS


def _columns(kind: str) -> list[Column]:
    name: Column = ("NAME", lambda item: _at(item, "metadata.name"))
    return [name, *_COLUMNS.get(kind, [_AGE])]


def _at(item: Any, path: str) -> str:
    """The value at a dotted path as text; "" where there is none."""
    for key in path.split("."):
        if not isinstance(item, Mapping) or key not in item:
            return ""
        item = item[key]
    return str(item)


def _field(title: str, path: str) -> Column:
    return title, lambda item: _at(item, path)


def _condition(wanted: str) -> Callable[[Raw], str]:
    def read(item: Raw) -> str:
        for condition in (item.get("status") or {}).get("conditions") or []:
            if condition.get("type") == wanted:
                return f"{condition.get('status')}" + (f" ({condition['reason']})" if condition.get("reason") else "")
        return ""

    return read


def _last_seen(event: Raw) -> str:
    return _at(event, "lastTimestamp") or _at(event, "eventTime") or _at(event, "metadata.creationTimestamp")


def _since(stamp: str) -> str:
    """How long ago that was, in its largest unit."""
    try:
        seconds = max(0, (SystemClock().now() - from_time(stamp)) // SECOND)
    except ValueError:
        return ""
    for unit, size in (("d", 24 * 60 * MINUTE), ("h", 60 * MINUTE), ("m", MINUTE)):
        if seconds * SECOND >= 2 * size:
            return f"{seconds * SECOND // size}{unit}"
    return f"{seconds}s"


_AGE: Column = ("AGE", lambda item: _since(_at(item, "metadata.creationTimestamp")))


def _number(title: str, path: str) -> Column:
    """A count, which is left out of the object where it is 0."""
    return title, lambda item: _at(item, path) or "0"


def _unless_deleted(read: Callable[[Raw], str]) -> Callable[[Raw], str]:
    """The column's value, or that the object is on its way out."""
    return lambda item: "Terminating" if _at(item, "metadata.deletionTimestamp") else read(item)


def _phase(pod: Raw) -> str:
    """The phase, or why it is still Pending, or that it is on its way out."""
    if _at(pod, "metadata.deletionTimestamp"):
        return "Terminating"
    phase = _at(pod, "status.phase") or "Pending"
    if phase != "Pending":
        return phase
    if _at(pod, "spec.nodeName"):
        return "Starting"
    if (pod.get("spec") or {}).get("schedulingGates"):
        return "Gated"
    return "Pending"


def _restarts(pod: Raw) -> str:
    statuses = (pod.get("status") or {}).get("containerStatuses") or []
    return str(sum(int(status.get("restartCount", 0)) for status in statuses))


def _ready(node: Raw) -> str:
    ready = _condition("Ready")(node).split(" ")[0]
    word = {"True": "Ready", "": ""}.get(ready, "NotReady")
    return f"{word},SchedulingDisabled" if _at(node, "spec.unschedulable") == "True" else word


def _policy(group: Raw) -> str:
    policy = (group.get("spec") or {}).get("schedulingPolicy") or {}
    gang = policy.get("gang")
    if gang is None:
        return "basic" if "basic" in policy else ""
    return f"gang {gang.get('minCount', gang.get('minGroupCount', ''))}"


def _claim(volume: Raw) -> str:
    claim = _at(volume, "spec.claimRef.name")
    return f"{_at(volume, 'spec.claimRef.namespace')}/{claim}" if claim else ""


_COLUMNS: Mapping[str, list[Column]] = {
    "Pod": [
        ("STATUS", _phase),
        ("RESTARTS", _restarts),
        _field("NODE", "spec.nodeName"),
        _field("GROUP", "spec.schedulingGroup.podGroupName"),
    ],
    "Node": [
        ("STATUS", _ready),
        _field("CPU", "status.allocatable.cpu"),
        _field("MEMORY", "status.allocatable.memory"),
        ("GPUS", lambda node: str((((node.get("status") or {}).get("allocatable")) or {}).get("nvidia.com/gpu", ""))),
    ],
    "PodGroup": [("POLICY", _policy), ("SCHEDULED", _unless_deleted(_condition("PodGroupInitiallyScheduled")))],
    "CompositePodGroup": [
        ("POLICY", _policy),
        ("SCHEDULED", _unless_deleted(_condition("CompositePodGroupInitiallyScheduled"))),
    ],
    "Job": [
        _number("PARALLELISM", "spec.parallelism"),
        _number("ACTIVE", "status.active"),
        _number("READY", "status.ready"),
        _number("SUCCEEDED", "status.succeeded"),
        _number("FAILED", "status.failed"),
    ],
    "Namespace": [("STATUS", _unless_deleted(lambda item: _at(item, "status.phase"))), _AGE],
    "Event": [
        ("SEEN", lambda event: _since(_last_seen(event))),
        _field("TYPE", "type"),
        _field("REASON", "reason"),
        ("ABOUT", lambda event: f"{_at(event, 'involvedObject.kind')}/{_at(event, 'involvedObject.name')}"),
        ("MESSAGE", lambda event: _at(event, "message") or _at(event, "note")),
    ],
    "PersistentVolume": [
        _field("CAPACITY", "spec.capacity.storage"),
        _field("CLASS", "spec.storageClassName"),
        _field("RECLAIM", "spec.persistentVolumeReclaimPolicy"),
        ("STATUS", _unless_deleted(lambda volume: _at(volume, "status.phase"))),
        ("CLAIM", _claim),
    ],
    "PersistentVolumeClaim": [
        ("STATUS", _unless_deleted(lambda claim: _at(claim, "status.phase"))),
        _field("VOLUME", "spec.volumeName"),
        _field("CAPACITY", "status.capacity.storage"),
        _field("CLASS", "spec.storageClassName"),
    ],
    "StorageClass": [
        _field("PROVISIONER", "provisioner"),
        _field("BINDING", "volumeBindingMode"),
        _field("RECLAIM", "reclaimPolicy"),
        ("DEFAULT", lambda item: str(((item["metadata"].get("annotations")) or {}).get(DEFAULT_CLASS, ""))),
    ],
    "PriorityClass": [_field("VALUE", "value"), _field("DEFAULT", "globalDefault")],
    "PodDisruptionBudget": [
        _field("MIN AVAILABLE", "spec.minAvailable"),
        _field("MAX UNAVAILABLE", "spec.maxUnavailable"),
        _field("ALLOWED DISRUPTIONS", "status.disruptionsAllowed"),
    ],
}
