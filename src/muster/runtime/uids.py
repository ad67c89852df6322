"""Random uids, drawn from the system many at a time: asking it for each costs as much as storing the object."""

from __future__ import annotations

import os

AT_A_TIME = 256
_VARIANTS = "89ab"


class Uids:
    """Makes a new uid at each call: version 4 of RFC 9562, as Kubernetes has them."""

    def __init__(self) -> None:
        self._drawn: list[str] = []

    def __call__(self) -> str:
        if not self._drawn:
            text = os.urandom(16 * AT_A_TIME).hex()
            self._drawn = [text[start : start + 32] for start in range(0, len(text), 32)]
        drawn = self._drawn.pop()
        variant = _VARIANTS[int(drawn[16], 16) & 3]
        return f"{drawn[:8]}-{drawn[8:12]}-4{drawn[13:16]}-{variant}{drawn[17:20]}-{drawn[20:]}"
