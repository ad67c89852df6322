"""What a run of the tests says of those that it could not run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_a_run_without_kubectl_says_how_many_tests_it_skipped_for_want_of_it(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-p", "no:xdist", "tests/runtime/test_kubectl_custom.py"]
    environment = {**os.environ, "PATH": str(tmp_path)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 skipped: kubectl is not installed" in done.stdout
