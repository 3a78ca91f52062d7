"""Agent cards over gRPC: the response to a card call is held until it is complete, and rewritten.

At most one message of 32 KiB per stream is held, for at most one second. A compressed message is sent uncompressed,
which gRPC permits for every message; it is only changed if its card changes. A longer card waits until the client's
windows cover it. Messages that cannot be rewritten are sent unchanged.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any, Literal

from a2a_proxy.model.chunk import Direction
from a2a_proxy.relay.edits.edit import CardRewriter, EditFact
from a2a_proxy.relay.edits.http2_delivery import FlowController, HeldStream, QueuedData
from a2a_proxy.relay.edits.http2_headers import ResponseHead

MAX_GRPC_CARD_BYTES = 32 << 10
"""Bytes of a message that is held."""
MAX_UNPACKED_BYTES = 1 << 17
"""Bytes of a card after decompression: rewriting it takes at most 30 ms without interruption."""
HOLD_SECONDS = 1.0
MAX_CARD_CALLS = 256
"""Concurrent card calls of one connection; responses to further ones are forwarded without examination."""

_PREFIX_SIZE = 5
_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS

AppendEdit = Callable[[EditFact], None]


class CardCalls:
    """The card calls of one connection."""

    def __init__(self, rewriter: CardRewriter, listen: str, delivery: FlowController, append_edit: AppendEdit) -> None:
        self.rewriter = rewriter
        self.delivery = delivery
        self.now = 0.0
        """Current time in monotonic seconds."""
        self.held_calls: dict[int, CardCall] = {}
        """The calls whose responses are held, oldest first."""
        self.has_stopped = False
        """Whether calls are edited no more."""
        self._listen = listen
        self._append_edit = append_edit

    @property
    def deadline(self) -> float | None:
        """When the oldest held response must be released."""
        return next(iter(self.held_calls.values())).held_since + HOLD_SECONDS if self.held_calls else None

    def watch_call(self, number: int, form: str, authority: str) -> None:
        """Watch a call for a card."""
        streams = self.delivery.streams
        if self.has_stopped or number in streams or len(streams) >= MAX_CARD_CALLS:
            return
        stream = self.delivery.watch_stream(number)
        stream.hold = CardCall(self, stream, form, authority or self._listen)

    def on_response(self, number: int, response: ResponseHead, ends: bool, offset: int) -> None:
        """Handle a header block of the agent that is forwarded on a stream without waiting frames."""
        stream = self.delivery.streams.get(number)
        if stream is None or response.status[:1] == b"1":
            return
        if ends:
            self.delivery.forget_stream(stream)
        elif response.status and not response.editable:
            self.note_edit("untouched", offset, {"reason": "not gRPC, or its length is announced in a header"})
            self.delivery.forget_stream(stream)

    def stop(self) -> None:
        """Edit no more calls; the caller must release the held bytes."""
        self.has_stopped = True

    def release_overdue(self) -> bytes:
        """Release responses that have been held too long."""
        reason = f"not complete, or larger than the client's window, after {HOLD_SECONDS:g} s"
        due = {number for number, card in self.held_calls.items() if card.held_since + HOLD_SECONDS <= self.now}
        streams = [stream for stream in self.delivery.waiting_in_order() if stream.number in due]
        return b"".join([self.delivery.release_stream(stream, reason) for stream in streams])

    def note_edit(self, kind: Literal["card", "untouched"], offset: int, detail: dict[str, Any]) -> None:
        """Record an edit, or why it was not made."""
        self._append_edit(EditFact(Direction.TO_CLIENT, kind, offset, detail))


class CardCall:
    """One card call until its message is sent or released: its DATA is held."""

    def __init__(self, cards: CardCalls, stream: HeldStream, form: str, authority: str) -> None:
        self.held_since = 0.0
        self._cards = cards
        self._stream = stream
        self._form = form
        self._authority = authority
        self._offset = 0
        self._data = bytearray()
        """Payloads of the complete DATA frames that are held."""
        self._message = b""
        self._urls: tuple[tuple[str, str], ...] = ()
        self._length_before = 0

    def on_first_data(self, offset: int) -> None:
        """Note the time and offset of the first DATA."""
        self._offset = offset
        self.held_since = self._cards.now
        self._cards.held_calls[self._stream.number] = self

    def on_more_data(self) -> bytes:
        """Handle more DATA and return the bytes to send now."""
        queue = self._stream.queue
        last = queue[-1]
        assert isinstance(last, QueuedData)
        if len(queue) > 1 and not isinstance(queue[-2], QueuedData):
            return self.release_bytes("DATA after the trailers")
        if last.missing:
            message = self._data + last.payload
        else:
            message = self._data
            message += last.payload
        if len(message) < _PREFIX_SIZE:
            return self._release_stream() if last.ends and not last.missing else b""
        size = int.from_bytes(message[1:_PREFIX_SIZE])
        if size > MAX_GRPC_CARD_BYTES:
            return self.release_bytes(f"message of {size} bytes, limit {MAX_GRPC_CARD_BYTES}")
        if len(message) > _PREFIX_SIZE + size:
            return self.release_bytes("more than one message")
        if last.missing or self._message:
            return b""
        if len(message) < _PREFIX_SIZE + size:
            return self.release_bytes("incomplete message") if last.ends else b""
        return self._rewrite_card(bytes(message))

    def on_window_growth(self) -> bytes:
        """Send the rewritten message if the client's windows, which grew, now cover it."""
        delivery, message = self._cards.delivery, self._message
        if not message or not delivery.has_window(self._stream, len(message)):
            return b""
        self._cards.held_calls.pop(self._stream.number, None)
        detail = {"urls": [list(connection) for connection in self._urls], "length_before": self._length_before}
        self._cards.note_edit("card", self._offset, {**detail, "length_after": len(message)})
        return delivery.replace_held_data(self._stream, message)

    def release_bytes(self, reason: str) -> bytes:
        """Send the message unchanged, and record why."""
        if self._stream.queue:
            self._cards.note_edit("untouched", self._offset, {"reason": reason})
        return self._release_stream()

    def _rewrite_card(self, message: bytes) -> bytes:
        payload = _unpack_message(message)
        if payload is None:
            return self.release_bytes("unknown compression")
        outcome = self._cards.rewriter(payload, self._form, self._authority)
        if outcome.payload is None:
            return self._release_stream()
        self._message = b"\0" + len(outcome.payload).to_bytes(4) + outcome.payload
        self._urls = outcome.urls
        self._length_before = len(message)
        return self.on_window_growth()

    def _release_stream(self) -> bytes:
        self._cards.held_calls.pop(self._stream.number, None)
        self._stream.hold = None
        return self._cards.delivery.flush_stream(self._stream)


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
