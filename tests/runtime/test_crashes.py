"""A durable cluster whose process ends at any moment: 500 random points in `make soak`, ten in `make test`.

The process's end is a copy of the files as they were then, cut off or overwritten with noise somewhere behind the last
commit that had returned: what the system had not been asked to keep may look like anything.
"""

from __future__ import annotations

import asyncio
import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from muster.api.calls import Request, Response
from muster.api.gates import WORKLOAD_AWARE, FeatureGates
from muster.apiserver.durable import record
from muster.apiserver.ownership import dressed
from muster.apiserver.server import ApiServer
from muster.apiserver.watch import Watch
from muster.runtime.changes import Changes
from muster.runtime.clock import SystemClock
from muster.runtime.journal import FILE, Journal
from muster.runtime.keeper import Keeper
from muster.runtime.local import Local

POINTS, QUICK = 500, 10
WRITERS, WATCHERS = 6, 3
WHERE = ("before the transaction", "before the commit", "after the commit", "between")
NAMESPACES = ("default", "alpha", "beta")
PLURAL = "/apis/coordination.k8s.io/v1/namespaces/{}/leases"
EVERY = "/apis/coordination.k8s.io/v1/leases"


class Doomed(Journal):
    """Takes a picture of its files at one moment: what a process that ends there leaves behind."""

    def __init__(self, directory: Path, image: Path, chance: random.Random, history: int) -> None:
        super().__init__(directory, history, step=10)
        self._directory, self._image, self._chance = directory, image, chance
        self._wal = directory / f"{FILE}-wal"
        self.torn = chance.random() < 0.7
        if not self.torn:  # the file is overwritten from its beginning again and again
            self._file.execute("PRAGMA wal_autocheckpoint = 8")
        self._left = chance.randrange(1, 25)
        self._where = chance.choice(WHERE)
        self._safe = self._wal.stat().st_size
        self.ended = False

    def begin(self, records: Any) -> None:
        self._left -= 1
        self._end_at("before the transaction")
        super().begin(records)
        self._end_at("between")

    def commit(self, floor: int = 0) -> None:
        self._end_at("before the commit")
        super().commit(floor)
        self._end_at("after the commit")
        self._safe = self._wal.stat().st_size

    def _end_at(self, here: str) -> None:
        if self._left == 0 and here == self._where and not self.ended:
            self.ended = True
            shutil.copytree(self._directory, self._image)
            if self.torn and self._chance.random() < 0.8:
                self._tear(self._image / f"{FILE}-wal")

    def _tear(self, wal: Path) -> None:
        text = wal.read_bytes()
        cut = self._chance.randint(self._safe, len(text))
        noise = self._chance.randbytes(self._chance.choice((0, 100, 5_000)))
        wal.write_bytes(text[:cut] + noise)


class World:
    """One process's life: a server over a journal, writers that note what was acknowledged."""

    def __init__(self, journal: Journal, seed: str) -> None:
        self.journal = journal
        changes, store = Changes(), journal.load(10_000)
        keeper = Keeper(store, journal, changes)
        self.chance = random.Random(seed)
        made = random.Random(seed + "uids")
        uid = lambda: f"{made.getrandbits(128):032x}"  # noqa: E731
        server = ApiServer(FeatureGates.of(*WORKLOAD_AWARE), new_uid=uid, store=store)
        keeper.flush()
        self.local = Local(server, SystemClock(), changes, keeper)
        self.acknowledged: list[dict[str, Any]] = []
        self.gone: list[tuple[str, int]] = []
        self.seen = store.revision

    @property
    def over(self) -> bool:
        return getattr(self.journal, "ended", False)

    async def call(self, method: str, path: str, body: Any = None, **query: str) -> Response:
        before = self.local.server.revision
        answer = self.local.handle(Request(method, path, query, body, _TYPES.get(method, "application/json")))
        assert isinstance(answer, Response)
        after = self.local.server.revision
        assert await self.local.settle()
        if not self.over and answer.ok:
            self.seen = max(self.seen, after)
            if method == "DELETE" and after != before:
                self.gone.append((path, after))
            elif method in ("POST", "PATCH") and after != before:
                self.acknowledged.append(answer.body)
        return answer

    async def write(self, count: int) -> None:
        for _ in range(count):
            if self.over:
                return
            await self._write_something()
            if self.chance.random() < 0.3:
                await asyncio.sleep(0)

    async def _write_something(self) -> None:
        chance, space = self.chance, self.chance.choice(NAMESPACES)
        name = f"lease-{chance.randrange(12)}"
        path, deed = PLURAL.format(space), chance.random()
        if deed < 0.45:
            meta = {"name": name, "labels": {"n": str(chance.randrange(1 << 30))}}
            answer = await self.call("POST", path, {"metadata": meta, "spec": {"holderIdentity": "me"}})
            if answer.status == 404:
                await self.call("POST", "/api/v1/namespaces", {"metadata": {"name": space}})
        elif deed < 0.75:
            await self.call("PATCH", f"{path}/{name}", {"spec": {"holderIdentity": str(chance.random())}})
        elif deed < 0.9:
            await self.call("DELETE", f"{path}/{name}")
        elif deed < 0.95 and space != "default":
            await self.call("DELETE", f"/api/v1/namespaces/{space}")
        else:
            await self.call("DELETE", path)


_TYPES = {"PATCH": "application/merge-patch+json"}


class Listener:
    """A client that lists, watches, and goes on where it was when its server is there again."""

    def __init__(self) -> None:
        self.heard: list[Any] = []
        self.last = 0
        self.watch: Watch | None = None

    async def connect(self, world: World) -> bool:
        """False: it was told 410."""
        if not self.last:
            listed = await world.call("GET", EVERY)
            self.last = int(listed.body["metadata"]["resourceVersion"])
            self.begun = self.last
        query = {"watch": "true", "resourceVersion": str(self.last)}
        answer = world.local.handle(Request("GET", EVERY, query))
        assert await world.local.settle()
        if isinstance(answer, Response):
            assert answer.status == 410
            return False
        self.watch = answer
        return True

    def listen(self) -> None:
        assert self.watch is not None
        for event in self.watch.poll():
            self.heard.append(event)
            self.last = event.revision


async def listening(world: World, listeners: list[Listener]) -> None:
    with world.local.changes.listening() as bell:
        while True:
            await bell.wait()
            bell.clear()
            if not world.over:
                for listener in listeners:
                    listener.listen()


async def live(world: World, listeners: list[Listener], count: int) -> None:
    watching = asyncio.create_task(listening(world, listeners))
    await asyncio.gather(*(world.write(count) for _ in range(WRITERS)))
    watching.cancel()
    if not world.over:
        for listener in listeners:
            listener.listen()


def records(world: World) -> dict[int, Any]:
    """All that the file has, by revision."""
    return {one.revision: one for one in world.journal._records()}


async def crash(directory: Path, seed: int) -> None:
    chance = random.Random(seed)
    history = 10_000 if seed % 5 else 20
    image = directory / "image"
    first = World(Doomed(directory / "first", image, chance, history), f"{seed}-1")
    listeners = [Listener() for _ in range(WATCHERS)]
    for listener in listeners:
        assert await listener.connect(first)
    await live(first, listeners, 400)
    assert first.over, "the load was too small to reach the point"
    await first.local.keeper.close()

    second = World(Journal(image, history, step=10), f"{seed}-2")
    assert second.local.server.revision >= max(first.seen, *(listener.last for listener in listeners))
    kept = records(second)
    assert_kept(first, second, kept)
    assert_whole(second)
    told = [len(listener.heard) for listener in listeners]
    went_on = [await listener.connect(second) for listener in listeners]
    start = second.local.server.revision
    await live(second, [one for one, on in zip(listeners, went_on, strict=True) if on], 5)
    assert all(int(body["metadata"]["resourceVersion"]) > start for body in second.acknowledged)
    after = kept | records(second)
    for listener, before, on in zip(listeners, told, went_on, strict=True):
        assert on or history == 20
        if on:
            assert_heard(listener, after, before, whole=history != 20)
    await second.local.keeper.close()


def assert_kept(first: World, second: World, kept: dict[int, Any]) -> None:
    """Every acknowledged version is in the file, or a later one of the same object, or its removal."""
    floor = second.journal.compacted
    for body in first.acknowledged:
        revision = int(body["metadata"]["resourceVersion"])
        if revision > floor:
            assert kept[revision].name == body["metadata"]["name"]
            if kept[revision].body is not None:
                assert body["metadata"]["uid"].encode() in kept[revision].body
    for path, revision in first.gone:
        if revision > floor and "/leases/" in path:
            assert kept[revision].body is None and kept[revision].name == path.rpartition("/")[2]


def assert_whole(world: World) -> None:
    """No object without its namespace, no call of which only a part is there."""
    store = world.local.server.store
    spaces = {raw["metadata"]["name"] for raw in store.all("namespaces")}
    for raw in store.all("leases"):
        assert raw["metadata"]["namespace"] in spaces
        assert {"uid", "creationTimestamp", "resourceVersion"} <= raw["metadata"].keys() and "spec" in raw


def assert_heard(listener: Listener, kept: dict[int, Any], before: int, whole: bool) -> None:
    """Each change once, in order, as the file has it; `whole`: none is missing."""
    revisions = [event.revision for event in listener.heard]
    assert revisions == sorted(set(revisions))
    for event in listener.heard:
        one = kept.get(event.revision)
        assert one is not None or not whole, f"heard of revision {event.revision}, which the crash has erased"
        if one is not None:
            assert one.name == event.object["metadata"]["name"]
            assert (one.body is None) == (event.type == "DELETED")
    if whole:
        last = max(kept)
        due = [r for r in sorted(kept) if listener.begun < r <= last and kept[r].resource == "leases"]
        assert revisions == due


@pytest.mark.parametrize(
    "point", [pytest.param(n, marks=[pytest.mark.soak] if n >= QUICK else []) for n in range(POINTS)]
)
def test_nothing_acknowledged_is_lost_wherever_the_process_ends(tmp_path, point):
    asyncio.run(crash(tmp_path, point))


def test_records_make_the_same_store_again(tmp_path):
    """Whatever was written, with owners, comes back equal, and so does what comes of writing on."""

    async def run() -> None:
        world = World(Journal(tmp_path / "data"), "same")
        await world.write(300)
        await world.local.keeper.close()
        again = World(Journal(tmp_path / "data"), "same")
        for resource in ("leases", "namespaces"):
            here, there = (sorted(map(_shown, one.local.server.store.all(resource))) for one in (world, again))
            assert here == there and here
        await again.local.keeper.close()

    asyncio.run(run())


def _shown(raw: Any) -> str:
    return json.dumps(dressed(raw), sort_keys=True)


def test_a_change_becomes_a_record_of_the_whole_object(tmp_path):
    async def run() -> None:
        world = World(Journal(tmp_path / "data"), "one")
        world.local.handle(Request("POST", PLURAL.format("default"), {}, {"metadata": {"name": "one"}}))
        (change,) = world.local.server.store.outbox or ()
        made = record(change)
        assert (made.resource, made.namespace, made.name, made.supersedes) == ("leases", "default", "one", None)
        assert b'"one"' in (made.body or b"") and b"managedFields" not in (made.body or b"")
        await world.local.keeper.close()

    asyncio.run(run())
