"""Options of the whole suite: `--soak` runs every random seed, `--seed N` runs only that one."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import HealthCheck, settings

# Machines that run this are slow and shared: how long an example takes says nothing about the code.
settings.register_profile("muster", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("muster")

SEEDS = 2_000
QUICK = SEEDS // 50


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--soak", action="store_true", help=f"run all {SEEDS} random runs instead of {QUICK}")
    parser.addoption("--seed", type=int, help="run the random runs with this seed only")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" not in metafunc.fixturenames:
        return
    chosen, soak = metafunc.config.getoption("--seed"), metafunc.config.getoption("--soak")
    seeds = [chosen] if chosen is not None else range(SEEDS if soak else QUICK)
    marks = [pytest.mark.soak] if soak else []
    metafunc.parametrize("seed", [pytest.param(seed, marks=marks) for seed in seeds])


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--soak"):
        return
    for item in items:
        if item.get_closest_marker("soak"):
            item.add_marker(pytest.mark.skip(reason="runs with --soak"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says how many tests were skipped for want of what."""
    skipped = [report.longrepr for report in terminalreporter.stats.get("skipped", ())]
    reasons = Counter(why[2].removeprefix("Skipped: ") for why in skipped if isinstance(why, tuple))
    for reason, count in sorted(reasons.items()):
        terminalreporter.write_line(f"{count} skipped: {reason}")
