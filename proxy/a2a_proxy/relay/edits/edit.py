"""Types common to all editors, which take bytes and the time and return bytes to send. Values and
interfaces only."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

import msgspec

from a2a_proxy.model.wire import Direction
from a2a_proxy.protocol.trace_context import TRACESTATE, RandomBits, TraceOrigin

if TYPE_CHECKING:
    from a2a_proxy.faults.plan import FaultPlan


class Output(msgspec.Struct, frozen=True, gc=False):
    """Bytes to write to the receiver of that direction."""

    direction: Direction
    data: bytes


class ConsoleNote(msgspec.Struct, frozen=True):
    """A line for the user at the console."""

    text: str
    hint: str = ""
    """The action to take; may be empty."""
    loud: bool = False
    """Whether the note is a warning: something does not work as it would without the proxy."""


class AgentInterface(msgspec.Struct, frozen=True):
    """A further address of the agent, listed in its card: it leads to the upstream's host."""

    host: str
    port: int
    tls: bool
    grpc: bool


class CardOutcome(msgspec.Struct, frozen=True):
    """The result of rewriting one card."""

    payload: bytes | None = None
    """The new bytes; None if the card stays unchanged."""
    urls: tuple[tuple[str, str], ...] = ()
    """Each changed URL, before and after."""
    notes: tuple[ConsoleNote, ...] = ()
    """Notes to show to the user once. Editors need not read them: the relay's rewriter shows
    them."""
    learned_interfaces: tuple[AgentInterface, ...] = ()
    """Interfaces of this agent on other ports. Editors need not read them either."""


CardRewriter = Callable[[bytes, str, str], CardOutcome]
"""`(payload, form, client_authority)`. Never raises.

`payload` is the whole message as transmitted. `form` is its kind: `json` (a card), `jsonrpc` (a
response with the card in `result`), else the protobuf package of the called service (`lf.a2a.v1`,
`a2a.v1`), the payload being a serialized AgentCard. `client_authority` is the client's authority
for this proxy, `host[:port]`.
"""


class PushConfig(msgspec.Struct, frozen=True):
    """The name of a push notification configuration; a member is empty as long as it is unknown."""

    task_id: str = ""
    id: str = ""


class WebhookUrls(Protocol):
    """The URLs of webhooks that lead through the proxy, for one agent. Its methods never raise."""

    def replace_url(self, url: str, config: PushConfig) -> str | None:
        """Return the proxy's URL for a client's webhook, or None if the URL must stay."""

    def restore_url(self, url: str, config: PushConfig) -> str | None:
        """Return the client's URL for one of the proxy, or None if it is another one. An answer of
        the agent names the configuration that has it."""

    def keep_request(self, url: str, request: bytes) -> None:
        """Keep the HTTP/1.1 request that created a configuration, as its client wrote it, with the
        proxy's URL that it was sent with."""

    def discard_url(self, url: str) -> None:
        """Forget a URL of the proxy, because the agent did not accept the configuration."""

    def forget_config(self, config: PushConfig) -> None:
        """Forget the URL of a configuration, because the agent deleted it."""


class EditPlan(msgspec.Struct, frozen=True):
    """The edits to make on a connection."""

    authority: bytes | None = None
    """New value of `Host` and `:authority`; None if they stay unchanged."""
    cards: CardRewriter | None = None
    """Rewrites cards; None if they stay unchanged."""
    listen: str = ""
    """The address the client connected to, `host:port`: its authority if it sends none."""
    trace: RandomBits | None = None
    """Source of the ids of the proxy's spans, whose `traceparent` each request gets; None if
    requests keep theirs."""
    webhooks: WebhookUrls | None = None
    """Replaces the URLs of webhooks; None if they stay unchanged."""
    faults: FaultPlan | None = None
    """Faults on purpose; None without `--fault`."""

    @property
    def changes_messages(self) -> bool:
        """Whether there are edits besides faults."""
        return any(
            each is not None for each in (self.authority, self.cards, self.trace, self.webhooks)
        )


OWN_ANSWER = -1
"""The offset of a `fault` that makes the proxy respond."""
EditKind = Literal[
    "host",
    "authority",
    "traceparent",
    "card",
    "card-request",
    "upgrade",
    "webhook",
    "untouched",
    "ended",
    "fault",
    "fault-end",
    "answer",
]


class EditFact(msgspec.Struct, frozen=True):
    """One change, or a change that could not be made; the data of an EDIT record."""

    direction: Direction
    kind: EditKind
    """`host` and `authority` are recorded once for each (before, after) of a connection,
    `traceparent` for each request. `webhook`: URLs of push configurations. `upgrade`: an offer of
    HTTP/2 was left out. `untouched`: a message was held and released unchanged. `ended`: editing
    has ended on this connection. `fault`: a fault concerns the event with this byte; recorded
    before the bytes of the event. `fault-end`: a fault ends the exchange. `answer`: the proxy has
    sent a response of its own."""
    offset: int
    """Bytes of this direction that the sender sent before the changed ones."""
    detail: dict[str, Any]
    """JSON values. `host`, `authority`: `before`, `after`. `card`, `webhook`: `urls` (pairs),
    `length_before`, `length_after`. `card-request`, `upgrade`: `fields` (names of header fields
    changed or left out). `untouched`: `reason`, `what` (`card`, `webhook` or `fault`). `ended`:
    `reason`, `refused` (true if the rest cannot be relayed unchanged either).
    `traceparent`: `before` (if the request had one), `after`, `stream` (as numbered in
    wire events), `fields` (names of the fields left out, if any). `fault`: `note`. `fault-end`:
    `note`, `stream`, and `reset` if the connection ends: whether with RST. `answer`: `data`, the
    bytes."""


def traceparent_edit(
    stream: int, offset: int, origin: TraceOrigin, after: str, *, state: bool
) -> EditFact:
    """Return the edit of a request that was forwarded with another `traceparent`; `state`: its
    `tracestate` was left out."""
    detail: dict[str, Any] = {"after": after, "stream": stream}
    if origin.before is not None:
        detail["before"] = origin.before
    if state:
        detail["fields"] = [TRACESTATE]
    return EditFact(Direction.TO_AGENT, "traceparent", offset, detail)


@runtime_checkable
class QuickEditor(Protocol):
    """An editor with a shortcut for bytes that stay unchanged."""

    def pass_to_agent(self, data: bytes) -> bool:
        """Account for these bytes of the client and return True if they stay unchanged; False if
        `feed` must be called.
        """

    def pass_to_client(self, data: bytes) -> bool:
        """Do the same for bytes of the agent."""


UNLIMITED = 1 << 62
"""A budget that is never spent."""


class Editor(Protocol):
    """Edits one connection. Never raises: after bytes that it does not understand, all bytes are
    forwarded unchanged.
    """

    budget: int
    """Units of work, of about 0.25 us each, that `feed` may do before it returns. `feed` subtracts
    the work it does, always handles at least one message or frame, and so may end below zero.
    UNLIMITED until the caller sets it."""
    position: int
    """Index in the data of the last `feed` up to which the data was handled."""

    def feed(self, direction: Direction, data: bytes, now: float, start: int = 0) -> list[Output]:
        """Handle bytes of the sender of `direction` and return the bytes to write now, in order.
        `now`: monotonic seconds.

        If `position` is less than the length of `data` afterwards, the budget was spent: the caller
        feeds the same data, or more, again from `start=position`, before any other data of that
        direction.
        """

    def feed_eof(self, direction: Direction, now: float) -> list[Output]:
        """Handle a FIN of the sender of `direction` and return the held bytes. The caller writes
        them before the FIN. If the direction is delayed afterwards, the FIN waits, and the caller
        calls again after the delay.
        """

    def tick(self, now: float) -> list[Output]:
        """Return the bytes that are due or were held too long, as far as the budget allows. Must be
        called at `deadline`."""

    @property
    def deadline(self) -> float | None:
        """When to call `tick`, in monotonic seconds; None if nothing is held."""

    @property
    def delays(self) -> tuple[bool, bool]:
        """For each direction, whether no more bytes must be read and the end of the bytes must
        wait. Without a delay that the editor ends by itself, (False, False)."""

    @property
    def held_bytes(self) -> tuple[int, int]:
        """About how many bytes of messages of each direction are held. Incomplete heads and frames
        are not counted."""

    @property
    def is_active(self) -> bool:
        """False once editing has ended and nothing is held; the connection then forwards without
        the editor."""

    def take_edits(self) -> list[EditFact]:
        """Return the edits made since the last call."""
