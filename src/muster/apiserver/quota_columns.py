"""The columns of ResourceQuota and LimitRange."""

from __future__ import annotations

from muster.apiserver.cells import AGE, NAME, Cell, at
from muster.apiserver.log import Raw
from muster.apiserver.sheet import Column, Sheet


def _bounds(*, limits: bool) -> Cell:
    """What a quota allows and how much of it is taken, of limits or of everything else."""

    def cell(quota: Raw, sheet: Sheet) -> str:
        status = quota.get("status") or {}
        hard, used = status.get("hard") or {}, status.get("used") or {}
        named = (name for name in sorted(hard) if name.startswith("limits") == limits)
        return ", ".join(f"{name}: {used.get(name, '0')}/{hard[name]}" for name in named)

    return cell


QUOTA = (NAME, Column("Request", _bounds(limits=False)), Column("Limit", _bounds(limits=True)), AGE)
LIMIT_RANGE = (NAME, Column("Created At", at("metadata.creationTimestamp")))
