"""The command line: parse, call, print. `main` is the `muster` command."""

from __future__ import annotations

import signal


def main() -> None:
    """Runs one command and exits: 0 done, 1 it failed, 2 the command line is wrong. Never a traceback for a mistake."""
    interrupts = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if interrupts:  # while modules load and after the end there is nothing to clean up: Ctrl-C just ends the process
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from muster.cli.app import run

    if interrupts:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        code = run()
    except KeyboardInterrupt:  # a second one, while the first was dealt with
        code = 130
    if interrupts:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    raise SystemExit(code)
