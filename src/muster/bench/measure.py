"""What is measured, and how: repeats with medians, decision times in a virtual world, memory of a child process."""

from __future__ import annotations

import gc
import platform
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from muster.runtime.collector import calm_collector

GIBI = 1 << 30


@dataclass(frozen=True, slots=True)
class Target:
    """What a figure has to reach. `at_most`: less is better."""

    name: str
    unit: str
    bound: float
    at_most: bool
    about: str

    def met_by(self, value: float) -> bool:
        return value <= self.bound if self.at_most else value >= self.bound


@dataclass(slots=True)
class Figure:
    """One target with the values that were measured for it."""

    target: Target
    values: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        return median(self.values)

    @property
    def ok(self) -> bool:
        return bool(self.values) and self.target.met_by(self.median)

    @property
    def margin(self) -> float:
        """How many times better than the target; below 1 it is missed."""
        value, bound = self.median, self.target.bound
        better, worse = (bound, value) if self.target.at_most else (value, bound)
        return better / worse if worse else float("inf")


def seconds(work: Callable[[], object]) -> float:
    """How long the work takes, by the wall clock; what earlier work left to collect is collected first."""
    gc.collect()
    began = perf_counter()
    work()
    return perf_counter() - began


@contextmanager
def calmed() -> Iterator[None]:
    """Meanwhile, garbage is collected as in a process that serves a cluster."""
    before = gc.get_threshold()
    calm_collector()
    try:
        yield
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)


def peak_memory() -> int:
    """The most bytes this process has held in memory."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def in_child(module: str, *arguments: int) -> str:
    """Runs `main(*arguments)` of a module in a process of its own and returns what it prints."""
    program = f"import {module} as module; module.main({', '.join(map(str, arguments))})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{module} failed in its child process:\n{done.stderr.strip()}")
    return done.stdout


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    return {
        "processor": _processor(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "muster": version("muster-scheduler"),
        "system": f"{platform.system()} {platform.machine()}",
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown"
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0]} ({len(names)} logical)" if names else platform.processor() or "unknown"
