"""One A2A message or wire event, as it is recorded."""

from __future__ import annotations

from enum import IntEnum

import msgspec

from a2a_proxy.model.chunk import Direction


class FrameKind(IntEnum):
    """What a frame is. The numbers are stored: never renumber."""

    REQUEST = 1
    """An A2A request: a JSON-RPC call, a REST request (also without a body), a gRPC message of the client."""
    RESPONSE = 2
    """The answer to a unary call."""
    EVENT = 3
    """One event of a stream."""
    ERROR = 4
    """An A2A error, as a whole answer or in mid-stream. On gRPC the trailers say it: those are an END."""
    COMMENT = 5
    """An SSE comment, or an SSE event without data: nothing A2A in it."""
    END = 6
    """This direction of the exchange is complete; on gRPC with the trailers as payload (`schema` `trailers`)."""
    CUT = 7
    """This direction broke off; `note` says how (`rst_stream cancel`, `reset`, `eof`, `lost`, `proxy stopped`)."""
    CONTROL = 8
    """A connection-level wire event (SETTINGS, GOAWAY ...); payload is JSON."""
    OTHER = 9
    """A body that is not A2A (another content type, another path)."""
    UNDECODABLE = 10
    """Bytes that could not be read; payload is what there was of them, `note` says why."""
    LOG = 11
    """A line that a stdio agent wrote to stderr; its span is that of stderr."""


class EventKind(IntEnum):
    """Which A2A object a frame carries. The numbers are stored: never renumber."""

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
    """An A2A wrapper with a member that no dialect here knows (Q-32)."""


class Frame(msgspec.Struct, frozen=True, gc=False):
    """One A2A message or wire event. Made by `protocol`, redacted by `redaction`, stored by `recording`."""

    connection: int
    exchange: int
    """Number of the exchange within the session, from 1; 0 for a frame of the connection itself."""
    seq: int
    """Position within the exchange (or the connection, where exchange is 0), from 0, both directions in one count."""
    direction: Direction
    kind: FrameKind
    began: int
    """When its first byte arrived, ns since the epoch."""
    at: int
    """When its last byte arrived, ns since the epoch: when a peer could act on it."""
    start: int
    end: int
    """Span of its bytes in its direction of the connection (framing included)."""
    payload: bytes = b""
    """The message itself, content coding removed: JSON text, protobuf bytes, SSE data. Cut at the storage limit."""
    size: int = 0
    """True size of the payload in bytes, also where `payload` is cut."""
    sha256: bytes = b""
    """Of the whole payload; only where `truncated`."""
    truncated: bool = False
    schema: str = ""
    """How to read the payload: `json`, `text`, `bytes`, `trailers`, `control`, or a protobuf message's full name."""
    framing: str = ""
    """How the payload sat on the wire, interned. SSE: the event's lines with each data line's value as U+0000
    (`data: \\0\\r\\n\\r\\n`). gRPC: empty, or the message encoding (`gzip`) where the compressed flag was set. stdio:
    the header block with the content as U+0000, and U+0001 for a Content-Length that is right (`wire.Framed`)."""
    event: EventKind = EventKind.NONE
    task_id: str = ""
    context_id: str = ""
    message_id: str = ""
    artifact_id: str = ""
    state: int = 0
    """A `TaskState` number, 0 where the frame tells none."""
    generation: int = 0
    """`generation` of the event; on a request `currentGeneration` or `ifGenerationMatch`. 0 where absent."""
    append: bool = False
    last_chunk: bool = False
    final: bool = False
    error_code: int = 0
    """JSON-RPC error code, HTTP status of a REST error, or gRPC status."""
    rpc_id: str = ""
    """The JSON-RPC id as JSON text (`"7"`, `7`, `null`); empty where there is none."""
    note: str = ""
    """Short remark in words, interned."""
    ours: bool = False
    """The proxy made these bytes, not the peer."""
    redacted: tuple[str, ...] = ()
    """Paths of what was replaced by labels."""
