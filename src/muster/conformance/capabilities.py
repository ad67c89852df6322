"""What of Muster is built: the only place through which a conformance case is skipped for a missing capability."""

from __future__ import annotations

from muster.conformance.cases import Case

BUILT = {
    "job": True,
    "builder": True,
    "composite": True,
    "topology": True,
    "preemption": True,
    "devices": True,
    "volumes": True,
    "affinity": True,
    "spread": True,
    "resize": True,
    "reservation": False,
}
"""Every name that a case may put under `needs`, and whether it works."""


def missing(case: Case) -> list[str]:
    """What the case needs and is not built, sorted.

    Raises:
        KeyError: it needs something that is no capability.
    """
    return sorted(need for need in case.needs if not BUILT[need])
