"""What a reflector tells is, in the end, what the server has; on the way nothing is told twice, and nothing is lost."""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from muster.api.calls import Response
from muster.api.machine import ADDED, DELETED, Listed
from muster.api.object import Object
from muster.runtime.remote.reflector import PAGE, Follow, List, Reflector, Rest

GONE = Response(410, {"kind": "Status", "code": 410, "reason": "Expired"})
BUSY = Response(429, {}, {"Retry-After": "7"})
BROKEN = Response(0, {})


class FakeServer:
    """Objects under one revision counter, a log of changes that may be forgotten, and pages of two."""

    def __init__(self) -> None:
        self.revision = 10
        self.objects: dict[str, dict[str, Any]] = {}
        self.log: list[tuple[int, str, dict[str, Any]]] = []
        self.kept_from = 10
        self._lists: dict[str, tuple[list[dict[str, Any]], int]] = {}
        self._uid = 0

    def write(self, name: str) -> None:
        self.revision += 1
        known = self.objects.get(name)
        if known is None:
            self._uid += 1
        uid = known["metadata"]["uid"] if known else f"u{self._uid}"
        made = {"metadata": {"name": name, "namespace": "d", "uid": uid, "resourceVersion": str(self.revision)}}
        self.objects[name] = made
        self.log.append((self.revision, "MODIFIED" if known else "ADDED", made))

    def delete(self, name: str) -> None:
        if name in self.objects:
            self.revision += 1
            gone = self.objects.pop(name)
            last = {"metadata": {**gone["metadata"], "resourceVersion": str(self.revision)}}
            self.log.append((self.revision, "DELETED", last))

    def forget(self) -> None:
        self.log.clear()
        self.kept_from = self.revision
        self._lists.clear()

    def page(self, step: List) -> tuple[list[dict[str, Any]], int, str] | None:
        if not step.token:
            rest, revision = list(self.objects.values()), self.revision
        elif step.token in self._lists:
            rest, revision = self._lists[step.token]
        else:
            return None
        if not step.limit or len(rest) <= 2:
            return rest, revision, ""
        token = f"t{len(self._lists)}-{self.revision}"
        self._lists[token] = (rest[2:], revision)
        return rest[:2], revision, token

    def since(self, revision: int) -> list[tuple[int, str, dict[str, Any]]] | None:
        return None if revision < self.kept_from else [one for one in self.log if one[0] > revision]


class Reader:
    """A machine's view: a fold over what it is told, that notices what makes no sense."""

    def __init__(self) -> None:
        self.known: dict[str, Object] = {}
        self.listed = 0

    def hear(self, news: list[Any]) -> None:
        for one in news:
            if isinstance(one, Listed):
                self.listed += 1
                self.known = {obj.name: obj for obj in one.objects}
                continue
            known = self.known.get(one.object.name)
            if one.change == DELETED:
                assert known is not None and known.uid == one.object.uid
                del self.known[one.object.name]
            else:
                assert (one.change == ADDED) == (known is None)
                assert known is None or (known.uid == one.object.uid and known.revision != one.object.revision)
                self.known[one.object.name] = one.object


def drive(server: FakeServer, reflector: Reflector, reader: Reader, fault: str, most: int = 10) -> None:
    """One step of the reflector, with a fault in it."""
    step = reflector.step
    if isinstance(step, Rest):
        reflector.rested()
    elif isinstance(step, List):
        found = server.page(step)
        if fault in ("broken", "busy"):
            reflector.list_refused(BROKEN if fault == "broken" else BUSY)
        elif found is None:
            reflector.list_refused(GONE)
        else:
            raws, revision, token = found
            reader.hear(reflector.page([Object(raw) for raw in raws], str(revision), token))
    else:
        watch(server, reflector, reader, fault, most)


def watch(server: FakeServer, reflector: Reflector, reader: Reader, fault: str, most: int) -> None:
    assert isinstance(reflector.step, Follow)
    events = server.since(int(reflector.step.revision))
    if events is None and fault != "late":
        reflector.watch_refused(GONE)
        return
    if fault == "busy":
        reflector.watch_refused(BUSY)
        return
    reflector.watching()
    if events is None:
        reader.hear(reflector.event("ERROR", GONE.body))
        return
    for _, change, raw in events[:most]:
        reader.hear(reflector.event(change, raw))
    if fault == "bookmark" and len(events) <= most:
        bookmark = {"metadata": {"resourceVersion": str(server.revision)}}
        assert reflector.event("BOOKMARK", bookmark) == []
    if fault == "error":
        reader.hear(reflector.event("ERROR", {"code": 500}))
        return
    reflector.watch_ended(failed=fault == "broken", fruitful=bool(events))


ACTS = st.one_of(
    st.tuples(st.sampled_from(["write", "delete"]), st.sampled_from("abcdefgh")),
    st.tuples(st.sampled_from(["again", "forget"]), st.sampled_from("ab")),
    st.tuples(
        st.just("step"), st.sampled_from(["", "", "", "broken", "busy", "late", "bookmark", "error"])
    ),
)  # fmt: skip


@given(acts=st.lists(ACTS, max_size=60), most=st.integers(0, 5))
@settings(max_examples=300, deadline=None)
def test_whatever_fails_on_the_way_the_end_is_what_the_server_has(acts, most):
    server, reflector, reader = FakeServer(), Reflector("pods", Random(1)), Reader()
    for act, what in acts:
        if act == "write":
            server.write(what)
        elif act == "delete":
            server.delete(what)
        elif act == "again":  # another object of the same name
            server.delete(what)
            server.write(what)
        elif act == "forget":
            server.forget()
        else:
            drive(server, reflector, reader, what, most)
        if reflector.synced:
            assert {obj.name: obj.revision for obj in reader.known.values()} == {
                name: obj.revision for (_, name), obj in reflector.objects.items()
            }
    for _ in range(40):
        drive(server, reflector, reader, "", 1000)
    assert {name: obj.raw for name, obj in reader.known.items()} == server.objects
    assert reader.listed == 1, "only the first list is told as a list"


def synced(*names: str) -> tuple[FakeServer, Reflector, Reader]:
    server, reflector, reader = FakeServer(), Reflector("pods", Random(1)), Reader()
    for name in names:
        server.write(name)
    while not isinstance(reflector.step, Follow):
        drive(server, reflector, reader, "")
    return server, reflector, reader


def test_a_new_list_tells_only_what_has_changed():
    server, reflector, _ = synced("a", "b", "c")
    server.delete("a")
    server.write("b")
    server.write("d")
    server.forget()
    reflector.watch_refused(GONE)
    reflector.rested()
    assert isinstance(reflector.step, List)
    news = reflector.page([Object(raw) for raw in server.objects.values()], str(server.revision), "")
    assert [(one.change, one.object.name) for one in news] == [("DELETED", "a"), ("MODIFIED", "b"), ("ADDED", "d")]


def test_the_rest_of_a_list_that_is_not_kept_any_more_is_asked_for_without_pages():
    reflector = Reflector("pods", Random(1))
    reflector.page([], "5", "more")
    assert reflector.step == List(2 * PAGE, "more")
    reflector.list_refused(GONE)
    assert reflector.step == List(0)


def test_a_list_that_is_too_old_at_once_is_not_asked_for_in_a_loop():
    _, reflector, _ = synced("a")
    waits = []
    for _ in range(5):
        reflector.watch_refused(GONE)
        assert isinstance(reflector.step, Rest)
        waits.append(reflector.step.seconds)
        reflector.rested()
        reflector.page([], "5", "")
    assert waits[-1] > 2 * waits[0]


def test_a_server_that_asks_to_wait_is_left_alone_for_so_long():
    reflector = Reflector("pods", Random(1))
    reflector.list_refused(BUSY)
    assert isinstance(reflector.step, Rest) and reflector.step.seconds >= 7


def test_waits_grow_and_are_of_random_length():
    lengths = set()
    for seed in range(5):
        reflector = Reflector("pods", Random(seed))
        waits = []
        for _ in range(6):
            reflector.list_refused(BROKEN)
            assert isinstance(reflector.step, Rest)
            waits.append(reflector.step.seconds)
            reflector.rested()
        assert waits[-1] > 4 * waits[0] and max(waits) <= 60
        lengths.add(waits[0])
    assert len(lengths) == 5


def test_a_bookmark_moves_the_watch_on_and_tells_nothing():
    _, reflector, _ = synced("a")
    assert reflector.event("BOOKMARK", {"metadata": {"resourceVersion": "99"}}) == []
    assert reflector.step == Follow("99")


def test_a_page_that_does_not_come_is_asked_for_again_in_a_smaller_size():
    reflector = Reflector("pods", Random(1))
    for _ in range(5):
        assert isinstance(reflector.step, List)
        reflector.page([], "5", "more")
    assert reflector.step == List(4_000, "more")
    reflector.list_refused(BROKEN)
    reflector.rested()
    assert reflector.step == List(PAGE, "more")
