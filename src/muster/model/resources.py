"""Resource names and matrix rows: which row of a `(R, N)` array holds which resource."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

PODS = "pods"
CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"

NATIVE: tuple[str, ...] = (PODS, CPU, MEMORY, EPHEMERAL_STORAGE)
"""Always rows 0-3, in this order. Units: pods, thousandths of a core, bytes, bytes. Extended resources: whole units."""


def is_accelerator(name: str) -> bool:
    """Whether a resource is an extended one (a domain-qualified name outside kubernetes.io, no huge page)."""
    return "/" in name and not name.split("/", 1)[0].endswith("kubernetes.io")


@dataclass(frozen=True, slots=True)
class ResourceAxis:
    """An append-only list of resource names: a row, once given, keeps its meaning."""

    names: tuple[str, ...] = NATIVE
    row: Mapping[str, int] = field(default_factory=lambda: {name: i for i, name in enumerate(NATIVE)})

    def __len__(self) -> int:
        return len(self.names)

    def extended(self, names: Iterable[str]) -> ResourceAxis:
        """This axis with the unknown ones of `names` appended in sorted order; itself if there are none."""
        new = sorted(set(names) - self.row.keys())
        if not new:
            return self
        every = (*self.names, *new)
        return ResourceAxis(every, {name: i for i, name in enumerate(every)})

    def vector(self, amounts: Iterable[tuple[str, int]]) -> np.ndarray:
        """int64[R] of these amounts, 0 elsewhere.

        Raises:
            KeyError: a name is not on the axis.
        """
        out = np.zeros(len(self.names), dtype=np.int64)
        for name, amount in amounts:
            out[self.row[name]] += amount
        return out
