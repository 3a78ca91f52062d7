"""What every editor is: bytes and the time in, bytes to send out. Values and interfaces only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Protocol, runtime_checkable

import msgspec

from a2a_proxy.model.chunk import Direction
from a2a_proxy.protocol.trace_context import TRACESTATE, RandomBits, TraceOrigin


class Output(msgspec.Struct, frozen=True, gc=False):
    """Bytes to write to the receiver of that direction."""

    direction: Direction
    data: bytes


class ConsoleNote(msgspec.Struct, frozen=True):
    """A line for the person at the console."""

    text: str
    hint: str = ""
    """What to do about it; may be empty."""
    loud: bool = False
    """A warning: something does not work as it would without the proxy."""


class AgentInterface(msgspec.Struct, frozen=True):
    """A place where the agent of a card can be reached too: it leads to the upstream's host."""

    host: str
    port: int
    tls: bool
    grpc: bool


class CardOutcome(msgspec.Struct, frozen=True):
    """What a rewriter made of one card."""

    payload: bytes | None = None
    """The new bytes; None: the card stays as it is."""
    urls: tuple[tuple[str, str], ...] = ()
    """Before and after, of each URL that was changed."""
    notes: tuple[ConsoleNote, ...] = ()
    """For the caller of the rewriter to show, once. Editors need not look at them: the relay's rewriter shows them."""
    learned_interfaces: tuple[AgentInterface, ...] = ()
    """Interfaces of this agent on other ports. Nothing for editors either."""


CardRewriter = Callable[[bytes, str, str], CardOutcome]
"""`(payload, form, client_authority)`. Never raises.

`payload` is the whole message as it travels. `form` says what it is: `json` (a card), `jsonrpc` (a response with the
card in `result`), else the protobuf package of the called service (`lf.a2a.v1`, `a2a.v1`), the payload being a
serialized AgentCard. `client_authority` is what the client called this proxy, `host[:port]`.
"""


class EditPlan(msgspec.Struct, frozen=True):
    """What a route wants of its editors."""

    authority: bytes | None = None
    """`Host` and `:authority` become this; None: they stay."""
    cards: CardRewriter | None = None
    """None: cards stay as they are."""
    listen: str = ""
    """The address the client connected to, `host:port`: its authority where it names none."""
    trace: RandomBits | None = None
    """Each request gets a `traceparent` of a span of ours, whose ids are made of these; None: it stays as it is."""


class EditFact(msgspec.Struct, frozen=True):
    """One change, or one that was wanted and not made; the data of an EDIT record."""

    direction: Direction
    kind: Literal["host", "authority", "traceparent", "card", "card-request", "untouched", "ended"]
    """`host` and `authority` are told once for each (before, after) of a connection, `traceparent` for each request.
    `untouched`: a card was held and released as it was. `ended`: no editing on this connection from here."""
    offset: int
    """Bytes of this direction that the sender had sent before the changed ones."""
    detail: dict[str, Any]
    """JSON values. `host`, `authority`: `before`, `after`. `card`: `urls` (pairs), `length_before`, `length_after`.
    `card-request`: `fields` (names of header fields changed or left out). `untouched`, `ended`: `reason`.
    `traceparent`: `before` (where one came), `after`, `stream` (as wire events number it), `fields` (names of those
    that were left out, where one was)."""


def traceparent_edit(stream: int, offset: int, origin: TraceOrigin, after: str, *, state: bool) -> EditFact:
    """A request went on with another `traceparent`; `state`: its `tracestate` was left out."""
    detail: dict[str, Any] = {"after": after, "stream": stream}
    if origin.before is not None:
        detail["before"] = origin.before
    if state:
        detail["fields"] = [TRACESTATE]
    return EditFact(Direction.TO_AGENT, "traceparent", offset, detail)


@runtime_checkable
class QuickEditor(Protocol):
    """An editor that knows a shorter way for bytes which stay as they are."""

    def pass_to_agent(self, data: bytes) -> bool:
        """These bytes of the client go on as they are, and are accounted for. False: ask `feed`."""

    def pass_to_client(self, data: bytes) -> bool:
        """The same for bytes of the agent."""


UNLIMITED = 1 << 62
"""A budget that is never spent."""


class Editor(Protocol):
    """Edits one connection. Never raises: from what it does not understand on, bytes pass for good."""

    budget: int
    """Units of work, of about 0.25 us each, that `feed` may do before it returns. `feed` subtracts what it does, always
    handles at least one message or frame, and so may end below zero. UNLIMITED until the caller sets it."""
    position: int
    """The index in the data of the last `feed` up to which the data was handled."""

    def feed(self, direction: Direction, data: bytes, now: float, start: int = 0) -> list[Output]:
        """Bytes that the sender of `direction` sent; what is to be written now, in order. `now`: monotonic seconds.

        Where `position` is less than the length of `data` afterwards, the budget was spent: the caller feeds the same
        data, or more, again from `start=position`, before any other data of that direction.
        """

    def eof(self, direction: Direction, now: float) -> list[Output]:
        """The sender of `direction` sent FIN: what was held is released. The caller passes the FIN on after writing."""

    def tick(self, now: float) -> list[Output]:
        """To be called when `deadline` has come: what was held too long is released."""

    @property
    def deadline(self) -> float | None:
        """When to call `tick`; None: nothing is held."""

    @property
    def is_active(self) -> bool:
        """False: editing has ended for good and nothing is held; the splice forwards by itself from now on."""

    def take_edits(self) -> list[EditFact]:
        """What changed since this was last asked."""
