"""Exchanges in the form in which they are compared: request and response in the 1.0 form of every
dialect."""

import hashlib
from typing import Any

import msgspec

from a2a_proxy.model.event import Event
from a2a_proxy.model.values import EventKind, Exchange, FrameKind
from a2a_proxy.model.wire import Direction
from a2a_proxy.protocol.canonical_form import canonical_payload
from a2a_proxy.protocol.event import event_from_json
from a2a_proxy.protocol.text import shell_line
from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import ExchangeRow, FrameRow, label_place

LARGE_BYTES = 1 << 20
"""Bytes. Larger payloads are compared by their size and their hash."""
_MAX_BYTES = 64 << 20
"""Bytes of all payloads of one exchange that are compared by content."""
_MAX_FRAMES = 4000
"""Maximum number of messages of one exchange that are compared."""
_RESPONSE_KINDS = (
    FrameKind.RESPONSE,
    FrameKind.EVENT,
    FrameKind.ERROR,
    FrameKind.OTHER,
    FrameKind.UNDECODABLE,
)


class ComparedMessage(msgspec.Struct, frozen=True):
    """One message."""

    seq: int
    value: Any
    """Canonical JSON."""
    kind: EventKind
    failed: bool = False
    """Whether the message is an error."""

    @property
    def event(self) -> Event:
        """The message as a typed event."""
        return event_from_json(self.value) if isinstance(self.value, dict) else Event()


class ComparedExchange(msgspec.Struct):
    """One exchange."""

    row: ExchangeRow
    requests: list[ComparedMessage]
    events: list[ComparedMessage]
    cut: tuple[str, ...] = ()

    @property
    def exchange(self) -> Exchange:
        """The exchange itself."""
        return self.row.exchange


def read_exchange(recording: Recording, row: ExchangeRow) -> ComparedExchange:
    """Read an exchange, as far as its size allows. Raises RecordingError."""
    result = ComparedExchange(row, [], [])
    byte_count = 0
    for frame_row in recording.read_frames(row.key, payloads=False):
        frame = frame_row.frame
        is_request = frame.direction is Direction.TO_AGENT and frame.kind is FrameKind.REQUEST
        if not is_request and frame.kind not in _RESPONSE_KINDS:
            continue
        byte_count += min(frame.size, LARGE_BYTES)
        if len(result.requests) + len(result.events) >= _MAX_FRAMES or byte_count > _MAX_BYTES:
            result.cut = (f"#{row.exchange.id} is compared only up to frame {frame.seq}",)
            break
        entry = _make_entry(recording, frame_row, row.exchange)
        (result.requests if frame.direction is Direction.TO_AGENT else result.events).append(entry)
    return result


def read_request(recording: Recording, row: ExchangeRow) -> Any:
    """Return the first request of an exchange, or None if it was not recorded."""
    for frame_row in recording.read_frames(row.key, limit=1, payloads=False):
        if frame_row.frame.direction is Direction.TO_AGENT:
            return _make_entry(recording, frame_row, row.exchange).value
    return None


def read_message(recording: Recording, row: ExchangeRow, seq: int) -> ComparedMessage:
    """Return the message in one frame. Raises RecordingError if the frame does not exist."""
    for frame_row in recording.read_frames(row.key, after=seq - 1, limit=1, payloads=False):
        if frame_row.frame.seq == seq:
            return _make_entry(recording, frame_row, row.exchange)
    place = label_place(row.session, row.exchange.id)
    listing = shell_line("a2a-inspect", "show", recording.path, place.removeprefix("#"))
    raise RecordingError(f"exchange {place} has no frame {seq}", f"list its frames: {listing}")


def _make_entry(recording: Recording, row: FrameRow, exchange: Exchange) -> ComparedMessage:
    frame = row.frame
    failed = frame.kind is FrameKind.ERROR
    if frame.size > LARGE_BYTES or frame.truncated:
        return ComparedMessage(frame.seq, _digest_value(recording, row), frame.event, failed)
    payload = recording.read_payload(row)
    return ComparedMessage(
        frame.seq,
        canonical_payload(msgspec.structs.replace(frame, payload=payload), exchange),
        frame.event,
        failed,
    )


def _digest_value(recording: Recording, row: FrameRow) -> dict[str, Any]:
    """Return the size and hash of a payload that is too large to compare, or was not stored
    completely."""
    frame = row.frame
    digest = frame.sha256 or hashlib.sha256(recording.read_payload(row)).digest()
    return {"bytes": frame.size, "sha256": digest.hex()}
