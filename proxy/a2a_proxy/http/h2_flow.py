"""Flow control between two HTTP/2 peers when one is sent other DATA than the other sent: the
windows of the receiver (RFC 9113 5.2, 6.9).

While nothing is changed, the sender respects the receiver's windows by itself. If the receiver was
sent more bytes than the sender sent (`owed`), the difference is subtracted from the receiver's next
WINDOW_UPDATEs; until then the sender sees a larger window than the receiver's. If the receiver was
sent fewer, the sender gets WINDOW_UPDATE. So both have the same windows in the end.
"""

from collections import deque
from typing import Generic, TypeVar

import msgspec

from a2a_proxy.http.h2 import (
    DEFAULT_FRAME_SIZE,
    DEFAULT_WINDOW,
    INITIAL_WINDOW_SIZE,
    MAX_FRAME_SIZE,
    Frame,
    Violation,
    encode_window_update,
)
from a2a_proxy.http.h2_scan import Http2Scanner

MAX_UNACKNOWLEDGED_SETTINGS = 1000
"""SETTINGS frames that the sender has not acknowledged."""
UNTRACKED_WINDOW = 1 << 62
"""The window of a stream whose DATA is not counted."""


class StreamWindow(msgspec.Struct, eq=False):
    """A stream whose DATA is counted."""

    number: int
    window: int = UNTRACKED_WINDOW
    """The receiver's window for the stream."""
    owed: int = 0
    """As in `FlowAccount`."""


_Stream = TypeVar("_Stream", bound=StreamWindow)


class FlowAccount(Generic[_Stream]):
    """The windows of the receiver."""

    def __init__(self) -> None:
        self.to_sender: Http2Scanner
        """Scanner of the bytes sent to the sender."""
        self.to_receiver: Http2Scanner
        """Scanner of the bytes sent to the receiver."""
        self.connection = DEFAULT_WINDOW
        """The receiver's window for the connection, counted in the bytes that it was sent."""
        self.owed = 0
        """Number of bytes sent to the receiver minus the number of bytes received from the
        sender."""
        self.streams: dict[int, _Stream] = {}
        self.initial_window = DEFAULT_WINDOW
        """The receiver's window for a new stream."""
        self.frame_size = DEFAULT_FRAME_SIZE
        """Bytes of payload that the receiver accepts."""
        self._settings: deque[dict[int, int]] = deque()

    def apply_settings(self, frame: Frame) -> None:
        """Note new SETTINGS of the receiver. Raises `Violation` if too many wait for the sender's
        acknowledgement."""
        if len(self._settings) >= MAX_UNACKNOWLEDGED_SETTINGS:
            expected = f"at most {MAX_UNACKNOWLEDGED_SETTINGS} SETTINGS without acknowledgement"
            raise Violation(0, expected, "one more")
        self._settings.append(dict(frame.read_settings()))

    def on_settings_ack(self) -> bytes:
        """Apply the receiver's SETTINGS that the sender acknowledges. Return the bytes to send
        before the acknowledgement."""
        if not self._settings:
            return b""
        wanted = self._settings.popleft()
        self.to_receiver.budget -= len(self.streams)
        self.frame_size = max(DEFAULT_FRAME_SIZE, wanted.get(MAX_FRAME_SIZE, self.frame_size))
        change = wanted.get(INITIAL_WINDOW_SIZE, self.initial_window) - self.initial_window
        self.initial_window += change
        released = self.release_before(change)
        for stream in self.streams.values():
            if stream.window != UNTRACKED_WINDOW:
                stream.window += change
        return released

    def release_before(self, change: int) -> bytes:  # noqa: ARG002 (for subclasses)
        """Return the bytes to send before the windows of the streams change."""
        return b""

    def apply_window_update(self, number: int, increment: int) -> bytes | None:
        """Handle a WINDOW_UPDATE of the receiver and return the frame to send to the sender, or
        None for the frame unchanged: an `EditWindow`."""
        if not number:
            self.connection += increment
            taken = min(self.owed, increment)
            self.owed -= taken
        elif (stream := self.streams.get(number)) is not None:
            stream.window += increment
            taken = min(stream.owed, increment)
            stream.owed -= taken
        else:
            return None
        self.retry_waiting()
        if not taken:
            return None
        return encode_window_update(number, increment - taken) if increment > taken else b""

    def retry_waiting(self) -> None:
        """Send what waits, because the receiver's windows grew."""

    def spend_window(self, stream: _Stream, size: int) -> None:
        """Account for bytes that the receiver is sent."""
        self.connection -= size
        if stream.window != UNTRACKED_WINDOW:
            stream.window -= size

    def settle_owed(self, growth: int, stream: _Stream | None = None) -> None:
        """Account for `growth` bytes that the receiver is sent and the sender did not send;
        negative if it is sent fewer. `stream`: that of the bytes, if the sender has not ended
        it."""
        self.owed += growth
        if self.owed < 0:
            self.to_sender.insert_frames(encode_window_update(0, -self.owed))
            self.owed = 0
        if stream is not None:
            stream.owed += growth
            if stream.owed < 0:
                self.to_sender.insert_frames(encode_window_update(stream.number, -stream.owed))
                stream.owed = 0
