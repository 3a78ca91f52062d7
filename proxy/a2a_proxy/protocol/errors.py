"""Error names and payloads: the codes of A2A 1.0 section 5.4, and the error bodies of sections 9.5,
10.6 and 11.6.

Only reads the errors of a peer; the rules judge them.
"""

import base64
import binascii
from collections.abc import Iterator
from html import unescape
from itertools import islice
from typing import Any, TypeGuard
from urllib.parse import unquote_to_bytes

import msgspec

from a2a_proto import read_status
from a2a_proxy.model.values import Dialect
from a2a_proxy.model.wire import Headers
from a2a_proxy.protocol.json_shapes import UNREADABLE_ERRORS
from a2a_proxy.protocol.text import text_of_body, to_one_line

RPC_REASONS = {
    -32001: "TASK_NOT_FOUND",
    -32002: "TASK_NOT_CANCELABLE",
    -32003: "PUSH_NOTIFICATION_NOT_SUPPORTED",
    -32004: "UNSUPPORTED_OPERATION",
    -32005: "CONTENT_TYPE_NOT_SUPPORTED",
    -32006: "INVALID_AGENT_RESPONSE",
    -32007: "EXTENDED_AGENT_CARD_NOT_CONFIGURED",
    -32008: "EXTENSION_SUPPORT_REQUIRED",
    -32009: "VERSION_NOT_SUPPORTED",
    -32010: "TASK_GENERATION_MISMATCH",
    -32700: "PARSE_ERROR",
    -32600: "INVALID_REQUEST",
    -32601: "METHOD_NOT_FOUND",
    -32602: "INVALID_PARAMS",
    -32603: "INTERNAL_ERROR",
}
"""JSON-RPC code -> reason, 0.2 and later."""

RPC_REASONS_0_1 = RPC_REASONS | {
    -32004: "OPERATION_NOT_SUPPORTED",
    -32006: "STREAMING_NOT_SUPPORTED",
    -32007: "AUTHENTICATION_REQUIRED",
    -32008: "AUTHORIZATION_FAILED",
    -32009: "INVALID_TASK_STATE",
    -32010: "RATE_LIMIT_EXCEEDED",
    -32011: "RESOURCE_UNAVAILABLE",
}
"""JSON-RPC code -> reason in 0.1, where the same codes meant something else."""

GRPC_STATUS_NAMES = (
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
)

GENERATION_MISMATCH = "TASK_GENERATION_MISMATCH"

_MAX_LINE = 160
_MAX_REMARKS, _MAX_EXAMINED, _MAX_DETAILS, _MAX_DEPTH, _MAX_TEXT = 3, 100, 10, 8, 16384
_TEXT_MEMBERS = (
    *("description", "message", "msg", "detail", "details", "reason", "title"),
    *("error_description", "error"),
)
"""Members with the text of an error or of one of its details: google.rpc, problem details, and what
frameworks write."""
_PLACE_MEMBERS = ("field", "loc", "path", "pointer", "subject", "resourceName", "name")
"""Members that name what a detail is about."""
_DETAIL_MEMBERS = (
    *("error", "detail", "details", "data", "errors", "issues"),
    *("fieldViolations", "violations", "invalid-params", "metadata"),
)
"""Members with further details."""
_TEXTS_BY_PLACE = ("errors", "metadata")
"""Members with an object that has a text, or a list of texts, for each place."""


AMBIGUOUS_CODES = frozenset({-32006, -32007, -32008, -32009, -32010})
"""Codes whose meaning depends on the dialect."""


def message_with_details(reason: str, message: str, details: object) -> str:
    """Return the message of an error with what its details add, in brackets: at most three remarks.

    `details` is a list of google.rpc details in ProtoJSON, the `data` of a JSON-RPC error, or a
    whole REST body in any form. A TaskGenerationMismatchError gets the expected and the actual
    generation.
    """
    remarks = (
        _generation_remarks(details)
        if reason == GENERATION_MISMATCH
        else islice(_new_remarks(reason, message, details), _MAX_REMARKS)
    )
    added = ", ".join(remarks)
    return f"{message} ({added})" if message and added else message or added


def _generation_remarks(details: object) -> Iterator[str]:
    numbers = _find_generations(details)
    for name, label in (("expected", "expected generation"), ("current", "it is")):
        if number := to_one_line(str(numbers.get(f"{name}Generation", "")), 20):
            yield f"{label} {number}"


def _new_remarks(reason: str, message: str, details: object) -> Iterator[str]:
    """Yield the remarks of the details that neither the reason nor the message says."""
    seen = {reason, ""}
    known = message[:_MAX_TEXT]
    for place, paragraph in islice(_find_remarks(details), _MAX_EXAMINED):
        text = _main_line(paragraph)
        if text not in seen and text not in known:
            seen.add(text)
            yield to_one_line(f"{place}: {text}" if place else text, 80)


def _main_line(text: str) -> str:
    """Return the line that says most, without its full stop: the last one of a Python traceback,
    else the first one."""
    lines = text[:_MAX_TEXT].strip().splitlines() or [""]
    return lines[-1 if lines[0].startswith("Traceback ") else 0].strip().rstrip(".")


def _find_remarks(value: object, place: str = "", depth: int = 0) -> Iterator[tuple[str, str]]:
    """Yield the place, where it is named, and the text of each remark in an object with details, or
    in a list of them."""
    if isinstance(value, str):
        yield place, value
    elif depth >= _MAX_DEPTH:
        return
    elif isinstance(value, list):
        for each in value[:_MAX_DETAILS]:
            yield from _find_remarks(each, place, depth + 1)
    elif isinstance(value, dict):
        texts = (value.get(name) for name in _TEXT_MEMBERS)
        yield (
            _place_of(value) or place,
            next((text for text in texts if isinstance(text, str) and text), ""),
        )
        if delay := text_or_empty(value.get("retryDelay")):
            yield "", f"retry after {delay}"
        for name in _DETAIL_MEMBERS:
            inner = value.get(name)
            if name in _TEXTS_BY_PLACE and _has_texts_by_place(inner):
                for key, each in islice(inner.items(), _MAX_DETAILS):
                    yield from _find_remarks(each, key, depth + 1)
            elif isinstance(inner, list | dict):
                yield from _find_remarks(inner, depth=depth + 1)


def _has_texts_by_place(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict) and all(
        isinstance(each, str | list) for each in islice(value.values(), _MAX_DETAILS)
    )


def _place_of(detail: dict[str, Any]) -> str:
    """Return where the request was wrong, or what the detail is about: `params.message.parts`."""
    place = next((detail[name] for name in _PLACE_MEMBERS if detail.get(name)), "")
    return ".".join(map(str, place)) if isinstance(place, list) else text_or_empty(place)


def _find_generations(details: object) -> dict[str, Any]:
    """Return the object with the generations: the metadata of the ErrorInfo (manual/protocol.md
    "Error bodies"), or the problem body itself."""
    if isinstance(details, list):
        return next(filter(None, map(_find_generations, details)), {})
    if not isinstance(details, dict):
        return {}
    if "expectedGeneration" in details or "currentGeneration" in details:
        return details
    return next(
        filter(
            None,
            (
                _find_generations(details[name])
                for name in ("metadata", "error", "details")
                if name in details
            ),
        ),
        {},
    )


def error_line(reason: str, code: int | str, message: str) -> str:
    """Format an error as one line: `TASK_NOT_FOUND -32001: no such task`."""
    head = " ".join(str(word) for word in (reason, code) if word)
    return to_one_line(": ".join(filter(None, (head, message))))


def rpc_reason(code: int, data: object, dialect: Dialect) -> str:
    """Return the name of a JSON-RPC error: from its ErrorInfo, else from its code; empty if neither
    names it."""
    return reason_of(data) or (RPC_REASONS_0_1 if dialect is Dialect.V0_1 else RPC_REASONS).get(
        code, ""
    )


def reason_of(details: object) -> str:
    """Return the reason in a list of error details (ErrorInfo in ProtoJSON form), or an empty
    string."""
    if not isinstance(details, list):
        return ""
    reasons = (detail.get("reason") for detail in details if isinstance(detail, dict))
    return next((reason for reason in reasons if isinstance(reason, str)), "")


def parse_rest_error(body: object) -> tuple[str, str]:
    """Return reason and message of a REST error body in any form (1.0, problem details, 0.3); empty
    if unknown."""
    if not isinstance(body, dict):
        return "", text_or_empty(body)
    error = body.get("error")
    if isinstance(error, dict):
        reason = reason_of(error.get("details")) or error.get("status")
        return text_or_empty(reason), text_or_empty(error.get("message"))
    kind = text_or_empty(body.get("type")).rpartition("/")[2]
    reason = reason_of(body.get("details")) or (
        "" if kind == "about:blank" else kind.replace("-", "_").upper()
    )
    return reason.removesuffix("_ERROR"), text_or_empty(
        body.get("detail") or body.get("message") or body.get("title") or error
    )


def read_rest_error(body: object) -> tuple[str, str]:
    """Return reason and message of a REST error like `parse_rest_error`, the message with what the
    details add."""
    reason, message = parse_rest_error(body)
    return reason, message_with_details(reason, message, body)


def read_error_body(data: bytes) -> tuple[str, str]:
    """Return reason and message of the body of an HTTP error: JSON in any form, the title of a
    page, or the first line of a text; empty for a binary body."""
    try:
        return read_rest_error(msgspec.json.decode(data))
    except UNREADABLE_ERRORS:
        text = text_of_body(data[:_MAX_TEXT]) or ""
    begin = text.lstrip()[:1]
    if begin == "<":
        return "", _find_title(text)
    return "", "" if begin in ("{", "[") else _main_line(text)


def _find_title(page: str) -> str:
    """Return the title of an HTML page on one line."""
    begin = page.lower().find("<title")
    title = page[page.find(">", begin) + 1 :] if begin >= 0 else ""
    return " ".join(unescape(title.partition("<")[0][:_MAX_LINE]).split())


def text_or_empty(value: object) -> str:
    """Return the value if it is a text, else an empty one."""
    return value if isinstance(value, str) else ""


def header_value(headers: Headers, name: bytes) -> bytes:
    """Return the first value of a header field, or empty bytes; `name` is in lower case."""
    for key, value in headers:
        if key == name or key.lower() == name:
            return value
    return b""


class GrpcOutcome:
    """Outcome of a gRPC call from its trailers: `status` (-1 if missing or invalid), `message`,
    `reason`."""

    __slots__ = ("message", "reason", "status")

    def __init__(self, headers: Headers) -> None:
        status = header_value(headers, b"grpc-status").strip()
        self.status = int(status) if status.isdigit() and len(status) < 10 else -1
        self.message = unquote_to_bytes(header_value(headers, b"grpc-message")).decode(
            "utf-8", "replace"
        )
        self.reason = ""
        if self.status > 0:
            found = read_details(header_value(headers, b"grpc-status-details-bin")) or {}
            details = found.get("details", [])
            self.reason = reason_of(details)
            self.message = message_with_details(self.reason, self.message, details)

    @property
    def error_text(self) -> str:
        """The error as one line; empty on success and without a status."""
        if self.status <= 0:
            return ""
        name = (
            GRPC_STATUS_NAMES[self.status]
            if self.status < len(GRPC_STATUS_NAMES)
            else str(self.status)
        )
        return error_line(self.reason, name, self.message)


def read_details(value: bytes) -> dict[str, Any] | None:
    """Return the google.rpc.Status in a `grpc-status-details-bin` value as ProtoJSON; None if the
    value is empty or cannot be read."""
    try:
        return read_status(decode_binary_value(value)) if value else None
    except Exception:  # hostile bytes: the details are then unknown
        return None


def decode_binary_value(value: bytes) -> bytes:
    """Return the bytes of a `-bin` metadata value: base64 with optional padding, or C-core's raw
    form (NUL, then bytes)."""
    if value[:1] == b"\0":
        return value[1:]
    try:
        return base64.b64decode(value + b"=" * (-len(value) % 4), validate=True)
    except binascii.Error:
        return value
