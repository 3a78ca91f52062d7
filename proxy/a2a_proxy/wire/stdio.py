"""Decodes the two directions of a pipe to a stdio agent into messages and stray lines
(manual/protocol.md "Stdio").

Each message's first bytes decide between Content-Length framing and newline-delimited JSON. Bytes
outside messages are reported line by line. A wrong length costs at most one message: see
`PipeReader`.
"""

import msgspec

from a2a_proxy.model.saved_state import State
from a2a_proxy.model.wire import Control, Cut, Direction, End, WireEvent
from a2a_proxy.wire.lines import LogLines
from a2a_proxy.wire.stdio_reader import PipeReader

HOW_LOST = "lost"


class StdioDecoder(State, tag="stdio"):
    """A decoder (`wire.connection`) of both directions and of stderr."""

    counters: dict[str, int] = {}
    """`stderr_bytes`, if any."""
    _sides: list[PipeReader] = msgspec.field(
        default_factory=lambda: list(map(PipeReader, Direction))
    )
    _log: LogLines = msgspec.field(default_factory=LogLines)
    _is_lost: bool = False

    def feed(self, direction: Direction, data: bytes, at: int, out: list[WireEvent]) -> None:
        """Read bytes of one direction. Never raises."""
        if not self._is_lost:
            self._sides[direction].feed(data, at, out)

    def feed_log(self, data: bytes, at: int, out: list[WireEvent]) -> None:
        """Read bytes of stderr."""
        self.counters["stderr_bytes"] = self.counters.get("stderr_bytes", 0) + len(data)
        self._log.feed(data, at, out)

    def on_signal(self, name: str, at: int, out: list[WireEvent]) -> None:
        """Report a signal that was passed on to the agent."""
        out.append(Control(Direction.TO_AGENT, at, 0, 0, "signal", {"signal": name}))

    def on_exit(self, detail: dict[str, object], at: int, out: list[WireEvent]) -> None:
        """Report the end of the agent's process."""
        self._log.finish(at, out)
        out.append(Control(Direction.TO_CLIENT, at, 0, 0, "exit", detail))

    def feed_eof(self, direction: Direction, at: int, out: list[WireEvent]) -> None:
        """End this direction: its sender closed the pipe."""
        if self._is_lost:
            return
        side = self._sides[direction]
        side.finish(at, out)
        out.append(Control(direction, at, side.offset, side.offset, "eof", {}))
        out.append(End(0, direction, at, side.offset))

    def feed_reset(self, direction: Direction, at: int, out: list[WireEvent]) -> None:
        """Cut this direction: its pipe broke."""
        self._break_pipe(direction, at, "reset", out)

    def feed_loss(self, direction: Direction, at: int, out: list[WireEvent]) -> None:
        """Stop decoding both directions: bytes of this one are missing here."""
        self._log.finish(at, out)
        if not self._is_lost:
            self._sides[1 - direction].finish(at, out)
        self._break_pipe(direction, at, HOW_LOST, out)
        self._is_lost = True

    def _break_pipe(self, direction: Direction, at: int, how: str, out: list[WireEvent]) -> None:
        if not self._is_lost:
            side = self._sides[direction]
            side.finish(at, out)
            out.append(Cut(0, direction, at, side.offset, how))
