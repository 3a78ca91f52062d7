"""The plan of a drive: what is sent, and what each message waits for. Values only."""

from enum import Enum

import msgspec

from a2a_proxy.model.values import Binding, Exchange, Frame
from a2a_proxy.recording.read.rows import ExchangeRow

BINDINGS = {
    "jsonrpc": Binding.JSONRPC,
    "json-rpc": Binding.JSONRPC,
    "grpc": Binding.GRPC,
    "http+json": Binding.REST,
    "rest": Binding.REST,
    "stdio": Binding.STDIO,
}
"""Binding by the name that cards use, in lower case."""
CALL_END = -1
"""Value of `AwaitedResponse.answers` that means the end of the call."""


class AwaitedResponse(msgspec.Struct, frozen=True):
    """An answer that must have been received before something is sent."""

    step: int
    """Number of the step in the plan, from 0."""
    answers: int
    """How many messages of the agent must have been received in it, or CALL_END."""


class ClientAction(Enum):
    """What a client does in a call."""

    SAY = "message"
    END = "half-close"
    CUT = "cancel"


class ClientTurn(msgspec.Struct, frozen=True):
    """One action of the recorded client in a call."""

    action: ClientAction
    frame_number: int
    """Number of its frame; -1 for an end without a recorded frame."""
    at: int
    """Time of the action in ns since the Unix epoch."""
    answers_before: int
    """Messages of the agent that had been received in this call before the action."""
    pause: int
    """Pause in ns after the last dependency was met."""
    waits: tuple[AwaitedResponse, ...] = ()
    """Answers that must have been received in other calls."""
    frame: Frame | None = None
    """The frame of a message."""


class PlannedCall(msgspec.Struct, frozen=True):
    """One call of the recording."""

    number: int
    """Number in the plan, from 0."""
    row: ExchangeRow
    turns: tuple[ClientTurn, ...]
    answers: tuple[Frame, ...]
    """Messages of the recorded agent in the call, payloads included."""
    silence: int
    """The longest time in ns without any frame while the recorded client waited."""

    @property
    def exchange(self) -> Exchange:
        """The recorded exchange."""
        return self.row.exchange

    @property
    def start_time(self) -> int:
        """Time of the first byte of its first message, in ns; a live stream may have been opened
        long before."""
        frame = self.turns[0].frame
        return frame.began if frame is not None else self.turns[0].at

    @property
    def place(self) -> str:
        """`#3`, or `#2:3` in a later session."""
        return exchange_place(self.row)


class SkippedCall(msgspec.Struct, frozen=True):
    """A call that is not driven, and the reason."""

    row: ExchangeRow
    reason: str

    @property
    def place(self) -> str:
        """The place, written as in `PlannedCall.place`."""
        return exchange_place(self.row)


class DrivePlan(msgspec.Struct, frozen=True):
    """All calls of a drive, in the order in which the first messages of the recorded calls
    began."""

    steps: tuple[PlannedCall, ...]
    skipped: tuple[SkippedCall, ...] = ()
    paths: dict[Binding, str] = {}
    """Path of each interface in the recorded card, without a trailing slash."""
    missing: tuple[str, ...] = ()
    """Reasons why the recording is incomplete; empty if it is complete."""


def exchange_place(row: ExchangeRow) -> str:
    """Return the place of an exchange as users write it."""
    return f"#{row.exchange.id}" if row.session == 1 else f"#{row.session}:{row.exchange.id}"
