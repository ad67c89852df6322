"""Options of the whole suite: `--soak` runs every random seed, `--seed N` runs only that one."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import HealthCheck, settings

# Machines that run this are slow and shared: how long an example takes says nothing about the code.
settings.register_profile("muster", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("muster")

SEEDS = {"seed": 2_000, "crash": 10_000, "order": 5_000}
"""By the name of the argument that asks for them, how many random runs there are; without `--soak`, 2 % of them."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--soak", action="store_true", help="run all random runs instead of 2 %")
    parser.addoption("--seed", type=int, help="run the random runs with this seed only")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    chosen, soak = metafunc.config.getoption("--seed"), metafunc.config.getoption("--soak")
    for name in SEEDS.keys() & set(metafunc.fixturenames):
        seeds = [chosen] if chosen is not None else range(SEEDS[name] if soak else SEEDS[name] // 50)
        marks = [pytest.mark.soak] if soak else []
        metafunc.parametrize(name, [pytest.param(seed, marks=marks) for seed in seeds])


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
