"""Conditions under which a rule runs: hook point, evidence scope, frame flags, dialects and
bindings."""

from enum import Enum, IntFlag, StrEnum

from a2a_proxy.model.values import Binding, Dialect


class HookPoint(StrEnum):
    """The point of an exchange at which a rule runs."""

    REQUEST = "request"
    """Once for each frame of kind REQUEST, as soon as the dialect is settled: at the first answer,
    or when the exchange is over.
    """
    HEADS = "heads"
    """Once for each exchange, at the same time, after its requests: request line, header fields,
    response head."""
    ANSWER = "answer"
    """For each frame of the agent that is an answer or takes the place of one: RESPONSE, EVENT,
    ERROR, OTHER, UNDECODABLE, COMMENT, and gRPC trailers (END).
    """
    CLOSED = "closed"
    """Once for each exchange, when it is over and one of the peers ended it."""
    CONNECTION = "connection"
    """For each frame of the connection itself (exchange 0), except log lines."""
    ENDING = "ending"
    """When the recording is read, for each call that did not end well (`rules.endings`); never
    while it is written."""


class EvidenceScope(StrEnum):
    """The evidence a rule depends on (manual/protocol.md "Rules and evidence")."""

    FRAME = "frame"
    EXCHANGE = "exchange"
    SESSION = "session"
    LIVE = "live state"
    """Facts combined from all connections and bindings: less certain if the beginning was not
    recorded."""


class FrameFlag(IntFlag):
    """Notable properties of an agent's frame; each rule names the flags that make it run."""

    UNCLEAN = 1
    """The payload is not provably valid (`gate`), so the rules about payloads run. Also for
    requests."""
    FIRST = 1 << 1
    """The first answer of the exchange, not counting comments."""
    TASK = 1 << 2
    STATUS = 1 << 3
    ARTIFACT = 1 << 4
    MESSAGE = 1 << 5
    CARD = 1 << 6
    LIST = 1 << 7
    """The answer to ListTasks."""
    PUSH = 1 << 8
    """One or several push configurations."""
    OTHER = 1 << 9
    """An answer that is not an A2A object: another result, another body, a comment, or undecodable
    bytes."""
    ERROR = 1 << 10
    """An A2A error, or gRPC trailers with a status other than 0."""
    END = 1 << 11
    """gRPC trailers, or the end of an event stream."""
    NEW_TASK = 1 << 12
    """The task was unknown before this frame."""
    CHANGED = 1 << 13
    """The task changes to another state than the last known one, and no other stream has shown that
    state yet."""
    SAME = 1 << 14
    """A status update that repeats the state last shown by this stream."""
    TERMINAL = 1 << 15
    """The frame carries a terminal state."""
    INTERRUPTED = 1 << 16
    """The frame carries INPUT_REQUIRED or AUTH_REQUIRED."""
    AFTER_TERMINAL = 1 << 17
    """The task was terminal before this frame, as far as this exchange could know."""
    NUMBERED = 1 << 18
    """The frame has a generation, or its task or agent has shown one before."""
    APPEND = 1 << 19
    """An artifact update with `append`."""
    KNOWN_ARTIFACT = 1 << 20
    """An artifact update for an artifact that is already known."""
    SHARED = 1 << 21
    """More than one stream of the task is open, or was open within the last 10 s."""
    FOREIGN = 1 << 22
    """The task is not the one of this exchange, or the context is not the task's."""
    REPEAT = 1 << 23
    """The same bytes were received on this stream before."""
    LATER = 1 << 24
    """On a stream: an event preceded this one."""
    FRAMED = 1 << 25
    """A stream event with more than one data line and its empty line; a compressed gRPC message; a
    message on a pipe with more than a correct length and the usual type. Also for requests.
    """
    UNUSUAL = 1 << 26
    """On a stream: an event of more than 4 MiB, or with a character at which some readers end the
    line."""
    AFTER_ERROR = 1 << 27
    """On a stream: an error preceded this frame."""
    LEFT_TERMINAL = 1 << 28
    """The frame shows another state after a terminal one, and neither a lagging stream nor an old
    snapshot explains it.
    """
    STALE = 1 << 29
    """A snapshot that shows the task as before a terminal state, although that state was relayed
    before the request."""
    BACKWARDS = 1 << 30
    """The status has an earlier timestamp than the previous one on this stream, by more than a
    second."""
    REUSED_MESSAGE_ID = 1 << 32
    """The message's id was used for other content before."""
    GROWN = 1 << 35
    """The earlier content was the beginning of this content."""
    OVERDUE = 1 << 36
    """The frame continues a task that ended elsewhere, later than a lagging stream explains; or its
    status is dated after that end.
    """
    STRAY = 1 << 37
    """A message in the status or history names another task or context."""
    ODD_CHUNK = 1 << 33
    """An artifact update that does not simply continue: it appends to an unknown or complete
    artifact, or replaces one.
    """
    FURTHER_ARTIFACT = 1 << 39
    """The first update of an artifact, of a task that has others."""
    TOGETHER = 1 << 38
    """A status update at least 2 s after the call and at most 0.3 s after the first such update."""
    CARD_KNOWN = 1 << 40
    """Property of the exchange, like all flags up to `ODD_END`, set by `request_flags`: a card of
    its agent was seen.
    """
    NAMES = 1 << 41
    """The request names a task or a context. Also for a later message of a live stream."""
    EXTENDS = 1 << 42
    """The heads have an extensions field; for gRPC trailers: the trailers have one."""
    COUNTS = 1 << 43
    """The request mentions generations, or a version that has them."""
    PUSHES = 1 << 44
    """The request may contain a push configuration."""
    LIMITS = 1 << 45
    """The request may contain a `historyLength`."""
    ODD_HEAD = 1 << 46
    """Not a plain A2A call: a query, a user in the authority, no operation, or a status other than
    200."""
    ODD_END = 1 << 47
    """At `CLOSED`: the exchange broke off, or its HTTP or gRPC status is not a success."""
    COUNTED = 1 << 49
    """An answer that is not an A2A object (see `OTHER`) but has a generation: an event of a
    proposal (Q-32)."""
    AGAIN = 1 << 50
    """An update with `append` whose text may be earlier text of its artifact, by its length; or was
    redacted."""
    TYPED = 1 << 51
    """A task, artifact or message that may name a media type, or was redacted."""
    ASKS = 1 << 48
    """A request: for rules that run on some requests' answers and on all requests."""


EXCHANGE_FLAGS = (
    FrameFlag.CARD_KNOWN
    | FrameFlag.NAMES
    | FrameFlag.EXTENDS
    | FrameFlag.COUNTS
    | FrameFlag.PUSHES
    | FrameFlag.LIMITS
    | FrameFlag.ODD_HEAD
    | FrameFlag.ODD_END
)
"""Flags that are the same for all frames of an exchange."""
ANY_EVENT = FrameFlag.TASK | FrameFlag.STATUS | FrameFlag.ARTIFACT | FrameFlag.MESSAGE
"""Any A2A event, also one sent as the answer of a call."""


class Dialects(Enum):
    """Groups of dialects that rules distinguish."""

    ALL = frozenset(Dialect)
    OLD = frozenset({Dialect.V0_1, Dialect.V0_2, Dialect.V0_3, Dialect.VENDOR})
    V0_2_0_3 = frozenset({Dialect.V0_2, Dialect.V0_3})
    SINCE_0_2 = frozenset({Dialect.V0_2, Dialect.V0_3, Dialect.V1_0, Dialect.V1_1})
    V1 = frozenset({Dialect.V1_0, Dialect.V1_1})
    DRAFT_1_1 = frozenset({Dialect.V1_0, Dialect.V1_1, Dialect.UNKNOWN})
    """Features of the 1.1 draft: judged if the traffic uses them, whatever version it declares."""


MESSAGE_HOOKS = (HookPoint.REQUEST, HookPoint.ANSWER)
JSONRPC = frozenset({Binding.JSONRPC})
REST = frozenset({Binding.REST})
GRPC = frozenset({Binding.GRPC})
STDIO = frozenset({Binding.STDIO})
WEBSOCKET = frozenset({Binding.WEBSOCKET})
CARD = frozenset({Binding.CARD})
WEBHOOK = frozenset({Binding.WEBHOOK})
HTTP = JSONRPC | REST
ENVELOPE = JSONRPC | STDIO
"""The bindings whose rules about JSON-RPC are settled; on a WebSocket drafts differ."""
NETWORK = JSONRPC | REST | GRPC
"""The bindings whose calls have heads and connections of their own."""
RPC = NETWORK | STDIO
"""The bindings of calls whose service parameters have a settled form in both directions."""
CALLS = RPC | WEBSOCKET
"""All bindings of calls."""
JSON_TEXT = ENVELOPE | REST | WEBSOCKET | WEBHOOK | CARD
ALL_BINDINGS = CALLS | WEBHOOK | CARD
