"""Spans and log records as values, in the terms of OTLP; nothing of any library. Pure."""

from __future__ import annotations

from enum import IntEnum

import msgspec

Value = str | int | float | bool | tuple[str, ...]
Attributes = dict[str, Value]

MAX_TEXT = 4096
"""Characters of a text that a peer has chosen: a name or a message that is longer is cut."""
MAX_EVENTS = 128
"""Events of one span; what is left out is counted."""
SCOPE = "a2a-proxy"
"""Name of the instrumentation scope."""
SCHEMA_URL = "https://opentelemetry.io/schemas/1.44.0"
"""The conventions whose names the attributes have; those of the A2A draft (`a2a.*`) have no schema yet."""


class SpanKind(IntEnum):
    """Span kinds by their OTLP numbers."""

    INTERNAL = 1
    SERVER = 2
    CLIENT = 3
    CONSUMER = 5


class LogLevel(IntEnum):
    """Log severities by their OTLP numbers."""

    DEBUG = 5
    INFO = 9
    WARN = 13
    ERROR = 17


class SpanContextIds(msgspec.Struct, frozen=True):
    """Where a span is: two ids in lower-case hexadecimal digits."""

    trace: str
    """32 digits."""
    span: str
    """16 digits."""
    state: str = ""
    """The `tracestate` that the caller's vendors keep beside them (W3C); empty where there is none."""


class SpanEvent(msgspec.Struct, frozen=True):
    """Something at one moment of a span."""

    name: str
    at: int
    """ns since the Unix epoch, as are all times here."""
    attributes: Attributes = {}


class SpanLink(msgspec.Struct, frozen=True):
    """Another span that this one has to do with, though neither caused the other."""

    context: SpanContextIds
    attributes: Attributes = {}


class SpanValue(msgspec.Struct, frozen=True, kw_only=True):
    """One call that is over."""

    name: str
    kind: SpanKind
    context: SpanContextIds
    parent: SpanContextIds | None
    started: int
    ended: int
    attributes: Attributes
    events: tuple[SpanEvent, ...] = ()
    dropped_events: int = 0
    links: tuple[SpanLink, ...] = ()
    error: str = ""
    """Empty: the status is unset. Else it is ERROR, and this says why."""
    part: bool = False
    """One call has several: this one is none that ends it, and does not count as a call."""


class LogValue(msgspec.Struct, frozen=True, kw_only=True):
    """One log record."""

    name: str
    """The event's name: `a2a.frame`."""
    at: int
    level: LogLevel
    context: SpanContextIds
    body: str = ""
    attributes: Attributes = {}


def cut_text(text: str) -> str:
    """The text, or the beginning of it: a backend refuses what has megabytes, and all that comes with it."""
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "\u2026"


def shorten_value(value: Value) -> Value:
    """The value with its texts cut, at most `MAX_EVENTS` of them."""
    if isinstance(value, str):
        return cut_text(value)
    return tuple(map(cut_text, value[:MAX_EVENTS])) if isinstance(value, tuple) else value


def clamp_time(at: int) -> int:
    """A time as OTLP can carry it: recordings have others too, of clocks that were wrong or made up."""
    return min(max(at, 0), (1 << 63) - 1)


def valid_value(value: Value) -> Value:
    """The value as OTLP can carry it: text is Unicode, a number has 64 bits. Peers send others as well."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
        return str(value)
    if isinstance(value, tuple):
        return tuple(each.encode("utf-8", "replace").decode() for each in value)
    return value
