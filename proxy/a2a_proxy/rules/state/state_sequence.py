"""The sequence of a task's states, combined from streams that lag behind each other and answers
that race.

Every stream of a task receives each event (A2A 1.0 section 3.5.2), but no stream is always the
first. A stream is therefore compared only with itself, and with other streams only if its request
came after their events.
"""

from collections.abc import Mapping
from zlib import crc32

from a2a_proxy.model.event import INTERRUPTED_STATES, TERMINAL_STATES
from a2a_proxy.model.values import Binding, EventKind, Frame
from a2a_proxy.protocol.artifact_chunks import ArtifactChunk, chunks_of_frame
from a2a_proxy.protocol.operations import (
    SENDING_OPERATIONS as SENDING_OPERATIONS,  # re-exported for the rules
)
from a2a_proxy.protocol.status_summary import NO_STATUS, Content, StatusSummary, decode_status
from a2a_proxy.rules.define.conditions import FrameFlag
from a2a_proxy.rules.facts.compared_values import NO_PARTS, add_parts, time_before
from a2a_proxy.rules.state.records import AgentMessage, ExchangeRecord, KnownArtifact, TaskRecord
from a2a_proxy.rules.state.transitions import Change, change_of

TERMINAL, INTERRUPTED = TERMINAL_STATES, INTERRUPTED_STATES

MAX_STATES = 32
"""Maximum number of remembered state changes of one task."""
MAX_ARTIFACTS = 1000
"""Maximum number of remembered artifacts of one task."""
MIN_REPEATED = 16
"""Bytes of text from which an update that equals all earlier ones is not taken for a
coincidence."""
_MAX_MESSAGES = 8
"""Maximum number of remembered messages of one task."""
SECOND_NS = 1_000_000_000
"""One second in ns. The clocks of one agent differ by less."""

MAX_STREAM_LAG = 5 * SECOND_NS
"""Maximum lag of one stream of a task behind another, ns."""

_TASK_EVENT, _STATUS_EVENT = EventKind.TASK, EventKind.STATUS

# --- states


def apply_state(
    record: ExchangeRecord, frame: Frame, task: TaskRecord, gate_result: Content
) -> int:
    """Apply a state and return its flags."""
    state, before, event = frame.state, record.state, frame.event
    look = (
        gate_result
        if type(gate_result) is StatusSummary
        else decode_status(frame)
        if event is _STATUS_EVENT or event is _TASK_EVENT
        else NO_STATUS
    )
    stamp = look.stamp
    flags = (
        apply_agent_message(record, frame, task, look.message_content)
        if look.message_content is not None and frame.message_id
        else 0
    )
    if look.named_ids:
        flags |= stray_id_flag(look.named_ids, frame.task_id, task.context_id)
    if state in TERMINAL:
        flags |= _TERMINAL_FLAG
        record.terminal = record.terminal or frame.at
        _end_artifacts(record, task)
        task.is_fully_streamed = task.is_fully_streamed or _has_shown_all(record, task)
    elif state in INTERRUPTED:
        flags |= _INTERRUPTED_FLAG
    if frame.final:
        record.final_at = record.final_at or frame.at
    if task.terminal and not record.terminal and is_overdue(record, frame, task, stamp):
        flags |= _OVERDUE_FLAG
    if event is _STATUS_EVENT and before == state:
        flags |= _SAME_FLAG
    here, states = find_position(record, task), task.states
    if (
        not 0 <= here < len(states) or states[here][1] != state
    ):  # otherwise the stream's position is unchanged
        flags |= _advance_sequence(record, frame, task, before, look)
    record.state, record.state_at = state, frame.at
    return flags | apply_timestamp(record, task, stamp) if stamp else flags


def apply_timestamp(record: ExchangeRecord, task: TaskRecord, stamp: str) -> int:
    """Apply a status timestamp; return the flag if it goes backwards on this stream."""
    backwards = 0
    if stamp != record.stamp:
        if time_before(stamp, record.stamp) > SECOND_NS:
            backwards = _BACKWARDS_FLAG
        else:
            record.stamp = stamp
    if stamp != task.stamp and not time_before(stamp, task.stamp):
        task.stamp = stamp
    return backwards


def stray_id_flag(names: tuple[str, ...], task_id: str, context_id: str) -> int:
    """Return the flag if messages name another task or context than these."""
    for each in names:
        if each and each != task_id and each != context_id:
            return _STRAY_FLAG
    return 0


def is_overdue(record: ExchangeRecord, frame: Frame, task: TaskRecord, stamp: str = "") -> bool:
    """Whether this stream, opened before the task ended on another exchange, continues the task
    beyond the permitted lag. A webhook does so only with a later timestamp, because pushes may be
    late.
    """
    is_later = time_before(task.stamp, stamp) > SECOND_NS
    if record.binding is Binding.WEBHOOK:
        return is_later
    return record.started <= task.terminal and (
        is_later or frame.at - task.terminal > MAX_STREAM_LAG
    )


def _advance_sequence(
    record: ExchangeRecord, frame: Frame, task: TaskRecord, before: int, summary: StatusSummary
) -> int:
    """Move this exchange forward in the state sequence; return the flags of a change."""
    state, states = frame.state, task.states
    here = _start_index(record, task)
    for index in range(here, len(states)):
        if states[index][1] == state:
            record.position, record.dropped = index, task.dropped
            return 0
    if (
        frame.event is _TASK_EVENT
        and not record.is_streaming
        and 0 < frame.generation < task.generation
    ):
        return _STALE_FLAG if 0 < task.terminal < record.started and state not in TERMINAL else 0
    if task.terminal:
        return _apply_after_terminal(record, frame, task, before, summary)
    if here < len(states) - 1 and state not in TERMINAL:
        return 0  # other streams are ahead: this one lags, and its state lies between
    _append_state(record, frame, task)
    return _CHANGED_FLAG


def _apply_after_terminal(
    record: ExchangeRecord, frame: Frame, task: TaskRecord, before: int, summary: StatusSummary
) -> int:
    """Return the flags for a task that shows another state after a terminal one."""
    if (
        record.operation in SENDING_OPERATIONS
        and record.events == 1
        and record.started > task.terminal
    ):
        return _reopen_task(record, frame, task)  # it accepted a message although it was finished
    if frame.state in TERMINAL:
        _append_state(record, frame, task)
        return (
            _CHANGED_FLAG | _LEFT_TERMINAL_FLAG
        )  # two terminal states: one of them is wrong whichever stream lags
    if change_of(before, frame.state) is Change.LEAVES_END:
        return _reopen_task(record, frame, task) | _LEFT_TERMINAL_FLAG
    if record.started <= task.terminal or record.binding is Binding.WEBHOOK or record.events > 1:
        return 0  # a lagging stream or a late push
    if time_before(task.stamp, summary.stamp):
        return _reopen_task(record, frame, task) | _LEFT_TERMINAL_FLAG
    return _STALE_FLAG


def _reopen_task(record: ExchangeRecord, frame: Frame, task: TaskRecord) -> int:
    """Treat the task as running again, so that this is reported only once."""
    task.terminal = 0
    _append_state(record, frame, task)
    return _CHANGED_FLAG


def find_position(track: ExchangeRecord, known: TaskRecord) -> int:
    """Return the index in the task's `states` up to which this exchange has shown them; -1 if it
    has shown none.

    Indexes are corrected for removed states here, not when a state is removed, because a task may
    have thousands of streams.
    """
    gone = known.dropped - track.dropped
    if gone:
        track.dropped = known.dropped
        if gone > 0 and track.position > 1:
            track.position = max(track.position - gone, 1)
    return track.position


def _start_index(record: ExchangeRecord, known: TaskRecord) -> int:
    """Return the index in `states` from which this exchange may show them."""
    here, states = find_position(record, known), known.states
    if 0 <= here < len(states):
        return here
    if record.binding is Binding.WEBHOOK:  # pushes are repeated and may be late
        return 0
    return max((index for index, (at, _) in enumerate(states) if at <= record.started), default=0)


def _append_state(record: ExchangeRecord, frame: Frame, task: TaskRecord) -> None:
    states = (*task.states, (frame.at, frame.state))
    if len(states) > MAX_STATES:
        states = states[:1] + states[2:]
        task.dropped += 1
    task.states = states
    record.position, record.dropped = len(states) - 1, task.dropped
    task.awaits_client = frame.state in INTERRUPTED
    if frame.state in TERMINAL and not task.terminal:
        task.terminal = frame.at


def apply_agent_message(record: ExchangeRecord, frame: Frame, task: TaskRecord, data: bytes) -> int:
    """Remember the agent's message; return the flag if its id was used for other content before."""
    if frame.redacted or frame.truncated:
        return 0
    ident = crc32(frame.message_id.encode("utf-8", "surrogatepass"))
    last, others = task.last_message, task.status_messages
    flags, length, digest = 0, len(data), crc32(data)
    if last is not None and last.ident == ident:
        found: AgentMessage | None = last
    else:
        found = others.get(ident) if others is not None else None
    if found is not None:
        # Another stream may lag or be ahead; the answer to a later message is not.
        follows = found.exchange == record.id or (
            record.operation in SENDING_OPERATIONS and found.at < record.started
        )
        if not follows or found.binding is not record.binding:
            return 0
        if (found.length, found.digest) != (length, digest):
            grew = length > found.length and crc32(data[: found.length]) == found.digest
            flags = _REUSED_ID_FLAG | (_GROWN_FLAG if grew else 0)
    elif frame.state not in TERMINAL:
        record.said_count += 1
        record.said_length += length
        record.said_digest = crc32(data, record.said_digest)
    if found is not last:
        if others is None:
            others = task.status_messages = {}
        elif found is not None:
            del others[ident]
        if last is not None:
            others[last.ident] = last
            if len(others) >= _MAX_MESSAGES:
                del others[next(iter(others))]
    task.last_message = AgentMessage(record.id, frame.at, record.binding, length, digest, ident)
    return flags


# --- artifacts


def _has_shown_all(record: ExchangeRecord, task: TaskRecord) -> bool:
    """Whether this stream has carried all events of the task: it created the task, and each event
    was readable."""
    return record.is_streaming and task.created_by == record.id and not record.unreadable_at


def _end_artifacts(record: ExchangeRecord, task: TaskRecord) -> None:
    for each in task.artifacts.values():
        if each.stream == record.id:
            each.is_stream_over = True


def flag_artifact(
    record: ExchangeRecord, frame: Frame, task: TaskRecord, summary: ArtifactChunk | None
) -> int:
    """Return the flags of an artifact update before it is applied."""
    found = task.artifacts.get(frame.artifact_id)
    late = task.terminal and not record.terminal and is_overdue(record, frame, task)
    flags = (_OVERDUE_FLAG if late else 0) | (_APPEND_FLAG if frame.append else 0)
    if found is None:
        flags |= _FURTHER_ARTIFACT_FLAG if task.artifacts else 0
        return flags | (_ODD_CHUNK_FLAG if frame.append else 0)
    flags |= _KNOWN_ARTIFACT_FLAG
    if frame.append:
        odd = found.is_complete and (found.stream == record.id or found.at < record.started)
    else:
        odd = found.chunks > 0 and found.stream == record.id
    if odd:
        flags |= _ODD_CHUNK_FLAG
    if summary is not None and frame.append:
        size = sum(map(len, summary.texts))
        if frame.redacted or may_repeat(found, record.id, size, is_last=frame.last_chunk):
            flags |= _AGAIN_FLAG
    return flags


def may_repeat(artifact: KnownArtifact, stream: int, size: int, *, is_last: bool = False) -> bool:
    """Whether an appended text of `size` bytes may be earlier text of its artifact: all of it, the
    update before with more behind it, or the last piece of what the stream's first Task had."""
    if artifact.shown_by == stream and 0 < artifact.shown_length - artifact.again_length <= size:
        return True
    if artifact.stream != stream or size < MIN_REPEATED:
        return False
    is_whole = artifact.length == size and (artifact.chunks > 1 or is_last)
    is_longer = MIN_REPEATED <= artifact.last_length < size and (artifact.grown > 0 or is_last)
    return is_whole or is_longer


def apply_artifact(
    tracks: Mapping[int, ExchangeRecord],
    record: ExchangeRecord,
    frame: Frame,
    task: TaskRecord,
    summary: ArtifactChunk,
) -> None:
    """Apply an artifact update."""
    found = task.artifacts.get(frame.artifact_id)
    if found is None:
        if len(task.artifacts) >= MAX_ARTIFACTS:
            return
        found = task.writable_artifacts()[frame.artifact_id] = KnownArtifact(stream=record.id)
    elif found.stream != record.id:
        if found.stream in tracks or found.at >= record.started:
            return
        found.stream, found.is_fully_recorded = record.id, False
    if not frame.append or found.shown_by != record.id:
        found.shown_length = 0
    if not frame.append:
        is_text = found.is_fully_recorded and not (found.byte_count or found.other_parts)
        found.longest = max(found.longest, found.length if is_text and found.appends else 0)
        found.appends, found.is_complete = 0, False
        found.length = found.digest = found.byte_count = found.other_parts = 0
        found.first_generation = frame.generation
        found.is_fully_recorded = True
    found.is_fully_recorded = found.is_fully_recorded and not frame.redacted and not frame.truncated
    found.is_complete = found.is_complete or frame.last_chunk
    extend_artifact(found, frame, summary)


def extend_artifact(artifact: KnownArtifact, frame: Frame, summary: ArtifactChunk) -> None:
    """Add the content of a chunk to its artifact."""
    artifact.chunks += 1
    artifact.appends += frame.append
    artifact.at, artifact.last_generation = frame.at, frame.generation
    text, before = summary.text, artifact.last_length
    is_grown = frame.append and 0 < before < len(text)
    if is_grown and crc32(text[:before]) == artifact.last_digest:
        artifact.grown += 1
    else:
        artifact.grown = 0
    artifact.last_length, artifact.last_digest = len(text), crc32(text)
    if artifact.shown_length:
        again = b"".join(summary.texts)
        artifact.again_length += len(again)
        artifact.again_digest = crc32(again, artifact.again_digest)
    for piece in summary.pieces:
        if isinstance(piece, bytes):
            artifact.length += len(piece)
            artifact.digest = crc32(piece, artifact.digest)
        else:
            artifact.byte_count += piece if isinstance(piece, int) else 0
            artifact.other_parts += 1


def apply_snapshot_artifacts(record: ExchangeRecord, frame: Frame, task: TaskRecord) -> None:
    """Apply the artifacts of a snapshot."""
    if b"rtifact" not in frame.payload and frame.schema == "json":
        return
    begins_stream = record.is_streaming and record.events == 1 and not frame.redacted
    for look in chunks_of_frame(frame):
        if look.artifact_id not in task.artifacts and len(task.artifacts) < MAX_ARTIFACTS:
            task.writable_artifacts()[look.artifact_id] = KnownArtifact()
        found = task.artifacts.get(look.artifact_id)
        if begins_stream and found is not None:
            content = add_parts(NO_PARTS, look.pieces)
            is_long = content.length >= MIN_REPEATED and not frame.truncated
            found.shown_by, found.shown_digest = record.id, content.digest
            found.shown_length = content.length if is_long else 0
            found.again_length = found.again_digest = 0


_TERMINAL_FLAG, _INTERRUPTED_FLAG = int(FrameFlag.TERMINAL), int(FrameFlag.INTERRUPTED)
_SAME_FLAG, _CHANGED_FLAG = int(FrameFlag.SAME), int(FrameFlag.CHANGED)
_APPEND_FLAG, _KNOWN_ARTIFACT_FLAG = int(FrameFlag.APPEND), int(FrameFlag.KNOWN_ARTIFACT)
_FURTHER_ARTIFACT_FLAG = int(FrameFlag.FURTHER_ARTIFACT)
_LEFT_TERMINAL_FLAG, _STALE_FLAG = int(FrameFlag.LEFT_TERMINAL), int(FrameFlag.STALE)
_BACKWARDS_FLAG, _REUSED_ID_FLAG = int(FrameFlag.BACKWARDS), int(FrameFlag.REUSED_MESSAGE_ID)
_GROWN_FLAG, _OVERDUE_FLAG, _STRAY_FLAG = (
    int(FrameFlag.GROWN),
    int(FrameFlag.OVERDUE),
    int(FrameFlag.STRAY),
)
_ODD_CHUNK_FLAG = int(FrameFlag.ODD_CHUNK)
_AGAIN_FLAG = int(FrameFlag.AGAIN)
