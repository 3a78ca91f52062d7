"""Events of the wire decoders: the same vocabulary for HTTP/1.1 and HTTP/2, and the messages of
pipes.

One *stream* is one request with its response. Its number is the HTTP/2 stream identifier, or a
count from 1 on an HTTP/1.1 connection. Offsets count bytes of one direction of one connection, from
0.

The input of the observer: captured bytes and connection events, as seen by the relay.
"""

from __future__ import annotations

from enum import IntEnum

import msgspec

Headers = tuple[tuple[bytes, bytes], ...]
"""Field names and values in wire order, names as sent (HTTP/1.1 keeps their case). Bytes: values
need not be UTF-8."""


class Direction(IntEnum):
    """The direction in which bytes travel. The client is the side that opened the connection."""

    TO_AGENT = 0
    TO_CLIENT = 1

    @property
    def other(self) -> Direction:
        """The opposite direction."""
        return Direction(1 - self)


class ChunkKind(IntEnum):
    """The kind of a journal record. The numbers are the journal format: never renumber."""

    OPEN = 1
    """A client connected. `data` is JSON: `ConnectionFacts`."""
    DIALED = 2
    """The upstream connection is established (or failed). `data` is JSON: `DialFacts`."""
    DATA = 3
    """Bytes sent by a peer, exactly as they arrived."""
    EOF = 4
    """The sender of this direction will send no more bytes (FIN)."""
    RESET = 5
    """The sender of this direction broke the connection (RST, or an I/O error). `data` is UTF-8
    text, may be empty; `TLS ...` is a reason for users."""
    CLOSED = 6
    """Both sides are closed; the last record of a connection."""
    OURS = 7
    """Bytes created by the proxy (a 502, an UNAVAILABLE), in the direction they were sent."""
    EDIT = 8
    """The proxy changed bytes while relaying them.

    `data` is JSON; the captured copy holds the bytes as sent by the peer.
    """
    LOST = 9
    """Bytes of this direction are missing here. `data` is JSON: `{"bytes": n}`. The connection is
    opaque from here."""
    END = 10
    """The session ended cleanly. Connection 0."""
    LOG = 11
    """Bytes that a stdio agent wrote to stderr."""
    SIGNAL = 12
    """A signal reached the proxy, which passed it on to a stdio agent. `data` is its name in ASCII
    (`SIGTERM`)."""
    EXITED = 13
    """The process of a stdio agent has ended. `data` is JSON: `ExitFacts`."""
    PASSED = 14
    """The bytes of this direction were relayed unread, through a forward proxy. `data` is JSON:
    `PassedFacts`."""


class Chunk(msgspec.Struct, frozen=True, gc=False):
    """One journal record."""

    connection: int
    """Number of the connection within the session, from 1; 0 for the session itself."""
    kind: ChunkKind
    direction: Direction
    """Meaningful for DATA, EOF, RESET, OURS, EDIT, LOST and PASSED; LOG and EXITED go TO_CLIENT,
    SIGNAL goes TO_AGENT."""
    at: int
    """Time the relay saw it: ns since the Unix epoch, never decreasing within a session."""
    data: bytes = b""


class CertificateFacts(msgspec.Struct, frozen=True, omit_defaults=True):
    """A certificate that was presented in a TLS handshake."""

    sha256: str
    """The fingerprint, in hexadecimal digits."""
    names: tuple[str, ...] = ()
    """Host names, addresses and URIs that it is for, the first ones; empty if they are not
    known."""
    not_after: str = ""
    """The end of its validity (`2028-11-21T16:39:17Z`); empty if it is not known."""
    verified: bool = False
    """Whether the proxy has verified it."""


class TlsFacts(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of one TLS handshake."""

    version: str
    """`TLSv1.3`."""
    cipher: str
    """`TLS_AES_256_GCM_SHA384`."""
    alpn: str = ""
    """The agreed protocol; empty if none was."""
    server_name: str = ""
    """The host that the client asked for (SNI); empty if it named none."""
    server: CertificateFacts | None = None
    """The server's certificate: the proxy's toward a client, the agent's toward an upstream."""
    client: CertificateFacts | None = None
    """The client's certificate, if it presented one."""


class ClientProcess(msgspec.Struct, frozen=True):
    """The process behind a client connection, on the machine of the proxy."""

    pid: int
    name: str
    """Name of the program or script: `planner`."""
    ports: tuple[int, ...] = ()
    """TCP ports on which the process listens, in ascending order."""

    @property
    def label(self) -> str:
        """The process in words: `planner (pid 71)`."""
        return f"{self.name} (pid {self.pid})"


class ConnectionFacts(msgspec.Struct, frozen=True, omit_defaults=True):
    """Facts known when a client connects."""

    client: str
    """The client's address, `host:port`."""
    listen: str
    """The address it connected to, `host:port`."""
    upstream: str
    """The listener's upstream, as the user wrote it, without user info. With stdio: the agent's
    command line."""
    transport: str = "tcp"
    """`tcp`, or `stdio`: the two directions are the agent's stdin and stdout (manual/protocol.md
    "Stdio")."""
    client_process: ClientProcess | None = None
    """The client's process; None if it is unknown."""
    tls: TlsFacts | None = None
    """The TLS handshake with the client; None if it speaks plain text."""
    forwarded: bool = False
    """Whether the client chose the upstream by its request to a forward proxy."""
    deliverer: str = ""
    """The upstream of the agent that delivers a push notification, as the user wrote it, if the
    client is this agent and the upstream its client's webhook."""

    @property
    def client_ports(self) -> tuple[int, ...]:
        """TCP ports on which the client's process listens."""
        return self.client_process.ports if self.client_process is not None else ()


class DialFacts(msgspec.Struct, frozen=True):
    """The outcome of one dial."""

    upstream: str
    """The chosen upstream, `host:port`."""
    peer: str | None = None
    """The address that answered, `host:port`; None if the dial failed."""
    error: str | None = None
    """Why the dial failed; None if it succeeded."""
    tls: TlsFacts | msgspec.UnsetType = msgspec.UNSET
    """The TLS handshake with the upstream; not set without TLS."""


class PassedFacts(msgspec.Struct, frozen=True):
    """Bytes that were relayed unread."""

    bytes: int
    """Their number, in this direction of the whole connection."""
    kind: str
    """What they are: `tls`, which the user can have read by `--intercept`, or `opaque`."""


class ExitFacts(msgspec.Struct, frozen=True):
    """The end of a stdio agent's process: exactly one of the two is set."""

    code: int | None = None
    """The exit code."""
    signal: str | None = None
    """Name of the signal that killed it (`SIGKILL`)."""

    @property
    def description(self) -> str:
        """The end in words: `exited with code 3`, `killed by SIGKILL`."""
        return f"killed by {self.signal}" if self.signal else f"exited with code {self.code}"


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
    `leniency`, `opaque`; of a WebSocket `ping` and `close`; of a stdio agent `eof`, `signal` and
    `exit`."""
    detail: dict[str, object]
    """Plain JSON values. `upgrade` has `protocol` (from the Upgrade field, or `connect`) and
    `stream`; later bytes are not decoded, except those of `h2c` and `websocket`. `close` has the
    `code`, if there is one, and the `reason`. `opaque` is emitted once, for a
    connection that is not decoded at all: `looks_like` is `tls`, `unknown` (not HTTP), `server
    first` (the client sent nothing) or `lost` (its bytes are missing). `signal` has its name as
    `signal`; `exit` has the `code`, or the `signal` that killed the agent."""


class Undecodable(msgspec.Struct, frozen=True, gc=False):
    """Bytes that cannot be decoded. The rest of this scope is opaque; relaying is not affected."""

    direction: Direction
    at: int
    offset: int
    expected: str
    got: str
    stream: int = 0
    """The stream that became opaque; 0 if the whole connection did."""
    is_fault: bool = True
    """Whether the sender violates its protocol. False at the end of the bytes, and at a limit of
    the recorder."""


REASON_CUT_SHORT = "cut short"
"""Another message begins within it, or its content at its length is not JSON and the bytes after it
do not complete it."""
REASON_BROKE_OFF = "broke off"
"""The pipe, or its direction of the WebSocket, ended in the middle of it."""


class Framed(msgspec.Struct, frozen=True, gc=False):
    """One message on a pipe (manual/protocol.md "Stdio framing") or on a WebSocket: its content and
    its framing."""

    direction: Direction
    began: int
    """Time its first byte arrived, ns."""
    at: int
    """Time it was known to be complete, ns; with a wrong length this may be later than its last
    byte."""
    start: int
    end: int
    """Byte range, header block or frame heads included."""
    data: bytes
    """The content; its first bytes if `truncated`."""
    headers: Headers = ()
    framing: str = ""
    """The header block, U+0000 for the content, and the bytes that end it. Each Content-Length with
    the content's true size has U+0001 as its value. Newline-delimited: `\\0\\n`. On a WebSocket
    `permessage-deflate` if it was compressed."""
    broken: str = ""
    """`REASON_CUT_SHORT` or `REASON_BROKE_OFF`; empty if it is whole."""
    size: int = 0
    """Full size of the content, bytes."""
    truncated: bool = False
    sha256: bytes = b""
    """SHA-256 of the whole content; only if `truncated`, and empty if the recorder restarted in
    between."""
    is_binary: bool = False
    """Whether it is a binary message of a WebSocket."""


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
