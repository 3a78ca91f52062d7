"""One A2A message or wire event, as recorded."""

from __future__ import annotations

from enum import IntEnum

import msgspec

from a2a_proxy.model.chunk import Direction
from a2a_proxy.model.fields import Ident, PeerNumber, PeerWord, StateNumber, Time

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
