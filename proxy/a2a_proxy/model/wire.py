"""What the wire decoders say: HTTP in passing, the same vocabulary for HTTP/1.1 and HTTP/2; and the messages of pipes.

One *stream* is one request with its response. Its number is the HTTP/2 stream identifier, or counts from 1 on an
HTTP/1.1 connection. Offsets count bytes of one direction of one connection, from 0.
"""

from __future__ import annotations

from enum import IntEnum

import msgspec

from a2a_proxy.model.chunk import Direction

Headers = tuple[tuple[bytes, bytes], ...]
"""Field names and values in wire order, names as sent (HTTP/1.1 keeps their case). Bytes: values need not be UTF-8."""


class HeadRole(IntEnum):
    """What a block of header fields is."""

    REQUEST = 0
    RESPONSE = 1
    INFORMATIONAL = 2
    """A 1xx response; the final one still comes."""
    TRAILERS = 3


class Head(msgspec.Struct, frozen=True, gc=False):
    """A complete header block."""

    stream: int
    direction: Direction
    at: int
    """When its last byte arrived, ns."""
    began: int
    """When its first byte arrived, ns."""
    start: int
    end: int
    role: HeadRole
    headers: Headers
    """Without HTTP/2 pseudo-fields; those are below."""
    method: bytes = b""
    target: bytes = b""
    """Request target as sent (`:path` on HTTP/2)."""
    authority: bytes = b""
    """`:authority` on HTTP/2, the Host field on HTTP/1.1."""
    scheme: bytes = b""
    status: int = 0
    reason: bytes = b""
    version: str = ""
    """`1.0`, `1.1` or `2`."""


class Body(msgspec.Struct, frozen=True, gc=False):
    """Some bytes of a message body, transfer coding and padding removed, content coding not."""

    stream: int
    direction: Direction
    at: int
    start: int
    end: int
    """The span of the bytes on the wire that carried them (framing included)."""
    data: bytes


class End(msgspec.Struct, frozen=True, gc=False):
    """One direction of the stream is complete (END_STREAM, last chunk, length reached, or EOF where that ends it)."""

    stream: int
    direction: Direction
    at: int
    start: int
    by_eof: bool = False
    """The body was delimited by the end of the connection."""


class Cut(msgspec.Struct, frozen=True, gc=False):
    """The stream ended before its message was complete."""

    stream: int
    direction: Direction
    """The direction whose sender broke off (the sender of RST_STREAM, of the RST, or of the early FIN); means nothing
    where no peer did."""
    at: int
    start: int
    how: str
    """`rst_stream`, `reset`, `eof` or `goaway`: a peer did it. `lost`: bytes were not captured from here.
    `proxy stopped`, `proxy killed`: the proxy ended while the stream was open."""
    code: int = 0
    """The HTTP/2 error code of a RST_STREAM."""


class Control(msgspec.Struct, frozen=True, gc=False):
    """A frame of the connection, not of a stream: SETTINGS, GOAWAY, PING (first of each direction only), or a fact
    about the wire that a rule may want."""

    direction: Direction
    at: int
    start: int
    end: int
    name: str
    """`preface`, `settings`, `settings_ack`, `goaway`, `ping`, `push_promise`, `upgrade`, `leniency`,
    `opaque`; of a stdio agent `eof`, `signal` and `exit`."""
    detail: dict[str, object]
    """Plain JSON values. `upgrade` has `protocol` (that of the Upgrade field, or `connect`) and `stream`, and what
    follows is not read. `opaque` comes once, for a connection of which nothing is read: `looks_like` is `tls`,
    `unknown` (no HTTP), `server first` (the client never said anything) or `lost` (its bytes are missing).
    `signal` has its name as `signal`; `exit` has the `code`, or the `signal` that killed the agent."""


class Undecodable(msgspec.Struct, frozen=True, gc=False):
    """The decoder met bytes that it cannot read. What follows in this scope is opaque; the relay never notices."""

    direction: Direction
    at: int
    offset: int
    expected: str
    got: str
    stream: int = 0
    """The stream that became opaque; 0 where the whole connection did."""


REASON_CUT_SHORT = "cut short"
"""Another message began within it, or its content is no JSON at its length, and what follows does not complete it."""
REASON_BROKE_OFF = "broke off"
"""The pipe ended in it."""


class Framed(msgspec.Struct, frozen=True, gc=False):
    """One message on a pipe (manual/protocol.md "Stdio framing"): its content, and how it was framed."""

    direction: Direction
    began: int
    """When its first byte arrived, ns."""
    at: int
    """When it was clear that it is complete, ns: with a wrong length that may be later than its last byte."""
    start: int
    end: int
    """Its span, header block included."""
    data: bytes
    """The content; its first bytes where `truncated`."""
    headers: Headers = ()
    framing: str = ""
    """The header block, U+0000 for the content, and what ends it. Each Content-Length that tells the content's true
    size has U+0001 as its value. Newline-delimited: `\\0\\n`."""
    broken: str = ""
    """`REASON_CUT_SHORT` or `REASON_BROKE_OFF`; empty where it is whole."""
    size: int = 0
    """True size of the content, bytes."""
    truncated: bool = False
    sha256: bytes = b""
    """Of the whole content; only where `truncated`, and empty where a restart came between."""


class Line(msgspec.Struct, frozen=True, gc=False):
    """A line that is no message: of an agent's stderr, or bytes outside every message of a pipe."""

    direction: Direction
    began: int
    at: int
    start: int
    end: int
    """Its span in what it stands in, line end included."""
    data: bytes
    """Without its line end; its first bytes where `truncated`."""
    stray: bool
    """It stands between the messages of a pipe; else it is of stderr."""
    framing: str = ""
    """U+0000, and the line end."""
    size: int = 0
    truncated: bool = False
    sha256: bytes = b""


WireEvent = Head | Body | End | Cut | Control | Undecodable | Framed | Line
