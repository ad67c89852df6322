"""What the process says about itself: one plain line per event, `key=value`, on standard error."""

from __future__ import annotations

import logging
import sys

_ROOT = "muster"
_HTTP = "aiohttp.server"


class Log:
    """Structured lines. `event` is for the curious (debug), `failure` for what must not happen (error)."""

    def __init__(self, part: str = "runtime") -> None:
        self._logger = logging.getLogger(f"{_ROOT}.{part}")

    @property
    def curious(self) -> bool:
        """Whether anybody reads `event` lines."""
        return self._logger.isEnabledFor(logging.DEBUG)

    def event(self, what: str, **fields: object) -> None:
        if self.curious:
            self._logger.debug("%s", _line(what, fields))

    def note(self, what: str, **fields: object) -> None:
        self._logger.info("%s", _line(what, fields))

    def warning(self, what: str, **fields: object) -> None:
        self._logger.warning("%s", _line(what, fields))

    def failure(self, what: str, failure: BaseException, **fields: object) -> None:
        fields["error"] = f"{type(failure).__name__}: {failure}"
        self._logger.error("%s", _line(what, fields), exc_info=failure)


def log_to_stderr(*, verbose: bool) -> None:
    """Sends warnings and errors (verbose: everything) to standard error; of the HTTP server, its own failures."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    root = logging.getLogger(_ROOT)
    root.handlers = [handler]
    root.setLevel(logging.DEBUG if verbose else logging.WARNING)
    served = logging.getLogger(_HTTP)
    served.handlers, served.filters, served.propagate = [handler], [_is_ours], False


def hear_notes(part: str) -> None:
    """Sends the notes of one part to where warnings go, too."""
    logging.getLogger(f"{_ROOT}.{part}").setLevel(min(logging.INFO, logging.getLogger(_ROOT).level))


def _is_ours(record: logging.LogRecord) -> bool:
    """Whether a record of the HTTP server is about itself; what a client sent wrong has been answered with a 400."""
    from aiohttp.http_exceptions import HttpProcessingError
    from aiohttp.web import RequestPayloadError

    failure = record.exc_info[1] if record.exc_info else None
    if not isinstance(failure, HttpProcessingError | RequestPayloadError):
        return True
    Log("http").event("malformed request", error=" ".join(str(failure).split()))
    return False


def _line(what: str, fields: dict[str, object]) -> str:
    return " ".join([what, *(f"{key}={_quoted(str(value))}" for key, value in fields.items())])


def _quoted(text: str) -> str:
    return f'"{text}"' if " " in text else text
