"""What becomes of a status when the object itself is written."""

from __future__ import annotations

from muster.api.defaults.parts import Json, Raw


def settle(obj: Json, old: Raw | None, *, keeps: bool) -> None:
    """On create the status is emptied unless the kind `keeps` it; on update it is the stored one."""
    if old is None:
        if not keeps:
            obj.pop("status", None)
    elif "status" in old:
        obj["status"] = old["status"]
    else:
        obj.pop("status", None)
