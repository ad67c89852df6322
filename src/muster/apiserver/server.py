"""The embedded API server: one pure request handler, used in process and over HTTP."""

from __future__ import annotations

from collections.abc import Callable

from muster.api.calls import Request, Response
from muster.api.gates import FeatureGates
from muster.api.instant import Instant
from muster.apiserver.storage import Store
from muster.apiserver.watch import Watch

HISTORY = 50_000
"""Changes of each resource that a watch may be behind before it expires."""


class ApiServer:
    """A Kubernetes API: storage, validation, admission, watches. Pure: time and uids are arguments.

    Args:
        gates: feature gates; kinds behind one that is off are not served.
        new_uid: makes the uid of a new object, different at each call; suffixes for generateName are drawn from it too.
        priority_admission: resolve priority classes (V34). Off, integer priorities are taken as they are.
        history: how many changes of each resource are kept for watches.
        started: creationTimestamp of the namespaces and priority classes that every cluster has.
    """

    def __init__(
        self,
        gates: FeatureGates,
        *,
        new_uid: Callable[[], str],
        priority_admission: bool = True,
        history: int = HISTORY,
        started: Instant = 0,
    ) -> None:
        self.gates = gates
        self.new_uid = new_uid
        self.priority_admission = priority_admission
        self.refuse_binding: set[str] = set()
        """Pods, as "name" in the namespace default or "namespace/name", whose binding is refused with 403: for tests."""
        self.store = Store(history)

    @property
    def revision(self) -> int:
        """Moves by one with every write, and only then."""
        return self.store.revision

    def handle(self, request: Request, now: Instant) -> Response | Watch:
        """Carries out one call. Never raises: every failure is a Response whose body is a Status."""
        raise LookupError

    def compact(self, revision: int | None = None) -> None:
        """Forgets changes up to a revision (None: all): watches that have not seen them expire, as after compaction."""
        self.store.compact(revision)
