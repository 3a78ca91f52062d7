"""Connections and exchanges, as snapshots. The state machines that create them are in
`protocol`."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

import msgspec

from a2a_proxy.model.card_signature import CardSignature
from a2a_proxy.model.chunk import ClientProcess, ConnectionFacts, TlsFacts
from a2a_proxy.model.wire import Headers


class Binding(StrEnum):
    """The way a message is carried."""

    GRPC = "grpc"
    JSONRPC = "jsonrpc"
    REST = "rest"
    STDIO = "stdio"
    WEBHOOK = "webhook"
    CARD = "card"
    """The agent card by plain GET: discovery, the same for all bindings."""
    OTHER = "other"
    """HTTP that is not A2A."""


class Dialect(StrEnum):
    """The protocol version that a peer speaks (manual/protocol.md "Dialects")."""

    V0_1 = "0.1"
    V0_2 = "0.2"
    V0_3 = "0.3"
    RC = "1.0-rc"
    V1_0 = "1.0"
    V1_1 = "1.1"
    """1.0 with the draft's generation fields seen on the wire."""
    VENDOR = "vendor"
    """A mix of 0.1 and 0.2 (manual/protocol.md "Vendor hybrid")."""
    UNKNOWN = ""


LiveMode = Literal["auto", "bidi", "1975", "2153"]
"""Payload family of SendLiveMessage: detected from the bytes (`auto`), or set by the user
(manual/protocol.md "Live payload detection")."""


class ConnectionTls(msgspec.Struct, frozen=True, omit_defaults=True):
    """The TLS handshakes of a connection; at least one of the two."""

    client: TlsFacts | None = None
    """With the client; None if it speaks plain text."""
    upstream: TlsFacts | None = None
    """With the upstream; None if it is reached without TLS."""


OPAQUE_COUNTERS = ("opaque_to_agent", "opaque_to_client")
"""Names in `Connection.counters`, by direction: bytes that were relayed but not decoded; absent if
0."""


class Connection(msgspec.Struct, frozen=True):
    """One client connection with its upstream connection."""

    id: int
    client: str
    listen: str
    upstream: str
    opened: int
    kind: str = ""
    """`h2c`, `http/1.1`, `stdio`, `tls`, `opaque`; empty before the first byte."""
    dialed: int = 0
    peer: str = ""
    closed: int = 0
    """0 while open."""
    how: str = ""
    """How it ended, with the first side to act: `client eof`, `agent reset`, `agent goaway`,
    `refused: ...`, `proxy killed`; empty while open. A stdio agent:
    `client eof, then agent exited with code 0`, `agent killed by SIGKILL`."""
    bytes_to_agent: int = 0
    bytes_to_client: int = 0
    lost_bytes: int = 0
    """Bytes that were relayed but not captured."""
    counters: dict[str, int] = {}
    """Wire events too common to store one by one: `ping`, `window_update`, `settings_ack`; and
    `OPAQUE_COUNTERS`."""
    client_process: ClientProcess | None = None
    """The client's process; None if it is unknown."""
    tls: ConnectionTls | None = None
    """The TLS handshakes of its legs; None without TLS."""

    @property
    def facts(self) -> ConnectionFacts:
        """The facts known when it was opened."""
        transport = "stdio" if self.kind == "stdio" else "tcp"
        client_tls = self.tls.client if self.tls is not None else None
        return ConnectionFacts(
            self.client, self.listen, self.upstream, transport, self.client_process, client_tls
        )


class Exchange(msgspec.Struct, frozen=True):
    """One exchange: a request with its response or stream."""

    id: int
    """Number within the session, from 1, in order of first byte."""
    connection: int
    stream: int
    """Number of the stream; on a pipe, of the request."""
    binding: Binding
    started: int
    """First byte of the request, ns."""
    dialect: Dialect = Dialect.UNKNOWN
    operation: str = ""
    """The 1.0 name, for every binding and dialect: `SendStreamingMessage`; empty if it is not an
    A2A operation."""
    method: str = ""
    """The method on the wire: the JSON-RPC method, `GET`, or the gRPC method."""
    target: str = ""
    authority: str = ""
    http_version: str = ""
    streaming: bool = False
    """Whether the response is a stream of events."""
    rpc_id: str = ""
    request_headers: Headers = ()
    response_headers: Headers = ()
    trailers: Headers = ()
    informational: tuple[int, ...] = ()
    """1xx statuses before the response."""
    request_ended: int = 0
    """Last byte of the request (END_STREAM), ns; 0 if it has not arrived."""
    response_started: int = 0
    """Response head, ns."""
    first_event: int = 0
    last_event: int = 0
    closed: int = 0
    """0 while open."""
    status: int = 0
    """HTTP status; 0 before the response."""
    grpc_status: int = -1
    """-1 if there is none."""
    error_code: int = 0
    error: str = ""
    """One line for people: `TASK_NOT_FOUND -32001: no such task`; empty without an error."""
    how: str = ""
    """How it ended: `complete`, `client cancel`, `agent reset`, `client gone`, `agent gone`,
    `connection lost` (its bytes were not captured, or cannot be decoded), `proxy stopped`,
    `proxy killed`, `refused`, `cut by --fault`, `switched to h2c: ...` (the connection left HTTP/1,
    the rest is not decoded); empty while open. With stdio also `agent exited` (its process ended,
    and not because its client closed it), `id used again`, and `forgotten` (too many exchanges were
    open)."""
    half_close: str = ""
    """Which direction ended first: `client` or `agent`."""
    task_id: str = ""
    """The first task named in it."""
    context_id: str = ""
    states: tuple[str, ...] = ()
    """Task states reached, in order, without repeats: `working`, `completed`; at most 32."""
    requests: int = 0
    """Number of the client's A2A messages."""
    events: int = 0
    """Number of the agent's A2A messages."""
    bytes_to_agent: int = 0
    bytes_to_client: int = 0
    traceparent: str = ""
    version_header: str = ""
    """`A2A-Version` as sent, from header, metadata or query."""
    extensions: str = ""
    """`A2A-Extensions` (or the `X-` form) as sent."""
    ours: bool = False
    """Whether the proxy answered, not the agent."""
    redacted: tuple[str, ...] = ()
    live_payload: str = ""
    """Payload family of a live stream: `bidi`, `1975` or `2153`."""
    current_generation: int | None = None
    """`currentGeneration` of a GetTask: the response may be held until the task has a later one
    (A2A 1.1 draft section 3.2.7). None if it is not set or is not a number."""
    generation_match: int | None = None
    """`ifGenerationMatch` of a send; None as above."""
    generation: int = 0
    """The agent's last generation in this exchange; 0 if it sent none."""
    sent_traceparent: str = ""
    """The `traceparent` sent to the agent, if the proxy replaced the client's `traceparent`: the
    trace id is the same, and the parent id that of the proxy's own span. Empty if the field was
    passed unchanged."""
    card_signatures: tuple[CardSignature, ...] = ()
    """The signatures of the card that the agent sent, as verified before redaction."""
    agent: str = ""
    """The agent that is called: its upstream as the user wrote it and its base path
    (`127.0.0.1:8000/a2a/alpha`); the command line of a stdio agent. One agent with several
    interfaces has the first of its names."""

    @property
    def trace_context(self) -> str:
        """The `traceparent` received by the agent; empty if there was none."""
        return self.sent_traceparent or self.traceparent

    @property
    def waits(self) -> bool:
        """Whether it is a long poll that is not answered yet."""
        return (
            self.current_generation is not None
            and not self.closed
            and not self.events
            and not self.error
        )
