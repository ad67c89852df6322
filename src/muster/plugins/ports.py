"""Counts host ports: one address of a node takes a port of a protocol once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from muster.engine.extension import Rows
from muster.model.diagnosis import Reason
from muster.model.records import HostPort, PodClass
from muster.model.snapshot import Snapshot

ANY_ADDRESS = "0.0.0.0"


@dataclass(frozen=True, slots=True)
class Ports:
    """A row of capacity 1 for every address of a protocol and port that a pending pod asks for, and one for all.

    A port on one address takes its own row. A port on 0.0.0.0 takes the row of every address and the one for all, so
    that it clashes with each of them and with another on 0.0.0.0.
    """

    name: str = "ports"
    reason: Reason = Reason.HOST_PORTS

    def rows(self, snapshot: Snapshot, classes: Sequence[PodClass]) -> Rows:
        wanted = sorted({_plain(port) for pod_class in classes for port in pod_class.host_ports})
        row = {port: i for i, port in enumerate(sorted({*wanted, *(_everywhere(port) for port in wanted)}))}
        shape = (len(row), len(snapshot.nodes))
        used = np.zeros(shape, dtype=np.int64)
        if row:
            self._count_used(snapshot, row, used)
        amounts = np.zeros((len(classes), len(row)), dtype=np.int64)
        for c, pod_class in enumerate(classes):
            for port in pod_class.host_ports:
                amounts[c, _taken(_plain(port), row)] = 1
        details = tuple(f"{port.port}/{port.protocol}" for port in row)
        return Rows(details, np.ones(shape, dtype=np.int64), used, amounts)

    def _count_used(self, snapshot: Snapshot, row: dict[HostPort, int], used: np.ndarray) -> None:
        index = snapshot.nodes.index
        for port, nodes in snapshot.ports.items():
            port = _plain(port)
            # Any use at all clashes with a pending port on 0.0.0.0, which always takes the row for all addresses.
            rows = {*_taken(port, row), *(i for i in (row.get(_everywhere(port)),) if i is not None)}
            columns = [index[name] for name, count in nodes.items() if count > 0 and name in index]
            for i in rows:
                used[i, columns] = 1


def _plain(port: HostPort) -> HostPort:
    return port if port.ip else port._replace(ip=ANY_ADDRESS)


def _everywhere(port: HostPort) -> HostPort:
    return port._replace(ip=ANY_ADDRESS)


def _taken(port: HostPort, row: dict[HostPort, int]) -> list[int]:
    """The rows that this port takes a unit of."""
    if port.ip != ANY_ADDRESS:
        return [row[port]] if port in row else []
    return [i for other, i in row.items() if (other.protocol, other.port) == (port.protocol, port.port)]
