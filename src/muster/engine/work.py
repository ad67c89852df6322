"""What a search may spend: counted work, never seconds, so that the same decision comes out on every machine."""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_EXPANSIONS = 2_500
MAX_DOUBLINGS = 4
DOUBTS = 2


@dataclass(frozen=True, slots=True)
class Work:
    """`expansions` search nodes for an entry's first attempt, doubled by each further one, up to 16x.

    One is about 0.2 ms of a core, so the default is about half a second. It pays for a state of the depth-first search;
    100 kB of fillings made or compared; `relaxation.ITERATIONS_PER_EXPANSION` steps of the simplex method.
    """

    expansions: int = DEFAULT_EXPANSIONS

    def for_attempt(self, attempts: int) -> int:
        """Expansions for an entry that was already tried `attempts` times."""
        return self.expansions << min(max(attempts, 0), MAX_DOUBLINGS)

    def before_evicting(self, attempts: int) -> Work | None:
        """What is spent on another search for room as it is, before anybody is evicted on the word of one that its
        budget ended. None: that one had as much already.
        """
        enough = max(self.for_attempt(DOUBTS), DEFAULT_EXPANSIONS)
        return Work(enough) if self.for_attempt(attempts) < enough else None
