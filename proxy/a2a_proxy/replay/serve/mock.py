"""A mock agent: serves a script on one port. A relay in front of two servers separates HTTP/2 from
HTTP/1.1."""

from __future__ import annotations

from collections.abc import Callable

from a2a_proxy.model.chunk import ChunkKind, Direction
from a2a_proxy.model.values import Binding
from a2a_proxy.relay.clock import session_clock
from a2a_proxy.relay.listener_state import EditPolicy
from a2a_proxy.relay.route import Listen, Route, Upstream
from a2a_proxy.relay.server import Relay
from a2a_proxy.replay.core.options import ReplayOptions
from a2a_proxy.replay.core.player import Player
from a2a_proxy.replay.core.script import ReplayScript
from a2a_proxy.replay.serve.cards import ReplayCards
from a2a_proxy.replay.serve.grpc import GrpcServer
from a2a_proxy.replay.serve.http import HttpServer
from a2a_proxy.replay.serve.incoming import RequestReader
from a2a_proxy.replay.serve.passthrough import Passthrough
from a2a_proxy.replay.serve.performance import ReplayPlayer, ReplayReport, ReportCallback
from a2a_proxy.replay.serve.stdio import StdioServer
from a2a_proxy.replay.serve.webhooks import WebhookSender

_SETTLE_SECONDS = 2.0
"""Seconds that `stop` waits for webhooks that are being posted."""


class _NullJournal:
    """A journal that discards everything, because the mock is not recorded."""

    def append(
        self, kind: ChunkKind, direction: Direction, connection: int, at: int, data: bytes
    ) -> None:
        """Discard the data."""


def _ignore_report(_told: ReplayReport) -> None:
    """Ignore a report; for callers that query the player afterwards."""


class MockServer:
    """Serves a script to any number of clients until it is stopped."""

    def __init__(
        self,
        script: ReplayScript,
        options: ReplayOptions | None = None,
        *,
        listen: tuple[Listen, ...] = (Listen("127.0.0.1", 0),),
        report: ReportCallback = _ignore_report,
        keep_card: bool = False,
        add_interfaces: tuple[Binding, ...] = (),
        clock: Callable[[], int] | None = None,
        passthrough: Passthrough | None = None,
    ) -> None:
        """`report` receives every call that ends, every miss and every webhook; it must not block.
        `passthrough` answers the calls that the script does not, and is closed with the mock."""
        self.script = script
        self.player = Player(script, options)
        self.cards = ReplayCards(script, keep=keep_card, add=add_interfaces)
        self._webhooks = WebhookSender(report)
        self._replay = replay = ReplayPlayer(
            self.player, clock or session_clock(), report, self._webhooks.queue_post
        )
        replay.passthrough = self.passthrough = passthrough
        incoming = RequestReader(script)
        self._http = HttpServer(replay, incoming, self.cards)
        self._grpc = GrpcServer(
            replay, incoming, lambda card: self.cards.localise_card(card, self.address)
        )
        self._listen = listen
        self._relay: Relay | None = None
        self.addresses: list[str] = []
        """Addresses on which it listens, `host:port`, after `start`."""

    @property
    def address(self) -> str:
        """The first address, as the target for a gRPC client."""
        return self.addresses[0]

    @property
    def url(self) -> str:
        """The first address as an HTTP base URL."""
        return f"http://{self.address}"

    async def start(self) -> None:
        """Start to listen. Raises RouteError if a port is not available, after closing
        everything."""
        await self._http.start()
        await self._grpc.start()
        http, grpc = (
            Upstream("127.0.0.1", port, False, "mock")
            for port in (self._http.port, self._grpc.port)
        )
        routes = [Route(each, http, grpc) for each in self._listen]
        relay = Relay(routes, session_clock(), EditPolicy("never", keep_host=True))
        try:
            await relay.bind_listeners()
        except BaseException:
            await self.stop()
            raise
        relay.accept_connections(_NullJournal())
        self._relay = relay
        self.addresses = [where for _, addresses in relay.bound_addresses for where in addresses]

    async def stop(self) -> None:
        """Accept no more connections, deliver the webhooks that are due, and end open calls."""
        self._replay.close()
        await self._webhooks.wait_until_posted(_SETTLE_SECONDS)
        if self._relay is not None:
            await self._relay.stop()
        await self._grpc.stop()
        await self._http.stop()
        await self._webhooks.stop()
        if self.passthrough is not None:
            await self.passthrough.stop()


class PipeMock:
    """Serves a script on stdin and stdout to one client."""

    def __init__(
        self,
        script: ReplayScript,
        options: ReplayOptions | None = None,
        *,
        report: ReportCallback = _ignore_report,
        read_from: int = 0,
        write_to: int = 1,
    ) -> None:
        """`read_from` and `write_to` are file descriptors."""
        self.player = Player(script, options)
        self.cards = ReplayCards(script, keep=True)
        self._webhooks = WebhookSender(report)
        self._replay = ReplayPlayer(self.player, session_clock(), report, self._webhooks.queue_post)
        self._server = StdioServer(self._replay, RequestReader(script), read_from, write_to)

    async def run(self) -> None:
        """Serve until the client closes the pipe."""
        try:
            await self._server.run()
            self._replay.close()
            await self._webhooks.wait_until_posted(_SETTLE_SECONDS)
        finally:
            await self._webhooks.stop()
