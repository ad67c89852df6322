"""Search for groups of unlike pods."""

from muster.engine.work import Work as Work
