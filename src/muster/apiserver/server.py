"""The embedded API server: one pure request handler, used in process and over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from muster.api import catalog
from muster.api.calls import Request, Response
from muster.api.gates import FeatureGates
from muster.api.instant import Instant, to_time
from muster.apiserver import admission_chain, deletion, priority, rest, status
from muster.apiserver.asking import Answerer, Asking, Heard, Paused, nobody
from muster.apiserver.state import RESERVED_NAMESPACES, State
from muster.apiserver.storage import Store
from muster.apiserver.watch import Watch

HISTORY = 50_000
"""Changes of each resource that a watch may be behind before it expires."""


MOST_TURNS = 100
"""Rounds of questions to webhooks that one request may need."""
_READING = frozenset({"GET", "HEAD"})


class ApiServer:
    """A Kubernetes API: storage, validation, admission, watches. Pure: time and uids are arguments.

    Args:
        gates: feature gates; kinds behind one that is off are not served.
        new_uid: makes the uid of a new object, different at each call; suffixes for generateName are drawn from it too.
        priority_admission: resolve priority classes (V34). Off, integer priorities are taken as they are.
        history: how many changes of each resource are kept for watches.
        started: creationTimestamp of the namespaces and priority classes that every cluster has.
        store: where a cluster of before goes on; None: an empty one that keeps `history` changes.
    """

    def __init__(
        self,
        gates: FeatureGates,
        *,
        new_uid: Callable[[], str],
        priority_admission: bool = True,
        history: int = HISTORY,
        started: Instant = 0,
        store: Store | None = None,
    ) -> None:
        self.gates = gates
        self.store = Store(history) if store is None else store
        self._state = State(self.store, gates, new_uid, priority_admission)
        self.answers: Answerer = nobody
        """Answers the questions to webhooks of requests that are handled at once: a table, in tests and simulations."""
        _furnish(self.store, new_uid, started)
        self.store.quotas.recount()
        self.store.quotas.settle()

    @property
    def revision(self) -> int:
        """Moves by one with every write, and only then."""
        return self.store.revision

    @property
    def refuse_binding(self) -> set[str]:
        """Pods ("namespace/name", or "name" in the namespace default) whose binding is refused with 403: for tests."""
        return self._state.refuse_binding

    @refuse_binding.setter
    def refuse_binding(self, pods: set[str]) -> None:
        self._state.refuse_binding = pods

    def handle(self, request: Request, now: Instant) -> Response | Watch:
        """Carries out one call. Never raises: every failure is a Response whose body is a Status."""
        made = self.begin(request, now)
        while isinstance(made, Paused):
            made = self.resume(made, [self.answers(ask) for ask in made.asks])
        return made

    def begin(self, request: Request, now: Instant) -> Response | Watch | Paused:
        """Like `handle`, for those who call webhooks themselves: Paused where answers are needed first."""
        if request.method not in _READING and admission_chain.hooked(self._state):
            return self.resume(Paused(request, now), ())
        made = self._carry_out(request, now)
        assert not isinstance(made, Asking)
        return made

    def resume(self, paused: Paused, answers: Sequence[Heard]) -> Response | Watch | Paused:
        """Goes on with a request, with one answer for each of its `asks`."""
        paused.heard |= {ask.key: heard for ask, heard in zip(paused.asks, answers, strict=True)}
        paused.turns += 1
        state, new_uid, drawn = self._state, self._state.new_uid, iter(tuple(paused.uids))

        def draw() -> str:
            again = next(drawn, None)
            if again is None:
                again = new_uid()
                paused.uids.append(again)
            return again

        state.new_uid, state.heard = draw, paused.heard
        try:
            made = self._carry_out(paused.request, paused.now)
        finally:
            state.new_uid, state.heard = new_uid, {}
        if not isinstance(made, Asking):
            return made
        if paused.turns > MOST_TURNS:
            why = "the object changed each time that its webhooks had answered; please try again"
            return status.Failure(409, "Conflict", why).response
        paused.asks = made.asks
        return paused

    def _carry_out(self, request: Request, now: Instant) -> Response | Watch | Asking:
        try:
            return rest.answer(self._state, request, now)
        except status.Failure as failure:
            return failure.response
        except Asking as asking:
            return asking
        except Exception as bug:  # one broken call must not end the server
            return status.internal_error(f"{type(bug).__name__}: {bug}").response
        finally:
            self.store.quotas.settle()

    def compact(self, revision: int | None = None) -> None:
        """Forgets changes up to a revision (None: all): watches that have not seen them expire, as after compaction."""
        self.store.compact(revision)


def _furnish(store: Store, new_uid: Callable[[], str], started: Instant) -> None:
    """What every cluster has from the start."""
    for name in RESERVED_NAMESPACES:
        if store.get(catalog.NAMESPACE.plural, "", name) is not None:
            continue
        made = _born(catalog.NAMESPACE, name, new_uid(), started)
        labels = {"kubernetes.io/metadata.name": name}
        made["metadata"]["labels"] = labels
        store.put(catalog.NAMESPACE.plural, "", name, made | deletion.first_namespace_parts(made))
    for name, value in priority.SYSTEM.items():
        if store.get(catalog.PRIORITY_CLASS.plural, "", name) is not None:
            continue
        made = _born(catalog.PRIORITY_CLASS, name, new_uid(), started)
        made["metadata"]["generation"] = 1
        why = {"description": "Used for system critical pods.", "preemptionPolicy": priority.PREEMPT}
        store.put(catalog.PRIORITY_CLASS.plural, "", name, made | {"value": value} | why)


def _born(kind: catalog.Kind, name: str, uid: str, started: Instant) -> dict[str, dict[str, object]]:
    meta = {"name": name, "uid": uid, "creationTimestamp": to_time(started)}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta}  # type: ignore[dict-item]
