"""What is kept of each agent, task and open exchange (manual/protocol.md "Rules and evidence"). `world` learns them.

Every value is plain, so that the state can be saved and gone on with; a family of rules that has to remember more keeps
it in `notes`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.exchange import Binding, Exchange
from a2a_proxy.model.frame import EventKind, Frame
from a2a_proxy.protocol.operations import STREAMING_OPERATIONS
from a2a_proxy.rules.state.card_declarations import CardDeclarations
from a2a_proxy.rules.state.state_sequence import AgentMessage, KnownArtifact

ACTIVE = frozenset({int(TaskState.SUBMITTED), int(TaskState.WORKING)})

Notes = dict[str, Any]


class TaskRecord(
    msgspec.Struct,
    gc=False,
    rename={
        "created_by": "born",
        "client_message_at": "spoken",
        "status_messages": "said",
        "move_count": "moved",
        "single_stream_since": "alone",
        "awaits_client": "awaits",
    },
):
    """A task, joined over everything that told of it."""

    agent: str
    task_id: str
    context_id: str = ""
    states: list[tuple[int, int]] = []
    """(ns, state number) for each change."""
    dropped: int = 0
    """Changes that are no longer among them: the second one goes first."""
    created_by: int = 0
    """The exchange that created it; 0 where its beginning was not seen: then facts about it are less sure."""
    made_by: int = 0
    """CRC-32 of the id of the message that created it."""
    reissued: bool = False
    """Its id had been that of another task."""
    first: int = 0
    last: int = 0
    terminal: int = 0
    """When a terminal state was first seen, ns; 0 before."""
    terminal_in: int = 0
    """The exchange that showed it."""
    generation: int = 0
    """Highest number seen."""
    numbered: str = ""
    """Whether its agent numbers it: `yes`, `no`, empty before the first event."""
    awaits_client: bool = False
    """Interrupted, and no message of a client came since."""
    client_message_at: int = 0
    """When a client's message for it came last, ns; that which created it does not count."""
    stamp: str = ""
    """The latest timestamp of a status, as it stands there."""
    status_messages: dict[int, AgentMessage] | None = None
    """The agent's messages in statuses, the latest, by the CRC-32 of their ids."""
    artifacts: dict[str, KnownArtifact] = {}
    streams: dict[int, int] = {}
    """Open exchanges that stream it, in the order in which they joined -> which one of `joined` each was."""
    joined: int = 0
    """Exchanges that have ever streamed it."""
    move_count: int = 0
    """The count of moves when it was put last in the order of idleness; 0 where it has to be."""
    single_stream_since: int = 0
    """Since when only one of several streams is left, ns; 0 where there were never several."""
    notes: Notes | None = None

    @property
    def state(self) -> int:
        """The state known last; 0 before one."""
        return self.states[-1][1] if self.states else 0

    def writable_notes(self) -> Notes:
        """The notes, to be written to."""
        if self.notes is None:
            self.notes = {}
        return self.notes


class AgentRecord(msgspec.Struct, rename={"declarations": "declared", "sends_generations": "numbers"}):
    """An agent: all interfaces of one card."""

    name: str
    """The upstream by which it is known."""
    card: dict[str, Any] | None = None
    """The public card seen last, as plain JSON."""
    card_at: int = 0
    extended: dict[str, Any] | None = None
    """The extended card seen last."""
    declarations: CardDeclarations | None = None
    """What its cards say together."""
    sends_generations: bool = False
    """A generation was seen from it."""
    notes: Notes = {}

    @property
    def any_card(self) -> dict[str, Any] | None:
        """What is known of it, the extended card first."""
        return self.extended or self.card


class RequestSnapshot(
    msgspec.Struct, rename={"is_task_known": "known", "is_task_forgotten": "forgotten", "was_awaited": "awaited"}
):
    """What was known when the first request of an exchange came: a later answer is judged by that."""

    at: int
    task_id: str = ""
    """As the request names it."""
    context_id: str = ""
    message_id: str = ""
    generation: int = 0
    """`currentGeneration` or `ifGenerationMatch`."""
    is_task_known: bool = False
    """The task was known."""
    is_task_forgotten: bool = False
    """It was not, but it had been."""
    state: int = 0
    """Its state then."""
    terminal: int = 0
    """When a terminal state had been seen, ns."""
    stamp: str = ""
    """The latest timestamp of its statuses."""
    known_generation: int = 0
    known_context: str = ""
    was_awaited: bool = False
    """It waited for this message."""


class ExchangeRecord(
    msgspec.Struct,
    gc=False,
    rename={
        "request_snapshot": "asked",
        "is_judged": "settled",
        "flags": "given",
        "unreadable_at": "unread",
        "abort_cause": "cut",
        "finding_counts": "told",
        "is_bare_status": "bare",
        "exchange": "facts",
        "closed_exchange": "final",
    },
):
    """An open exchange."""

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
    pending: list[Frame] = []
    """Requests that are not judged yet."""
    exchange: Exchange | None = None
    """Heads, operation and dialect, as they were when the first answer came."""
    closed_exchange: Exchange | None = None
    """The exchange when it was over."""
    is_judged: bool = False
    """Its requests and heads have been judged."""
    flags: int = 0
    """What it is about (`given`), known when it is settled."""
    ours: bool = False
    """The proxy answered."""
    answers: int = 0
    """Answers and events of the agent, errors too."""
    events: int = 0
    """A2A objects of the agent."""
    errors: int = 0
    first: EventKind = EventKind.NONE
    """What the first answer was."""
    last: EventKind = EventKind.NONE
    last_at: int = 0
    last_seq: int = -1
    task_id: str = ""
    context_id: str = ""
    state: int = 0
    """The state this exchange has shown last."""
    state_at: int = 0
    broken_silence: int = 0
    """When the first status update came that was not sent at the beginning (`SILENCE`), ns."""
    stamp: str = ""
    """The latest timestamp of a status that this exchange has shown."""
    is_bare_status: bool = False
    """That was a status update with nothing beside state and timestamp."""
    terminal: int = 0
    """When it showed a terminal state, ns."""
    final_at: int = 0
    """When it showed `final: true` (0.x), ns."""
    generation: int = 0
    """The number this exchange has shown last."""
    position: int = -1
    """Index in the task's `states` up to which it has shown them, as it was at that count of `dropped`."""
    dropped: int = 0
    digests: bytes = b""
    """CRC-32 of the latest payloads, one after the other: every stream has them, so they are kept small."""
    unreadable_at: int = 0
    """When something came last that nobody could read, ns: what it said is not known."""
    notes: Notes | None = None
    half_closed: int = 0
    """When the client's side ended, ns; 0 before. Of gRPC calls, the others have one request."""
    abort_cause: str = ""
    """How the agent broke off, in the words of the wire: `rst_stream internal_error`, `goaway`, `reset`, `eof`."""
    finding_counts: dict[str, int] = {}
    """Rule -> how often it was broken here."""

    def writable_notes(self) -> Notes:
        """The notes, to be written to."""
        if self.notes is None:
            self.notes = {}
        return self.notes

    @property
    def is_streaming(self) -> bool:
        """Its operation answers with a stream."""
        return self.operation in STREAMING_OPERATIONS
