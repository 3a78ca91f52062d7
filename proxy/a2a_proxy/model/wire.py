"""Events of the wire decoders: the same vocabulary for HTTP/1.1 and HTTP/2, and the messages of
pipes.

One *stream* is one request with its response. Its number is the HTTP/2 stream identifier, or a
count from 1 on an HTTP/1.1 connection. Offsets count bytes of one direction of one connection, from
0.
"""

from __future__ import annotations

from enum import IntEnum

import msgspec

from a2a_proxy.model.chunk import Direction

Headers = tuple[tuple[bytes, bytes], ...]
"""Field names and values in wire order, names as sent (HTTP/1.1 keeps their case). Bytes: values
need not be UTF-8."""


class HeadRole(IntEnum):
    """The role of a block of header fields."""

    REQUEST = 0
    RESPONSE = 1
    INFORMATIONAL = 2
    """A 1xx response; the final response follows."""
    TRAILERS = 3


class Head(msgspec.Struct, frozen=True, gc=False):
    """A complete header block."""

    stream: int
    direction: Direction
    at: int
    """Time its last byte arrived, ns."""
    began: int
    """Time its first byte arrived, ns."""
    start: int
    end: int
    role: HeadRole
    headers: Headers
    """Without HTTP/2 pseudo-fields, which have fields of their own."""
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
    """Bytes of a message body; transfer coding and padding are removed, content coding is not."""

    stream: int
    direction: Direction
    at: int
    start: int
    end: int
    """Byte range on the wire that carried them (framing included)."""
    data: bytes


class End(msgspec.Struct, frozen=True, gc=False):
    """One direction of the stream is complete (END_STREAM, last chunk, length reached, or an EOF
    that delimits the body)."""

    stream: int
    direction: Direction
    at: int
    start: int
    by_eof: bool = False
    """Whether the body was delimited by the end of the connection."""


class Cut(msgspec.Struct, frozen=True, gc=False):
    """The stream ended before its message was complete."""

    stream: int
    direction: Direction
    """The direction whose sender broke off (the sender of RST_STREAM, of the RST, or of the early
    FIN); meaningless if no peer did."""
    at: int
    start: int
    how: str
    """`rst_stream`, `reset`, `eof` or `goaway`: by a peer. `lost`: bytes were not captured from
    here on. `proxy stopped`, `proxy killed`: the proxy ended while the stream was open."""
    code: int = 0
    """The HTTP/2 error code of a RST_STREAM."""


class Control(msgspec.Struct, frozen=True, gc=False):
    """A frame of the connection, not of a stream: SETTINGS, GOAWAY, PING (only the first of each
    direction), or a fact about the wire for the rules."""

    direction: Direction
    at: int
    start: int
    end: int
    name: str
    """`preface`, `settings`, `settings_ack`, `goaway`, `ping`, `push_promise`, `upgrade`,
    `leniency`, `opaque`; of a stdio agent `eof`, `signal` and `exit`."""
    detail: dict[str, object]
    """Plain JSON values. `upgrade` has `protocol` (from the Upgrade field, or `connect`) and
    `stream`; later bytes are not decoded. `opaque` is emitted once, for a connection that is not
    decoded at all: `looks_like` is `tls`, `unknown` (not HTTP), `server first` (the client sent
    nothing) or `lost` (its bytes are missing). `signal` has its name as `signal`; `exit` has the
    `code`, or the `signal` that killed the agent."""


class Undecodable(msgspec.Struct, frozen=True, gc=False):
    """Bytes that cannot be decoded. The rest of this scope is opaque; relaying is not affected."""

    direction: Direction
    at: int
    offset: int
    expected: str
    got: str
    stream: int = 0
    """The stream that became opaque; 0 if the whole connection did."""


REASON_CUT_SHORT = "cut short"
"""Another message begins within it, or its content at its length is not JSON and the bytes after it
do not complete it."""
REASON_BROKE_OFF = "broke off"
"""The pipe ended in the middle of it."""


class Framed(msgspec.Struct, frozen=True, gc=False):
    """One message on a pipe (manual/protocol.md "Stdio framing"): its content and its framing."""

    direction: Direction
    began: int
    """Time its first byte arrived, ns."""
    at: int
    """Time it was known to be complete, ns; with a wrong length this may be later than its last
    byte."""
    start: int
    end: int
    """Byte range, header block included."""
    data: bytes
    """The content; its first bytes if `truncated`."""
    headers: Headers = ()
    framing: str = ""
    """The header block, U+0000 for the content, and the bytes that end it. Each Content-Length with
    the content's true size has U+0001 as its value. Newline-delimited: `\\0\\n`."""
    broken: str = ""
    """`REASON_CUT_SHORT` or `REASON_BROKE_OFF`; empty if it is whole."""
    size: int = 0
    """Full size of the content, bytes."""
    truncated: bool = False
    sha256: bytes = b""
    """SHA-256 of the whole content; only if `truncated`, and empty if the recorder restarted in
    between."""


class Line(msgspec.Struct, frozen=True, gc=False):
    """A line outside messages: of an agent's stderr, or between the messages of a pipe."""

    direction: Direction
    began: int
    at: int
    start: int
    end: int
    """Byte range in its stream, line end included."""
    data: bytes
    """The line without its line end; its first bytes if `truncated`."""
    stray: bool
    """Whether it is between the messages of a pipe; otherwise it is from stderr."""
    framing: str = ""
    """U+0000, and the line end."""
    size: int = 0
    truncated: bool = False
    sha256: bytes = b""


WireEvent = Head | Body | End | Cut | Control | Undecodable | Framed | Line
