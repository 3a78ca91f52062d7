"""Outcome of a request to a backend, read from the exporters' log, the only place where the SDK
reports it."""

import logging
import re
import threading
from collections.abc import Callable
from enum import Enum
from typing import Any

import msgspec

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
"""gRPC statuses after which the request is tried again."""
_TOO_LARGE = "larger than max"
"""Text of gRPC for a message that exceeds the receiver's limit, usually 4 MiB."""
_RETRYING = "retrying in"
"""Part of the warning that an exporter logs before it tries again."""
_RETRIED_HTTP = (408, 429)
_TOO_LARGE_HTTP = 413
_ERRNO = re.compile(r"\[Errno -?\d+\] ([\w ]+)")
_HEADER_ADVICE = "OTEL_EXPORTER_OTLP_HEADERS contains an invalid header"
_ADVICE = (
    ("BadStatusLine", "the backend does not answer in HTTP/1.1; its port may be for grpc"),
    (
        "Expected SETTINGS frame",
        "the backend does not answer in HTTP/2; its port may be for http/protobuf",
    ),
    (
        "WRONG_VERSION_NUMBER",
        "the backend does not speak TLS; its URL may be http:// instead of https://",
    ),
    (
        "CERTIFICATE_VERIFY_FAILED",
        "its certificate is not trusted; OTEL_EXPORTER_OTLP_CERTIFICATE can name its issuer",
    ),
    ("header value", _HEADER_ADVICE),
    ("header name", _HEADER_ADVICE),
    ("metadata was invalid", _HEADER_ADVICE),
    ("Header format invalid", _HEADER_ADVICE),
)
"""Part of a library's error -> advice. Header values in these errors are secrets, so they must not
be printed."""


class RequestResult(Enum):
    """Result of a request."""

    SENT = "sent"
    LATER = "later"
    """No answer, or the backend asks to try later."""
    FAILED = "failed"
    """The backend failed on this request; a retry may succeed."""
    REFUSED = "refused"
    """The backend does not accept the request, now or later."""
    LARGE = "large"
    """The request is too large for the backend."""


class RequestOutcome(msgspec.Struct, frozen=True):
    """Result of a request, and the reason."""

    result: RequestResult
    why: str = ""
    rejected: int = 0
    """Spans of a SENT request that the backend rejected nevertheless: `partial_success`."""


SENT = RequestOutcome(RequestResult.SENT)


class ExporterLogHandler(logging.Handler):
    """Reads the reason of a failed request from the exporters' log, because they report it nowhere
    else."""

    def __init__(self) -> None:
        """Attach to the log; call this before the exporters are created."""
        super().__init__(logging.WARNING)
        self.on_retry: Callable[[RequestOutcome], None] = lambda _: None
        """Called with the result of each try after which the exporter tries again by itself."""
        self.begin_request()
        self._has_exporters = self._bad_headers = False
        self._logger = logging.getLogger("opentelemetry")
        self._logger.addHandler(self)
        self._logger.propagate = False

    def remove_filters(self) -> None:
        """Remove the exporters' log filters, which drop a second error of a kind within a minute;
        call this after they have been created. Raises TelemetryError if they ignore a header that
        the user set."""
        self._has_exporters = True
        if self._bad_headers:
            self.detach_handler()
            hint = "write NAME=VALUE pairs separated by commas, with %20 for a space in a value"
            raise TelemetryError("OTEL_EXPORTER_OTLP_HEADERS contains an invalid header", hint)
        for name in list(logging.root.manager.loggerDict):
            if name.startswith("opentelemetry.exporter"):
                logging.getLogger(name).filters.clear()

    def begin_request(self) -> None:
        """Begin a request in this thread; records of other threads, which send metrics, are
        ignored."""
        self._thread = threading.get_ident()
        self._outcome = RequestOutcome(RequestResult.LATER, "no answer")
        self._too_large: RequestOutcome | None = None
        self._reason = ""

    def detach_handler(self) -> None:
        """Detach from the log."""
        self._logger.removeHandler(self)

    def get_outcome(self) -> RequestOutcome:
        """Return the last reported outcome of the request."""
        return self._outcome

    def emit(self, record: logging.LogRecord) -> None:
        """Handle a log record (`logging.Handler`)."""
        if record.thread != self._thread:
            return
        if not self._has_exporters:
            # A warning about a variable. Header texts are secrets; other warnings are logged
            # as usual.
            if explain_error(record.getMessage()) == _HEADER_ADVICE:
                self._bad_headers = True
            elif logging.lastResort is not None:
                record.exc_info = None
                logging.lastResort.handle(record)
            return
        arguments = record.args if isinstance(record.args, tuple) else ()
        if record.levelno < logging.ERROR:
            if (
                "max_request_size" in record.msg
            ):  # the exporter does not send the request and logs nothing else
                self._outcome = RequestOutcome(
                    RequestResult.LARGE, " ".join(record.getMessage().split())
                )
            tried = _failure_outcome(arguments, "")
            if (
                tried.result is RequestResult.LARGE
            ):  # the exporter retries until its timeout all the same
                self._too_large = tried
            self._reason = _retry_reason(arguments) or self._reason
            if _RETRYING in record.msg and tried.result is RequestResult.LATER:
                self.on_retry(
                    tried
                    if tried.why
                    else RequestOutcome(tried.result, explain_error(self._reason))
                )
            return
        self._outcome = self._too_large or _failure_outcome(
            arguments, explain_error(self._reason or " ".join(record.getMessage().split()))
        )


def _retry_reason(arguments: tuple[Any, ...]) -> str:
    """Return the error in a warning about one try; for an error of the operating system, its
    description."""
    message = " ".join(str(arguments[0]).split()) if arguments else ""
    found = _ERRNO.search(message)
    return found[1].lower() if found else message


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
            return RequestOutcome(
                answer, explain_error(f"{name}: {' '.join(details.split())}" if details else name)
            )
        if isinstance(each, int) and 100 <= each < 600:
            return RequestOutcome(
                _result_of_http(each), f"HTTP {each}: {' '.join(str(arguments[-1]).split())}"
            )
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


def explain_error(message: str) -> str:
    """Return advice for the error, or the error itself if there is none."""
    return next((words for part, words in _ADVICE if part in message), message)
