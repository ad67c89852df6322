"""What of Muster is built: the only place through which a conformance case is skipped for a missing capability."""

from __future__ import annotations

from collections.abc import Iterable

BUILT = {
    "job": True,
    "builder": True,
    "composite": False,
    "topology": False,
    "preemption": False,
    "devices": False,
    "volumes": False,
    "affinity": False,
    "spread": False,
    "resize": False,
    "reservation": False,
}
"""Every name that a case may put under `needs`, and whether it works."""


def missing(needs: Iterable[str]) -> list[str]:
    """Those of `needs` that are not built, sorted.

    Raises:
        KeyError: a name is no capability.
    """
    return sorted(need for need in needs if not BUILT[need])
