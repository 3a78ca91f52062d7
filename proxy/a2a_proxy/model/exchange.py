"""Connections and exchanges, as snapshots. The state machines that create them are in
`protocol`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

import msgspec

from a2a_proxy.model.card_signature import CardSignature
from a2a_proxy.model.chunk import ClientProcess, ConnectionFacts, TlsFacts
from a2a_proxy.model.fields import (
    Encoding,
    Ident,
    Key,
    PeerNumber,
    PeerWord,
    Row,
    Text,
    Time,
    Word,
)
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

    id: Key
    client: Text
    listen: Text
    upstream: Text
    opened: Time
    kind: Annotated[str, Encoding.TEXT] = ""
    """`h2c`, `http/1.1`, `stdio`, `tls`, `opaque`; empty before the first byte."""
    dialed: Time = 0
    peer: Text = ""
    closed: Time = 0
    """0 while open."""
    how: Text = ""
    """How it ended, with the first side to act: `client eof`, `agent reset`, `agent goaway`,
    `refused: ...`, `proxy killed`; empty while open. A stdio agent:
    `client eof, then agent exited with code 0`, `agent killed by SIGKILL`."""
    bytes_to_agent: int = 0
    bytes_to_client: int = 0
    lost_bytes: Annotated[int, Row(column="lost")] = 0
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


_HeaderList = Annotated[Headers, Encoding.HEADERS, Row(json=None)]
_Moment = Annotated[Time, Row(json=None)]
_PeerNumberOrNone = Annotated[int | None, Encoding.PEER_NUMBER]


class ExchangeFields(msgspec.Struct):
    """The facts of an exchange: a request with its response or stream."""

    id: Key
    """Number within the session, from 1, in order of first byte."""
    connection: int
    stream: Annotated[int, Row(json=None)]
    """Number of the stream; on a pipe, of the request."""
    binding: Binding
    started: Time
    """First byte of the request, ns."""
    dialect: Dialect = Dialect.UNKNOWN
    operation: Word = ""
    """The 1.0 name, for every binding and dialect: `SendStreamingMessage`; empty if it is not an
    A2A operation."""
    method: Annotated[PeerWord, Row(label="method")] = ""
    """The method on the wire: the JSON-RPC method, `GET`, or the gRPC method."""
    target: Text = ""
    authority: Annotated[PeerWord, Row(json=None)] = ""
    http_version: Annotated[Word, Row(json=None)] = ""
    streaming: Annotated[bool, Encoding.BITS] = False
    """Whether the response is a stream of events."""
    rpc_id: Annotated[Ident, Row("rpc", json=None)] = ""
    request_headers: _HeaderList = ()
    response_headers: _HeaderList = ()
    trailers: _HeaderList = ()
    informational: Annotated[tuple[int, ...], Encoding.LIST, Row(json=None)] = ()
    """1xx statuses before the response."""
    request_ended: _Moment = 0
    """Last byte of the request (END_STREAM), ns; 0 if it has not arrived."""
    response_started: _Moment = 0
    """Response head, ns."""
    first_event: _Moment = 0
    last_event: _Moment = 0
    closed: _Moment = 0
    """0 while open."""
    status: Annotated[PeerNumber, Row(null=True)] = 0
    """HTTP status; 0 before the response."""
    grpc_status: Annotated[PeerNumber, Row(null=True)] = -1
    """-1 if there is none."""
    error_code: Annotated[PeerNumber, Row(json=None)] = 0
    error: Annotated[Text, Row(null=True, label="error")] = ""
    """One line for people: `TASK_NOT_FOUND -32001: no such task`; empty without an error."""
    how: PeerWord = ""
    """How it ended: `complete`, `client cancel`, `agent reset`, `client gone`, `agent gone`,
    `connection lost` (its bytes were not captured, or cannot be decoded), `proxy stopped`,
    `proxy killed`, `refused`, `cut by --fault`, `switched to h2c: ...` (the connection left HTTP/1,
    the rest is not decoded); empty while open. With stdio also `agent exited` (its process ended,
    and not because its client closed it), `id used again`, and `forgotten` (too many exchanges were
    open)."""
    half_close: Annotated[Word, Row(null=True, label="half-closed first")] = ""
    """Which direction ended first: `client` or `agent`."""
    task_id: Annotated[Ident, Row("task", label="task")] = ""
    """The first task named in it."""
    context_id: Annotated[Ident, Row("context", label="context")] = ""
    states: Annotated[tuple[str, ...], Encoding.LIST] = ()
    """Task states reached, in order, without repeats: `working`, `completed`; at most 32."""
    requests: int = 0
    """Number of the client's A2A messages."""
    events: int = 0
    """Number of the agent's A2A messages."""
    bytes_to_agent: int = 0
    bytes_to_client: int = 0
    traceparent: Annotated[Text, Row(json=None, label="traceparent")] = ""
    version_header: Annotated[PeerWord, Row(json=None, label="version header")] = ""
    """`A2A-Version` as sent, from header, metadata or query."""
    extensions: Annotated[PeerWord, Row(json=None)] = ""
    """`A2A-Extensions` (or the `X-` form) as sent."""
    ours: Annotated[bool, Encoding.BITS, Row(json=None)] = False
    """Whether the proxy answered, not the agent."""
    redacted: Annotated[tuple[str, ...], Encoding.LIST, Row(json=None)] = ()
    live_payload: Annotated[str, Encoding.BITS, Row(null=True, label="live payload")] = ""
    """Payload family of a live stream: `bidi`, `1975` or `2153`."""
    current_generation: _PeerNumberOrNone = None
    """`currentGeneration` of a GetTask: the response may be held until the task has a later one
    (A2A 1.1 draft section 3.2.7). None if it is not set or is not a number."""
    generation_match: Annotated[
        int | None, Encoding.PEER_NUMBER, Row(json="if_generation_match")
    ] = None
    """`ifGenerationMatch` of a send; None as above."""
    generation: Annotated[PeerNumber, Row(null=True)] = 0
    """The agent's last generation in this exchange; 0 if it sent none."""
    sent_traceparent: Annotated[Text, Row(null=True, label="forwarded as")] = ""
    """The `traceparent` sent to the agent, if the proxy replaced the client's `traceparent`: the
    trace id is the same, and the parent id that of the proxy's own span. Empty if the field was
    passed unchanged."""
    card_signatures: Annotated[tuple[CardSignature, ...], Row(null=True)] = ()
    """The signatures of the card that the agent sent, as verified before redaction."""
    agent: PeerWord = ""
    """The agent that is called: its upstream as the user wrote it and its base path
    (`127.0.0.1:8000/a2a/alpha`); the command line of a stdio agent. One agent with several
    interfaces has the first of its names."""

    @property
    def is_trace_replaced(self) -> bool:
        """Whether the agent received a `traceparent` of the proxy."""
        return bool(self.sent_traceparent)

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


class Exchange(ExchangeFields, frozen=True):  # type: ignore[misc]
    """One exchange, as far as it is known: a value that never changes."""
