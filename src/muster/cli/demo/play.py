"""The story of the demo, act by act."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from textwrap import wrap

from rich.console import Console

from muster.cli.demo import cast
from muster.cli.demo.screen import WIDTH, LiveScreen, PlainScreen, Screen
from muster.cli.demo.stage import SPEED, Life, Stage
from muster.cli.failure import FAILED, Failure, heed_interrupts
from muster.cli.printing import table
from muster.cli.trees import text
from muster.controllers.fleet import GPU, node_manifests
from muster.runtime.collector import calm_collector
from muster.views.queue import queue
from muster.views.why import why

LOST = "muster.dev/lost"


def play() -> int:
    """Plays the demo on the terminal, or in plain lines where there is none; 0 if everything held."""
    calm_collector()
    heed_interrupts()
    console = Console()
    if not console.is_terminal:
        return asyncio.run(_play(PlainScreen(console), console))
    with LiveScreen(console) as screen:
        return asyncio.run(_play(screen, console))


async def _play(screen: Screen, console: Console) -> int:
    stage = Stage()
    stage.shown = lambda: screen.racks(stage.per_rack())
    driving = asyncio.create_task(stage.cluster.loop.run())
    try:
        for act in (_fill, _train, _serve, _mix, _ask_too_much, _clear_a_rack, _grow):
            await act(stage, screen)
            await screen.rest()
        before = stage.lives(cast.TRAINING)
        for act in (_lose_a_rack, _go_on_smaller):
            await act(stage, screen)
            await screen.rest()
        unchanged = _survivors(stage, screen, before)
    finally:
        stage.cluster.loop.stop()
        stage.cluster.worker.close()
        await driving
    if isinstance(screen, LiveScreen):
        screen.__exit__()
    console.print(closing(stage), highlight=False, soft_wrap=True, markup=False)
    return 0 if unchanged else FAILED


async def _fill(stage: Stage, screen: Screen) -> None:
    shape = cast.FLEET
    stage.create(node_manifests(shape))
    nodes = shape.zones * shape.racks * shape.nodes
    screen.say(
        f"{nodes} hollow nodes with {nodes * shape.gpus:,} accelerators: {shape.zones} zones, {shape.racks} racks each"
        f" (their clock runs {SPEED} times faster than yours)"
    )
    stage.create([*cast.priority_classes(), *cast.fillers()])
    took = await stage.until("the fillers run", lambda: stage.running(cast.FILLER) == cast.FILLERS)
    screen.say(f"{cast.FILLERS} single pods of low priority run, one accelerator each ({took:.2f} s)")


async def _train(stage: Stage, screen: Screen) -> None:
    stage.create([cast.training()])
    took = await stage.until("the training job is bound", lambda: stage.bound(cast.TRAINING) == cast.TRAINERS)
    screen.say(
        f"Job {cast.TRAINING}: {cast.TRAINERS} pods x 8 accelerators = {cast.TRAINERS * 8:,} placed all at once,"
        f" {took:.2f} s after the Job was created"
    )
    await stage.until("the training job runs", lambda: stage.running(cast.TRAINING) == cast.TRAINERS)


async def _serve(stage: Stage, screen: Screen) -> None:
    members = cast.PREFILL + cast.DECODE
    stage.create(cast.serving())
    took = await stage.until("the model server runs", lambda: stage.running(cast.SERVING) == members)
    screen.say(
        f"model server {cast.SERVING}: {cast.PREFILL} prefill pods in one rack and {cast.DECODE} decode pods in one"
        f" rack, both racks in one zone, run together ({took:.2f} s)"
    )
    screen.say(text(stage.tree(cast.SERVING), WIDTH))


async def _mix(stage: Stage, screen: Screen) -> None:
    members = cast.LEARNERS + cast.ACTORS + cast.LOADERS
    stage.create(cast.roles())
    took = await stage.until("the mixed gang runs", lambda: stage.running(cast.ROLES) == members)
    screen.say(
        f"gang {cast.ROLES}: {cast.LEARNERS} learners (8 accelerators each), {cast.ACTORS} actors (4 each)"
        f" and {cast.LOADERS} loaders (none) run together ({took:.2f} s)"
    )


async def _ask_too_much(stage: Stage, screen: Screen) -> None:
    stage.create(cast.too_big())
    screen.say(f"gang {cast.TOO_BIG} asks for {cast.TOO_MANY} pods x 8 accelerators, more than are free")
    await stage.until("the gang that is too big gets its verdict", lambda: bool(_sentence(stage, cast.TOO_BIG)))
    screen.say(broken(_sentence(stage, cast.TOO_BIG), 0))


async def _clear_a_rack(stage: Stage, screen: Screen) -> None:
    before = {pod["metadata"]["name"]: pod for pod in stage.pods() if pod["spec"].get("nodeName")}
    stage.create(cast.urgent())
    screen.say(
        f"gang {cast.URGENT} of priority 1000 asks for {cast.RESCUERS} pods x {cast.FLEET.gpus} accelerators in"
        " one rack, and none is free"
    )
    await stage.until("the urgent gang evicts", lambda: "evicted" in _sentence(stage, cast.URGENT))
    screen.say(broken(_sentence(stage, cast.URGENT).partition(". ")[2], 0))
    took = await stage.until("the urgent gang runs", lambda: stage.running(cast.URGENT) == cast.RESCUERS)
    there = {pod["metadata"]["name"] for pod in stage.pods()}
    gone = [pod for name, pod in before.items() if name not in there]
    cleared = {stage.racks[pod["spec"]["nodeName"]] for pod in gone}
    if len(cleared) != 1:
        raise Failure(f"pods of {len(cleared)} racks were evicted, not of one: {', '.join(sorted(cleared))}")
    priorities = sorted({pod["spec"]["priority"] for pod in gone})
    screen.say(
        f"evicted, {len(gone)} pods of priority {', '.join(map(str, priorities))}, all of rack {cleared.pop()}:"
        f" {in_ranges(pod['metadata']['name'] for pod in gone)}"
    )
    screen.say(f"nobody in another rack had to go, and {cast.URGENT} runs ({took:.2f} s)")


async def _grow(stage: Stage, screen: Screen) -> None:
    name, before = cast.GROWN, stage.lives(cast.URGENT)[cast.GROWN]
    was, node = stage.cpu(cast.URGENT, name), stage.node(cast.URGENT, name)
    stage.create([cast.beside(node)])
    await stage.until("the pod in its way runs", lambda: stage.running(cast.BESIDE) == 1)
    screen.say(f"pod {cast.BESIDE} of priority -10 takes {cast.BESIDE_CPU} of the 144 cpu of {node}, where {name} runs")
    stage.resize(name, {"cpu": cast.GROWN_CPU})
    took = await stage.until("the pod is resized", lambda: stage.cpu(cast.URGENT, name) == cast.GROWN_CPU)
    if stage.lives(cast.URGENT)[name] != before:
        raise Failure(f"pod {name} was restarted by its resize")
    if stage.pods(cast.BESIDE):
        raise Failure(f"pod {name} grew, and {cast.BESIDE} is still there")
    screen.say(
        f"pod {name} grows in place from {was} to {cast.GROWN_CPU} cpu, and {cast.BESIDE} is evicted for it"
        f" ({took:.2f} s): same uid, no restart"
    )


async def _lose_a_rack(stage: Stage, screen: Screen) -> None:
    seen = stage.per_rack()
    rack = max(seen, key=lambda name: seen[name][cast.TRAINING])
    nodes = [node for node, where in stage.racks.items() if where == rack]
    lost = seen[rack][cast.TRAINING]
    for node in nodes:
        stage.patch("nodes", node, {"metadata": {"annotations": {LOST: "true"}}})
    screen.say(f"rack {rack} goes dark: {len(nodes)} nodes, {lost} pods of {cast.TRAINING}")
    left = cast.TRAINERS - lost
    await stage.until(
        "the lost pods are replaced",
        lambda: stage.running(cast.TRAINING) == left and len(stage.pods(cast.TRAINING)) == cast.TRAINERS,
    )
    group = _group(stage)
    await stage.until("the replacements get their verdict", lambda: bool(_sentence(stage, group)))
    screen.say(f"{left} pods run on, {lost} replacements wait")
    screen.say(broken(_of_the_job(stage, _sentence(stage, group)), 0))


async def _go_on_smaller(stage: Stage, screen: Screen) -> None:
    smaller = {"spec": {"scheduling": {"schedulingPolicy": {"gang": {"minCount": cast.SMALLER}}}}}
    before = stage.bound(cast.TRAINING)
    stage.patch("jobs", cast.TRAINING, smaller)
    screen.say(f"minCount of {cast.TRAINING} is lowered from {cast.TRAINERS} to {cast.SMALLER}")
    took = await stage.until("replacements are placed", lambda: stage.bound(cast.TRAINING) > before)
    await stage.cluster.loop.settle()
    bound = stage.bound(cast.TRAINING)
    await stage.until("replacements run", lambda: stage.running(cast.TRAINING) == bound)
    screen.say(f"the job goes on with {bound} of {cast.TRAINERS} pods ({took:.2f} s)")


def _survivors(stage: Stage, screen: Screen, before: dict[str, Life]) -> bool:
    """Whether every pod that was there before and still is has kept its uid and restart count."""
    after = stage.lives(cast.TRAINING)
    kept = [name for name in after if name in before]
    same = sum(after[name] == before[name] for name in kept)
    screen.say(f"{same} of {len(kept)} surviving pods have the same uid and restart count as before the loss")
    return same == len(kept) >= cast.SMALLER


def _group(stage: Stage) -> str:
    """The PodGroup that the Job controller made for the training job."""
    name: str = stage.pods(cast.TRAINING)[0]["spec"]["schedulingGroup"]["podGroupName"]
    return name


def _sentence(stage: Stage, group: str) -> str:
    """Why the group waits; "" while nothing is known."""
    found = why(stage.cluster.scheduler, stage.cluster.profile, "default", group, "PodGroup")
    return str(found["sentence"]) if found else ""


def _of_the_job(stage: Stage, sentence: str) -> str:
    """The sentence with the Job's name for that of the group which the controller made for it."""
    return sentence.replace(f"PodGroup default/{_group(stage)}", f"Job {cast.TRAINING}")


def in_ranges(names: Iterable[str]) -> str:
    """`filler-1..3, filler-7`: names that end in a number, those that follow each other together."""
    found: list[list[tuple[str, int]]] = []
    for stem, number in sorted((stem, int(number)) for stem, _, number in (name.rpartition("-") for name in names)):
        if found and found[-1][-1] == (stem, number - 1):
            found[-1].append((stem, number))
        else:
            found.append([(stem, number)])
    return ", ".join(f"{some[0][0]}-{some[0][1]}" + (f"..{some[-1][1]}" if len(some) > 1 else "") for some in found)


def broken(sentence: str, margin: int) -> str:
    """A verdict over several lines, broken between its parts; all but the first begin after so many blanks."""
    parts = sentence.replace(" (0/", "\n(0/").replace(": 0/", ":\n0/").replace("; ", ";\n").splitlines()
    lines = [line for part in parts for line in wrap(part, WIDTH, break_long_words=False, break_on_hyphens=False)]
    return ("\n" + " " * margin).join(lines)


def closing(stage: Stage) -> str:
    """What ran where, per rack; what waits, and why."""
    capacity = cast.FLEET.nodes * cast.FLEET.gpus
    parts = cast.PARTS
    rows: list[Sequence[str]] = [
        (rack, f"{count[GPU]}/{capacity}", *(str(count[part] or "") for part in parts))
        for rack, count in stage.per_rack().items()
    ]
    verdicts = [str(entry["sentence"]) for entry in queue(stage.cluster.scheduler, stage.cluster.profile)]
    waiting = [f"  {broken(_of_the_job(stage, verdict), 4)}" for verdict in verdicts]
    return "\n".join(
        [
            "",
            "What runs where (pods per rack)",
            table(("RACK", "ACCELERATORS", *(part.upper() for part in parts)), rows),
            "",
            "What waits, and why",
            *(waiting or ["  nothing"]),
        ]
    )
