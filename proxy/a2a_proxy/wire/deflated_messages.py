"""Decompresses the messages of one direction of a WebSocket (permessage-deflate, RFC 7692), with
bounded output."""

import zlib
from collections.abc import Iterator
from typing import Any

from a2a_proxy.model.saved_state import State
from a2a_proxy.wire.content import MAX_RATIO, MAX_REPLAYED, RATIO_SLACK

_WINDOW_SIZE = 32 << 10
_RAW_DEFLATE_WBITS = -15
_PIECE_SIZE = 64 << 10
"""Maximum number of bytes that are decompressed at once."""
_SLICE_SIZE = 4 << 10
"""Compressed bytes that are passed on at once: what is left of them is copied for each piece."""
_MESSAGE_END = b"\0\0\xff\xff"
"""Bytes that senders omit at the end of each message (RFC 7692 7.2.1)."""


class MessageInflater(State, dict=True):
    """Never raises: if decompression stops, `problem` says why, and no more bytes are returned.

    The ratio of a message is limited, not that of all messages: those of a long connection may be
    very much alike. A decompressor cannot be saved: the window of earlier messages and the bytes of
    the current message are, up to `MAX_REPLAYED`.
    """

    keeps_window: bool = True
    """Whether a message may refer to earlier ones (context takeover)."""
    problem: str = ""
    """Why the messages cannot be decompressed; empty while there is no problem."""
    broken: bool = False
    """Whether the sender is at fault: the bytes are not compressed data. False at a limit of the
    recorder."""
    _window: bytes = b""
    """The end of the earlier messages."""
    _fed: bytearray = bytearray()
    """Compressed bytes of the current message."""
    _is_replayable: bool = True
    _taken: int = 0
    """Number of compressed bytes of the current message."""
    _made: int = 0
    """Number of its decompressed bytes."""

    def __post_init__(self) -> None:
        self._begin_message()
        if not self._is_replayable:
            self.problem = self.problem or f"a restart after {self._taken} bytes of a longer one"
        for _ in self._inflate(bytes(self._fed)):
            pass

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the decompressed bytes of the next bytes of the current message."""
        if self.problem:
            return
        self._taken += len(data)
        if self._is_replayable:
            self._fed += data
            if len(self._fed) > MAX_REPLAYED:
                self._is_replayable, self._fed = False, bytearray()
        most = RATIO_SLACK + MAX_RATIO * self._taken
        for piece in self._inflate(data):
            self._made += len(piece)
            if self._made > most:
                self.problem = f"{self._taken} bytes become more than {most}"
                return
            yield piece

    def finish_message(self) -> Iterator[bytes]:
        """End the current message: yield the rest of it."""
        yield from self.feed(_MESSAGE_END)
        self._window = bytes(self._recent[-_WINDOW_SIZE:]) if self.keeps_window else b""
        self._fed, self._is_replayable = bytearray(), True
        self._taken = self._made = 0
        self._begin_message()

    def _begin_message(self) -> None:
        self._recent = bytearray(self._window)
        """The last bytes, to which the following ones may refer."""
        self._stream = self._make_stream()

    def _make_stream(self) -> Any:
        return zlib.decompressobj(_RAW_DEFLATE_WBITS, zdict=bytes(self._recent[-_WINDOW_SIZE:]))

    def _inflate(self, data: bytes) -> Iterator[bytes]:
        for start in range(0, len(data), _SLICE_SIZE):
            rest = data[start : start + _SLICE_SIZE]
            while True:
                try:
                    piece = self._stream.decompress(rest, _PIECE_SIZE)
                except zlib.error as error:
                    self.problem, self.broken = str(error), True
                    return
                self._recent += piece
                if len(self._recent) > 2 * _WINDOW_SIZE:
                    del self._recent[:-_WINDOW_SIZE]
                if piece:
                    yield piece
                rest = self._stream.unconsumed_tail
                if self._stream.eof:  # a block marked as the last one (RFC 7692 7.2.3.4)
                    rest = self._stream.unused_data
                    self._stream = self._make_stream()
                if not rest and len(piece) < _PIECE_SIZE:
                    break
