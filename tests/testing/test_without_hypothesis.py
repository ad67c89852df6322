"""The kit is shipped; hypothesis is not."""

import subprocess
import sys


def without_hypothesis(program: str) -> subprocess.CompletedProcess:
    hidden = f"import sys; sys.modules['hypothesis'] = None; {program}"
    return subprocess.run([sys.executable, "-c", hidden], capture_output=True, text=True, check=False)


def test_builders_oracle_and_laws_work_without_hypothesis():
    checked = (
        "from muster.testing import builders, laws, oracle; from muster.plugins import BUILT_IN; "
        "laws.check_plugin(BUILT_IN['pack']()); "
        "print(oracle.can_place(builders.snapshot([builders.node('n1')]), builders.entry(builders.pod('p'))).most)"
    )
    done = without_hypothesis(checked)
    assert (done.stdout.strip(), done.returncode) == ("1", 0), done.stderr


def test_strategies_say_what_they_need():
    done = without_hypothesis("import muster.testing.strategies")
    assert done.returncode == 1
    assert "muster.testing.strategies needs hypothesis: pip install hypothesis" in done.stderr
