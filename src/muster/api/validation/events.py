"""Rules for Events: few for those of v1, strict ones for those of events.k8s.io/v1."""

from __future__ import annotations

from muster.api import core
from muster.api.events import Event
from muster.api.validation import checks, names
from muster.api.validation.checks import Errors
from muster.api.validation.field import ROOT, Path
from muster.api.validation.small import rules

LONGEST, LONGEST_NOTE = 128, 1024
TYPES = ("Normal", "Warning")
_ANYWHERE = ("default", "kube-system")
"""Namespaces of events about what is in none."""


def _core(new: core.Event, old: core.Event | None) -> Errors:
    about, space = new.involved_object.namespace, new.metadata.namespace
    at = ROOT / "involvedObject" / "namespace"
    if new.event_time is None:
        differs = about and space and about != space
        return [at.invalid(about, "does not match event.namespace")] if differs else []
    fields = (
        (new.reporting_component, "reportingComponent"),
        (new.reporting_instance, "reportingInstance"),
        (new.action, "action"),
        (new.reason, "reason"),
    )
    return _placed(about, space, at) + _told(fields, new.message, ROOT / "message")


def _events(new: Event, old: Event | None) -> Errors:
    """What is told is not told again: an update only counts on."""
    about, space = new.regarding.namespace, new.metadata.namespace
    fields = (
        (new.reporting_controller, "reportingController"),
        (new.reporting_instance, "reportingInstance"),
        (new.action, "action"),
        (new.reason, "reason"),
    )
    errors: Errors = []
    if new.event_time is not None:
        errors += _placed(about, space, ROOT / "regarding" / "namespace") + _told(fields, new.note, ROOT / "note")
    if new.series is not None and (old is None or new.series != old.series):
        if new.series.count < 2:
            errors.append((ROOT / "series" / "count").invalid(new.series.count, "should be at least 2"))
        if new.series.last_observed_time is None:
            errors.append((ROOT / "series" / "lastObservedTime").required())
    if old is not None:
        kept = [name for name in Event.__struct_fields__ if name not in ("metadata", "series")]
        return errors + checks.immutable_fields(new, old, ROOT, kept)
    if new.event_time is None:
        errors.append((ROOT / "eventTime").required())
    errors += checks.one_of(new.type, ROOT / "type", TYPES)
    return errors + _unset(new)


def _unset(new: Event) -> Errors:
    """Fields that only events of v1 have."""
    given = (
        (new.deprecated_source.component or new.deprecated_source.host, "deprecatedSource"),
        (new.deprecated_first_timestamp, "deprecatedFirstTimestamp"),
        (new.deprecated_last_timestamp, "deprecatedLastTimestamp"),
        (new.deprecated_count, "deprecatedCount"),
    )
    return [(ROOT / name).invalid(value, "needs to be unset") for value, name in given if value]


def _placed(about: str, space: str, path: Path) -> Errors:
    if about == space or (not about and space in ("", *_ANYWHERE)) or not space:
        return []
    return [path.invalid(about, "does not match event.namespace")]


def _told(fields: tuple[tuple[str, str], ...], note: str, path: Path) -> Errors:
    """Who says it, what was done and why; a note that is not too long."""
    errors: Errors = []
    for value, name in fields:
        if not value:
            errors.append((ROOT / name).required())
        elif name in ("reportingController", "reportingComponent"):
            errors += checks.formatted(value, ROOT / name, names.label_key)
        elif len(value) > LONGEST:
            errors.append((ROOT / name).invalid("", f"can have at most {LONGEST} characters"))
    if len(note) > LONGEST_NOTE:
        errors.append(path.invalid("", f"can have at most {LONGEST_NOTE} characters"))
    return errors


event = rules(core.Event, _core)
events_event = rules(Event, _events)
