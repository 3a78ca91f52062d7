"""The course of a task: what follows what, joined over streams that lag behind one another and answers that race.

One event goes to every stream of a task (A2A 1.0 section 3.5.2), and none of them is the first always. So one stream is
compared with itself only; with what others have shown, only where its request came after that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING
from zlib import crc32

import msgspec

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.exchange import Binding
from a2a_proxy.model.frame import EventKind, Frame
from a2a_proxy.protocol.operations import SENDING_OPERATIONS as SENDING_OPERATIONS  # the rules have it from here, with what else they share
from a2a_proxy.rules.define.rule import FrameFlag
from a2a_proxy.rules.facts.partial_decode import (
    NO_STATUS,
    ArtifactLook,
    PartsSummary,
    Seen,
    StatusLook,
    artifacts_of,
    earlier,
    status_of,
)

if TYPE_CHECKING:
    from a2a_proxy.rules.state.records import ExchangeRecord, TaskRecord

TERMINAL = frozenset(int(state) for state in TaskState if state.terminal)
INTERRUPTED = frozenset(int(state) for state in TaskState if state.interrupted)

MAX_STATES = 32
"""Changes of state of one task that are remembered."""
MAX_ARTIFACTS = 1000
"""Artifacts of one task that are remembered."""
_MAX_SAID = 8
"""Messages of one task that are remembered."""
SECOND = 1_000_000_000
"""ns. Clocks of one agent differ by less."""

LAG = 5 * SECOND
"""How far one stream of a task may be behind another one."""

_TASK, _STATUS = EventKind.TASK, EventKind.STATUS


class KnownArtifact(msgspec.Struct, gc=False):
    """An artifact of a task, as the stream that showed it first tells it; others repeat it, sooner or later."""

    chunks: int = 0
    """Updates of that stream."""
    appends: int = 0
    """Since it was last replaced."""
    done: bool = False
    """`lastChunk` was said, and it was not replaced since."""
    name: str = ""
    description: int = 0
    """CRC-32; 0 where there is none."""
    media_type: str = ""
    """Of its first part."""
    stream: int = 0
    """The exchange that is followed; another one only where its request came after what this one showed."""
    at: int = 0
    """Of the update followed last, ns."""
    whole: bool = False
    """All of it was seen: nothing cut, nothing redacted, no stream joined late."""
    ended: bool = False
    """That stream has shown a terminal state: it is complete."""
    length: int = 0
    """Octets of all text; as `Content` has it, the content so far."""
    digest: int = 0
    octets: int = 0
    others: int = 0
    first_generation: int = 0
    """Of the updates followed; 0 where they are not numbered."""
    last_generation: int = 0

    @property
    def content(self) -> PartsSummary:
        """What the updates followed have made."""
        return PartsSummary(self.length, self.digest, self.octets, self.others)


class AgentMessage(msgspec.Struct, frozen=True, gc=False):
    """A message of an agent, to know it again."""

    exchange: int
    at: int
    binding: Binding
    length: int
    digest: int
    """CRC-32 of what it said."""


# --- states -------------------------------------------------------------------------------------------------------


def state_told(track: ExchangeRecord, frame: Frame, known: TaskRecord, seen: Seen) -> int:
    """Learn a state, and say what is notable about it."""
    state, before, event = frame.state, track.state, frame.event
    look = seen if type(seen) is StatusLook else status_of(frame) if event is _STATUS or event is _TASK else NO_STATUS
    stamp, bare = look.stamp, look.bare
    flags = said(track, frame, known, look.said) if look.said is not None and frame.message_id else 0
    if look.named:
        flags |= named(look.named, frame.task_id, known.context_id)
    if state in TERMINAL:
        flags |= _TERMINAL
        track.terminal = track.terminal or frame.at
        _end(track, known)
    elif state in INTERRUPTED:
        flags |= _INTERRUPTED
    if frame.final:
        track.final_at = track.final_at or frame.at
    if known.terminal and not track.terminal and overdue(track, frame, known, stamp):
        flags |= _OVERDUE
    if event is _STATUS and before == state:
        flags |= _SAME
        if bare and track.bare and stamp == track.stamp and not frame.final:
            flags |= _IDLE
    here, states = position(track, known), known.states
    if not 0 <= here < len(states) or states[here][1] != state:  # else it is where it was
        flags |= _course(track, frame, known, before, look)
    track.state, track.state_at = state, frame.at
    track.bare = bare and event is _STATUS  # an update may have crossed the snapshot that has it
    return flags | stamped(track, known, stamp) if stamp else flags


def stamped(track: ExchangeRecord, known: TaskRecord, stamp: str) -> int:
    """Learn when a status says that it was."""
    backwards = 0
    if stamp != track.stamp:
        if earlier(stamp, track.stamp) > SECOND:
            backwards = _BACKWARDS
        else:
            track.stamp = stamp
    if stamp != known.stamp and not earlier(stamp, known.stamp):
        known.stamp = stamp
    return backwards


def named(names: tuple[str, ...], task_id: str, context_id: str) -> int:
    """Whether messages name another task or context than these."""
    for each in names:
        if each and each != task_id and each != context_id:
            return _STRAY
    return 0


def overdue(track: ExchangeRecord, frame: Frame, known: TaskRecord, stamp: str = "") -> bool:
    """The task was over on another exchange, and this stream, open before that, still goes on with it."""
    if track.started > known.terminal or track.binding is Binding.WEBHOOK:
        return False
    return frame.at - known.terminal > LAG or earlier(known.stamp, stamp) > SECOND


def _course(track: ExchangeRecord, frame: Frame, known: TaskRecord, before: int, look: StatusLook) -> int:
    """Whether it is a change, and one that may be."""
    state, states = frame.state, known.states
    here = _standing(track, known)
    for index in range(here, len(states)):
        if states[index][1] == state:
            track.position, track.dropped = index, known.dropped
            return 0
    if known.terminal:
        return _after_terminal(track, frame, known, before, look)
    if here < len(states) - 1 and state not in TERMINAL:
        return 0  # others are further: it lags, and what it shows lies between
    _record(track, frame, known)
    return _CHANGED


def _after_terminal(track: ExchangeRecord, frame: Frame, known: TaskRecord, before: int, look: StatusLook) -> int:
    """A task that was in a terminal state is shown in another one."""
    if track.operation in SENDING_OPERATIONS and track.events == 1 and track.started > known.terminal:
        return _revive(track, frame, known)  # it took a message although it was over
    if frame.state in TERMINAL:
        _record(track, frame, known)
        return _CHANGED | _LEFT  # two ends: one of them is wrong whoever lags
    if before in TERMINAL:
        return _revive(track, frame, known) | _LEFT
    if track.started <= known.terminal or track.binding is Binding.WEBHOOK or track.events > 1:
        return 0  # a stream that lags, a push that is late
    if earlier(known.stamp, look.stamp):
        return _revive(track, frame, known) | _LEFT
    return _STALE


def _revive(track: ExchangeRecord, frame: Frame, known: TaskRecord) -> int:
    """It goes on: believed from now on, so that it is told once."""
    known.terminal = known.terminal_in = 0
    _record(track, frame, known)
    return _CHANGED


def position(track: ExchangeRecord, known: TaskRecord) -> int:
    """Index in the task's `states` up to which this exchange has shown them; -1 where it has shown none. Those that go
    are not looked for on each stream of the task when they do, but here: a task may have thousands."""
    gone = known.dropped - track.dropped
    if gone:
        track.dropped = known.dropped
        if gone > 0 and track.position > 1:
            track.position = max(track.position - gone, 1)
    return track.position


def _standing(track: ExchangeRecord, known: TaskRecord) -> int:
    """Index in `states` from which this exchange may show them."""
    here, states = position(track, known), known.states
    if 0 <= here < len(states):
        return here
    if track.binding is Binding.WEBHOOK:  # pushes are repeated, and come late
        return 0
    return max((index for index, (at, _) in enumerate(states) if at <= track.started), default=0)


def _record(track: ExchangeRecord, frame: Frame, known: TaskRecord) -> None:
    states = known.states
    states.append((frame.at, frame.state))
    if len(states) > MAX_STATES:
        del states[1]
        known.dropped += 1
    track.position, track.dropped = len(states) - 1, known.dropped
    known.awaits = frame.state in INTERRUPTED
    if frame.state in TERMINAL and not known.terminal:
        known.terminal, known.terminal_in = frame.at, track.id


def said(track: ExchangeRecord, frame: Frame, known: TaskRecord, octets: bytes) -> int:
    """Remember the agent's message; is its id one that stood for another content?"""
    if frame.redacted or frame.truncated:
        return 0
    ident = crc32(frame.message_id.encode("utf-8", "surrogatepass"))
    sayings = known.said
    if sayings is None:
        sayings = known.said = {}
    flags, length, digest = 0, len(octets), crc32(octets)
    found = sayings.get(ident)
    if found is not None:
        # Another stream may be behind or ahead; the answer to a later message is not.
        follows = found.exchange == track.id or (track.operation in SENDING_OPERATIONS and found.at < track.started)
        if not follows or found.binding is not track.binding:
            return 0
        if (found.length, found.digest) != (length, digest):
            grew = length > found.length and crc32(octets[: found.length]) == found.digest
            flags = _RESAID | (_GROWN if grew else 0)
        del sayings[ident]
    sayings[ident] = AgentMessage(track.id, frame.at, track.binding, length, digest)
    if len(sayings) > _MAX_SAID:
        del sayings[next(iter(sayings))]
    return flags


# --- artifacts ----------------------------------------------------------------------------------------------------


def _end(track: ExchangeRecord, known: TaskRecord) -> None:
    for each in known.artifacts.values():
        if each.stream == track.id:
            each.ended = True


def artifact_flags(track: ExchangeRecord, frame: Frame, known: TaskRecord, look: ArtifactLook | None) -> int:
    """What is notable about an artifact update, before it is learned."""
    found = known.artifacts.get(frame.artifact_id)
    late = known.terminal and not track.terminal and overdue(track, frame, known)
    flags = (_OVERDUE if late else 0) | (_APPEND if frame.append else 0)
    if found is None:
        return flags | (_ODD if frame.append else 0)
    flags |= _KNOWN
    if frame.append:
        odd = found.done and (found.stream == track.id or found.at < track.started)
    else:
        odd = found.chunks > 0 and found.stream == track.id
    if odd:
        flags |= _ODD
    if look is not None and drifts(found, look):
        flags |= _DRIFT
    return flags


def drifts(found: KnownArtifact, look: ArtifactLook) -> bool:
    """What describes it is no longer the same; what is left out is not changed (manual/protocol.md "Artifacts")."""
    return bool(
        (look.name and found.name and look.name != found.name)
        or (look.description and found.description and look.description != found.description)
        or (look.media_type and found.media_type and look.media_type != found.media_type)
    )


def artifact_told(
    tracks: Mapping[int, ExchangeRecord], track: ExchangeRecord, frame: Frame, known: TaskRecord, look: ArtifactLook
) -> None:
    """Learn an artifact update."""
    found = known.artifacts.get(frame.artifact_id)
    if found is None:
        if len(known.artifacts) >= MAX_ARTIFACTS:
            return
        found = known.artifacts[frame.artifact_id] = KnownArtifact(stream=track.id)
    elif found.stream != track.id:
        if found.stream in tracks or found.at >= track.started:
            return
        found.stream, found.whole = track.id, False
    _describe(found, look)
    if not frame.append:
        found.appends, found.done = 0, False
        found.length = found.digest = found.octets = found.others = 0
        found.first_generation = frame.generation
        found.whole = True
    found.whole = found.whole and not frame.redacted and not frame.truncated
    found.chunks += 1
    found.appends += frame.append
    found.done = found.done or frame.last_chunk
    found.at, found.last_generation = frame.at, frame.generation
    for piece in look.pieces:
        if isinstance(piece, bytes):
            found.length += len(piece)
            found.digest = crc32(piece, found.digest)
        else:
            found.octets += piece
            found.others += 1


def artifacts_told(frame: Frame, known: TaskRecord) -> None:
    """Learn the artifacts of a snapshot."""
    if b"rtifact" not in frame.payload and frame.schema == "json":
        return
    for look in artifacts_of(frame):
        found = known.artifacts.get(look.artifact_id)
        if found is None and len(known.artifacts) < MAX_ARTIFACTS:
            found = known.artifacts[look.artifact_id] = KnownArtifact()
        if found is not None:
            _describe(found, look)


def _describe(found: KnownArtifact, look: ArtifactLook) -> None:
    """The first that is not empty stays."""
    found.name = found.name or look.name
    found.description = found.description or look.description
    found.media_type = found.media_type or look.media_type


_TERMINAL, _INTERRUPTED = int(FrameFlag.TERMINAL), int(FrameFlag.INTERRUPTED)
_SAME, _CHANGED = int(FrameFlag.SAME), int(FrameFlag.CHANGED)
_APPEND, _KNOWN = int(FrameFlag.APPEND), int(FrameFlag.KNOWN_ARTIFACT)
_LEFT, _STALE = int(FrameFlag.LEFT_TERMINAL), int(FrameFlag.STALE)
_BACKWARDS, _IDLE, _RESAID = int(FrameFlag.BACKWARDS), int(FrameFlag.IDLE), int(FrameFlag.RESAID)
_GROWN, _OVERDUE, _STRAY = int(FrameFlag.GROWN), int(FrameFlag.OVERDUE), int(FrameFlag.STRAY)
_ODD, _DRIFT = int(FrameFlag.ODD_CHUNK), int(FrameFlag.DRIFT)
