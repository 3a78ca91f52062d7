"""Routing state of one listener: its upstreams, the gRPC port learned from agent cards, and its
card-rewriting policy.

Performs no I/O. The relay calls `plan_edits()` once for each accepted connection.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random
from typing import TYPE_CHECKING

import msgspec

from a2a_proxy.model.option import RewriteMode
from a2a_proxy.relay.edits.card_urls import (
    AgentAddresses,
    host_of_authority,
    is_local,
    rewrite_card_urls,
)
from a2a_proxy.relay.edits.edit import (
    AgentInterface,
    CardOutcome,
    ConsoleNote,
    EditPlan,
    WebhookUrls,
)
from a2a_proxy.relay.route import PortRanges, Route, Upstream, format_address
from a2a_proxy.relay.tls import Trust
from a2a_proxy.system_errors import hint_for

if TYPE_CHECKING:
    import asyncio

    from a2a_proxy.faults.plan import FaultPlan

MOST_NAMED = 16
"""Interfaces per listener that are reported one by one because cards may not open them."""

MakeWebhookUrls = Callable[
    ["ListenerState", Upstream, "asyncio.BaseTransport", "asyncio.BaseTransport"],
    WebhookUrls | None,
]
"""Returns the URLs of webhooks for the client and the agent at the other ends of two transports, or
None if that of the agent is closed."""
ShowNote = Callable[[ConsoleNote], None]
"""Shows a line to the user; never blocks."""


class EditPolicy(msgspec.Struct, frozen=True):
    """The user's choice of edits, and the certificates to trust."""

    cards: RewriteMode = "auto"
    keep_host: bool = False
    trust: Trust = Trust()
    propagate: bool = False
    """Whether requests are forwarded with the `traceparent` of a span of the proxy."""
    learn_ports: PortRanges = PortRanges()
    """Ports of the agent's host that its card may open on listeners beyond loopback."""
    faults: FaultPlan | None = None
    """Faults on purpose, shared by all listeners."""


class ListenerState:
    """The route of one `--listen` address, and the agent's addresses learned so far."""

    def __init__(
        self,
        route: Route,
        editing: EditPolicy,
        show_note: ShowNote,
        learn_interface: Callable[[ListenerState, AgentInterface], int | None],
        is_own: Callable[[ListenerState, AgentInterface], bool],
        *,
        loopback: bool,
        forwarded: bool = False,
        webhooks: MakeWebhookUrls | None = None,
    ) -> None:
        """Create the state of a listener.

        `learn_interface` returns the port of the listener that carries an interface of the agent,
        or None if there is no such listener. `is_own` returns whether an interface is a listener of
        this relay. `loopback` says that only this machine can connect, `forwarded` that clients
        choose the upstream, one of many, by their requests to a forward proxy. `webhooks` makes the
        URLs of webhooks for a connection to the agent.
        """
        self.route = route
        self.forwarded = forwarded
        self.upstream_label = "upstream agent"
        """What the upstream is, for the response if it cannot be reached."""
        self.deliverer = ""
        """The upstream of the agent that delivers here to a webhook, as the user wrote it."""
        self.loopback = loopback
        self.agent = AgentAddresses(
            route.upstream.host.lower(),
            route.upstream.port,
            route.upstream.tls,
            set(),
            route.grpc.host.lower() if route.grpc else "",
        )
        self.learned_grpc: Upstream | None = None
        self._editing = editing
        self._random_bits = (
            Random().getrandbits if editing.propagate else None
        )  # seeded by the system
        self._show_note = show_note
        self._learn_interface = learn_interface
        self._is_own = is_own
        self._webhooks = webhooks
        self._not_learned: set[AgentInterface] = set()

    @property
    def grpc(self) -> Upstream | None:
        """The upstream for connections that start with the HTTP/2 preface, or None for the
        listener's default."""
        return self.route.grpc or self.learned_grpc

    def plan_edits(
        self,
        upstream: Upstream,
        listen: str,
        client: asyncio.BaseTransport,
        agent: asyncio.BaseTransport,
        *,
        tls: bool,
    ) -> EditPlan | None:
        """Return the edits for a connection to `upstream` by the transport `agent`, whose client
        connected to `listen` by the transport `client`, with or without TLS, or None if nothing is
        edited."""
        keep = self._editing.keep_host or is_local(upstream.host.lower())
        authority = None if keep else upstream.authority.encode()
        cards = None if self._editing.cards == "never" else partial(self._rewrite_card, tls)
        webhooks = None if self._webhooks is None else self._webhooks(self, upstream, client, agent)
        plan = EditPlan(authority, cards, listen, self._random_bits, webhooks, self._editing.faults)
        return plan if plan.changes_messages or plan.faults is not None else None

    def _rewrite_card(self, tls: bool, payload: bytes, form: str, authority: str) -> CardOutcome:
        mode, learn = self._editing.cards, self._authority_of
        try:
            outcome = rewrite_card_urls(payload, form, authority, self.agent, mode, learn, tls=tls)
        except (
            OSError,
            ImportError,
        ) as error:  # protobuf is loaded for the first card that needs it
            outcome = CardOutcome(
                notes=(
                    ConsoleNote(
                        f"an agent card was forwarded unchanged: {error}",
                        hint_for(error, ""),
                        loud=True,
                    ),
                )
            )
        for note in outcome.notes:
            self._show_note(note)
        return outcome

    def _authority_of(self, interface: AgentInterface, authority: str) -> str | None:
        if self._is_own(
            self, interface
        ):  # listed by an agent that knows the proxy: do not relay to ourselves
            return f"{host_of_authority(authority)}:{interface.port}"
        if interface.grpc and self._carries_interface(interface):
            return authority
        port = self._learn_interface(self, interface)
        if port is None:
            self._tell_not_learned(interface)
            return None
        return f"{host_of_authority(authority)}:{port}"

    def may_learn(self, port: int) -> bool:
        """Return whether a card may make the proxy relay to this port of the agent's host."""
        return self.loopback or port in self._editing.learn_ports

    def _carries_interface(self, interface: AgentInterface) -> bool:
        """Return whether a gRPC interface is carried on this port, by the user's option or else by
        the first card."""
        if self.grpc is None and self.may_learn(interface.port):
            self.learned_grpc = upstream_of(interface)
            where = ":" + str(self.route.listen.port) if self.route.listen.port else "the same port"
            self._show_note(
                ConsoleNote(
                    f"gRPC on {where} is relayed to {self.learned_grpc.address}, as listed in the "
                    f"agent card"
                )
            )
        return self.route.grpc is not None or self.learned_grpc == upstream_of(interface)

    def _tell_not_learned(self, interface: AgentInterface) -> None:
        """Report the interface once, with the option that makes the proxy relay it."""
        if interface in self._not_learned:
            return
        if len(self._not_learned) == MOST_NAMED:
            self._show_note(
                ConsoleNote("the agent card lists more interfaces that are not relayed", loud=True)
            )
            return
        self._not_learned.add(interface)
        to, listen = upstream_of(interface).text, self.route.listen
        if self.may_learn(interface.port):
            why, option = "because no port is free for it", f"--listen :PORT --upstream {to}"
        else:
            why = f"because --listen {format_address(listen.host, listen.port)} is not loopback"
            first_grpc = interface.grpc and self.grpc is None
            more = self._editing.learn_ports.text_with(interface.port)
            option = f"--upstream-grpc {to}" if first_grpc else f"--learn-ports {more}"
        text = (
            f"the agent card lists {'gRPC at ' if interface.grpc else ''}{to}, which is not "
            f"relayed {why}"
        )
        self._show_note(
            ConsoleNote(
                text,
                f"clients that follow the card bypass the proxy there; to relay it: {option}",
                loud=True,
            )
        )


def upstream_of(interface: AgentInterface) -> Upstream:
    """Return the interface as an upstream to dial."""
    where = format_address(interface.host, interface.port)
    return Upstream(
        interface.host,
        interface.port,
        interface.tls,
        f"https://{where}" if interface.tls else where,
    )
