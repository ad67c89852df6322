"""The command line: parse, call, print. `main` is the `muster` command."""

from __future__ import annotations


def main() -> None:
    """Runs one command and exits: 0 done, 1 it failed, 2 the command line is wrong. Never a traceback for a mistake."""
    from muster.cli.app import run

    raise SystemExit(run())
