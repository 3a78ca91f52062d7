"""One listener at work: its route, what cards have taught it, and how its connections are edited. Opens nothing."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import msgspec

from a2a_proxy.relay.edits.card_urls import AgentAddresses, RewriteMode, host_of_authority, is_local, rewrite_card_urls
from a2a_proxy.relay.edits.edit import AgentInterface, CardOutcome, ConsoleNote, EditPlan
from a2a_proxy.relay.route import PortRanges, Route, Upstream, format_address
from a2a_proxy.relay.tls import Trust

MOST_NAMED = 16
"""Interfaces per listener that are reported one by one because cards may not open them."""

ShowNote = Callable[[ConsoleNote], None]
"""Shows a line to the user; never blocks."""


class EditPolicy(msgspec.Struct, frozen=True):
    """What the user wants to be changed, and whom to trust."""

    cards: RewriteMode = "auto"
    keep_host: bool = False
    trust: Trust = Trust()
    propagate: bool = False
    """Requests go on with the `traceparent` of a span of the proxy's."""
    learn_ports: PortRanges = PortRanges()
    """Ports of the agent's host that its card may open behind listeners beyond loopback."""


class ListenerState:
    """A route, and what is known of its agent by now."""

    def __init__(
        self,
        route: Route,
        editing: EditPolicy,
        show_note: ShowNote,
        learn_interface: Callable[[ListenerState, AgentInterface], int | None],
        is_own: Callable[[ListenerState, AgentInterface], bool],
        *,
        loopback: bool,
    ) -> None:
        """`learn_interface` gives the port of the listener that carries an interface of the agent; None where there is
        none.
        `is_own` says whether an interface is a listener of this relay. `loopback`: only this machine can connect."""
        self.route = route
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
        self._random_bits = Random().getrandbits if editing.propagate else None  # begun by the system's randomness
        self._show_note = show_note
        self._learn_interface = learn_interface
        self._is_own = is_own
        self._not_learned: set[AgentInterface] = set()

    @property
    def grpc(self) -> Upstream | None:
        """Where connections go that begin with the HTTP/2 preface; None: where all others go."""
        return self.route.grpc or self.learned_grpc

    def plan_edits(self, upstream: Upstream, listen: str) -> EditPlan | None:
        """How a connection to `upstream` is edited, the client having connected to `listen`; None: not at all."""
        keep = self._editing.keep_host or is_local(upstream.host.lower())
        authority = None if keep else upstream.authority.encode()
        cards = None if self._editing.cards == "never" else self._rewrite_card
        return (
            EditPlan(authority, cards, listen, self._random_bits) if authority or cards or self._random_bits else None
        )

    def _rewrite_card(self, payload: bytes, form: str, authority: str) -> CardOutcome:
        outcome = rewrite_card_urls(payload, form, authority, self.agent, self._editing.cards, self._authority_of)
        for note in outcome.notes:
            self._show_note(note)
        return outcome

    def _authority_of(self, interface: AgentInterface, authority: str) -> str | None:
        if self._is_own(self, interface):  # an agent that knows of the proxy: what leads to it must not lead on to it
            return f"{host_of_authority(authority)}:{interface.port}"
        if interface.grpc and self._carries(interface):
            return authority
        port = self._learn_interface(self, interface)
        if port is None:
            self._tell_not_learned(interface)
            return None
        return f"{host_of_authority(authority)}:{port}"

    def may_learn(self, port: int) -> bool:
        """Return whether a card may make the proxy relay to this port of the agent's host."""
        return self.loopback or port in self._editing.learn_ports

    def _carries(self, interface: AgentInterface) -> bool:
        """Whether an interface for gRPC is carried on the same port: as the user said, else as the first card said."""
        if self.grpc is None and self.may_learn(interface.port):
            self.learned_grpc = upstream_of(interface)
            where = ":" + str(self.route.listen.port) if self.route.listen.port else "the same port"
            self._show_note(ConsoleNote(f"gRPC on {where} goes to {self.learned_grpc.address}, as the agent card says"))
        return self.route.grpc is not None or self.learned_grpc == upstream_of(interface)

    def _tell_not_learned(self, interface: AgentInterface) -> None:
        """Report the interface once, with what the user would type to have it relayed."""
        if interface in self._not_learned:
            return
        if len(self._not_learned) == MOST_NAMED:
            self._show_note(ConsoleNote("the agent card lists more interfaces that are not relayed", loud=True))
            return
        self._not_learned.add(interface)
        to, listen = upstream_of(interface).text, self.route.listen
        if self.may_learn(interface.port):
            why, option = "because no port is left for it", f"--listen :PORT --upstream {to}"
        else:
            why = f"because --listen {format_address(listen.host, listen.port)} is not loopback"
            first_grpc = interface.grpc and self.grpc is None
            more = self._editing.learn_ports.text_with(interface.port)
            option = f"--upstream-grpc {to}" if first_grpc else f"--learn-ports {more}"
        text = f"the agent card lists {'gRPC at ' if interface.grpc else ''}{to}, which is not relayed {why}"
        self._show_note(
            ConsoleNote(text, f"clients that follow the card leave the proxy there; to relay it: {option}", loud=True)
        )


def upstream_of(interface: AgentInterface) -> Upstream:
    """The interface as a place to dial."""
    where = format_address(interface.host, interface.port)
    return Upstream(interface.host, interface.port, interface.tls, f"https://{where}" if interface.tls else where)
