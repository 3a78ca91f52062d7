"""What is to be sent, and what each message waits for. Values only."""

from __future__ import annotations

from enum import Enum

import msgspec

from a2a_proxy.model.exchange import Binding, Exchange
from a2a_proxy.model.frame import Frame
from a2a_proxy.recording.read.rows import ExchangeRow

BINDINGS = {
    "jsonrpc": Binding.JSONRPC,
    "json-rpc": Binding.JSONRPC,
    "grpc": Binding.GRPC,
    "http+json": Binding.REST,
    "rest": Binding.REST,
    "stdio": Binding.STDIO,
}
"""As cards name them, in lower case."""
CALL_END = -1
"""As a count of answers: all of them."""


class AwaitedResponse(msgspec.Struct, frozen=True):
    """An answer that must have come before something is sent."""

    step: int
    """Number of the step in the plan, from 0."""
    answers: int
    """How many messages of the agent must have come in it, or ENDED."""


class ClientAction(Enum):
    """What a client does in a call."""

    SAY = "message"
    END = "half-close"
    CUT = "cancel"


class ClientTurn(msgspec.Struct, frozen=True):
    """One thing that the recorded client did in a call."""

    action: ClientAction
    frame_number: int
    """Number of its frame; -1 of an end that the recording has no frame of."""
    at: int
    """When it did, ns since the epoch."""
    answers_before: int
    """Messages of the agent that had come in this call before."""
    pause: int
    """ns since what it waited for."""
    waits: tuple[AwaitedResponse, ...] = ()
    """What must have come in other calls."""
    frame: Frame | None = None
    """Of a message: what it carried."""


class PlannedCall(msgspec.Struct, frozen=True):
    """One call of the recording."""

    number: int
    """In the plan, from 0."""
    row: ExchangeRow
    turns: tuple[ClientTurn, ...]
    answers: tuple[Frame, ...]
    """What the recorded agent said in it, payloads included."""
    silence: int
    """The longest time, in ns, for which nothing came while the recorded client waited."""

    @property
    def exchange(self) -> Exchange:
        """The recorded exchange."""
        return self.row.exchange

    @property
    def start_time(self) -> int:
        """When the first byte of its first message came, ns: a live stream may have been open for long by then."""
        frame = self.turns[0].frame
        return frame.began if frame is not None else self.turns[0].at

    @property
    def place(self) -> str:
        """`#3`, or `#2:3` in a later session."""
        return exchange_place(self.row)

    @property
    def is_http(self) -> bool:
        """It is carried by HTTP, but not by gRPC."""
        return self.exchange.binding in (Binding.JSONRPC, Binding.REST, Binding.CARD, Binding.OTHER)


class SkippedCall(msgspec.Struct, frozen=True):
    """A call that is not driven, and why."""

    row: ExchangeRow
    reason: str

    @property
    def place(self) -> str:
        """As of a step."""
        return exchange_place(self.row)


class DrivePlan(msgspec.Struct, frozen=True):
    """All of it, in the order in which the first messages of the recorded calls began."""

    steps: tuple[PlannedCall, ...]
    skipped: tuple[SkippedCall, ...] = ()
    paths: dict[Binding, str] = {}
    """Path of each interface as the recorded card has it, without a closing slash."""
    missing: tuple[str, ...] = ()
    """Why the recording is not complete, one reason a line; empty where it is."""


def exchange_place(row: ExchangeRow) -> str:
    """An exchange as people write it."""
    return f"#{row.exchange.id}" if row.session == 1 else f"#{row.session}:{row.exchange.id}"
