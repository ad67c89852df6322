"""The file of a durable cluster: whose it is, what it keeps, what happens when the disk is full."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest

from muster.api.calls import Request, Response
from muster.api.gates import WORKLOAD_AWARE, FeatureGates
from muster.apiserver.server import ApiServer
from muster.apiserver.watch import Watch
from muster.runtime import keeper as keeping
from muster.runtime.changes import Changes
from muster.runtime.clock import SystemClock
from muster.runtime.journal import FILE, Journal, Unusable
from muster.runtime.keeper import Keeper
from muster.runtime.local import Local
from muster.runtime.wiring import Setup, alone

LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"


def opened(journal: Journal) -> Local:
    changes, store = Changes(), journal.load(10_000)
    keeper = Keeper(store, journal, changes)
    numbers = iter(range(1 << 30))
    server = ApiServer(FeatureGates.of(*WORKLOAD_AWARE), new_uid=lambda: str(next(numbers)), store=store)
    keeper.flush()
    return Local(server, SystemClock(), changes, keeper)


def create(local: Local, name: str, holder: str = "me") -> Response:
    answer = local.handle(
        Request("POST", LEASES, body={"metadata": {"name": name}, "spec": {"holderIdentity": holder}})
    )
    assert isinstance(answer, Response)
    return answer


def touch(local: Local, name: str, holder: str) -> Response:
    body = {"spec": {"holderIdentity": holder}}
    answer = local.handle(Request("PATCH", f"{LEASES}/{name}", {}, body, "application/merge-patch+json"))
    assert isinstance(answer, Response) and answer.ok
    return answer


def names(local: Local) -> list[str]:
    return [raw["metadata"]["name"] for raw in local.server.store.all("leases")]


def watch(local: Local, revision: int) -> Watch | Response:
    return local.handle(Request("GET", LEASES, {"watch": "true", "resourceVersion": str(revision)}))


def refused(directory: Path) -> str:
    with pytest.raises(Unusable) as found:
        Journal(directory)
    return str(found.value)


def test_a_directory_with_other_files_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("dear")
    assert "has other files in it" in refused(tmp_path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_database_of_another_program_is_left_alone(tmp_path):
    with sqlite3.connect(tmp_path / FILE) as file:
        file.execute("CREATE TABLE photos (name)")
    file.close()
    before = (tmp_path / FILE).read_bytes()
    assert "another program" in refused(tmp_path)
    assert (tmp_path / FILE).read_bytes() == before


def test_a_file_that_is_no_database_is_left_alone(tmp_path):
    (tmp_path / FILE).write_bytes(b"no database" * 1_000)
    assert "no database of muster" in refused(tmp_path)


def test_a_file_of_a_newer_version_says_so(tmp_path):
    Journal(tmp_path / "data").close()
    file = sqlite3.connect(tmp_path / "data" / FILE)
    file.execute("PRAGMA user_version = 99")
    file.close()
    assert "newer muster (version 99" in refused(tmp_path / "data")


def test_a_second_process_is_told_that_the_directory_is_in_use(tmp_path):
    journal = Journal(tmp_path / "data")
    assert "in use by another muster" in refused(tmp_path / "data")
    journal.close()
    Journal(tmp_path / "data").close()


def test_a_file_or_a_missing_parent_is_no_directory(tmp_path):
    (tmp_path / "file").write_text("")
    assert "is a file" in refused(tmp_path / "file")
    assert "there is no directory" in refused(tmp_path / "no" / "where")


def test_a_damaged_file_is_not_half_read(tmp_path):
    journal = Journal(tmp_path / "data")
    opened(journal)
    journal._file.execute("UPDATE changes SET supersedes = 77 WHERE revision = 2")
    with pytest.raises(Unusable, match="is damaged"):
        journal.load(10)
    journal.close()


def test_nobody_outside_hears_of_a_change_before_it_is_committed(tmp_path):
    async def run() -> None:
        local = opened(Journal(tmp_path / "data"))
        stream = watch(local, local.server.revision)
        assert isinstance(stream, Watch)
        create(local, "a")
        assert not stream.poll() and stream.bookmark().revision < local.server.revision
        assert await local.settle()
        assert [event.object["metadata"]["name"] for event in stream.poll()] == ["a"]
        assert local.keeper is not None
        await local.keeper.close()

    asyncio.run(run())


def test_a_watch_that_lists_ends_its_list_with_the_revision_that_it_is_of(tmp_path):
    async def run() -> None:
        local = opened(Journal(tmp_path / "data"))
        create(local, "a")
        query = {"watch": "true", "sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        stream = local.handle(Request("GET", LEASES, {**query, "allowWatchBookmarks": "true"}))
        assert isinstance(stream, Watch)
        create(local, "b")
        assert await local.settle()
        made, bookmark, later = stream.poll()
        assert made.object["metadata"]["resourceVersion"] == bookmark.object["metadata"]["resourceVersion"]
        assert later.object["metadata"]["name"] == "b" and later.revision == bookmark.revision + 1
        assert local.keeper is not None
        await local.keeper.close()

    asyncio.run(run())


def test_compaction_bounds_the_file_and_answers_older_watches_with_410(tmp_path):
    async def run() -> None:
        local = opened(Journal(tmp_path / "data", history=100, step=50))
        create(local, "kept")
        create(local, "removed")
        local.handle(Request("DELETE", f"{LEASES}/removed"))
        began = local.server.revision
        for number in range(1_000):
            touch(local, "kept", str(number))
            if number % 10 == 0:
                assert await local.settle()
        assert local.keeper is not None
        await local.keeper.close()

        journal = Journal(tmp_path / "data", history=100, step=50)
        (rows,) = journal._file.execute("SELECT count(*) FROM changes").fetchone()
        again = opened(journal)
        assert rows < 200 and again.server.revision == began + 1_000
        assert names(again) == ["kept"]
        old = watch(again, began)
        assert isinstance(old, Response) and old.status == 410
        recent = watch(again, began + 950)
        assert isinstance(recent, Watch) and len(recent.poll()) == 50
        unseen = again.handle(
            Request("GET", "/api/v1/nodes", {"watch": "true", "resourceVersion": str(began)}),
        )
        assert isinstance(unseen, Response) and unseen.status == 410
        assert again.keeper is not None
        await again.keeper.close()

    asyncio.run(run())


def test_compaction_bounds_the_bytes_of_the_file(tmp_path):
    """What is written over and over takes no more room after many rounds than after a few, large objects included."""
    file, sizes = tmp_path / "data" / "muster.db", []

    async def run(turns: int) -> None:
        local = opened(Journal(tmp_path / "data", history=50, step=25))
        for number in range(turns):
            name = f"short-lived-{number}"
            meta = {"name": name, "annotations": {"x": str(number % 10) * 20_000}}
            assert local.handle(Request("POST", LEASES, body={"metadata": meta})).status == 201
            assert local.handle(Request("DELETE", f"{LEASES}/{name}")).status == 200
            if number % 10 == 0:
                assert await local.settle()
        assert local.keeper is not None
        await local.keeper.close()

    for turns in (100, 100, 400):
        asyncio.run(run(turns))
        sizes.append(file.stat().st_size)
    assert sizes[-1] <= 1.2 * sizes[0] < 5_000_000


def test_a_revision_is_not_used_again_after_its_last_trace_was_compacted(tmp_path):
    async def run() -> None:
        local = opened(Journal(tmp_path / "data"))
        create(local, "a")
        local.handle(Request("DELETE", f"{LEASES}/a"))
        assert await local.settle()
        last = local.server.revision
        assert local.keeper is not None
        journal = local.keeper._journal
        journal.begin([])
        journal.commit(last)
        await local.keeper.close()
        again = opened(Journal(tmp_path / "data"))
        assert again.server.revision == last
        assert int(create(again, "a").body["metadata"]["resourceVersion"]) == last + 1
        assert await again.settle() and again.keeper is not None
        await again.keeper.close()

    asyncio.run(run())


def test_a_full_disk_refuses_writes_serves_reads_and_takes_writes_again_when_there_is_room(tmp_path, monkeypatch):
    monkeypatch.setattr(keeping, "LOOK_EVERY", 0.0)

    async def run() -> None:
        journal = Journal(tmp_path / "data")
        local = opened(journal)
        anew: list[str] = []
        assert local.keeper is not None
        local.keeper.begin_anew = lambda: anew.append(local.keeper.full if local.keeper else "")
        create(local, "there")
        assert await local.settle()
        safe = local.server.revision
        stream = watch(local, safe)
        (pages,) = journal._file.execute("PRAGMA page_count").fetchone()
        journal._file.execute(f"PRAGMA max_page_count = {pages}")
        for number in range(50):
            create(local, f"lost-{number}", "x" * 4_000)
        touch(local, "there", "changed")
        local.handle(Request("DELETE", f"{LEASES}/there"))
        assert not await local.settle()
        await asyncio.sleep(0)
        assert anew == ["database or disk is full"]
        assert names(local) == ["there"] and local.server.revision == safe
        (raw,) = local.server.store.all("leases")
        assert raw["spec"]["holderIdentity"] == "me"
        assert isinstance(stream, Watch) and not stream.poll()
        answer = create(local, "refused")
        assert answer.status == 507 and answer.body["reason"] == "InsufficientStorage"
        assert isinstance(read := local.handle(Request("GET", LEASES)), Response) and read.ok

        journal._file.execute("PRAGMA max_page_count = 1000000")
        create(local, "looks")
        await asyncio.sleep(0)
        assert anew[-1] == ""
        assert create(local, "late").status == 201 and await local.settle()
        assert [event.object["metadata"]["name"] for event in stream.poll()] == ["late"]
        await local.keeper.close()
        again = opened(Journal(tmp_path / "data"))
        assert names(again) == ["there", "late"]
        assert again.keeper is not None
        await again.keeper.close()

    asyncio.run(run())


def test_machines_begin_anew_when_what_they_saw_was_taken_back(tmp_path):
    """They know of changes before the disk does; when it refuses those, each starts from what is there."""

    async def run() -> None:
        server = alone(Setup(FeatureGates.of(*WORKLOAD_AWARE), data=tmp_path / "data"), ("jobs", "collector"))
        local = server.local
        assert local.keeper is not None
        driving = asyncio.create_task(server.loop.run())
        await server.loop.settle()
        await local.settle()
        journal = local.keeper._journal
        (pages,) = journal._file.execute("PRAGMA page_count").fetchone()
        journal._file.execute(f"PRAGMA max_page_count = {pages}")
        job = {"metadata": {"name": "big"}, "spec": {"parallelism": 40, "completions": 40, "template": TEMPLATE}}
        answer = local.handle(Request("POST", "/apis/batch/v1/namespaces/default/jobs", body=job))
        assert isinstance(answer, Response) and answer.ok
        await server.loop.settle()
        while not local.keeper.full:
            await asyncio.sleep(0.01)
        await server.loop.settle()
        assert len(list(local.server.store.all("pods"))) < 40
        journal._file.execute("PRAGMA max_page_count = 1000000")
        while local.keeper.full:
            local.keeper._looked = 0.0
            local.keeper.look_for_room()
            await asyncio.sleep(0.01)
        local.handle(Request("POST", "/apis/batch/v1/namespaces/default/jobs", body=job))
        await server.loop.settle()
        assert await local.settle()
        assert len(list(local.server.store.all("pods"))) == 40
        server.loop.stop()
        server.worker.close()
        await driving
        await local.keeper.close()

    asyncio.run(run())


TEMPLATE = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i" * 900}]}}
