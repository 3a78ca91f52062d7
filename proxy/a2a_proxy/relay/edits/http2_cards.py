"""Agent cards over gRPC: the answer of a card call is held until it is complete, and rewritten.

Held is at most one message of 32 KiB per stream, for at most one second. A message that a peer compressed is sent on
uncompressed, which gRPC lets every message be; it is only touched where its card changes. A longer card waits for the
client's windows to cover it. What cannot be rewritten goes out as it came.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any, Literal

from a2a_proxy.model.chunk import Direction
from a2a_proxy.relay.edits.edit import CardRewriter, EditFact
from a2a_proxy.relay.edits.http2_delivery import Data, FlowController, HeldStream
from a2a_proxy.relay.edits.http2_headers import ResponseHead

CARD_OCTETS = 32 << 10
"""Octets of a message that is held."""
UNPACKED_OCTETS = 1 << 17
"""Octets of a card after decompression: rewriting it takes at most 30 ms in one go."""
HOLD_SECONDS = 1.0
CALLS = 256
"""Card calls of one connection at the same time; answers to more of them pass unseen."""

_PREFIX = 5
_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS

Tell = Callable[[EditFact], None]


class CardCalls:
    """The card calls of one connection."""

    def __init__(self, rewriter: CardRewriter, listen: str, delivery: FlowController, tell: Tell) -> None:
        self.rewriter = rewriter
        self.delivery = delivery
        self.now = 0.0
        """Seconds, monotonic."""
        self.held: dict[int, CardCall] = {}
        """The calls whose answers are held, oldest first."""
        self.ended = False
        """No call is edited from here."""
        self._listen = listen
        self._tell = tell

    @property
    def deadline(self) -> float | None:
        """When the oldest answer has been held long enough."""
        return next(iter(self.held.values())).since + HOLD_SECONDS if self.held else None

    def call(self, number: int, form: str, authority: str) -> None:
        """A client asks for a card."""
        streams = self.delivery.streams
        if self.ended or number in streams or len(streams) >= CALLS:
            return
        stream = self.delivery.watch(number)
        stream.hold = CardCall(self, stream, form, authority or self._listen)

    def answer(self, number: int, response: ResponseHead, ends: bool, offset: int) -> None:
        """A header block of the agent passes on a stream where nothing waits."""
        stream = self.delivery.streams.get(number)
        if stream is None or response.status[:1] == b"1":
            return
        if ends:
            self.delivery.forget(stream)
        elif response.status and not response.editable:
            self.tell("untouched", offset, {"reason": "not gRPC, or its length was announced"})
            self.delivery.forget(stream)

    def end(self) -> None:
        """Edit no call from here; what is held is for the caller to release."""
        self.ended = True

    def late(self) -> bytes:
        """Release what has been held too long."""
        reason = f"not complete, or no window for it, after {HOLD_SECONDS:g} s"
        due = {number for number, card in self.held.items() if card.since + HOLD_SECONDS <= self.now}
        streams = [stream for stream in self.delivery.in_order() if stream.number in due]
        return b"".join([self.delivery.free(stream, reason) for stream in streams])

    def tell(self, kind: Literal["card", "untouched"], offset: int, detail: dict[str, Any]) -> None:
        """Note what was done, or not."""
        self._tell(EditFact(Direction.TO_CLIENT, kind, offset, detail))


class CardCall:
    """One card call, until its message is sent or let go: the reason why its DATA is held."""

    def __init__(self, cards: CardCalls, stream: HeldStream, form: str, authority: str) -> None:
        self.since = 0.0
        self._cards = cards
        self._stream = stream
        self._form = form
        self._authority = authority
        self._offset = 0
        self._data = bytearray()
        """Of the complete DATA frames that are held."""
        self._message = b""
        self._urls: tuple[tuple[str, str], ...] = ()
        self._before = 0

    def begins(self, offset: int) -> None:
        """The first DATA came."""
        self._offset = offset
        self.since = self._cards.now
        self._cards.held[self._stream.number] = self

    def grown(self) -> bytes:
        """More DATA came."""
        queue = self._stream.queue
        last = queue[-1]
        assert isinstance(last, Data)
        if len(queue) > 1 and not isinstance(queue[-2], Data):
            return self.release("DATA after the trailers")
        if last.missing:
            octets = self._data + last.octets
        else:
            octets = self._data
            octets += last.octets
        if len(octets) < _PREFIX:
            return self._let_go() if last.ends and not last.missing else b""
        size = int.from_bytes(octets[1:_PREFIX])
        if size > CARD_OCTETS:
            return self.release(f"message of {size} octets, limit {CARD_OCTETS}")
        if len(octets) > _PREFIX + size:
            return self.release("more than one message")
        if last.missing or self._message:
            return b""
        if len(octets) < _PREFIX + size:
            return self.release("incomplete message") if last.ends else b""
        return self._rewrite(bytes(octets))

    def retry(self) -> bytes:
        """The client's windows grew."""
        delivery, message = self._cards.delivery, self._message
        if not message or not delivery.covers(self._stream, len(message)):
            return b""
        self._cards.held.pop(self._stream.number, None)
        detail = {"urls": [list(pair) for pair in self._urls], "length_before": self._before}
        self._cards.tell("card", self._offset, {**detail, "length_after": len(message)})
        return delivery.replace(self._stream, message)

    def release(self, reason: str) -> bytes:
        """Send it as it came, and say why."""
        if self._stream.queue:
            self._cards.tell("untouched", self._offset, {"reason": reason})
        return self._let_go()

    def _rewrite(self, octets: bytes) -> bytes:
        payload = _unpacked(octets)
        if payload is None:
            return self.release("compression that is not known")
        outcome = self._cards.rewriter(payload, self._form, self._authority)
        if outcome.payload is None:
            return self._let_go()
        self._message = b"\0" + len(outcome.payload).to_bytes(4) + outcome.payload
        self._urls = outcome.urls
        self._before = len(octets)
        return self.retry()

    def _let_go(self) -> bytes:
        self._cards.held.pop(self._stream.number, None)
        self._stream.hold = None
        return self._cards.delivery.flush(self._stream)


def _unpacked(message: bytes) -> bytes | None:
    """The payload of a gRPC message; None where it cannot be read, or is too long."""
    if message[0] != 1:
        return None if message[0] else message[_PREFIX:]
    reader = zlib.decompressobj(_GZIP_OR_ZLIB)
    try:
        payload = reader.decompress(message[_PREFIX:], UNPACKED_OCTETS)
    except zlib.error:
        return None
    return payload if reader.eof else None
