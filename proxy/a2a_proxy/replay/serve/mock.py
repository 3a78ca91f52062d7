"""A mock agent: serves a script on one port. A relay in front of two servers separates HTTP/2 from
HTTP/1.1.

Sender of webhooks: posts them at their place on the task's timeline to the URLs that the clients
registered.
"""

import asyncio
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from a2a_proxy.model.values import Binding, Dialect
from a2a_proxy.model.wire import ChunkKind, Direction
from a2a_proxy.relay.clock import session_clock
from a2a_proxy.relay.listener_state import EditPolicy
from a2a_proxy.relay.route import Listen, Route, Upstream
from a2a_proxy.relay.server import Relay
from a2a_proxy.relay.tls import create_client_context
from a2a_proxy.replay.convert.responses import convert_notification
from a2a_proxy.replay.core.options import ReplayOptions
from a2a_proxy.replay.core.player import Player
from a2a_proxy.replay.core.script import PlayerSend, ReplayScript
from a2a_proxy.replay.serve.cards import ReplayCards
from a2a_proxy.replay.serve.grpc import GrpcServer
from a2a_proxy.replay.serve.http import HttpServer
from a2a_proxy.replay.serve.incoming import RequestReader
from a2a_proxy.replay.serve.passthrough import Passthrough
from a2a_proxy.replay.serve.performance import (
    ReplayPlayer,
    ReplayReport,
    ReportCallback,
    WebhookPosted,
)
from a2a_proxy.replay.serve.stdio import StdioServer

_SETTLE_SECONDS = 2.0
"""Seconds that `stop` waits for webhooks that are being posted."""


MAX_TRIES = 3
_RETRY_PAUSES = (0.2, 1.0)
"""Pauses in seconds between tries."""
_TIMEOUT = aiohttp.ClientTimeout(total=5)
_TOKEN_HEADER = "X-A2A-Notification-Token"


class WebhookSender:
    """Posts in order for each receiver; receivers do not wait for each other."""

    def __init__(self, report: ReportCallback) -> None:
        self._report = report
        self._queues: dict[str, asyncio.Queue[PlayerSend]] = {}
        self._workers: set[asyncio.Task[None]] = set()
        self._session: aiohttp.ClientSession | None = None

    def queue_post(self, send: PlayerSend) -> None:
        """Queue a webhook and return at once."""
        where = _receiver_of(send.url)
        if where not in self._queues:
            self._queues[where] = asyncio.Queue()
            self._workers.add(asyncio.create_task(self._post_queued(self._queues[where])))
        self._queues[where].put_nowait(send)

    async def wait_until_posted(self, seconds: float) -> None:
        """Wait until everything is posted, for at most `seconds`."""
        try:
            async with asyncio.timeout(seconds):
                await asyncio.gather(*(queue.join() for queue in self._queues.values()))
        except TimeoutError:
            return

    async def stop(self) -> None:
        """Discard the queued webhooks."""
        for worker in self._workers:
            worker.cancel()
        await asyncio.gather(*self._workers, return_exceptions=True)
        if self._session is not None:
            await self._session.close()

    async def _post_queued(self, queue: asyncio.Queue[PlayerSend]) -> None:
        while True:
            send = await queue.get()
            try:
                self._report(await self._post_with_retries(send))
            finally:
                queue.task_done()

    async def _post_with_retries(self, send: PlayerSend) -> WebhookPosted:
        headers = _headers_of_config(send.config)
        dialect = send.push.dialect if send.push is not None else Dialect.UNKNOWN
        body = (
            convert_notification(send.value, dialect)
            if isinstance(send.value, dict)
            else send.value
        )
        status, why = 0, "not an http URL"
        if not _is_http(send.url):
            return WebhookPosted(url=send.url, status=0, tries=0, reason=why)
        for number in range(1, MAX_TRIES + 1):
            try:
                self._session = self._session or aiohttp.ClientSession(
                    connector=aiohttp.TCPConnector(ssl=create_client_context()), timeout=_TIMEOUT
                )
                async with self._session.post(
                    send.url, json=body, headers=headers, allow_redirects=False
                ) as answer:
                    status, why = answer.status, ""
                if status < 500:
                    return WebhookPosted(url=send.url, status=status, tries=number)
            except (aiohttp.ClientError, TimeoutError, ValueError) as error:
                status, why = 0, str(error) or type(error).__name__
            if number < MAX_TRIES:
                await asyncio.sleep(_RETRY_PAUSES[number - 1])
        return WebhookPosted(url=send.url, status=status, tries=MAX_TRIES, reason=why)


def _is_http(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.netloc)


def _receiver_of(url: str) -> str:
    """Return scheme and authority of a URL, or the URL itself if it has none."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    return f"{parts.scheme}://{parts.netloc}" if parts.netloc else url


def _headers_of_config(config: Any) -> dict[str, str]:
    """Return the headers that the client's configuration requires: its token and its
    authentication."""
    headers: dict[str, str] = {}
    if not isinstance(config, dict):
        return headers
    if isinstance(config.get("token"), str) and config["token"]:
        headers[_TOKEN_HEADER] = config["token"]
    method = config.get("authentication")
    if (
        isinstance(method, dict)
        and isinstance(method.get("credentials"), str)
        and method["credentials"]
    ):
        headers["Authorization"] = f"{method.get('scheme') or 'Bearer'} {method['credentials']}"
    return headers


class _NullJournal:
    """A journal that discards everything, because the mock is not recorded."""

    def append(
        self, kind: ChunkKind, direction: Direction, connection: int, at: int, data: bytes
    ) -> None:
        """Discard the data."""


def _ignore_report(_report: ReplayReport) -> None:
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
