"""What is to be replayed: the calls of a recording, each a list of lines in the order of the wire."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

from a2a_proxy.model.exchange import Binding, Dialect
from a2a_proxy.model.frame import EventKind
from a2a_proxy.model.wire import Headers
from a2a_proxy.protocol.operations import STREAMING_OPERATIONS

LIVE_OPERATIONS = frozenset({"SendLiveMessage", "ReconnectToTask"})
"""Operations whose client goes on speaking after its request."""
SENDING_OPERATIONS = frozenset({"SendMessage", "SendStreamingMessage"}) | LIVE_OPERATIONS
"""Operations that bring a message to the agent."""
SUBSCRIBING_OPERATIONS = frozenset({"SubscribeToTask"})
"""Operations that are answered from where the task has come to."""

POLLING_OPERATION = "GetTask"


class ScriptSide(StrEnum):
    """Who says a line."""

    CLIENT = "client"
    AGENT = "agent"


class LineKind(StrEnum):
    """What a line is, or something that is to be sent."""

    MESSAGE = "message"
    ERROR = "error"
    """An A2A error as a message: of JSON-RPC, of REST, in a stream. On gRPC the END says it."""
    COMMENT = "comment"
    """A block of an event stream that no client takes for an event."""
    END = "end"
    """This side has nothing more to say; of the agent, with the status."""
    RESET = "reset"
    """This side broke the call off (RST_STREAM, a reset connection)."""
    CUT = "cut"
    """The bytes just end: no terminator, no status. The connection is to be closed as it is."""
    MISS = "miss"
    """Only sent: the client left the recording. The call is over, with what `PlayerSend.miss` says."""
    PUSH = "push"
    """Only sent: a webhook's POST to the URL that the client registered."""


class ScriptLine(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that one side said."""

    number: int
    """Of the frame in its exchange."""
    side: ScriptSide
    what: LineKind
    at: int = 0
    """Ns since the call began."""
    value: Any = None
    """The message in canonical form (`protocol.form`); text where its payload is no JSON. None without a payload."""
    raw: bytes = b""
    """The payload as recorded."""
    schema: str = ""
    """How to read `raw`."""
    event: EventKind = EventKind.NONE
    task: str = ""
    """The recorded id of the task that it names."""
    state: int = 0
    generation: int = 0
    status: int = -1
    """gRPC status of an END; -1 where it has none."""
    trailers: Headers = ()
    event_id: str = ""
    """`id` of an event of SSE."""
    framing: str = ""
    """That event without its data, as `wire.sse.rebuild` takes it; empty where there is none."""
    sent: int = 0
    """Of a CUT that a fault made: bytes of the message in `value` that go out before it."""
    stall: int = 0
    """Ns that a fault lets it wait, at any speed."""
    note: str = ""
    """How it broke off: `rst_stream cancel`, `reset`, `eof`."""
    place: str = ""
    """`#3.4`, as `a2a-inspect show` takes it."""
    after: int = -1
    """The client's line that an author has said it waits for; -1 where nobody has."""
    findings: tuple[str, ...] = ()
    """Rules that it breaks: it is replayed as it was."""

    @property
    def is_final(self) -> bool:
        """Its side says nothing after it."""
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
    """What was asked, in canonical form."""
    lines: tuple[ScriptLine, ...]
    """All that followed the request, of both sides. The last one of the agent ends the call, unless its client did."""
    tenant: str = ""
    agent: str = ""
    """Where the agent was: what the proxy's command line named."""
    began: int = 0
    """Ns since the Unix epoch."""
    headers: Headers = ()
    """Of the request, redacted."""
    answer_headers: Headers = ()
    """Of the response: the initial metadata, or HTTP's."""
    status: int = 0
    """HTTP status; 0 where there is none."""
    trailers_only: bool = False
    """gRPC: the status came in the place of the headers."""
    streaming: bool = False
    """It was answered by a stream, also where the operation need not be."""
    live_payload: str = ""
    target: str = ""
    """Path (and query), or the gRPC path."""

    @property
    def is_live(self) -> bool:
        """Its client may speak more than once."""
        return self.operation in LIVE_OPERATIONS

    @property
    def is_stream(self) -> bool:
        """It is answered by a stream."""
        return self.streaming or self.operation in STREAMING_OPERATIONS

    @property
    def agent_lines(self) -> tuple[ScriptLine, ...]:
        """What the agent said."""
        return tuple(line for line in self.lines if line.side is ScriptSide.AGENT)

    @property
    def task(self) -> str:
        """Recorded id of the first task that the agent told of; else of the one that was asked about."""
        return next((line.task for line in self.lines if line.task), "")


class UnservableCall(msgspec.Struct, frozen=True):
    """A call that is not replayed, and why."""

    place: str
    reason: str
    operation: str = ""
    """Empty where it is none of A2A's."""


class RecordedPush(msgspec.Struct, frozen=True, kw_only=True):
    """A recorded webhook: what the agent posted."""

    place: str
    at: int
    """Ns since the Unix epoch."""
    value: Any
    """In canonical form."""
    raw: bytes = b""
    url: str = ""
    """Where it went then: host and path."""
    headers: Headers = ()
    dialect: Dialect = Dialect.UNKNOWN
    task: str = ""
    answered: int = 0
    """The HTTP status that the receiver gave; 0 where it gave none."""


class ReplayScript(msgspec.Struct, frozen=True, kw_only=True):
    """A recording as it is replayed."""

    name: str
    """Of the file."""
    calls: tuple[RecordedCall, ...] = ()
    """Calls of A2A's operations, in the order in which they began."""
    cards: tuple[RecordedCall, ...] = ()
    """Readings of the card by plain GET."""
    pushes: tuple[RecordedPush, ...] = ()
    unservable: tuple[UnservableCall, ...] = ()
    sessions: int = 1
    complete: str = "complete"
    """What is missing, in words."""

    @property
    def began(self) -> int:
        """The first call, ns since the Unix epoch."""
        return min((call.began for call in (*self.calls, *self.cards)), default=0)
