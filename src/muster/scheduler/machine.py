"""The scheduling machine: watch events in, bindings, conditions, events and decisions to take out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from muster.api.gates import FeatureGates
from muster.api.instant import Instant
from muster.engine.profile import Profile
from muster.model.diagnosis import Diagnosis
from muster.model.records import EntryKey
from muster.scheduler.effects import SchedulerEffect
from muster.scheduler.events import SchedulerEvent


class Scheduler:
    """A `Machine` that also emits `Decide` and takes `Decided`, `Pause` and `Resume`.

    Args:
        profile: the plugins and weights that `decide` is called with.
        scheduler_name: pods that name another scheduler are counted and otherwise left alone.
        gates: GenericWorkload off: `schedulingGroup` is ignored and PodGroups are not watched.
        levels: topology label keys, widest first, that fix the storage order of nodes.
    """

    def __init__(
        self,
        profile: Profile,
        *,
        scheduler_name: str = "default-scheduler",
        gates: FeatureGates | None = None,
        levels: Sequence[str] = (),
    ) -> None: ...

    @property
    def resources(self) -> tuple[str, ...]:
        """Watched resources, in the order in which they must be listed first."""

    @property
    def diagnoses(self) -> Mapping[EntryKey, Diagnosis]:
        """Why each waiting entry waits. Entries that are about to be decided, or are bound, have none."""

    def idle(self, now: Instant) -> bool:
        """Whether nothing is under way or can go on at `now` without a new event: no decision, write or due timer."""

    def handle(self, event: SchedulerEvent, now: Instant) -> Sequence[SchedulerEffect]: ...
