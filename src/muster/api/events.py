"""events.k8s.io/v1: the Events of v1 by other names. One object is stored, in the form of v1, and seen through both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol, runtime_checkable

from muster.api.core import EventSource, ObjectReference
from muster.api.kind import Kind, Raw
from muster.api.meta import ObjectMeta, Part

API_VERSION = "events.k8s.io/v1"
NAMES: Mapping[str, str] = MappingProxyType(
    {
        "message": "note",
        "involvedObject": "regarding",
        "reportingComponent": "reportingController",
        "source": "deprecatedSource",
        "firstTimestamp": "deprecatedFirstTimestamp",
        "lastTimestamp": "deprecatedLastTimestamp",
        "count": "deprecatedCount",
    }
)
"""What v1 calls it, and what events.k8s.io calls it; all else has the same name."""
_BACK = {new: old for old, new in NAMES.items()}


class EventSeries(Part, frozen=True):
    count: int = 0
    last_observed_time: str | None = None


class Event(Part, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    regarding: ObjectReference = ObjectReference()
    related: ObjectReference | None = None
    event_time: str | None = None
    series: EventSeries | None = None
    reporting_controller: str = ""
    reporting_instance: str = ""
    action: str = ""
    reason: str = ""
    note: str = ""
    type: str = ""
    deprecated_source: EventSource = EventSource()
    deprecated_first_timestamp: str | None = None
    deprecated_last_timestamp: str | None = None
    deprecated_count: int = 0


@runtime_checkable
class _Owned(Protocol):
    def entries(self, raw: Raw) -> object: ...


@dataclass(frozen=True, slots=True)
class EventKind(Kind):
    """A row of the catalog whose objects are stored as those of v1."""

    def shown(self, raw: Raw) -> Raw:
        owned = raw["metadata"].get("managedFields")
        if isinstance(owned, _Owned):
            owned.entries(raw)  # the server makes them out when somebody looks: by the names that are stored
        return {NAMES.get(key, key): value for key, value in raw.items()} | {"apiVersion": API_VERSION}

    def kept(self, raw: dict[str, Any]) -> dict[str, Any]:
        return stored(raw)


def stored(raw: Raw) -> dict[str, Any]:
    """An event of either form as v1 has it."""
    return {_BACK.get(key, key): value for key, value in raw.items()} | {"apiVersion": "v1"}
