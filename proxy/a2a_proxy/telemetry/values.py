"""Spans and log records as values in the terms of OTLP, independent of any library. No I/O."""

from enum import IntEnum

import msgspec

Value = str | int | float | bool | tuple[str, ...]
Attributes = dict[str, Value]

MAX_TEXT = 4096
"""Maximum characters of a text from a peer; a longer name or message is cut."""
MAX_EVENTS = 128
"""Maximum number of events of one span; the omitted ones are counted."""
SERVICE_NAME = "service.name"
"""Attribute of a resource."""
SCOPE = "a2a-proxy"
"""Name of the instrumentation scope."""
SCHEMA_URL = "https://opentelemetry.io/schemas/1.44.0"
"""Version of the conventions that define the attribute names; the A2A draft (`a2a.*`) has no schema
yet."""


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
    """Identity of a span: two ids in lower-case hexadecimal digits."""

    trace: str
    """32 digits."""
    span: str
    """16 digits."""
    state: str = ""
    """The caller's W3C `tracestate`; empty if there is none."""


class SpanEvent(msgspec.Struct, frozen=True):
    """An event at one time of a span."""

    name: str
    at: int
    """Time in ns since the Unix epoch, as all times in this module."""
    attributes: Attributes = {}


class SpanLink(msgspec.Struct, frozen=True):
    """A related span, of which neither caused the other."""

    context: SpanContextIds
    attributes: Attributes = {}


class SpanValue(msgspec.Struct, frozen=True, kw_only=True):
    """One finished call, or a part of a call (`part`)."""

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
    service: str = ""
    """Name of the service; empty for that of the resource."""
    error: str = ""
    """Reason of an ERROR status; empty if the status is unset."""
    part: bool = False
    """Whether it is one of several spans of a call and not the one that ends it, so it does not
    count as a call."""


class LogValue(msgspec.Struct, frozen=True, kw_only=True):
    """One log record."""

    name: str
    """Name of the event: `a2a.frame`."""
    at: int
    level: LogLevel
    context: SpanContextIds
    body: str = ""
    attributes: Attributes = {}
    service: str = ""
    """Name of the service; empty for that of the resource."""


def service_resource(resource: Attributes, service: str) -> Attributes:
    """Return the resource of the spans or log records of this service; an empty name is that of the
    resource."""
    return {**resource, SERVICE_NAME: service} if service else resource


def cut_text(text: str) -> str:
    """Return the text, cut to `MAX_TEXT`: backends refuse requests with megabytes of text, with all
    other spans in them."""
    return text if len(text) <= MAX_TEXT else text[: MAX_TEXT - 1] + "\u2026"


def shorten_value(value: Value) -> Value:
    """Return the value with its texts cut, at most `MAX_EVENTS` of them."""
    if isinstance(value, str):
        return cut_text(value)
    return tuple(map(cut_text, value[:MAX_EVENTS])) if isinstance(value, tuple) else value


def clamp_time(at: int) -> int:
    """Return a time that OTLP can represent; recordings may have others, from wrong clocks or
    generated data."""
    return min(max(at, 0), (1 << 63) - 1)


def valid_value(value: Value) -> Value:
    """Return a value that OTLP can represent: valid Unicode, 64-bit numbers. Peers may send
    others."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
        return str(value)
    if isinstance(value, tuple):
        return tuple(each.encode("utf-8", "replace").decode() for each in value)
    return value
