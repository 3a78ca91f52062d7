"""Canonical fields: members in which two runs of one program differ.

They are recognized by name, and only in members that A2A defines: the content of `data` and
`metadata` belongs to the peers, and is compared unchanged.

Results of a comparison: rows, each one difference, with its path on both sides.
"""

import json
import re
from enum import StrEnum
from typing import Any
from urllib.parse import urlsplit

import msgspec

from a2a_proto.shapes.protobuf_shapes import timestamp_members
from a2a_proxy.model.wire import Headers

_ADDRESS = re.compile(r"(\[[0-9a-f:.]+\]|[\w.-]+):[0-9]{1,5}", re.IGNORECASE | re.ASCII)
OPAQUE = frozenset({"data", "metadata", "progress", "params"})
"""Members whose content belongs to the peers."""
MAX_DEPTH = 64
"""Maximum depth. Values of A2A have about ten levels."""

_IDS = {
    "messageId": "message",
    "contextId": "context",
    "taskId": "task",
    "artifactId": "artifact",
    "referenceTaskIds": "task",
    "nextPageToken": "page",
    "pageToken": "page",
}
IDENTIFIERS = frozenset({"id", *_IDS})
AMBIGUOUS = frozenset({"id", "url", "token"})
"""Members whose meaning depends on the object that contains them."""
_OTHER_TIMES = frozenset({"lastUpdatedAfter", "createdAt", "createdTime", "lastModified"})
"""Timestamps of other versions and of peers; 1.0 has those of `timestamp_members`."""
_SECRETS = frozenset(
    {
        "token",
        "credentials",
        "authorization",
        "proxy-authorization",
        "cookie",
        "set-cookie",
        "x-api-key",
    }
)
_TRACES = frozenset(
    {
        *(
            "traceparent",
            "tracestate",
            "baggage",
            "b3",
            "x-b3-traceid",
            "x-b3-spanid",
            "x-b3-parentspanid",
        ),
        *(
            "x-b3-sampled",
            "x-request-id",
            "x-correlation-id",
            "x-cloud-trace-context",
            "x-amzn-trace-id",
        ),
        *("uber-trace-id", "grpc-trace-bin", "x-datadog-trace-id", "x-datadog-parent-id"),
    }
)
_ADDRESSES = frozenset(
    {"url", "uri", "host", ":authority", "forwarded", "via", "x-forwarded-for", "x-forwarded-host"}
)
_TRANSPORT = frozenset(
    {
        *(
            "content-length",
            "date",
            "server",
            "user-agent",
            "grpc-timeout",
            "last-event-id",
            "connection",
            "expires",
        ),
        *(
            "keep-alive",
            "transfer-encoding",
            "accept",
            "accept-encoding",
            "accept-language",
            "content-encoding",
            "age",
        ),
        *(
            "grpc-accept-encoding",
            "grpc-encoding",
            "te",
            "etag",
            "last-modified",
            "cache-control",
            "vary",
            "pragma",
        ),
        *("grpc-status", "grpc-message", "grpc-status-details-bin", "sec-fetch-mode", "priority"),
    }
)
"""Headers of the transport. The status of a call is compared as part of the call, not of its
trailers."""
_CARD_FORMS = frozenset(
    {
        *(
            "additionalInterfaces",
            "supportedInterfaces",
            "preferredTransport",
            "url",
            "protocolVersion",
        ),
        *("supportsAuthenticatedExtendedCard", "extendedAgentCard", "authenticatedExtendedCard"),
    }
)
"""Members by which each dialect describes the agent's interfaces and its extended card."""
_DIALECT_MEMBERS = frozenset(
    {"final", "protocolVersion", "a2a-version", "a2a-extensions", "x-a2a-extensions"}
)


Path = tuple[str | int, ...]
"""Names and indexes from the root of a JSON value."""

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


class ValueChange(StrEnum):
    """Kind of a change."""

    LEFT = "only left"
    RIGHT = "only right"
    CHANGED = "changed"
    MOVED = "moved"
    """The same value at another index of its list."""


class Ignored(StrEnum):
    """Reason why a difference does not count: it also occurs between two runs of one program."""

    NOT = ""
    ID = "id"
    """A different identifier, used consistently wherever the other side has its own."""
    TIME = "time"
    TRACE = "trace"
    SECRET = "credential"
    """Also the label that replaces a credential."""
    ADDRESS = "address"
    TRANSPORT = "transport"
    """Lengths, dates, names of software, encodings of bytes."""
    DEFAULT = "default"
    """Omitted on one side, and the default value on the other."""
    DIALECT = "dialect"
    """A consequence of the different dialects of the sides."""
    BINDING = "binding"
    """A consequence of the different bindings of the sides."""
    ARTIFACT = "artifact"
    """The cuts of an artifact into chunks. A difference in its text is shown once, for the whole
    text."""
    ORDER = "order"
    """Calls that ran at the same time began in a different order."""
    CLIENT = "client"
    """The client cancelled the call, and the agent was slower or faster than that."""
    ASKED = "asked"
    """The caller of the comparison excluded it."""


class ExchangePart(StrEnum):
    """Part of an exchange, in the order of display."""

    CALL = "call"
    FINDINGS = "findings"
    REQUEST = "request"
    ARTIFACTS = "artifacts"
    EVENTS = "events"
    HEADERS = "headers"


class DifferenceRow(msgspec.Struct, frozen=True):
    """One difference."""

    change: ValueChange
    left: Path | None
    """Path on the left, or where it would be; None for a list item that only the right side has."""
    right: Path | None
    before: Any = None
    """The value on the left."""
    after: Any = None
    """The value on the right."""
    ignored: Ignored = Ignored.NOT
    part: ExchangePart = ExchangePart.REQUEST
    frames: tuple[int, int] = (-1, -1)
    """Number of the frame on either side; -1 without one."""

    @property
    def counts(self) -> bool:
        """Whether the difference counts unless canonical fields are requested."""
        return not self.ignored


class CompareResult(msgspec.Struct, frozen=True):
    """Differences between two values."""

    rows: tuple[DifferenceRow, ...] = ()
    cut: tuple[str, ...] = ()
    """Values that were not compared, or only coarsely, with the reason; empty after a full
    comparison."""

    @property
    def same(self) -> bool:
        """Whether no difference that counts was found, as far as the values were compared."""
        return not any(row.counts for row in self.rows)


def format_path(path: Path) -> str:
    """Return `$.artifacts[0]["odd name"]`, as in the filter language."""
    return "$" + "".join(map(_step_text, path))


def _step_text(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return (
        f".{step}" if _PLAIN_NAME.fullmatch(step) else f"[{json.dumps(step, ensure_ascii=False)}]"
    )


class CanonicalFields(msgspec.Struct, frozen=True):
    """Interpretation of the members of one value."""

    dialects: bool = False
    """Whether the sides speak different dialects."""
    card: bool = False
    """Whether the value is an agent card: `id` is a skill's name, and the protocol version
    counts."""
    headers: bool = False
    """Whether the value is a set of headers."""
    plain: bool = False
    """Whether the value is not A2A: then only tracing members are canonical."""

    def id_kind(self, name: str, holder: dict[str, object] | None) -> str:
        """Return the kind of object that an identifier of this name identifies, or an empty string.

        `holder` contains it as a member.
        """
        if self.plain or self.headers:
            return ""
        if name == "id" and not self.card:
            return (
                "config"
                if holder is not None and ("url" in holder or "taskId" in holder)
                else "task"
            )
        if (
            name in ("url", "token")
            and holder is not None
            and ("token" in holder or "taskId" in holder)
        ):
            return name  # of a push configuration
        return _IDS.get(name, "")

    def ignored_reason(self, name: str) -> Ignored:
        """Return the reason why a difference in this member does not count, whatever its values
        are."""
        if name in _TRACES:
            return Ignored.TRACE
        if self.plain:
            return Ignored.NOT
        if name in _SECRETS:
            return Ignored.SECRET
        if self.headers and name in _TRANSPORT:
            return Ignored.TRANSPORT
        if self.headers and name in _ADDRESSES:
            return Ignored.ADDRESS
        if name in _OTHER_TIMES or name in timestamp_members():
            return Ignored.TIME
        of_dialects = _CARD_FORMS if self.card else _DIALECT_MEMBERS
        return Ignored.DIALECT if self.dialects and name in of_dialects else Ignored.NOT

    def ignored_reason_alone(self, name: str, value: object) -> Ignored:
        """Return the reason why it does not count that only one side has this member."""
        if self.plain:
            return Ignored.NOT
        if is_default(value):
            return Ignored.DEFAULT
        return Ignored.DIALECT if self.dialects and name in _IDS else Ignored.NOT

    def is_address(self, name: str) -> bool:
        """Whether the authority of the member's URL is the address of a program."""
        return not self.plain and name in _ADDRESSES


def is_default(value: object) -> bool:
    """Whether omitting the value means the same (ProtoJSON)."""
    if isinstance(value, dict):
        return all(map(is_default, value.values()))
    return not value


def without_authority(url: str) -> str:
    """Return a URL without host and port, an empty string for a bare address, and any other text
    unchanged."""
    if _ADDRESS.fullmatch(url):
        return ""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    return parts._replace(netloc="").geturl() if parts.netloc else url


def header_members(headers: Headers) -> dict[str, str]:
    """Return headers by name in lower case, with several values of one name joined."""
    members: dict[str, str] = {}
    for raw_name, raw_value in headers:
        name, value = (
            raw_name.decode("latin-1").lower(),
            raw_value.decode("utf-8", "backslashreplace"),
        )
        members[name] = f"{members[name]}, {value}" if name in members else value
    return members
