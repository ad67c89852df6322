"""Turns the one-step cases of area search straight into a snapshot and an entry."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import yaml

from muster.model.keys import Key
from muster.model.records import (
    EntryKey,
    EntryKind,
    GroupRecord,
    NodeRecord,
    PodClass,
    PodRecord,
    Policy,
    QueueEntry,
)
from muster.model.resources import ResourceAxis
from muster.model.snapshot import NodeColumns, Snapshot

CASES = Path(__file__).parents[2] / "conformance" / "cases"
_UNITS = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40}


def amounts(manifest: dict[str, Any], **more: int) -> tuple[tuple[str, int], ...]:
    """The resources of a node or pod shorthand."""
    found = dict(more)
    if "cpu" in manifest:
        cpu = str(manifest["cpu"])
        found["cpu"] = int(cpu[:-1]) if cpu.endswith("m") else int(cpu) * 1000
    if "memory" in manifest:
        memory = str(manifest["memory"])
        found["memory"] = int(memory[:-2]) * _UNITS[memory[-2:]]
    found |= {name: int(amount) for name, amount in manifest.get("extended", {}).items()}
    return tuple(sorted((name, amount) for name, amount in found.items() if amount))


def load(path: Path) -> tuple[Snapshot, QueueEntry]:
    """The snapshot and the group of a case whose first step creates everything."""
    with path.open() as file:
        objects = yaml.load(file, Loader=yaml.CSafeLoader)["steps"][0]["create"]
    nodes = [
        NodeRecord(o["node"], o["node"], amounts(o, pods=int(o.get("pods", 110))), labels=o.get("labels", {}))
        for o in objects
        if "node" in o and "pod" not in o
    ]
    axis = ResourceAxis().extended(name for node in nodes for name, _ in node.allocatable)
    group = next(o for o in objects if "podgroup" in o)
    pods = tuple(
        PodRecord(
            Key("default", o["pod"]),
            o["pod"],
            PodClass(amounts(o, pods=1), tuple(sorted(o.get("nodeSelector", {}).items()))),
            0,
            i,
            "default-scheduler",
            group=group["podgroup"],
        )
        for i, o in enumerate(o for o in objects if "pod" in o)
    )
    columns = NodeColumns(nodes, axis)
    snapshot = Snapshot(
        1, columns, np.zeros((len(axis), len(nodes)), dtype=np.int64), np.ones(len(nodes), dtype=np.int64)
    )
    key = Key("default", group["podgroup"])
    record = GroupRecord(key, "g", 1, Policy.GANG, group["gang"], 0, 0)
    return snapshot, QueueEntry(EntryKey(EntryKind.POD_GROUP, key), "g", 0, 0, 0, pods, record)
