"""What becomes of a status when the object itself is written."""

from __future__ import annotations

from muster.api.defaults.parts import Json, Raw


def settle(obj: Json, old: Raw | None, *, keeps: bool, counts: tuple[str, ...]) -> None:
    """On create a status has only `counts`, all 0, unless the kind `keeps` what is given; an update changes nothing."""
    if old is not None and "status" in old:
        obj["status"] = old["status"]
    elif old is not None or not keeps or "status" not in obj:
        obj["status"] = dict.fromkeys(counts, 0)
