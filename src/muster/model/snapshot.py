"""The cluster as one decision sees it: read-only columns over nodes at one revision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from muster.model.devices import NO_DEVICES, Devices
from muster.model.keys import Key
from muster.model.neighbours import NOBODY, Labels, Neighbours, PodTerm
from muster.model.records import GroupRecord, HostPort, NodeRecord, PodClass, Taint
from muster.model.resources import ResourceAxis
from muster.model.running import Running
from muster.model.volumes import NO_VOLUMES, Volumes


class LabelColumn(NamedTuple):
    """One label key over all nodes: `codes[n]` indexes `values`, -1 where the node lacks the label."""

    values: tuple[str, ...]
    codes: np.ndarray
    code: Mapping[str, int]


class NodeColumns:
    """What is known of the nodes themselves; one instance per node generation, shared by snapshots and cached on.

    Node `n` is the same node in every array. The order is declared: by topology path of the given levels, then by
    name, so that a domain of the primary hierarchy is a slice, and ties are broken alike everywhere.
    """

    __slots__ = ("_labels", "_taints", "alloc", "axis", "cache", "index", "levels", "names", "records", "unschedulable")

    def __init__(self, records: Sequence[NodeRecord], axis: ResourceAxis, levels: Sequence[str] = ()) -> None:
        ordered = sorted(records, key=lambda r: (*((k not in r.labels, r.labels.get(k, "")) for k in levels), r.name))
        self.levels = tuple(levels)
        self.records: tuple[NodeRecord, ...] = tuple(ordered)
        self.names: tuple[str, ...] = tuple(r.name for r in ordered)
        self.index: Mapping[str, int] = {name: i for i, name in enumerate(self.names)}
        self.axis = axis
        alloc = np.zeros((len(axis), len(ordered)), dtype=np.int64)
        for n, record in enumerate(ordered):
            for name, amount in record.allocatable:
                alloc[axis.row[name], n] = amount
        alloc.flags.writeable = False
        self.alloc = alloc
        """int64[R, N]"""
        self.unschedulable = np.fromiter((r.unschedulable for r in ordered), dtype=bool, count=len(ordered))
        self._labels: dict[str, LabelColumn] = {}
        self._taints: tuple[tuple[tuple[Taint, ...], ...], np.ndarray] | None = None
        self.cache: dict[object, object] = {}
        """Plugins keep per-class masks here, keyed by (plugin name, class): they live as long as the node columns."""

    def __len__(self) -> int:
        return len(self.names)

    def label(self, key: str) -> LabelColumn:
        """The column of one label key, made on first use. Values are sorted; codes are int32[N]."""
        column = self._labels.get(key)
        if column is None:
            raw = [r.labels.get(key) for r in self.records]
            values = tuple(sorted({v for v in raw if v is not None}))
            code = {value: i for i, value in enumerate(values)}
            codes = np.fromiter((-1 if v is None else code[v] for v in raw), dtype=np.int32, count=len(raw))
            column = self._labels[key] = LabelColumn(values, codes, code)
        return column

    def taint_sets(self) -> tuple[tuple[tuple[Taint, ...], ...], np.ndarray]:
        """The distinct taint tuples, and int32[N] saying which one each node carries."""
        if self._taints is None:
            sets: dict[tuple[Taint, ...], int] = {}
            codes = np.fromiter(
                (sets.setdefault(r.taints, len(sets)) for r in self.records), dtype=np.int32, count=len(self.records)
            )
            self._taints = (tuple(sets), codes)
        return self._taints


class Nomination(NamedTuple):
    """Room on a node that is held for a pod that is not bound yet (statement 57, P23)."""

    pod: Key
    uid: str
    node: str
    cls: PodClass
    priority: int
    group: Key | None
    labels: Labels = ()
    apart: tuple[PodTerm, ...] = ()
    """Terms of its anti-affinity: what it keeps away once it runs."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One revision of the cluster. Arrays are read-only; a Ledger copies what it changes."""

    revision: int
    nodes: NodeColumns
    used: np.ndarray
    """int64[R, N]: what pods on the node hold, assumed ones included; terminating ones still count."""
    generations: np.ndarray
    """int64[N]: grows with every change of the node or of the pods on it."""
    ports: Mapping[HostPort, Mapping[str, int]] = field(default_factory=dict)
    """Host port -> node name -> how many pods there use it; only ports in use."""
    nominations: tuple[Nomination, ...] = ()
    groups: Mapping[Key, GroupRecord] = field(default_factory=dict)
    neighbours: Neighbours = NOBODY
    volumes: Volumes = NO_VOLUMES
    devices: Devices = NO_DEVICES
    running: Running | None = None
    """Only where a head may preempt."""

    @property
    def axis(self) -> ResourceAxis:
        return self.nodes.axis
