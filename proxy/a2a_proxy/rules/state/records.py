"""Records of each agent, task and open exchange (manual/protocol.md "Rules and evidence"), updated
by `session_state`.

Every value is plain, so that the state can be saved and restored. A rule family that needs more
state keeps it in `notes`.
"""

from dataclasses import dataclass, field
from typing import Any

import msgspec

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.values import Binding, EventKind, Exchange, Frame
from a2a_proxy.protocol.generation import TaskGenerations
from a2a_proxy.protocol.operations import STREAMING_OPERATIONS
from a2a_proxy.rules.facts.compared_values import PartsSummary
from a2a_proxy.rules.state.card_declarations import CardDeclarations

ACTIVE = frozenset({int(TaskState.SUBMITTED), int(TaskState.WORKING)})

Notes = dict[str, Any]
ClientVersions = tuple[tuple[str, str], ...]
"""Client and the protocol version that it uses for a task."""


class KnownArtifact(msgspec.Struct, gc=False):
    """An artifact of a task as shown by the first stream that carried it; other streams repeat it
    sooner or later."""

    chunks: int = 0
    """Number of updates on that stream."""
    appends: int = 0
    """Number of appending updates since the last replacement."""
    is_complete: bool = False
    """Whether `lastChunk` was set and the artifact was not replaced since."""
    stream: int = 0
    """The exchange that is followed. It changes only to an exchange whose request came after this
    one's last update."""
    at: int = 0
    """Time of the last followed update, ns."""
    is_fully_recorded: bool = False
    """Whether all of its content was recorded: nothing truncated or redacted, and the stream
    followed from the beginning.
    """
    is_stream_over: bool = False
    """Whether that stream has shown a terminal state, so that the artifact is final."""
    length: int = 0
    """Bytes of all text; the content so far, with the fields of `PartsSummary`."""
    digest: int = 0
    byte_count: int = 0
    other_parts: int = 0
    longest: int = 0
    """Bytes of the longest text that was appended in chunks and then replaced."""
    last_length: int = 0
    """Bytes of the last update, if it is one text."""
    last_digest: int = 0
    """CRC-32 of that text."""
    grown: int = 0
    """Number of latest updates that each begin with the whole text of the one before."""
    shown_by: int = 0
    """The stream whose first event was a Task with this artifact."""
    shown_length: int = 0
    """Bytes of the artifact's text in that Task; 0 if there was none, or if it was replaced."""
    shown_digest: int = 0
    """CRC-32 of that text."""
    again_length: int = 0
    """Bytes of text that this stream has appended since."""
    again_digest: int = 0
    """CRC-32 of that text."""
    first_generation: int = 0
    """First generation of the followed updates; 0 if they are not numbered."""
    last_generation: int = 0

    @property
    def content(self) -> PartsSummary:
        """Summary of the content of the followed updates."""
        return PartsSummary(self.length, self.digest, self.byte_count, self.other_parts)


class AgentMessage(msgspec.Struct, frozen=True, gc=False):
    """Digest of an agent's message, to recognise a repetition."""

    exchange: int
    at: int
    binding: Binding
    length: int
    digest: int
    """CRC-32 of its content."""
    ident: int = 0
    """CRC-32 of its id."""


NO_ARTIFACTS: dict[str, KnownArtifact] = {}
NO_STREAMS: dict[int, int] = {}
"""Shared by all tasks that have none, because an empty dictionary takes 64 bytes. Never changed."""


class TaskRecord(msgspec.Struct, gc=False):
    """A task, combined from everything that mentioned it."""

    agent: str
    task_id: str
    context_id: str = ""
    states: tuple[tuple[int, int], ...] = ()
    """Time (ns) and state number of each change."""
    dropped: int = 0
    """Number of changes removed from `states`, always the second entry."""
    created_by: int = 0
    """The exchange that created the task; 0 if its beginning was not recorded, which lowers the
    confidence of findings.
    """
    made_by: int = 0
    """CRC-32 of the id of the message that created it."""
    reissued: bool = False
    """Whether its id was used by another task before."""
    first: int = 0
    last: int = 0
    terminal: int = 0
    """Time of the first terminal state, ns; 0 if there is none yet."""
    is_fully_streamed: bool = False
    """Whether the stream that created the task was recorded to a terminal state."""
    generation: int = 0
    """Highest generation seen."""
    numbered: str = ""
    """Whether the agent numbers this task: `yes`, `no`, or empty before the first event."""
    awaits_client: bool = False
    """Interrupted, and no message of a client has followed."""
    client_message_at: int = 0
    """Time of the last client message for the task, ns, not counting the message that created
    it."""
    stamp: str = ""
    """The latest timestamp of a status, as sent."""
    last_message: AgentMessage | None = None
    """The agent's latest status message; many tasks have only one, and a dictionary of one takes
    232 bytes."""
    status_messages: dict[int, AgentMessage] | None = None
    """The status messages before it, by the CRC-32 of their ids."""
    artifacts: dict[str, KnownArtifact] = msgspec.field(default_factory=lambda: NO_ARTIFACTS)
    streams: dict[int, int] = msgspec.field(default_factory=lambda: NO_STREAMS)
    """Open exchanges that stream the task, in the order of joining, each with its number from
    `joined`."""
    joined: int = 0
    """Number of exchanges that have streamed the task."""
    move_count: int = 0
    """Value of the session's move counter when the task was last moved to the end of the idle
    order; 0 if it must be moved.
    """
    single_stream_since: int = 0
    """Time since which only one of several streams is left, ns; 0 if there were never several."""
    numbers: TaskGenerations | None = None
    """Its generations, if the agent numbers it."""
    client_versions: ClientVersions = ()
    notes: Notes | None = None

    @property
    def state(self) -> int:
        """The last known state; 0 if there is none."""
        return self.states[-1][1] if self.states else 0

    def writable_artifacts(self) -> dict[str, KnownArtifact]:
        """Return the artifacts for writing, creating the dictionary if necessary."""
        if self.artifacts is NO_ARTIFACTS:
            self.artifacts = {}
        return self.artifacts

    def writable_streams(self) -> dict[int, int]:
        """Return the streams for writing, creating the dictionary if necessary."""
        if self.streams is NO_STREAMS:
            self.streams = {}
        return self.streams

    def writable_notes(self) -> Notes:
        """Return the notes for writing, creating them if necessary."""
        if self.notes is None:
            self.notes = {}
        return self.notes


class AgentRecord(msgspec.Struct):
    """An agent: all interfaces of one card."""

    name: str
    """`Exchange.agent`."""
    card: dict[str, Any] | None = None
    """The latest public card, as plain JSON."""
    card_at: int = 0
    extended: dict[str, Any] | None = None
    """The latest extended card."""
    declarations: CardDeclarations | None = None
    """The combined declarations of its cards."""
    sends_generations: bool = False
    """Whether the agent has sent a generation."""
    notes: Notes = {}

    @property
    def any_card(self) -> dict[str, Any] | None:
        """The extended card if known, otherwise the public card."""
        return self.extended or self.card


class RequestSnapshot(msgspec.Struct):
    """Knowledge at the first request of an exchange; later answers are judged by it."""

    at: int
    task_id: str = ""
    """The task id named by the request."""
    context_id: str = ""
    message_id: str = ""
    generation: int = 0
    """`currentGeneration` or `ifGenerationMatch`."""
    is_task_known: bool = False
    """Whether the task was known."""
    is_task_forgotten: bool = False
    """Whether the task had been known but its record was dropped."""
    state: int = 0
    """State of the task at that time."""
    terminal: int = 0
    """Time of its first terminal state, ns; 0 if there was none."""
    stamp: str = ""
    """The latest timestamp of its statuses."""
    known_generation: int = 0
    known_context: str = ""


@dataclass(slots=True)
class ExchangeRecord:
    """An open exchange.

    Each frame sets several fields, and setting a field of a `Struct` takes ten times as long.
    """

    id: int
    connection: int
    agent: str
    binding: Binding
    operation: str
    started: int
    client: str = ""
    """The client's host, without port."""
    upstream: str = ""
    request_snapshot: RequestSnapshot | None = None
    request: Frame | None = None
    """The first request, for rules that compare the answer with it."""
    pending: list[Frame] = field(default_factory=list)
    """Requests that are not judged yet."""
    exchange: Exchange | None = None
    """Heads, operation and dialect as of the first answer."""
    closed_exchange: Exchange | None = None
    """The exchange after its end."""
    is_judged: bool = False
    """Whether its requests and heads have been judged."""
    flags: int = 0
    """Flags of the exchange (`request_flags`), set when `is_judged` becomes true."""
    ours: bool = False
    """Whether the proxy answered."""
    faulted: bool = False
    """Whether the client got something else than the agent sent, because of a fault on purpose."""
    answers: int = 0
    """Number of answers and events of the agent, including errors."""
    events: int = 0
    """Number of A2A objects from the agent."""
    errors: int = 0
    first: EventKind = EventKind.NONE
    """Kind of the first answer."""
    last: EventKind = EventKind.NONE
    last_at: int = 0
    last_seq: int = -1
    task_id: str = ""
    context_id: str = ""
    state: int = 0
    """The state last shown by this exchange."""
    state_at: int = 0
    broken_silence: int = 0
    """Time of the first status update after the initial silence (`COLLECTING_SILENCE`), ns."""
    stamp: str = ""
    """The latest status timestamp shown by this exchange."""
    terminal: int = 0
    """Time at which it showed a terminal state, ns."""
    final_at: int = 0
    """Time at which it showed `final: true` (0.x), ns."""
    generation: int = 0
    """The generation last shown by this exchange."""
    position: int = -1
    """Index in the task's `states` up to which this exchange has shown them, valid for the
    `dropped` count below."""
    dropped: int = 0
    digests: bytes = b""
    """CRC-32 of the latest payloads, concatenated; kept small because every stream has them."""
    said_count: int = 0
    """Number of status messages with ids of their own before the end of the task."""
    said_length: int = 0
    """Bytes of their content."""
    said_digest: int = 0
    """CRC-32 of their content, joined."""
    unreadable_at: int = 0
    """Time of the last unreadable or unattributable frame, ns; its content is unknown."""
    notes: Notes | None = None
    half_closed: int = 0
    """Time at which the client closed its side, ns; 0 before. Only for gRPC calls, because others
    have one request."""
    abort_cause: str = ""
    """How the agent aborted, in wire terms: `rst_stream internal_error`, `goaway`, `reset`,
    `eof`."""
    finding_counts: dict[str, int] = field(default_factory=dict)
    """Number of findings of each kind in this exchange."""

    def writable_notes(self) -> Notes:
        """Return the notes for writing, creating them if necessary."""
        if self.notes is None:
            self.notes = {}
        return self.notes

    @property
    def is_streaming(self) -> bool:
        """Whether the operation is answered with a stream."""
        return self.operation in STREAMING_OPERATIONS
