from __future__ import annotations

import logging

import pytest

from muster.runtime.telemetry import Log


def test_a_line_has_its_fields_as_key_value(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "muster"):
        Log().event("decided", heads=3, why="no room")
    assert caplog.messages == ['decided heads=3 why="no room"']


def test_a_failure_carries_the_error_and_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    try:
        raise ValueError("no such node")
    except ValueError as failure:
        Log().failure("jobs failed", failure)
    assert caplog.messages == ['jobs failed error="ValueError: no such node"']
    assert caplog.records[0].exc_info is not None
