"""The script of a replay: the calls of a recording, each a list of lines in the order of the
wire.

Input and output of the player: requests from a server, and what to send.

Redaction labels in place of credentials: which of them a replay can fill in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import msgspec

from a2a_proxy.model.values import Binding, Dialect, EventKind
from a2a_proxy.model.wire import Headers
from a2a_proxy.protocol.operations import STREAMING_OPERATIONS

if TYPE_CHECKING:
    from a2a_proxy.replay.core.miss import Miss

LIVE_OPERATIONS = frozenset({"SendLiveMessage", "ReconnectToTask"})
"""Operations whose client may send more messages after its request."""
SENDING_OPERATIONS = frozenset({"SendMessage", "SendStreamingMessage"}) | LIVE_OPERATIONS
"""Operations that send a message to the agent."""
SUBSCRIBING_OPERATIONS = frozenset({"SubscribeToTask"})
"""Operations whose answer begins at the current state of a task."""

POLLING_OPERATION = "GetTask"


class ScriptSide(StrEnum):
    """The sender of a line."""

    CLIENT = "client"
    AGENT = "agent"


class LineKind(StrEnum):
    """Kind of a line, or of something to send."""

    MESSAGE = "message"
    ERROR = "error"
    """An A2A error as a message: of JSON-RPC, of REST, in a stream. On gRPC the error is in the
    END."""
    COMMENT = "comment"
    """A block of an event stream that clients do not read as an event."""
    END = "end"
    """This side sends nothing more; the agent's END has the status."""
    RESET = "reset"
    """This side reset the call (RST_STREAM, a reset connection)."""
    CUT = "cut"
    """The bytes end without terminator or status. The connection is closed without one."""
    MISS = "miss"
    """Only sent: the client left the recording. The call is over; `PlayerSend.miss` says why."""
    PUSH = "push"
    """Only sent: the POST of a webhook to the URL that the client registered."""


class ScriptLine(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that one side sent."""

    number: int
    """Number of the frame in its exchange."""
    side: ScriptSide
    what: LineKind
    at: int = 0
    """Time in ns since the call began."""
    value: Any = None
    """The message in canonical form (`protocol.form`); text if its payload is not JSON; None
    without a payload."""
    raw: bytes = b""
    """The payload as recorded."""
    schema: str = ""
    """Schema of `raw`."""
    event: EventKind = EventKind.NONE
    task: str = ""
    """Recorded id of the task that the line names."""
    state: int = 0
    generation: int = 0
    status: int = -1
    """gRPC status of an END; -1 if it has none."""
    trailers: Headers = ()
    event_id: str = ""
    """`id` of an SSE event."""
    framing: str = ""
    """The SSE event without its data, as `wire.sse.rebuild` takes it; empty for other lines."""
    sent: int = 0
    """Bytes of the message in `value` that are sent before a CUT that a fault injected."""
    stall: int = 0
    """Delay in ns that a fault adds, at any speed."""
    note: str = ""
    """How the call broke off: `rst_stream cancel`, `reset`, `eof`."""
    place: str = ""
    """`#3.4`, as `a2a-inspect show` takes it."""
    after: int = -1
    """Number of the client line that an author pinned as its gate; -1 if there is none."""
    findings: tuple[str, ...] = ()
    """Rules that the line violates; it is replayed as recorded."""

    @property
    def is_final(self) -> bool:
        """Whether its side sends nothing after it."""
        return self.what in (LineKind.END, LineKind.RESET, LineKind.CUT)


class RecordedCall(msgspec.Struct, frozen=True, kw_only=True):
    """One recorded call."""

    place: str
    """`#3`; `#2:3` in a recording of several sessions."""
    operation: str
    """The 1.0 name."""
    binding: Binding
    dialect: Dialect
    request: Any
    """The request in canonical form; None if the client ended a gRPC call without a message."""
    lines: tuple[ScriptLine, ...]
    """Everything after the request, of both sides. The last line of the agent ends the call, unless
    its client did."""
    tenant: str = ""
    agent: str = ""
    """`Exchange.agent`."""
    began: int = 0
    """Start of the call in ns since the Unix epoch."""
    headers: Headers = ()
    """Headers of the request, redacted."""
    answer_headers: Headers = ()
    """Headers of the response: gRPC's initial metadata, or HTTP's."""
    status: int = 0
    """HTTP status; 0 if there is none."""
    early_headers: bool = False
    """Whether gRPC's initial metadata came before the client's first message."""
    trailers_only: bool = False
    """Whether the gRPC status came in place of the headers."""
    streaming: bool = False
    """Whether a stream answered the call, even if its operation does not require one."""
    live_payload: str = ""
    target: str = ""
    """Path (and query), or the gRPC path."""
    is_broken: bool = False
    """Whether its end was not captured."""
    refusal: str = ""
    """Why the call is refused, although it can be found; empty if it is served."""

    @property
    def is_live(self) -> bool:
        """Whether its client may send more than one message."""
        return self.operation in LIVE_OPERATIONS

    @property
    def is_stream(self) -> bool:
        """Whether a stream answers the call."""
        return self.streaming or self.operation in STREAMING_OPERATIONS

    @property
    def agent_lines(self) -> tuple[ScriptLine, ...]:
        """The lines of the agent."""
        return tuple(line for line in self.lines if line.side is ScriptSide.AGENT)

    @property
    def task(self) -> str:
        """Recorded id of the first task that the agent named, else of the task in the request."""
        return next((line.task for line in self.lines if line.task), "")


class UnservableCall(msgspec.Struct, frozen=True):
    """A call that is not replayed, and the reason."""

    place: str
    reason: str
    operation: str = ""
    """Empty if it is not an A2A operation."""


class RecordedPush(msgspec.Struct, frozen=True, kw_only=True):
    """A recorded webhook: the agent's POST."""

    place: str
    at: int
    """Time in ns since the Unix epoch."""
    value: Any
    """The payload in canonical form."""
    raw: bytes = b""
    url: str = ""
    """Host and path of the recorded POST."""
    headers: Headers = ()
    dialect: Dialect = Dialect.UNKNOWN
    task: str = ""


class ReplayScript(msgspec.Struct, frozen=True, kw_only=True):
    """A recording to replay."""

    name: str
    """Name of the file."""
    calls: tuple[RecordedCall, ...] = ()
    """Calls of A2A operations, in the order in which they began."""
    cards: tuple[RecordedCall, ...] = ()
    """Requests of the agent card by plain GET."""
    pushes: tuple[RecordedPush, ...] = ()
    unservable: tuple[UnservableCall, ...] = ()
    sessions: int = 1
    missing: str = ""
    """What is missing from the recording, in words; empty if nothing is."""
    faults: tuple[str, ...] = ()
    """The faults that were injected, as the user wrote them."""

    @property
    def began(self) -> int:
        """Start of the first call in ns since the Unix epoch."""
        return min((call.began for call in (*self.calls, *self.cards)), default=0)


class PlayerRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A call of a client, as received."""

    operation: str
    """The 1.0 name from the operation table; for an unknown operation, its path or method on the
    wire."""
    value: Any = msgspec.field(default_factory=dict)
    """The request in canonical form: `protocol.form`."""
    binding: Binding = Binding.GRPC
    dialect: Dialect = Dialect.V1_0
    tenant: str = ""
    headers: Headers = ()
    agent: str = ""
    """The agent whose recorded calls had this base path; empty if there is none or more than
    one."""


class PlayerSend(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to send now, with live identifiers."""

    what: LineKind
    value: Any = None
    """The message or the error in canonical form."""
    line: ScriptLine | None = None
    """The recorded line; None if the replay itself creates the message."""
    status: int = -1
    """gRPC status of an END; -1 if none was recorded (other bindings)."""
    trailers: Headers = ()
    after: int = 0
    """Bytes of the message in `value` that are still sent before a CUT; 0: none."""
    miss: Miss | None = None
    url: str = ""
    """URL of a PUSH, as registered by the client."""
    push: RecordedPush | None = None
    """The recorded webhook of a PUSH."""
    config: Any = None
    """The client's configuration for a PUSH, with its token and authentication."""

    @property
    def is_final(self) -> bool:
        """Whether nothing follows on this call."""
        return self.what in (LineKind.END, LineKind.RESET, LineKind.CUT, LineKind.MISS)


LABEL = re.compile(r"redacted-[0-9a-f]{12}")
_LABEL_BYTES = re.compile(LABEL.pattern.encode())


def find_unfilled(calls: Iterable[RecordedCall]) -> Iterator[tuple[RecordedCall, str]]:
    """Yield the calls, in their order, each with a label of its answer that no client sent before,
    so that its value is unknown; empty if there is none."""
    known_labels: set[str] = set()
    for call in calls:
        known_labels |= find_labels(call.request)
        unknown = ""
        for line in call.lines:
            labels = find_labels(line.value)
            if line.side is ScriptSide.CLIENT:
                known_labels |= labels
            else:
                unknown = unknown or min(labels - known_labels, default="")
        yield call, unknown


def find_labels(value: Any) -> set[str]:
    """Return the labels anywhere in a message."""
    return set(LABEL.findall(msgspec.json.encode(value).decode())) if value else set()


def without_labels(headers: Headers) -> Headers:
    """Return the header fields without those that would deliver a label to a client, for example as
    a cookie."""
    return tuple((name, value) for name, value in headers if not _LABEL_BYTES.search(value))
