from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from aiohttp.http_exceptions import BadHttpMessage, BadStatusLine
from aiohttp.web import RequestPayloadError

from muster.runtime.telemetry import Log, log_to_stderr

HTTP = "aiohttp.server"


@pytest.fixture
def loggers() -> Iterator[None]:
    """The loggers of the process, put back as they were."""
    kept = [(logger, dict(vars(logger))) for logger in (logging.getLogger("muster"), logging.getLogger(HTTP))]
    yield
    for logger, fields in kept:
        vars(logger).update(fields)
        logger.manager._clear_cache()  # type: ignore[attr-defined]


def said_of(failure: Exception, verbose: bool, capsys: pytest.CaptureFixture[str]) -> str:
    """What standard error has after the HTTP server has met `failure`."""
    log_to_stderr(verbose=verbose)
    logging.getLogger(HTTP).error("Error handling request from %s", "127.0.0.1", exc_info=failure)
    return capsys.readouterr().err


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


@pytest.mark.parametrize(
    "failure", [BadStatusLine("GET / HTTP/9.9\n^"), BadHttpMessage("no"), RequestPayloadError("no")]
)
@pytest.mark.usefixtures("loggers")
def test_what_a_client_sent_wrong_is_no_failure_of_the_server(
    failure: Exception, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said_of(failure, False, capsys) == ""
    curious = said_of(failure, True, capsys)
    assert "malformed request" in curious and "Traceback" not in curious and len(curious.splitlines()) == 1


@pytest.mark.usefixtures("loggers")
def test_a_failure_of_the_server_is_still_told_with_its_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    told = said_of(KeyError("ours"), False, capsys)
    assert "Error handling request" in told and "KeyError: 'ours'" in told
