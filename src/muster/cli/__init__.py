"""The command line: parse, call, print. `main` is the `muster` command."""

from __future__ import annotations

import signal


def main() -> None:
    """Runs one command and exits: 0 done, 1 it failed, 2 the command line is wrong. Never a traceback for a mistake.

    Ctrl-C just ends the process, which is quiet also while modules load: Python would print what it cannot raise there.
    Commands with something to clean up ask for the exception once they have loaded (`failure.heed_interrupts`).
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from muster.cli.app import run

    try:
        code = run()
    except KeyboardInterrupt:  # a second one, while the first was dealt with
        code = 130
    raise SystemExit(code)
