"""One listener at work: its route, what cards have taught it, and how its connections are edited. Opens nothing."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import msgspec

from a2a_proxy.relay.edits.edit import CardOutcome, EditPlan, Interface, Note
from a2a_proxy.relay.edits.leads import Agent, Mode, host_of, is_local, rewrite
from a2a_proxy.relay.route import Route, Upstream, address
from a2a_proxy.relay.tls import Trust

Tell = Callable[[Note], None]
"""Shows a line to the user; never blocks."""


class Editing(msgspec.Struct, frozen=True):
    """What the user wants to be changed, and whom to trust."""

    cards: Mode = "auto"
    keep_host: bool = False
    trust: Trust = Trust()
    propagate: bool = False
    """Requests go on with the `traceparent` of a span of the proxy's."""


class Way:
    """A route, and what is known of its agent by now."""

    def __init__(
        self,
        route: Route,
        editing: Editing,
        tell: Tell,
        learn: Callable[[Way, Interface], int | None],
        look_up: Callable[[Way, str], None],
        is_own: Callable[[Way, Interface], bool],
    ) -> None:
        """`learn` gives the port of the listener that carries an interface of the agent; None where there is none.
        `look_up` is told of each host in a card that may be the agent's under another name. `is_own` says whether an
        interface is a listener of this relay."""
        self.route = route
        self.agent = Agent(
            route.upstream.host.lower(),
            route.upstream.port,
            route.upstream.tls,
            set(),
            route.grpc.host.lower() if route.grpc else "",
        )
        self.learned_grpc: Upstream | None = None
        self._editing = editing
        self._bits = Random().getrandbits if editing.propagate else None  # begun by the system's randomness
        self._tell = tell
        self._learn = learn
        self._look_up = look_up
        self._is_own = is_own
        self._looked_up: set[str] = set()

    @property
    def grpc(self) -> Upstream | None:
        """Where connections go that begin with the HTTP/2 preface; None: where all others go."""
        return self.route.grpc or self.learned_grpc

    def plan(self, upstream: Upstream, listen: str) -> EditPlan | None:
        """How a connection to `upstream` is edited, the client having connected to `listen`; None: not at all."""
        keep = self._editing.keep_host or is_local(upstream.host.lower())
        authority = None if keep else upstream.authority.encode()
        cards = None if self._editing.cards == "never" else self._card
        return EditPlan(authority, cards, listen, self._bits) if authority or cards or self._bits else None

    def _card(self, payload: bytes, form: str, authority: str) -> CardOutcome:
        outcome = rewrite(payload, form, authority, self.agent, self._editing.cards, self._authority_of)
        for note in outcome.notes:
            self._tell(note)
        for host in self.agent.unknown - self._looked_up:
            self._look_up(self, host)
        self._looked_up |= self.agent.unknown
        return outcome

    def _authority_of(self, interface: Interface, authority: str) -> str | None:
        if self._is_own(self, interface):  # an agent that knows of the proxy: what leads to it must not lead on to it
            return f"{host_of(authority)}:{interface.port}"
        if interface.grpc and self.carries(interface):
            return authority
        port = self._learn(self, interface)
        return None if port is None else f"{host_of(authority)}:{port}"

    def carries(self, interface: Interface) -> bool:
        """Whether an interface for gRPC is carried on the same port: as the user said, else as the first card said."""
        if self.grpc is None:
            self.learned_grpc = upstream_of(interface)
            where = ":" + str(self.route.listen.port) if self.route.listen.port else "the same port"
            self._tell(Note(f"gRPC on {where} goes to {self.learned_grpc.address}, as the agent card says"))
        return self.route.grpc is not None or self.learned_grpc == upstream_of(interface)


def upstream_of(interface: Interface) -> Upstream:
    """The interface as a place to dial."""
    where = address(interface.host, interface.port)
    return Upstream(interface.host, interface.port, interface.tls, f"https://{where}" if interface.tls else where)
