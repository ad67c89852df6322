"""`muster explain` against an API server with no scheduler of Muster's: it says so, and claims nothing."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from muster.api.gates import WORKLOAD_AWARE, FeatureGates
from muster.cli.app import run
from muster.runtime.http import application, listen
from muster.runtime.wiring import Setup, alone

GANG = Path(__file__).parents[2] / "examples" / "gang.yaml"


@pytest.mark.parametrize("words", [[], ["podgroup/finetune"], ["pod/finetune-0"], ["finetune", "--json"]])
def test_it_says_that_nobody_here_could_tell(words, capsys):
    async def served() -> int:
        server = alone(Setup(FeatureGates.of(*WORKLOAD_AWARE)), ())
        runner, port = await listen(application(server.local.handle, server.local.changes), 0)
        there = ["--server", f"http://127.0.0.1:{port}"]
        try:
            assert await asyncio.to_thread(run, ["apply", "-f", str(GANG), *there]) == 0
            capsys.readouterr()
            return await asyncio.to_thread(run, ["explain", *words, *there])
        finally:
            server.worker.close()
            await runner.cleanup()

    assert asyncio.run(served()) == 1
    out, err = capsys.readouterr()
    assert out == "" and "no scheduler of Muster's runs there" in err and "kubectl describe" in err
