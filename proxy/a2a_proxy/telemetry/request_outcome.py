"""How a request to a backend went: what the exporters' log says of it, which is the only place where they say it."""

from __future__ import annotations

import logging
import re
import threading
from enum import Enum
from typing import Any

import msgspec

from a2a_proxy.telemetry.error_advice import explain_error, is_header_error
from a2a_proxy.telemetry.errors import TelemetryError

_ANSWERED_STATUSES = ("INTERNAL", "UNKNOWN")
_RETRIED_STATUSES = (
    "CANCELLED",
    "DEADLINE_EXCEEDED",
    "RESOURCE_EXHAUSTED",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNAVAILABLE",
    "DATA_LOSS",
)
"""gRPC statuses after which one tries again."""
_TOO_LARGE = "larger than max"
"""In the words of gRPC for a message that is larger than its peer takes; mostly 4 MiB."""
_RETRIED_HTTP = (408, 429)
_TOO_LARGE_HTTP = 413
_ERRNO = re.compile(r"\[Errno -?\d+\] ([\w ]+)")


class RequestResult(Enum):
    """How a request went."""

    SENT = "sent"
    LATER = "later"
    """Nobody was there, or the backend asks for patience."""
    FAILED = "failed"
    """The backend failed with this one: it may fail again, or not."""
    REFUSED = "refused"
    """It does not want it, now or later."""
    LARGE = "large"
    """It would take less at once."""


class RequestOutcome(msgspec.Struct, frozen=True):
    """How a request went, and why."""

    result: RequestResult
    why: str = ""
    rejected: int = 0
    """Spans of a request that was SENT which the backend did not take all the same: `partial_success`."""


SENT = RequestOutcome(RequestResult.SENT)


class ExporterLogHandler(logging.Handler):
    """Hears from the exporters' log why a request failed: they say it nowhere else."""

    def __init__(self) -> None:
        """The exporters are about to be made."""
        super().__init__(logging.WARNING)
        self.begin()
        self._has_exporters = self._bad_headers = False
        self._logger = logging.getLogger("opentelemetry")
        self._logger.addHandler(self)
        self._logger.propagate = False

    def listen(self) -> None:
        """The exporters are there: they filter what they say, a second error of a kind within a minute. Raises
        TelemetryError: they leave out a header that was given."""
        self._has_exporters = True
        if self._bad_headers:
            self.leave()
            hint = "NAME=VALUE, with commas between them, and %20 for a blank in a value"
            raise TelemetryError("OTEL_EXPORTER_OTLP_HEADERS has what is no header", hint)
        for name in list(logging.root.manager.loggerDict):
            if name.startswith("opentelemetry.exporter"):
                logging.getLogger(name).filters.clear()

    def begin(self) -> None:
        """A request begins, in this thread: metrics are sent in another one."""
        self._thread = threading.get_ident()
        self._outcome = RequestOutcome(RequestResult.LATER, "no answer")
        self._too_large: RequestOutcome | None = None
        self._reason = ""

    def leave(self) -> None:
        """Hear no more."""
        self._logger.removeHandler(self)

    def outcome(self) -> RequestOutcome:
        """What was said last."""
        return self._outcome

    def emit(self, record: logging.LogRecord) -> None:
        """`logging.Handler`."""
        if record.thread != self._thread:
            return
        if not self._has_exporters:
            self._on_setup_warning(record)
            return
        arguments = record.args if isinstance(record.args, tuple) else ()
        if record.levelno < logging.ERROR:
            if "max_request_size" in record.msg:  # the exporter does not try, and says nothing more
                self._outcome = RequestOutcome(RequestResult.LARGE, " ".join(record.getMessage().split()))
            tried = _failure_outcome(arguments, "")
            if tried.result is RequestResult.LARGE:  # it is tried again all the same, until nobody waits for the answer
                self._too_large = tried
            self._reason = _retry_reason(arguments) or self._reason
            return
        self._outcome = self._too_large or _failure_outcome(
            arguments, explain_error(self._reason or " ".join(record.getMessage().split()))
        )

    def _on_setup_warning(self, record: logging.LogRecord) -> None:
        """About a variable. The text of a header is a secret; the rest is said as it would be without this."""
        if is_header_error(record.getMessage()):
            self._bad_headers = True
        elif logging.lastResort is not None:
            record.exc_info = None
            logging.lastResort.handle(record)


def _retry_reason(arguments: tuple[Any, ...]) -> str:
    """What a warning about one try says: first of all the error; of one of the system, its words."""
    said = " ".join(str(arguments[0]).split()) if arguments else ""
    found = _ERRNO.search(said)
    return found[1].lower() if found else said


def _failure_outcome(arguments: tuple[Any, ...], message: str) -> RequestOutcome:
    for each in arguments:
        name = getattr(each, "name", "")
        if name and name.isupper():
            details = str(arguments[-1] or "") if arguments[-1] is not each else ""
            answer = (
                RequestResult.LARGE
                if name == "RESOURCE_EXHAUSTED" and _TOO_LARGE in details
                else _result_of_status(name)
            )
            return RequestOutcome(answer, explain_error(f"{name}: {' '.join(details.split())}" if details else name))
        if isinstance(each, int) and 100 <= each < 600:
            return RequestOutcome(_result_of_http(each), f"HTTP {each}: {' '.join(str(arguments[-1]).split())}")
    return RequestOutcome(RequestResult.LATER, message)


def _result_of_status(name: str) -> RequestResult:
    if name in _RETRIED_STATUSES:
        return RequestResult.LATER
    return RequestResult.FAILED if name in _ANSWERED_STATUSES else RequestResult.REFUSED


def _result_of_http(status: int) -> RequestResult:
    if status in _RETRIED_HTTP or status in (502, 503, 504):
        return RequestResult.LATER
    if status == _TOO_LARGE_HTTP:
        return RequestResult.LARGE
    return RequestResult.FAILED if status >= 500 else RequestResult.REFUSED
