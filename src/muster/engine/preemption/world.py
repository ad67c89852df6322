"""The cluster without some of its pods: a snapshot in which no filter can see them (M9)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from muster.model.keys import Key
from muster.model.neighbours import Neighbours, SelectionIndex
from muster.model.records import Amounts, HostPort, PodRecord
from muster.model.snapshot import NodeColumns, Snapshot
from muster.model.volumes import Volumes


def without(snapshot: Snapshot, gone: Sequence[PodRecord]) -> Snapshot:
    """The snapshot as it would be if these running pods had never been; generations stay those of the real one."""
    if not gone:
        return snapshot
    used = snapshot.used - freed(snapshot, gone)
    used.flags.writeable = False
    return replace(
        snapshot,
        used=used,
        ports=_ports(snapshot, gone),
        neighbours=_neighbours(snapshot.neighbours, snapshot.nodes, gone),
        volumes=_volumes(snapshot.volumes, gone),
        running=None,
    )


def freed(snapshot: Snapshot, gone: Sequence[PodRecord]) -> np.ndarray:
    """int64[R, N]: what these pods hold."""
    index = snapshot.nodes.index
    taken = np.zeros((len(snapshot.axis), len(snapshot.nodes)), dtype=np.int64)
    by_usage: dict[Amounts, list[int]] = {}
    for pod in gone:
        at = index.get(pod.node or "")
        if at is not None:
            by_usage.setdefault(pod.usage, []).append(at)
    for usage, nodes in by_usage.items():
        counts = np.bincount(nodes, minlength=taken.shape[1])
        for name, amount in usage:
            taken[snapshot.axis.row[name]] += counts * amount
    return taken


def _ports(snapshot: Snapshot, gone: Iterable[PodRecord]) -> Mapping[HostPort, Mapping[str, int]]:
    ports = snapshot.ports
    users = {port: dict(nodes) for port, nodes in ports.items()} if ports else {}
    for pod in gone if users else ():
        for port in pod.cls.host_ports:
            there = users.get(port, {})
            if pod.node in there:
                there[pod.node] -= 1
    return users


def _neighbours(known: Neighbours, nodes: NodeColumns, gone: Iterable[PodRecord]) -> Neighbours:
    if not known.matching and not known.holding:
        return known
    index = SelectionIndex(known.matching)
    matching = {what: column.copy() for what, column in known.matching.items()}
    leaving = {what: column.copy() for what, column in known.leaving.items()}
    holding = {what: column.copy() for what, column in known.holding.items()}
    for pod in gone:
        at = nodes.index.get(pod.node or "")
        if at is None:
            continue
        for selection in index.meant(pod.key.namespace, pod.labels, known.spaces):
            matching[selection][at] -= 1
            if pod.terminating:
                leaving[selection][at] -= 1
        for held in pod.cls.demands.holdings() if pod.cls.demands is not None else ():
            if held in holding:
                holding[held][at] -= 1
    return Neighbours(
        known.version,
        matching,
        leaving,
        {what: column for what, column in holding.items() if column.any()},
        known.spaces,
    )


def _volumes(known: Volumes, gone: Iterable[PodRecord]) -> Volumes:
    storing = [pod for pod in gone if pod.volumes is not None]
    if not storing:
        return known
    mounts = {key: dict(nodes) for key, nodes in known.mounts.items()}
    disks = {disk: dict(nodes) for disk, nodes in known.disks.items()}
    for pod in storing:
        assert pod.volumes is not None and pod.node is not None
        for key in {Key(pod.key.namespace, use.name) for use in pod.volumes.claims}:
            _take(mounts.get(key, {}), pod.node, 1)
        for disk, units in pod.volumes.disks:
            _take(disks.get(disk, {}), pod.node, units)
    return replace(
        known,
        mounts={key: nodes for key, nodes in mounts.items() if nodes},
        disks={disk: nodes for disk, nodes in disks.items() if nodes},
    )


def _take(nodes: dict[str, int], node: str, amount: int) -> None:
    left = nodes.get(node, 0) - amount
    if left > 0:
        nodes[node] = left
    else:
        nodes.pop(node, None)
