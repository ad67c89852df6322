"""Python's cyclic garbage collector, set for a process that holds a large store of JSON without any cycle in it."""

from __future__ import annotations

import gc

YOUNG, MIDDLE, OLD = 50_000, 20, 100
"""Allocations between two looks at the youngest objects; how many such looks between two at the older ones."""


def calm_collector() -> None:
    """Looks rarely, and never again at what is there now.

    A full look at the objects of 100,000 pods takes a second, during which nothing else happens.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, MIDDLE, OLD)
