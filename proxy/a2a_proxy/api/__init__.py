"""Reading of recordings from Python: `from a2a_proxy import Recording` and the classes of its
results (manual: python).

Layers, from top to bottom. A module imports only modules of its own layer and of the layers below
it.

Entry point:
- `recording`: `Recording`, which reads one recording, or several as one

Sessions and tasks:
- `session`: one run of a proxy
- `task`: a task, joined over the sessions and files that recorded it
- `handover`: a conversation that moves from one agent to another

Rows:
- `rows`: exchanges, their frames, and findings of one file
"""

from a2a_proxy.api.handover import Handover
from a2a_proxy.api.recording import Recording
from a2a_proxy.api.rows import Exchange, Finding, Frame
from a2a_proxy.api.session import Session
from a2a_proxy.api.task import Task
from a2a_proxy.model.event import Event, TaskState
from a2a_proxy.model.values import (
    Binding,
    Dialect,
    EventKind,
    FrameKind,
    Handoff,
    Interruption,
    MissedGenerations,
    Note,
    Segment,
    Severity,
    Support,
)
from a2a_proxy.model.wire import Direction
from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.query.errors import QueryError

__all__ = [
    "Binding",
    "Dialect",
    "Direction",
    "Event",
    "EventKind",
    "Exchange",
    "Finding",
    "Frame",
    "FrameKind",
    "Handoff",
    "Handover",
    "Interruption",
    "MissedGenerations",
    "Note",
    "QueryError",
    "Recording",
    "RecordingError",
    "Segment",
    "Session",
    "Severity",
    "Support",
    "Task",
    "TaskState",
]
