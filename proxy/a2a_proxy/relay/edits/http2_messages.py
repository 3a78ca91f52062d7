"""Messages that are edited: the first gRPC message of a call in one direction, or the response with
a card in JSON, is held until it is complete.

One message per stream and direction is held, for at most one second. A compressed message is sent
uncompressed, which gRPC permits for every message; it is only changed if its content changes. A
longer message waits until the receiver's windows cover it. Messages that cannot be edited are sent
unchanged.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any, Literal, Protocol

from a2a_proxy.http.h2 import DEFAULT_WINDOW, END_STREAM, FRAME_HEAD_SIZE, HeaderBlock
from a2a_proxy.model.wire import Direction
from a2a_proxy.relay.edits.card_response import (
    MAX_RESPONSE_BYTES,
    MOST_TOKENS,
    OLD_FRAMING,
    TOO_LARGE,
    TOO_MANY_MEMBERS,
    UNKNOWN_CODING,
    count_tokens,
    undo_coding,
    work_of,
)
from a2a_proxy.relay.edits.edit import CardRewriter, EditFact
from a2a_proxy.relay.edits.http2_delivery import FlowController, HeldStream, QueuedData, QueuedFrame
from a2a_proxy.relay.edits.http2_headers import ResponseHead
from a2a_proxy.relay.edits.http2_stage import Http2Stage

MAX_UNPACKED_BYTES = 1 << 17
"""Bytes of a message after decompression: editing it takes at most 30 ms without interruption."""
MAX_GRPC_CARD_BYTES = 32 << 10
"""Bytes of a card that is held."""
HOLD_SECONDS = 1.0
"""Seconds that a message is held."""
MAX_WATCHED_CALLS = 256
"""Concurrent calls of one connection whose messages are held; messages of further ones are
forwarded without examination."""

_MOST_FRAMES, _MAX_HEAD_BYTES, _MOST_DIGITS = 1000, 8 << 10, 8
"""DATA frames of a body that is held, bytes of its head, and digits from which its length is too
large."""
_NO_ROOM = "it is larger than the client's window"
_PREFIX_SIZE = 5
_SUCCESS = (b"grpc-status", b"0")
_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS

EditKind = Literal["card", "webhook"]
ChangedUrls = tuple[tuple[str, str], ...]


class MessageEdit(Protocol):
    """What happens to one message."""

    kind: EditKind
    max_bytes: int
    """Bytes of the longest message that is held."""

    def rewrite(self, payload: bytes) -> tuple[bytes, ChangedUrls] | None:
        """Return the new message and its changed URLs, or None if it stays unchanged."""

    def withdraw(self) -> None:
        """Note that the message was sent unchanged after all."""

    def fail(self) -> None:
        """Note that the call ended without a message."""


class CardEdit:
    """A `MessageEdit` of the answer to a request for an agent card."""

    kind: EditKind = "card"
    max_bytes = MAX_GRPC_CARD_BYTES

    def __init__(self, rewriter: CardRewriter, form: str, authority: str) -> None:
        """Create the edit; the arguments are those of `CardRewriter`."""
        self._rewriter, self._form, self._authority = rewriter, form, authority

    def rewrite(self, payload: bytes) -> tuple[bytes, ChangedUrls] | None:
        """Return the rewritten card and its changed URLs, or None if it stays unchanged."""
        outcome = self._rewriter(payload, self._form, self._authority)
        return None if outcome.payload is None else (outcome.payload, outcome.urls)

    def withdraw(self) -> None:
        """Do nothing: the client gets the card of the agent."""

    def fail(self) -> None:
        """Do nothing: a call without a card changes nothing."""


class HeldMessages:
    """The held messages of one direction of a connection."""

    def __init__(self, direction: Direction, delivery: FlowController, stage: Http2Stage) -> None:
        self.direction = direction
        self.delivery = delivery
        self.held: dict[int, HeldMessage] = {}
        """The messages that are held, by stream, oldest first."""
        self.has_stopped = False
        """Whether messages are edited no more."""
        self.stage = stage

    @property
    def deadline(self) -> float | None:
        """When the oldest held message must be released."""
        return next(iter(self.held.values())).held_since + HOLD_SECONDS if self.held else None

    def watch_stream(
        self, number: int, edit: MessageEdit, held: type[HeldMessage] | None = None
    ) -> bool:
        """Hold the first message of a stream, as a `HeldMessage` unless `held` says otherwise.
        Return False if there are too many."""
        streams = self.delivery.streams
        if self.has_stopped or number in streams or len(streams) >= MAX_WATCHED_CALLS:
            return False
        stream = self.delivery.watch_stream(number)
        stream.hold = (held or HeldMessage)(self, stream, edit)
        return True

    def watch_failure(self, number: int, on_failure: Callable[[], None]) -> None:
        """Call `on_failure` if the call of a stream fails without a message. Its messages are not
        held."""
        streams = self.delivery.streams
        if not self.has_stopped and number not in streams and len(streams) < MAX_WATCHED_CALLS:
            stream = self.delivery.hold_untracked(number)
            stream.hold = WatchedFailure(self.delivery, stream, on_failure)

    def on_response(self, block: HeaderBlock, response: ResponseHead) -> bool:
        """Handle a header block of the agent on a stream without waiting frames. Return whether it
        is held."""
        stream, offset = self.delivery.streams.get(block.stream), block.start
        if stream is None or response.status[:1] == b"1":
            return False
        hold = stream.hold
        if isinstance(hold, HeldBody):
            return hold.on_head(block, response)
        if block.flags & END_STREAM:
            if hold is not None and _SUCCESS not in response.fields:
                hold.fail()
            self.delivery.forget_stream(stream)
        elif response.status and not response.editable:
            if isinstance(hold, HeldMessage):
                detail = {
                    "reason": "not gRPC, or its length is announced in a header",
                    "what": hold.edit.kind,
                }
                self.note_edit("untouched", offset, detail)
            if hold is not None and response.status[:1] != b"2":
                hold.fail()
            self.delivery.forget_stream(stream)
        return False

    def stop(self) -> None:
        """Edit no more messages; the caller must release the held bytes."""
        self.has_stopped = True
        self.held.clear()

    def release_overdue(self) -> bytes:
        """Release messages that have been held too long."""
        receiver = "client" if self.direction is Direction.TO_CLIENT else "agent"
        reason = f"not complete, or larger than the {receiver}'s window, after {HOLD_SECONDS:g} s"
        due = {
            number
            for number, message in self.held.items()
            if message.held_since + HOLD_SECONDS <= self.stage.now
        }
        streams = [stream for stream in self.delivery.waiting_in_order() if stream.number in due]
        return b"".join([self.delivery.release_stream(stream, reason) for stream in streams])

    def note_edit(
        self, kind: Literal["card", "webhook", "untouched"], offset: int, detail: dict[str, Any]
    ) -> None:
        """Record an edit, or why it was not made."""
        self.stage.facts.append(EditFact(self.direction, kind, offset, detail))


class WatchedFailure:
    """A call whose failure is noted: its first DATA is sent at once, and ends the hold."""

    def __init__(
        self, delivery: FlowController, stream: HeldStream, on_failure: Callable[[], None]
    ) -> None:
        self.fail = on_failure
        self._delivery, self._stream = delivery, stream

    def on_first_data(self, offset: int) -> None:
        """Do nothing: no DATA is held."""

    def on_more_data(self) -> bytes:
        """Return the DATA, which shows that the agent accepted the call."""
        return self.release_bytes("")

    def on_window_growth(self) -> bytes:
        """Return no bytes: no DATA is held."""
        return b""

    def release_bytes(self, reason: str) -> bytes:  # noqa: ARG002 (the interface)
        """Return the DATA, as far as the windows allow."""
        self._stream.hold = None
        return self._delivery.flush_stream(self._stream)


class HeldMessage:
    """One message until it is sent or released: its DATA is held."""

    def __init__(self, messages: HeldMessages, stream: HeldStream, edit: MessageEdit) -> None:
        self.held_since = 0.0
        self.edit = edit
        self._messages = messages
        self._stream = stream
        self._offset = 0
        self._data = bytearray()
        """Payloads of the complete DATA frames that are held."""
        self._size = 0
        """Bytes of the message with its prefix; 0 before that is known."""
        self._message = b""
        self._urls: ChangedUrls = ()
        self._length_before = 0

    def on_first_data(self, offset: int) -> None:
        """Note the time and offset of the first DATA."""
        self._offset = offset
        self.held_since = self._messages.stage.now
        self._messages.held[self._stream.number] = self

    def on_more_data(self) -> bytes:
        """Handle more DATA and return the bytes to send now."""
        queue = self._stream.queue
        last = queue[-1]
        assert isinstance(last, QueuedData)
        if len(queue) > 1 and not isinstance(queue[-2], QueuedData):
            return self.release_bytes("DATA after the trailers")
        if last.missing:
            if (
                len(self._data) + len(last.raw) - FRAME_HEAD_SIZE <= self._size
            ):  # more of a message that is wanted
                return b""
            message = self._data + last.payload
        else:
            message = self._data
            message += last.payload
        if len(message) < _PREFIX_SIZE:
            return self._release_stream() if last.ends and not last.missing else b""
        size = int.from_bytes(message[1:_PREFIX_SIZE])
        if size > self.edit.max_bytes:
            return self.release_bytes(f"message of {size} bytes, limit {self.edit.max_bytes}")
        if len(message) > _PREFIX_SIZE + size:
            return self.release_bytes("more than one message")
        self._size = _PREFIX_SIZE + size
        if last.missing or self._message:
            return b""
        if len(message) < _PREFIX_SIZE + size:
            return self.release_bytes("incomplete message") if last.ends else b""
        return self._rewrite_message(bytes(message))

    def on_window_growth(self) -> bytes:
        """Send the rewritten message if the receiver's windows, which grew, now cover it."""
        delivery, message = self._messages.delivery, self._message
        if not message or not delivery.has_window(self._stream, len(message)):
            return b""
        self._messages.held.pop(self._stream.number, None)
        detail = {"urls": [list(pair) for pair in self._urls], "length_before": self._length_before}
        self._messages.note_edit(
            self.edit.kind, self._offset, {**detail, "length_after": len(message)}
        )
        return delivery.replace_held_data(self._stream, message)

    def release_bytes(self, reason: str) -> bytes:
        """Send the message unchanged, and record why."""
        if self._message:
            self.edit.withdraw()
        if self._stream.queue:
            self._messages.note_edit(
                "untouched", self._offset, {"reason": reason, "what": self.edit.kind}
            )
        return self._release_stream()

    def fail(self) -> None:
        """Note that the call failed without DATA."""
        self.edit.fail()

    def _rewrite_message(self, message: bytes) -> bytes:
        payload = _unpack_message(message)
        if payload is None:
            return self.release_bytes("unknown compression")
        rewritten = self.edit.rewrite(payload)
        if rewritten is None:
            return self._release_stream()
        after, self._urls = rewritten
        self._message = b"\0" + len(after).to_bytes(4) + after
        self._length_before = len(message)
        return self.on_window_growth()

    def _release_stream(self) -> bytes:
        self._messages.held.pop(self._stream.number, None)
        self._stream.hold = None
        return self._messages.delivery.flush_stream(self._stream)


class HeldBody(HeldMessage):
    """The response with a card in JSON, until it is sent or released: its head, and the DATA up to
    its end. Another response is not held."""

    def __init__(self, messages: HeldMessages, stream: HeldStream, edit: MessageEdit) -> None:
        super().__init__(messages, stream, edit)
        self._head: tuple[HeaderBlock, ResponseHead] | None = None

    def on_head(self, block: HeaderBlock, response: ResponseHead) -> bool:
        """Hold the head of a response if a card may follow. Return whether it is held."""
        delivery, length = self._messages.delivery, response.get_field(b"content-length")
        if block.flags & END_STREAM or response.status != b"200":
            delivery.forget_stream(self._stream)
            return False
        encoded = response.encode_head()
        announced = int(length) if length.isdigit() and len(length) < _MOST_DIGITS else 0
        if len(encoded) > _MAX_HEAD_BYTES or len(length) >= _MOST_DIGITS:
            reason = TOO_LARGE
        else:
            reason = _NO_ROOM if announced > delivery.room_of(self._stream) else ""
        if reason:
            detail = {"reason": reason, "what": self.edit.kind}
            self._messages.note_edit("untouched", block.start, detail)
            delivery.forget_stream(self._stream)
            return False
        self._head = block, response
        self.on_first_data(block.start)
        delivery.hold_head(self._stream, block, encoded)
        return True

    def on_more_data(self) -> bytes:
        """Handle more DATA and return the bytes to send now."""
        last = self._stream.queue[-1]
        assert isinstance(last, QueuedData)
        if self._head is None or self._message:
            return self.release_bytes("DATA before the head, or after the end")
        if len(self._data) + len(last.raw) - FRAME_HEAD_SIZE > MAX_RESPONSE_BYTES:
            return self.release_bytes(TOO_LARGE)
        if last.missing:
            return b""
        self._data += last.payload
        if last.ends:
            return self._rewrite_message(bytes(self._data))
        if self._messages.delivery.room_of(self._stream) <= 0:  # the agent waits for the client
            return self.release_bytes(_NO_ROOM)
        many = len(self._stream.queue) > _MOST_FRAMES
        return self.release_bytes("it came in too many frames") if many else b""

    def on_trailers(self, trailers: ResponseHead) -> bytes:
        """Handle trailers, which are queued, and return the bytes to send now."""
        if any(trailers.get_field(name) for name in OLD_FRAMING):
            return self.release_bytes("its trailers are about its bytes")
        return self._rewrite_message(bytes(self._data)) if self._data else self._release_stream()

    def on_window_growth(self) -> bytes:
        """Send the rewritten response if the client's windows now cover its body."""
        message = self._message
        if message and self._messages.delivery.has_window(self._stream, len(message)):
            assert self._head is not None
            block, response = self._head
            self._stream.queue[0] = QueuedFrame(response.encode_for(message), False, block)
        return super().on_window_growth()

    def _rewrite_message(self, message: bytes) -> bytes:
        assert self._head is not None
        payload = undo_coding(self._head[1].get_field(b"content-encoding"), message)
        if payload is None:
            return self.release_bytes(UNKNOWN_CODING)
        tokens = count_tokens(payload)
        self._messages.delivery.to_receiver.budget -= work_of(payload, tokens)
        if tokens > MOST_TOKENS:
            return self.release_bytes(TOO_MANY_MEMBERS)
        rewritten = self.edit.rewrite(payload)
        if rewritten is None:
            return self._release_stream()
        self._message, self._urls = rewritten
        self._length_before = len(payload)
        sent = self.on_window_growth()
        waits = not sent and len(self._message) > DEFAULT_WINDOW
        return self.release_bytes(_NO_ROOM) if waits else sent


def _unpack_message(message: bytes) -> bytes | None:
    """Return the payload of a gRPC message, or None if it cannot be read or is too long."""
    if message[0] != 1:
        return None if message[0] else message[_PREFIX_SIZE:]
    reader = zlib.decompressobj(_GZIP_OR_ZLIB)
    try:
        payload = reader.decompress(message[_PREFIX_SIZE:], MAX_UNPACKED_BYTES)
    except zlib.error:
        return None
    return payload if reader.eof else None
