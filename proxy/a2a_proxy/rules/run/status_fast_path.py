"""The event that most events are: one more status update of a stream whose task is where it was.

`SessionState.on_response` has a way for every event, which asks what has changed and learns it. Here nothing has: one
question tells,
and what is left is little. A test holds both ways against each other; with this one a stream costs rules a third less.
"""

from __future__ import annotations

from zlib import crc32

from a2a_proxy.model.frame import EventKind, Frame, FrameKind
from a2a_proxy.protocol.operations import STREAMING_OPERATIONS
from a2a_proxy.rules.define.rule import FrameFlag
from a2a_proxy.rules.facts.partial_decode import StatusSummary
from a2a_proxy.rules.state import state_sequence
from a2a_proxy.rules.state.records import ACTIVE, ExchangeRecord, TaskRecord

COLLECTING_SILENCE, MAX_BURST = 2_000_000_000, 300_000_000
"""A call begins with so much of silence where something on the way collects events, and they come within this, ns."""
_LENGTH_LINE, _TYPE_LINE = "Content-Length: \1\r\n", "Content-Type: application/json\r\n"
PLAIN_FRAMINGS = frozenset(
    {"", "data: \0\n\n", "data: \0\r\n\r\n", f"{_LENGTH_LINE}{_TYPE_LINE}\r\n\0", f"{_TYPE_LINE}{_LENGTH_LINE}\r\n\0"}
)
"""What most senders write around the data of an event, or a message on a pipe; no framing at all: it is neither."""
_MAX_DIGESTS, _DIGEST_BYTES = 32, 4
"""Payloads that a stream remembers, and bytes of a CRC-32."""


def is_repeated_status(record: ExchangeRecord, frame: Frame, task: TaskRecord) -> bool:
    """A status update that is one more of the same stream, task and state. `known` is the task that it names.

    Whatever makes another frame notable is asked here; what makes this one notable (that nothing is new in it, that it
    came before) is left to `apply_repeated_status`.
    """
    state, states, here = frame.state, task.states, record.position
    return bool(
        frame.event is _STATUS_EVENT
        and state == record.state
        and state in ACTIVE
        and frame.kind is _EVENT_FRAME
        # the stream: it showed this task before, and nothing was wrong with it
        and record.events
        and not record.errors
        and not record.terminal
        and record.task_id == task.task_id
        and frame.framing in PLAIN_FRAMINGS
        and not frame.final
        # the task: it is in this state still, and nobody else tells of it
        and 0 <= here < len(states)
        and record.dropped == task.dropped
        and states[here][1] == state
        and not task.terminal
        and not task.single_stream_since
        and len(task.streams) < 2
        and (not frame.context_id or frame.context_id == task.context_id == record.context_id)
        # nothing is numbered
        and task.numbered == "no"
        and not frame.generation
        and not task.generation
    )


def apply_repeated_status(record: ExchangeRecord, frame: Frame, task: TaskRecord, summary: StatusSummary) -> int:
    """Learn from an update for which `is_repeated_status` is true, and say what is notable about it."""
    at, bare, stamp = frame.at, summary.is_bare, summary.stamp
    record.answers += 1
    record.events += 1
    flags = _REPEATED_STATUS_FLAGS
    if at - record.started >= COLLECTING_SILENCE:
        flags |= burst_flag(record, at)
    if summary.message_content is not None and frame.message_id:
        flags |= state_sequence.apply_agent_message(record, frame, task, summary.message_content)
    if summary.named_ids:
        flags |= state_sequence.stray_id_flag(summary.named_ids, frame.task_id, task.context_id)
    if bare and record.is_bare_status and stamp == record.stamp:
        flags |= _IDLE_FLAG
    record.is_bare_status = bare
    if stamp:
        flags |= state_sequence.apply_timestamp(record, task, stamp)
    if record.operation in STREAMING_OPERATIONS:
        flags |= repeat_flag(record, frame.payload)
    task.last = record.state_at = record.last_at = at
    record.last, record.last_seq = _STATUS_EVENT, frame.seq
    return flags


def burst_flag(record: ExchangeRecord, at: int) -> int:
    """A status update that comes late after the call: is it of those that come first, all at once?"""
    if not record.broken_silence:
        record.broken_silence = at
    return _TOGETHER_FLAG if at - record.broken_silence <= MAX_BURST else 0


def repeat_flag(record: ExchangeRecord, payload: bytes) -> int:
    """Remember a payload: did this stream have it shortly before?"""
    digest, before = crc32(payload).to_bytes(_DIGEST_BYTES, "little"), record.digests
    record.digests = (before + digest)[-_DIGEST_BYTES * _MAX_DIGESTS :]
    if digest not in before:  # nearly always: the rest looks whether it stands there by chance, across two others
        return 0
    return (
        _REPEAT_FLAG
        if any(before[at : at + _DIGEST_BYTES] == digest for at in range(0, len(before), _DIGEST_BYTES))
        else 0
    )


_STATUS_EVENT, _EVENT_FRAME = EventKind.STATUS, FrameKind.EVENT
_REPEATED_STATUS_FLAGS = int(FrameFlag.STATUS | FrameFlag.LATER | FrameFlag.SAME)
_TOGETHER_FLAG, _IDLE_FLAG, _REPEAT_FLAG = int(FrameFlag.TOGETHER), int(FrameFlag.IDLE), int(FrameFlag.REPEAT)
