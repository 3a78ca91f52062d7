"""The A2A event model, one for all bindings and dialects: protocol 1.0 with the fields of the 1.1
draft.

Names and JSON form are those of 1.0; older dialects are mapped to it (manual/protocol.md "Canonical
form"). Every field is optional, because a recorder shows messages as sent, including those that
break a rule.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import msgspec


class TaskState(IntEnum):
    """A2A 1.0 section 4.1.3; the numbers are those of the protobuf enum."""

    UNSPECIFIED = 0
    SUBMITTED = 1
    WORKING = 2
    COMPLETED = 3
    FAILED = 4
    CANCELED = 5
    INPUT_REQUIRED = 6
    REJECTED = 7
    AUTH_REQUIRED = 8

    @classmethod
    def _missing_(cls, value: object) -> TaskState | None:
        """Create a member for a number that A2A does not define: protobuf enums are open to any
        32-bit number."""
        if not isinstance(value, int):
            return None
        state = int.__new__(cls, value)
        state._name_, state._value_ = f"UNKNOWN_{value}", value
        return state

    @property
    def terminal(self) -> bool:
        """Whether the state is final: no event may follow (manual/protocol.md "Task states")."""
        return self in TERMINAL_STATES

    @property
    def interrupted(self) -> bool:
        """Whether the task waits for input or authentication (manual/protocol.md "Task states")."""
        return self in INTERRUPTED_STATES

    @property
    def label(self) -> str:
        """The state in words: `input-required`."""
        return self.name.lower().replace("_", "-")


def state_label(number: int) -> str:
    """Return the label of a task state, its number if A2A does not define it, or an empty text for
    an unspecified state."""
    if number in TaskState.__members__.values():
        return TaskState(number).label if number else ""
    return str(number)


TERMINAL_STATES = frozenset(
    map(int, (TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELED, TaskState.REJECTED))
)
INTERRUPTED_STATES = frozenset(map(int, (TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED)))


class _Value(msgspec.Struct, rename="camel", omit_defaults=True, kw_only=True):
    """Base of the values in canonical ProtoJSON: lowerCamel names, defaults left out."""


class Part(_Value):
    """One part of a message or artifact; exactly one of text, raw, url and data is set."""

    text: str | None = None
    raw: str | None = None
    """Base64 as in ProtoJSON."""
    url: str | None = None
    data: Any = None
    metadata: dict[str, Any] | None = None
    filename: str = ""
    media_type: str = ""


class Message(_Value):
    """A message of the client or the agent."""

    message_id: str = ""
    context_id: str = ""
    task_id: str = ""
    role: str = ""
    """`ROLE_USER` or `ROLE_AGENT`."""
    parts: list[Part] = []
    metadata: dict[str, Any] | None = None
    extensions: list[str] = []
    reference_task_ids: list[str] = []


class Artifact(_Value):
    """An artifact, whole or as one chunk."""

    artifact_id: str = ""
    name: str = ""
    description: str = ""
    parts: list[Part] = []
    metadata: dict[str, Any] | None = None
    extensions: list[str] = []
    start_generation: int = 0
    """The generation of the task at which it appeared (1.1 draft); 0 if unknown."""
    end_generation: int = 0
    """The generation at which it was complete; 0 while it grows, or if unknown."""


class TaskStatus(_Value):
    """A state, with the agent's message about it."""

    state: str = ""
    """`TASK_STATE_WORKING` and so on."""
    message: Message | None = None
    timestamp: str = ""
    progress: dict[str, Any] | None = None
    """Vendor dialect only (manual/protocol.md "Vendor hybrid")."""


class TimelineEntry(_Value):
    """A change of a task (1.1 draft section 3.2.8); neither a message nor a status if its kind is
    unknown."""

    message: Message | None = None
    """A client's message."""
    status: TaskStatus | None = None
    generation: int = 0


class TaskSnapshot(_Value):
    """A snapshot of a task."""

    id: str = ""
    context_id: str = ""
    status: TaskStatus | None = None
    artifacts: list[Artifact] = []
    history: list[Message] = []
    metadata: dict[str, Any] | None = None
    generation: int = 0
    timeline: list[TimelineEntry] = []
    """The changes of the task, oldest first, as far back as the agent shows them."""


class StatusUpdate(_Value):
    """A change of status."""

    task_id: str = ""
    context_id: str = ""
    status: TaskStatus | None = None
    metadata: dict[str, Any] | None = None
    generation: int = 0
    final: bool | None = None
    """0.x only: announces the end of the stream."""


class ArtifactUpdate(_Value):
    """An artifact, or a chunk of one."""

    task_id: str = ""
    context_id: str = ""
    artifact: Artifact | None = None
    append: bool = False
    last_chunk: bool = False
    metadata: dict[str, Any] | None = None
    generation: int = 0


class Event(_Value):
    """An agent's event, wrapped as in a StreamResponse; exactly one member is set."""

    task: TaskSnapshot | None = None
    message: Message | None = None
    status_update: StatusUpdate | None = None
    artifact_update: ArtifactUpdate | None = None
