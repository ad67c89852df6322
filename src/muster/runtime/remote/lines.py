"""A stream of bytes as lines, however it was cut up on the way."""

from __future__ import annotations


class Lines:
    """Keeps the beginning of a line until its end has come."""

    def __init__(self) -> None:
        self._begun: list[bytes] = []

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that this chunk completes, without their ends; empty ones are left out."""
        head, found, tail = chunk.rpartition(b"\n")
        if not found:
            self._begun.append(chunk)
            return []
        whole = b"".join((*self._begun, head))
        self._begun = [tail] if tail else []
        return [line for line in whole.split(b"\n") if line.strip()]
