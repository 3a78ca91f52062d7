"""The values of a recording, as snapshots, each with its row of the field table.

Connections, exchanges and frames; findings and notes about them; tasks; the conversation divided by
speaker: segments, interruptions and hand-offs, whose derivation is described in manual/protocol.md
"Segments". The state machines that create them are in `protocol`.

All times are ns since the epoch, as seen by the relay; 0 if the event has not happened.

`Observer.feed` yields frames and findings in wire order. The other values change many times a
second, so they are not yielded one by one: `Observer.pop_changes` returns one snapshot of each that
changed since the last call.
"""

from enum import IntEnum, StrEnum
from typing import Annotated

import msgspec

from a2a_proxy.model.card_signature import CardSignature
from a2a_proxy.model.fields import (
    Encoding,
    Ident,
    Key,
    PeerNumber,
    PeerWord,
    Row,
    StateNumber,
    Text,
    Time,
    Word,
)
from a2a_proxy.model.wire import ClientProcess, ConnectionFacts, Direction, Headers, TlsFacts


class Binding(StrEnum):
    """The way a message is carried."""

    GRPC = "grpc"
    JSONRPC = "jsonrpc"
    REST = "rest"
    STDIO = "stdio"
    WEBSOCKET = "websocket"
    """JSON-RPC messages on a WebSocket: a proposed binding."""
    WEBHOOK = "webhook"
    CARD = "card"
    """The agent card by plain GET: discovery, the same for all bindings."""
    OTHER = "other"
    """HTTP that is not A2A."""


JSONRPC_BINDINGS = frozenset({Binding.JSONRPC, Binding.STDIO, Binding.WEBSOCKET})
"""Bindings whose messages are JSON-RPC."""
CARD_BINDINGS = {Binding.JSONRPC: "JSONRPC", Binding.REST: "HTTP+JSON", Binding.GRPC: "GRPC"}
"""Names that the protocol defines for bindings in agent cards. A pipe and a WebSocket have none."""


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
    """`h2c`, `http/1.1`, `websocket`, `stdio`, `tls`, `opaque`; empty before the first byte."""
    dialed: Time = 0
    peer: Text = ""
    closed: Time = 0
    """0 while open."""
    how: Text = ""
    """How it ended, with the first side to act: `client eof`, `agent reset`, `agent goaway`,
    `agent close 1001`, `refused: ...`, `proxy killed`; empty while open. A stdio agent:
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
_TimeNotInJson = Annotated[Time, Row(json=None)]
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
    request_ended: _TimeNotInJson = 0
    """Last byte of the request (END_STREAM), ns; 0 if it has not arrived."""
    response_started: _TimeNotInJson = 0
    """Response head, ns."""
    first_event: _TimeNotInJson = 0
    last_event: _TimeNotInJson = 0
    closed: _TimeNotInJson = 0
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
    `proxy killed`, `refused`, `cut by --fault`, `switched to a tunnel: ...` (the connection left
    HTTP, the rest is not decoded); empty while open. With stdio also `agent exited` (its process
    ended, and not because its client closed it), `id used again`, and `forgotten` (too many
    exchanges were open)."""
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


FAULT_MARK = " by --fault: "
"""Part of the note of a frame that a fault on purpose concerns: after what happened, before the
words of the fault."""
LOST_MARKS = tuple(what + FAULT_MARK for what in ("dropped", "cut"))
"""Parts of the note of an event that the agent sent and the client did not get, because of a
fault."""


class FrameKind(IntEnum):
    """The kind of a frame. The numbers are stored: never renumber."""

    REQUEST = 1
    """An A2A request: a JSON-RPC call, a REST request (also without a body), a gRPC message of the
    client."""
    RESPONSE = 2
    """The response to a unary call."""
    EVENT = 3
    """One event of a stream."""
    ERROR = 4
    """An A2A error, as a whole response or within a stream. gRPC reports errors in trailers, which
    are an END."""
    COMMENT = 5
    """An SSE comment, or an SSE event without data: it holds no A2A message."""
    END = 6
    """This direction of the exchange is complete; on gRPC with the trailers as payload (`schema`
    `trailers`)."""
    CUT = 7
    """This direction broke off; `note` says how (`rst_stream cancel`, `reset`, `eof`, `lost`,
    `proxy stopped`)."""
    CONTROL = 8
    """A connection-level wire event (SETTINGS, GOAWAY ...); payload is JSON."""
    OTHER = 9
    """A body that is not A2A (another content type, another path)."""
    UNDECODABLE = 10
    """Bytes that could not be decoded; the payload is the available part of them, `note` says
    why."""
    LOG = 11
    """A line that a stdio agent wrote to stderr; its byte range is in stderr."""


class EventKind(IntEnum):
    """The A2A object that a frame carries. The numbers are stored: never renumber."""

    NONE = 0
    TASK = 1
    MESSAGE = 2
    STATUS = 3
    ARTIFACT = 4
    TASKS = 5
    """A list of tasks."""
    CARD = 6
    PUSH_CONFIG = 7
    PUSH_CONFIGS = 8
    UNKNOWN = 9
    """An A2A wrapper with a member that no known dialect defines (Q-32)."""


EVENT_WRAPPERS = {
    EventKind.TASK: "task",
    EventKind.MESSAGE: "message",
    EventKind.STATUS: "statusUpdate",
    EventKind.ARTIFACT: "artifactUpdate",
}
"""The member of a StreamResponse of 1.0 that holds each kind of event."""


class Frame(msgspec.Struct, frozen=True, gc=False):
    """One A2A message or wire event. Created by `protocol`, redacted by `redaction`, stored by
    `recording`."""

    connection: int
    exchange: int
    """Number of the exchange within the session, from 1; 0 for a frame of the connection itself."""
    seq: int
    """Position within the exchange (or the connection if `exchange` is 0), from 0; one count for
    both directions."""
    direction: Direction
    kind: FrameKind
    began: Time
    """Time its first byte arrived, ns since the epoch."""
    at: Time
    """Time its last byte arrived, ns since the epoch: the earliest time a peer could act on it."""
    start: int
    end: int
    """Byte range in its direction of the connection (framing included)."""
    payload: bytes = b""
    """The message itself, content coding removed: JSON text, protobuf bytes, SSE data.

    Truncated at the storage limit.
    """
    size: int = 0
    """Full size of the payload in bytes, even if `payload` is truncated."""
    sha256: bytes = b""
    """SHA-256 of the whole payload; only if `truncated`."""
    truncated: bool = False
    schema: str = ""
    """The payload's format: `json`, `text`, `bytes`, `trailers`, `control`, or a protobuf message's
    full name."""
    framing: str = ""
    """The payload's framing on the wire, interned. SSE: the event's lines with each data line's
    value as U+0000 (`data: \\0\\r\\n\\r\\n`). gRPC: empty, or the message encoding (`gzip`) if the
    compressed flag was set. stdio: the header block with the content as U+0000, and U+0001 for a
    correct Content-Length (`wire.Framed`)."""
    event: EventKind = EventKind.NONE
    task_id: Ident = ""
    context_id: Ident = ""
    message_id: Ident = ""
    artifact_id: Ident = ""
    state: StateNumber = 0
    """A `TaskState` number, 0 if the frame has no state."""
    generation: PeerNumber = 0
    """`generation` of the event; on a request `currentGeneration` or `ifGenerationMatch`. 0 if
    absent."""
    append: bool = False
    last_chunk: bool = False
    final: bool = False
    error_code: PeerNumber = 0
    """JSON-RPC error code, HTTP status of a REST error, or gRPC status."""
    rpc_id: Ident = ""
    """The JSON-RPC id as JSON text (`"7"`, `7`, `null`); empty if there is none."""
    note: PeerWord = ""
    """Short remark in words, interned."""
    ours: bool = False
    """Whether the proxy created these bytes, not the peer."""
    redacted: tuple[str, ...] = ()
    """Paths of the values that were replaced by labels."""


class Severity(IntEnum):
    """The severity of a finding. The numbers are stored."""

    INFO = 1
    WARNING = 2
    ERROR = 3


class Actor(StrEnum):
    """The party that must act on a finding, as recorded in its evidence under `actor`."""

    AGENT = "agent"
    CLIENT = "client"
    EITHER = "client or agent"
    BETWEEN = "something between"
    """A proxy, gateway or connection between client and agent."""


class Finding(msgspec.Struct, frozen=True):
    """One finding with its evidence."""

    rule: Word
    """`A2A-GEN-001`, or `UNDECODABLE` for a finding of the decoders."""
    severity: Severity
    at: Time
    summary: Text
    connection: int = 0
    exchange: int = 0
    seq: int = -1
    """Frame within the exchange; -1 if the finding is about the whole exchange or connection."""
    task_id: Annotated[Ident, Row("task")] = ""
    confidence: Word = "high"
    evidence: dict[str, str] = {}


class Note(msgspec.Struct, frozen=True):
    """A note or a bookmark, or both; a place has at most one. The text is the user's own and is not
    redacted."""

    text: Annotated[str, Encoding.TEXT]
    """Empty if the place is only bookmarked."""
    at: Time
    """Time of the last change, ns since the epoch."""
    exchange: int = 0
    """0 if the note is about the session."""
    seq: int = -1
    """Frame within the exchange; -1 if the note is about the whole exchange or session."""
    bookmark: bool = False


class Support(IntEnum):
    """Whether the agent numbers a task (manual/protocol.md "Generations"). The numbers are stored:
    never renumber."""

    UNKNOWN = 0
    """No client has requested it: the exchanges use an older version."""
    YES = 1
    NO = 2
    """The agent sends no numbers although the client speaks 1.1, or one number for two events: do
    not rely on them."""


class MissedReason(IntEnum):
    """Why a stream has left out a generation. The numbers are stored: never renumber."""

    UNKNOWN = 0
    MESSAGE = 1
    """Probably a client's message, which advances the generation but need not be sent to
    subscribers."""
    SHOWN_MESSAGE = 2
    """A timeline shows a client's message, or an entry of a kind that A2A does not define yet."""
    EVENT = 3
    """An event, which another stream or a push notification carried, or which a timeline shows."""
    DROPPED = 4
    """An event that the agent sent, and that a fault dropped on purpose (`--fault`)."""


class MissedGenerations(msgspec.Struct, frozen=True):
    """A run of generations missing on a stream, and the exchange that closed the gap for the same
    client."""

    first: int
    last: int
    at: Time
    """Time the gap was noticed, ns."""
    exchange: int
    """The stream."""
    healed: Time = 0
    """Time the gap was closed, ns; 0 while it is open."""
    by: int = 0
    """The exchange that closed the gap; 0 if another stream had already delivered the events."""
    generation: int = 0
    """The generation that closed the gap: that of the last missing event, or of a snapshot at least
    as new."""
    reason: MissedReason = MissedReason.UNKNOWN
    message: int = 0
    """The exchange with the client's message; 0 if the reason is another one or the message did not
    pass here."""

    @property
    def is_explained(self) -> bool:
        """Whether nothing is missing: a client's message has the generation."""
        return self.reason in (MissedReason.MESSAGE, MissedReason.SHOWN_MESSAGE)


class ArtifactState(msgspec.Struct, frozen=True):
    """One artifact of a task; its content is rebuilt from the frames (`protocol.artifact`)."""

    artifact_id: Annotated[Ident, Row("ident")]
    name: Text = ""
    chunks: int = 0
    """Number of updates that carried it; a snapshot in a Task does not count."""
    parts: int = 0
    size: Annotated[int, Row(json="bytes")] = 0
    """Bytes of text, raw and data of the parts."""
    complete: bool = False
    """Whether a chunk had `lastChunk`, or the artifact arrived whole."""
    first: Annotated[Time, Row(json=None)] = 0
    last: Annotated[Time, Row(json=None)] = 0


class Task(msgspec.Struct, frozen=True):
    """A task's current state. Keyed by agent and id, because two agents may use the same id."""

    agent: PeerWord
    """The upstream that owns it, as the listener names it."""
    task_id: Annotated[Ident, Row("ident")]
    context_id: Annotated[Ident, Row("context")] = ""
    tenant: Annotated[PeerWord, Row(json=None)] = ""
    state: StateNumber = 0
    states: tuple[tuple[int, int], ...] = ()
    """(time ns, state number) for each change, at most the last 64."""
    first: Annotated[Time, Row(json=None)] = 0
    last: Annotated[Time, Row(json=None)] = 0
    generation: Annotated[PeerNumber, Row(null=True)] = 0
    """Highest generation seen; 0 if the agent sends none."""
    seen: Annotated[tuple[tuple[int, int], ...], Row(json=None)] = ()
    """Generations seen in events or snapshots, as ascending (first, last), at most the highest
    64."""
    missed: Annotated[tuple[MissedGenerations, ...], Row(json=None)] = ()
    """Runs of generations that streams left out, of at most 64 gaps. A number neither here nor in
    `seen` was sent while no stream was open."""
    support: Annotated[Support, Row(json=None)] = Support.UNKNOWN
    artifacts: Annotated[tuple[ArtifactState, ...], Encoding.NONE] = ()
    messages: Annotated[int, Row(json=None)] = 0
    exchanges: tuple[int, ...] = ()
    """Exchanges that touched it, in order, at most the last 256."""

    @property
    def gaps(self) -> tuple[MissedGenerations, ...]:
        """The runs in `missed` that no client message explains."""
        return tuple(each for each in self.missed if not each.is_explained)


CLIENT, AGENT = "client", "agent"
"""The speakers."""

GAP_CLIENT = 800_000_000
"""ns of a client's silence that end its segment (manual/protocol.md "Segments")."""
GAP_AGENT = 1_500_000_000
"""ns of an agent's silence that end its segment (manual/protocol.md "Segments")."""
YIELD_WITHIN = 1_000_000_000
"""ns within which an agent's output must stop to count as yielding (manual/protocol.md
"Interruptions")."""
IDLE = 1_000_000_000
"""ns between two events of an agent after which it counts as idle (manual/segments.md)."""


class SegmentFields(msgspec.Struct):
    """The facts of a value of `Segment`."""

    id: Key
    """Number within the session, from 1, in order of their beginning."""
    agent: Word
    """The agent that owns the task, as in `Task.agent`."""
    task_id: Annotated[Ident, Row("task")]
    context_id: Annotated[Ident, Row("context")]
    speaker: str
    """`client` or `agent`."""
    turn: int
    """Number of the turn within the task, from 1; 0 for output of the agent before any client
    frame."""
    exchange: int
    """The exchange of its first frame."""
    seq: int
    """Position of that frame in the exchange."""
    last_exchange: int
    """The exchange of its last frame; it differs from `exchange` if a task has several."""
    last_seq: int
    began: Time
    """First byte of its first frame."""
    start: Time
    """Last byte of its first frame: the earliest time the other side could act on it."""
    end: Time
    """Last byte of its last frame."""
    ended: Time = 0
    """Time its end became clear; 0 while it is open."""
    reason: str = ""
    """Why it ended: `speaker`, `silence`, `artifact`, `interrupted`, `transfer`, `completed`,
    `failed`, `canceled`, `rejected`, `input`, `auth`, `error` (the call was answered with an
    error), `closed`, `broken`. Empty while open."""
    frames: int = 1
    bytes: int = 0
    """Bytes of its frames' payloads."""
    outputs: int = 0
    """Frames with output: artifact updates, messages, states with a message, tasks with artifacts
    or a message."""
    first_output: Time = 0
    last_output: Time = 0
    gap: int = 0
    """The longest pause between two of its frames, ns."""
    idle: int = 0
    """Sum of all pauses of more than `IDLE` between its frames, ns."""
    activity_end: Time = 0
    """Time the client signalled the end of its activity; 0 if it did not: then `end` counts."""
    closed: Time = 0
    """Time the stream with its final state closed."""
    generation_first: int = 0
    generation_last: int = 0
    author: str = ""
    """The agent behind the agent, if metadata names it."""


class Segment(SegmentFields, frozen=True):  # type: ignore[misc]
    """A run of frames of one speaker on one task, or in one exchange if there is no task."""


class InterruptionFields(msgspec.Struct):
    """The facts of a value of `Interruption`."""

    id: Key
    """Number within the session, from 1."""
    agent: Word
    task_id: Annotated[Ident, Row("task")]
    context_id: Annotated[Ident, Row("context")]
    kind: str
    """`message` (on the same task), `cancel`, `event` (of a media stream), or `context`: a new task
    in the same context, which is weak evidence."""
    segment: int
    """The agent's segment that was interrupted."""
    exchange: int
    """The exchange of the client's frame."""
    seq: int
    at: Time
    """Time the client's frame was complete."""
    ended: Time = 0
    """Time the outcome became clear; 0 while it is open."""
    outcome: str = ""
    """`yielded` (the output stopped within `YIELD_WITHIN`), `overlapped` (it continued),
    `canceled`, `rejected` (the client's frame was answered with an error). Empty while open."""
    residual_frames: int = 0
    """Frames of the interrupted output that arrived after `at`."""
    residual_bytes: int = 0
    """Bytes of their payloads."""
    last_residual: Time = 0
    wasted: int = 0
    """Bytes of text, raw and data in those frames."""
    reaction: Time = 0
    """Time of the agent's first different output."""

    @property
    def latency(self) -> int | None:
        """Interruption latency, ns: until the last frame of the interrupted output; None if no
        frame arrived after `at`."""
        return self.last_residual - self.at if self.last_residual else None

    @property
    def reaction_time(self) -> int | None:
        """Time until the agent's first different output, ns; None if there was none."""
        return self.reaction - self.at if self.reaction else None


class Interruption(InterruptionFields, frozen=True):  # type: ignore[misc]
    """The client sends while the agent's output is open (manual/protocol.md "Interruptions")."""


class HandoffFields(msgspec.Struct):
    """The facts of a value of `Handoff`."""

    id: Key
    """Number within the session, from 1."""
    kind: str
    """`transfer` (within one task), `delegation` (a call by the agent while its task is active), or
    `next` (the client continues the context at another agent)."""
    evidence: str
    """`author`, `transfer_to_agent`, `traceparent`, `context`, `reference`, `process` or
    `content`."""
    agent: Word
    """The agent that hands off."""
    task_id: Annotated[Ident, Row("task")]
    context_id: Annotated[Ident, Row("context")]
    segment: int
    """The segment during or after which it hands off."""
    to_agent: str
    """The agent that takes over: an upstream, or a name if it is within one task."""
    to_task: Ident
    to_exchange: int
    """The exchange in which the new agent answers."""
    exchange: int
    """The exchange of the evidence: the frame that shows the hand-off."""
    seq: int
    at: Time
    """Time that frame was complete."""
    ended: Time = 0
    """Time of the new agent's first output, or when it was clear that none will follow; 0 while it
    is open."""
    first_output: Time = 0
    briefing: int = 0
    """Bytes of the request to the new agent; 0 within one task."""

    @property
    def latency(self) -> int | None:
        """Transfer latency, ns: until the new agent's first output; None if there was none."""
        return self.first_output - self.at if self.first_output else None


class Handoff(HandoffFields, frozen=True):  # type: ignore[misc]
    """A conversation moves from one agent to another (manual/protocol.md "Hand-offs")."""


Observation = Frame | Finding


class Changes(msgspec.Struct):
    """Snapshots of the values that changed."""

    connections: list[Connection]
    exchanges: list[Exchange]
    tasks: list[Task]
    segments: list[Segment] = []
    """Segments that began, grew or ended, except turns that are one unary call, which their
    exchange describes."""
    interruptions: list[Interruption] = []
    handoffs: list[Handoff] = []
    healed: list[tuple[str, MissedGenerations]] = []
    """Task id and generation gap of each gap that was closed since the last call."""
