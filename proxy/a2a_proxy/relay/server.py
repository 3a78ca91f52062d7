"""All connections of one relay: bind, accept, count, stop. What happens within a connection is `splice`'s."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from typing import Protocol

import msgspec

from a2a_proxy.model.chunk import ChunkKind, Direction
from a2a_proxy.relay.bind import bind, bind_next
from a2a_proxy.relay.clock import Clock
from a2a_proxy.relay.connection import Leg, ProxyConnection, RelayContext
from a2a_proxy.relay.edit_line import WorkQueue
from a2a_proxy.relay.edits.edit import AgentInterface, ConsoleNote
from a2a_proxy.relay.host_aliases import aliases_of, is_address
from a2a_proxy.relay.listener_state import EditPolicy, ListenerState, Tell, upstream_of
from a2a_proxy.relay.own_addresses import leads_to
from a2a_proxy.relay.route import Listen, Route, address, is_loopback
from a2a_proxy.relay.tls import Tls

MOST_LEARNED = 8
"""Listeners made because an agent card lists further interfaces."""
MOST_NOTES = 200
"""Different lines shown to the user; a hostile agent could make up new ones for ever."""
ACCEPTS_AT_ONCE = 64
"""Connections accepted before those that stand get their turn again."""
ACCEPT_PAUSE_SECONDS = 0.1
"""After an error such as EMFILE, which goes away when connections close."""
STOP_POLL_SECONDS = 0.02
QUIET_NS = 1_000_000_000
"""A connection whose agent spoke last, this long ago, waits for nothing."""


class JournalWriterProtocol(Protocol):
    """Where the copy goes (`capture.append.Journal`)."""

    def append(self, kind: ChunkKind, direction: Direction, connection: int, at: int, data: bytes) -> None:
        """Take one record."""


class RelayStats(msgspec.Struct, frozen=True):
    """Counters of one relay."""

    open: int
    total: int
    bytes_to_agent: int
    bytes_to_client: int
    accept_errors: int
    buffered: int
    """Octets that wait in memory for peers that read slowly."""


class Relay:
    """Listens on all routes, and splices what connects from when there is a journal to copy to."""

    def __init__(
        self,
        routes: Sequence[Route],
        clock: Clock,
        editing: EditPolicy = EditPolicy(),  # noqa: B008 (frozen)
        tell: Tell = lambda _: None,
    ) -> None:
        """`tell` shows a line to the user and must not block; it gets each line once."""
        self._routes = tuple(routes)
        self._clock = clock
        self._editing, self._show = editing, tell
        self._tls = Tls(editing.trust)
        self._told: set[ConsoleNote] = set()
        self._sockets: list[tuple[ListenerState, list[socket.socket]]] = []
        self._pairs: set[ProxyConnection] = set()
        self._accepting: set[asyncio.Task[object]] = set()
        self._total = self._to_agent = self._to_client = self._accept_errors = 0

    @property
    def listening(self) -> list[tuple[Route, list[str]]]:
        """Each route with the addresses it is bound to, `host:port`."""
        return [(way.route, [address(*sock.getsockname()[:2]) for sock in sockets]) for way, sockets in self._sockets]

    @property
    def stats(self) -> RelayStats:
        """The counters now; open connections included."""
        to_agent = self._to_agent + sum(pair.client.octets for pair in self._pairs)
        to_client = self._to_client + sum(pair.agent.octets for pair in self._pairs)
        buffered = sum(pair.client.waiting + pair.agent.waiting for pair in self._pairs)
        return RelayStats(len(self._pairs), self._total, to_agent, to_client, self._accept_errors, buffered)

    async def listen(self) -> None:
        """Bind everything. The kernel lets clients wait until `accept`. Raises RouteError, with nothing bound."""
        loop = asyncio.get_running_loop()
        try:
            if any(upstream.tls for route in self._routes for upstream in (route.upstream, route.grpc) if upstream):
                self._tls.prepare()
            for route in self._routes:
                sockets = await bind(loop, route.listen)
                self._sockets.append((self._way(route, sockets), sockets))
            await asyncio.gather(*(self._name(way) for way, _ in self._sockets))
        except BaseException:
            self._close_listeners()
            raise

    def accept(self, journal: JournalWriterProtocol) -> None:
        """Take the connections that come, and copy them to `journal`. To be called once, after `listen`."""
        loop = asyncio.get_running_loop()
        queue = WorkQueue(loop)
        self._around = RelayContext(loop, queue, journal.append, self._clock, self._on_closed, self._tls, self._tell)
        for way, sockets in self._sockets:
            self._accept_from(way, sockets)

    def _accept_from(self, way: ListenerState, sockets: list[socket.socket]) -> None:
        for sock in sockets:
            self._watch(sock, way)

    def _way(self, route: Route, sockets: list[socket.socket]) -> ListenerState:
        loopback = all(is_loopback(sock.getsockname()[0]) for sock in sockets)
        return ListenerState(route, self._editing, self._tell, self._learn, self._is_own, loopback=loopback)

    async def _name(self, way: ListenerState) -> None:
        way.agent.aliases = await aliases_of(way.agent.host)

    def _tell(self, note: ConsoleNote) -> None:
        if note not in self._told and len(self._told) < MOST_NOTES:
            self._told.add(note)
            self._show(note)

    def _learn(self, way: ListenerState, interface: AgentInterface) -> int | None:
        """The port of the listener that carries an interface of this agent on another port, made where it may be.

        Clients from beyond loopback cannot reach a listener on loopback, so it carries nothing for theirs."""
        for other, sockets in self._sockets:
            reachable = way.loopback or not other.loopback
            if reachable and other.agent.port == interface.port and way.agent.is_same(other.agent):
                return _port(sockets)
        if not way.may_learn(interface.port) or len(self._sockets) - len(self._routes) >= MOST_LEARNED:
            return None
        beside = next(sockets for other, sockets in self._sockets if other is way)
        sockets = bind_next(beside)
        if not sockets:
            return None
        route = Route(Listen(way.route.listen.host, _port(sockets)), upstream_of(interface))
        learned = self._way(route, sockets)
        learned.agent.aliases = way.agent.aliases
        self._sockets.append((learned, sockets))
        self._accept_from(learned, sockets)
        where = ", ".join(address(*sock.getsockname()[:2]) for sock in sockets)
        self._tell(ConsoleNote(f"listening on {where} for {route.upstream.text} too, as the agent card says"))
        return _port(sockets)

    def _is_own(self, way: ListenerState, interface: AgentInterface) -> bool:
        hosts = filter(is_address, way.agent.aliases)
        return leads_to(hosts, interface.port, (one for _, addresses in self.listening for one in addresses))

    def _watch(self, sock: socket.socket, way: ListenerState) -> None:
        if sock.fileno() >= 0:  # it may have been closed while accepting paused
            self._around.loop.add_reader(sock, self._accept, sock, way)

    def _accept(self, sock: socket.socket, way: ListenerState) -> None:
        for _ in range(ACCEPTS_AT_ONCE):
            try:
                client, _ = sock.accept()
            except (BlockingIOError, InterruptedError):
                return
            except ConnectionAbortedError:
                continue
            except OSError:
                self._pause_accepting(sock, way)
                return
            client.setblocking(False)
            self._begin(client, way)

    def _pause_accepting(self, sock: socket.socket, way: ListenerState) -> None:
        self._accept_errors += 1
        self._around.loop.remove_reader(sock)
        self._around.loop.call_later(ACCEPT_PAUSE_SECONDS, self._watch, sock, way)

    def _begin(self, client: socket.socket, way: ListenerState) -> None:
        self._total += 1
        pair = ProxyConnection(self._total, way, self._around)
        self._pairs.add(pair)
        task = self._around.loop.create_task(self._adopt(client, pair))
        self._accepting.add(task)
        task.add_done_callback(self._accepting.discard)

    async def _adopt(self, client: socket.socket, pair: ProxyConnection) -> None:
        def side() -> Leg:
            return pair.client

        try:
            await self._around.loop.connect_accepted_socket(side, client)
        except OSError:  # it is gone already
            client.close()
            if pair.client.transport is None:
                self._pairs.discard(pair)

    def _on_closed(self, pair: ProxyConnection) -> None:
        self._pairs.discard(pair)
        self._to_agent += pair.client.octets
        self._to_client += pair.agent.octets

    async def stop(self, grace: float = 0.0) -> None:
        """Accept no more, close what waits for nothing, break the rest after `grace` seconds; return after that."""
        self._close_listeners()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + grace
        while self._pairs and loop.time() < deadline:
            self._close_quiet()
            await asyncio.sleep(STOP_POLL_SECONDS)
        while self._pairs:
            for pair in list(self._pairs):
                pair.abort()
            await asyncio.sleep(0)

    def _close_quiet(self) -> None:
        now = self._clock()
        for pair in list(self._pairs):
            since = pair.quiet_since
            if since is not None and now - since >= QUIET_NS:
                pair.close()

    def _close_listeners(self) -> None:
        loop = asyncio.get_running_loop()
        for _, sockets in self._sockets:
            for sock in sockets:
                loop.remove_reader(sock)
                sock.close()
        self._sockets.clear()


def _port(sockets: list[socket.socket]) -> int:
    port: int = sockets[0].getsockname()[1]
    return port
