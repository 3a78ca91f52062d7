"""All connections of one relay: bind, accept, count, stop. `connection` relays each of them."""

from __future__ import annotations

import asyncio
import importlib
import socket
from collections.abc import Callable, Coroutine, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

import msgspec

from a2a_proxy.model.wire import ChunkKind, ClientProcess, Direction, TlsFacts
from a2a_proxy.relay.bind import bind_listener, bind_next_port
from a2a_proxy.relay.clock import Clock
from a2a_proxy.relay.connection import Leg, ProxyConnection, RelayContext
from a2a_proxy.relay.connection_editing import WorkQueue
from a2a_proxy.relay.early_upstream import EarlyUpstream
from a2a_proxy.relay.edits.edit import AgentInterface, ConsoleNote, WebhookUrls
from a2a_proxy.relay.file_limit import file_limit_note, is_file_limit
from a2a_proxy.relay.held_bytes import HeldBytes
from a2a_proxy.relay.hosts import find_aliases, is_ip_address, is_own_listener
from a2a_proxy.relay.listener_state import EditPolicy, ListenerState, ShowNote, upstream_of
from a2a_proxy.relay.route import Listen, Route, RouteError, Upstream, format_address, is_loopback
from a2a_proxy.relay.tcp import host_of_socket, socket_names
from a2a_proxy.relay.tls import Tls

if TYPE_CHECKING:
    from a2a_proxy.relay.client_tls import ClientTls, HandshakeFailure
    from a2a_proxy.relay.forward import ForwardClient
    from a2a_proxy.relay.tunnel import Interception
    from a2a_proxy.relay.upstream_proxy import UpstreamProxy
    from a2a_proxy.relay.webhooks.service import WebhookService

MAX_LEARNED_LISTENERS = 8
"""Listeners opened because an agent card lists further interfaces."""
MAX_NOTES = 200
"""Different lines shown to the user; a hostile agent could produce new ones without limit."""
ACCEPTS_AT_ONCE = 64
"""Connections accepted before the established ones get their turn again."""
ACCEPT_PAUSE_SECONDS = 0.1
"""Seconds without accepting after an error such as EMFILE, which ends when connections close."""
STOP_POLL_SECONDS = 0.02
QUIET_CONNECTION_NS = 1_000_000_000
"""Nanoseconds of silence after which a connection with the agent's bytes as the latest is closed by
`stop`."""


class JournalWriterProtocol(Protocol):
    """The method of a journal that the relay uses (`capture.append.Journal`)."""

    def append(
        self, kind: ChunkKind, direction: Direction, connection: int, at: int, data: bytes
    ) -> None:
        """Append one record."""


class ClientProcessesProtocol(Protocol):
    """Finds the processes of clients on this machine (`cli.command.client_processes`)."""

    async def learn(self, client: str, listener: str) -> None:
        """Look up the process of the client at `client`, connected to `listener` (both
        `host:port`). Never raises."""

    def get(self, client: str) -> ClientProcess | None:
        """Return the process of this client, or None if it is unknown."""


class RelayStats(msgspec.Struct, frozen=True):
    """Counters of one relay."""

    open: int
    total: int
    bytes_to_agent: int
    bytes_to_client: int
    accept_errors: int
    buffered: int
    """Bytes in memory that wait for slow readers."""


class Relay:
    """Listens on all routes and relays connections as soon as it has a journal for their copies."""

    def __init__(
        self,
        routes: Sequence[Route],
        clock: Clock,
        editing: EditPolicy = EditPolicy(),  # noqa: B008 (frozen)
        show_note: ShowNote = lambda _: None,
        forwards: Sequence[Listen] = (),
        client_tls: ClientTls | None = None,
        proxy: UpstreamProxy | None = None,
        interception: Interception | None = None,
    ) -> None:
        """Create the relay. `show_note` shows a line to the user and must not block; it gets each
        line once. `forwards` are the addresses of forward proxies. With `client_tls` the listeners
        take TLS as well as plain text. `proxy` is another proxy through which upstreams are
        dialled, `interception` what a forward proxy opens."""
        self._routes = tuple(routes)
        self._forwards, self._proxy, self._interception = tuple(forwards), proxy, interception
        self._clock = clock
        self._editing, self._show_note = editing, show_note
        self._forward_editing = msgspec.structs.replace(editing, cards="never", keep_host=True)
        self._client_processes: ClientProcessesProtocol | None = None
        self._tls = Tls(editing.trust)
        self._client_tls = client_tls
        self._handshakes: set[asyncio.Task[None]] = set()
        """Accepted clients whose protocol is unknown, or whose handshake is not complete."""
        self._shown_notes: set[ConsoleNote] = set()
        self._sockets: list[tuple[ListenerState, list[socket.socket]]] = []
        self._forward_sockets: list[tuple[Listen, list[socket.socket]]] = []
        self._reserved_addresses: list[str] = []
        self._forward_clients: set[ForwardClient] = set()
        self._webhooks: WebhookService | None = None
        self._webhook_sockets: list[socket.socket] = []
        self._connections: set[ProxyConnection] = set()
        self._accept_tasks: set[asyncio.Task[object]] = set()
        self._connection_count = self._bytes_to_agent = self._bytes_to_client = (
            self._accept_errors
        ) = 0

    @property
    def bound_addresses(self) -> list[tuple[Route, list[str]]]:
        """Each route with the addresses it is bound to, as `host:port`."""
        return [(listener.route, _addresses_of(sockets)) for listener, sockets in self._sockets]

    @property
    def forward_addresses(self) -> list[list[str]]:
        """The addresses of each forward proxy, as `host:port`."""
        return [_addresses_of(sockets) for _, sockets in self._forward_sockets]

    @property
    def webhook_addresses(self) -> list[str]:
        """The addresses to which agents deliver notifications, as `host:port`; empty without
        `--webhooks`."""
        return _addresses_of(self._webhook_sockets)

    @property
    def is_loopback_only(self) -> bool:
        """Whether only this machine can connect to any of the listeners for one agent."""
        return all(listener.loopback for listener, _ in self._sockets)

    def identify_clients(self, processes: ClientProcessesProtocol) -> None:
        """Look up the process of each client. Must be called before `accept_connections`."""
        self._client_processes = processes

    def take_deliveries(self, webhooks: WebhookService) -> None:
        """Replace the URLs of webhooks in calls, and listen for deliveries. Must be called before
        `bind_listeners`."""
        self._webhooks = webhooks

    def reserve_addresses(self, addresses: Iterable[str]) -> None:
        """Refuse these addresses (`host:port`) as targets of a forward proxy, as the relay's own
        are refused."""
        self._reserved_addresses += addresses

    @property
    def stats(self) -> RelayStats:
        """The current counters, open connections included."""
        to_agent = self._bytes_to_agent + sum(
            pair.client.received_bytes for pair in self._connections
        )
        to_client = self._bytes_to_client + sum(
            pair.agent.received_bytes for pair in self._connections
        )
        buffered = sum(
            connection.client.buffered_bytes + connection.agent.buffered_bytes
            for connection in self._connections
        )
        return RelayStats(
            len(self._connections),
            self._connection_count,
            to_agent,
            to_client,
            self._accept_errors,
            buffered,
        )

    async def bind_listeners(self) -> None:
        """Bind all listeners. Clients wait in the kernel until `accept_connections`.

        Raises RouteError, with nothing bound.
        """
        loop = asyncio.get_running_loop()
        try:
            if any(
                upstream.tls
                for route in self._routes
                for upstream in (route.upstream, route.grpc)
                if upstream
            ):
                self._tls.prepare_contexts()
            for route in self._routes:
                sockets = await bind_listener(loop, route.listen)
                self._sockets.append((self._make_listener(route, sockets), sockets))
            for listen in self._forwards:
                self._forward_sockets.append((listen, await self._bind_forward(listen)))
            if self._webhooks is not None:
                self._webhook_sockets = await self._bind_webhooks(self._webhooks)
            await asyncio.gather(
                *(self._find_agent_aliases(listener) for listener, _ in self._sockets)
            )
        except BaseException:
            self._close_listeners()
            raise

    async def _bind_forward(self, listen: Listen) -> list[socket.socket]:
        try:
            return await bind_listener(asyncio.get_running_loop(), listen)
        except RouteError as wrong:
            raise RouteError(
                f"--forward: {wrong.message}", wrong.hint.replace("--listen", "--forward")
            ) from wrong

    async def _bind_webhooks(self, webhooks: WebhookService) -> list[socket.socket]:
        try:
            sockets = await bind_listener(asyncio.get_running_loop(), webhooks.listen)
        except RouteError as wrong:
            hint = wrong.hint
            if "--listen" in hint:  # the host has no address of this machine
                address = format_address(webhooks.listen.host, webhooks.listen.port)
                hint = (
                    f"{hint.replace('--listen', '--webhooks')}; the URL for agents: --webhook-url "
                    f"http://{address}"
                )
            raise RouteError(f"--webhooks: {wrong.message}", hint) from wrong
        hosts = tuple(sock.getsockname()[0] for sock in sockets)
        webhooks.set_address(hosts, _port_of(sockets), tls=self._client_tls is not None)
        return sockets

    def accept_connections(self, journal: JournalWriterProtocol) -> None:
        """Accept connections and copy their bytes to `journal`. Must be called once, after
        `bind_listeners`."""
        self._load_modules()
        loop = asyncio.get_running_loop()
        queue = WorkQueue(loop)
        self._context = RelayContext(
            loop,
            queue,
            HeldBytes(loop),
            journal.append,
            self._clock,
            self._on_closed,
            self._tls,
            self._show_note_once,
            self._is_own,
            self._process_of,
            self._proxy,
        )
        for listener, sockets in self._sockets:
            self._accept_from(listener, sockets)
        for listen, sockets in self._forward_sockets:
            for sock in sockets:
                self._watch_socket(sock, partial(self._begin_forward, listen=listen))
        for sock in self._webhook_sockets:
            self._watch_socket(sock, self._begin_delivery)

    def _load_modules(self) -> None:
        """Load all modules that connections may need, which is impossible once descriptors have run
        out."""
        names = ["refusal", "edits.http1", "edits.http2"]
        if self._forwards:
            names += ["forward", "tunnel"]
        if self._webhooks is not None:
            names += ["webhooks.delivery", "edits.http1_webhooks", "edits.http2_webhooks"]
        if self._editing.faults is not None:
            names.append("fault_editing")
        for name in names:
            importlib.import_module(f"a2a_proxy.relay.{name}")

    def _accept_from(self, listener: ListenerState, sockets: list[socket.socket]) -> None:
        for sock in sockets:
            self._watch_socket(sock, lambda client: self._begin_connection(client, listener))

    def _make_listener(self, route: Route, sockets: list[socket.socket]) -> ListenerState:
        loopback = all(is_loopback(sock.getsockname()[0]) for sock in sockets)
        return ListenerState(
            route,
            self._editing,
            self._show_note_once,
            self._learn_interface,
            self._is_own_interface,
            loopback=loopback,
            webhooks=None
            if self._webhooks is None
            else partial(self._make_webhook_urls, self._webhooks),
        )

    def _make_webhook_urls(
        self,
        webhooks: WebhookService,
        listener: ListenerState,
        upstream: Upstream,
        client: asyncio.BaseTransport,
        agent: asyncio.BaseTransport,
    ) -> WebhookUrls | None:
        local, peer = (host_of_socket(agent, which) for which in ("sockname", "peername"))
        if not local or not peer:  # the agent is already gone
            return None
        name, ends = listener.route.upstream.text, (local, peer, host_of_socket(client, "peername"))
        return webhooks.urls_for(
            name, upstream, listener.agent.aliases, ends, self._show_note_once, self._is_own
        )

    async def _find_agent_aliases(self, listener: ListenerState) -> None:
        listener.agent.aliases = await find_aliases(listener.agent.host)

    def _show_note_once(self, note: ConsoleNote) -> None:
        if note not in self._shown_notes and len(self._shown_notes) < MAX_NOTES:
            self._shown_notes.add(note)
            self._show_note(note)

    def _learn_interface(self, listener: ListenerState, interface: AgentInterface) -> int | None:
        """Return the port of the listener that carries this interface of the agent, opened if
        allowed, or None.

        Clients from beyond loopback cannot reach a listener on loopback, so it does not count for
        them.
        """
        for other, sockets in self._sockets:
            reachable = listener.loopback or not other.loopback
            if (
                reachable
                and other.agent.port == interface.port
                and listener.agent.is_same_machine(other.agent)
            ):
                return _port_of(sockets)
        if (
            not listener.may_learn(interface.port)
            or len(self._sockets) - len(self._routes) >= MAX_LEARNED_LISTENERS
        ):
            return None
        neighbours = next(sockets for other, sockets in self._sockets if other is listener)
        sockets = bind_next_port(neighbours)
        if not sockets:
            return None
        route = Route(Listen(listener.route.listen.host, _port_of(sockets)), upstream_of(interface))
        learned = self._make_listener(route, sockets)
        learned.agent.aliases = listener.agent.aliases
        self._sockets.append((learned, sockets))
        self._accept_from(learned, sockets)
        where = ", ".join(_addresses_of(sockets))
        self._show_note_once(
            ConsoleNote(
                f"also listening on {where} for {route.upstream.text}, as listed in the agent card"
            )
        )
        return _port_of(sockets)

    def _is_own_interface(self, listener: ListenerState, interface: AgentInterface) -> bool:
        hosts = filter(is_ip_address, listener.agent.aliases)
        return is_own_listener(
            hosts,
            interface.port,
            (one for _, addresses in self.bound_addresses for one in addresses),
        )

    def _is_own(self, hosts: Iterable[str], port: int) -> bool:
        groups = [addresses for _, addresses in self.bound_addresses] + self.forward_addresses
        groups.append(self.webhook_addresses)
        own = [*self._reserved_addresses, *(one for addresses in groups for one in addresses)]
        return is_own_listener(hosts, port, own)

    def _watch_socket(self, sock: socket.socket, begin: Callable[[socket.socket], None]) -> None:
        if sock.fileno() >= 0:  # it may have been closed while accepting paused
            self._context.loop.add_reader(sock, self._accept_clients, sock, begin)

    def _accept_clients(self, sock: socket.socket, begin: Callable[[socket.socket], None]) -> None:
        for _ in range(ACCEPTS_AT_ONCE):
            try:
                client, _ = sock.accept()
            except (BlockingIOError, InterruptedError):
                return
            except ConnectionAbortedError:
                continue
            except OSError as error:
                self._pause_accepting(sock, begin)
                if is_file_limit(error):
                    self._show_note_once(file_limit_note())
                return
            client.setblocking(False)
            begin(client)

    def _pause_accepting(self, sock: socket.socket, begin: Callable[[socket.socket], None]) -> None:
        self._accept_errors += 1
        self._context.loop.remove_reader(sock)
        self._context.loop.call_later(ACCEPT_PAUSE_SECONDS, self._watch_socket, sock, begin)

    def _begin_connection(self, client: socket.socket, listener: ListenerState) -> None:
        if self._client_tls is not None:
            begin = partial(self._begin_after_handshake, listener)
            fail = partial(self._record_failed_handshake, listener, *socket_names(client))
            self._accept_later(self._client_tls.accept(client, begin, fail))
            return
        connection = self._open_connection(listener)
        task = self._context.loop.create_task(self._adopt_client(client, connection))
        self._accept_tasks.add(task)
        task.add_done_callback(self._accept_tasks.discard)

    async def _learn_process(self, client: socket.socket) -> None:
        """Look up the client's process, so that the connection's first record has it."""
        if self._client_processes is not None:
            await self._client_processes.learn(*socket_names(client))

    def _process_of(self, client: str) -> ClientProcess | None:
        return self._client_processes.get(client) if self._client_processes is not None else None

    def _accept_later(self, work: Coroutine[None, None, None]) -> None:
        """Run the work that precedes a connection; it ends when the relay stops."""
        task = self._context.loop.create_task(work)
        self._handshakes.add(task)
        task.add_done_callback(self._handshakes.discard)

    def _open_connection(
        self, listener: ListenerState, early: EarlyUpstream | None = None
    ) -> ProxyConnection:
        self._connection_count += 1
        connection = ProxyConnection(self._connection_count, listener, self._context, early)
        self._connections.add(connection)
        return connection

    def _begin_forward(self, client: socket.socket, listen: Listen) -> None:
        self._accept_later(self._accept_forward_client(client, listen))

    async def _accept_forward_client(self, client: socket.socket, listen: Listen) -> None:
        """Find out from the first bytes whether the client wants a tunnel, and begin it or its
        requests."""
        from a2a_proxy.relay.first_bytes import peek_bytes
        from a2a_proxy.relay.forward import ForwardClient
        from a2a_proxy.relay.tunnel import METHOD, Tunnel, is_other_method

        origin = partial(self._open_origin, listen)
        try:
            await self._learn_process(client)
            while begin := await peek_bytes(client, is_other_method, len(METHOD), None):
                empty = len(begin) - len(
                    begin.lstrip(b"\r\n")
                )  # empty lines before a request (RFC 9112 2.2)
                if not empty:
                    break
                client.recv(empty)
            if begin == METHOD:
                await Tunnel(client, self._context, origin, self._interception).run()
                return
            one = ForwardClient(self._context, origin, self._forward_clients.discard)
            self._forward_clients.add(one)
            try:
                await self._context.loop.connect_accepted_socket(lambda: one, client)
            except BaseException:
                self._forward_clients.discard(one)
                raise
        except OSError:  # the client is already gone
            client.close()
        except asyncio.CancelledError:
            client.close()
            raise

    def _begin_delivery(self, client: socket.socket) -> None:
        try:
            source = client.getpeername()[0]
        except OSError:  # the agent is already gone
            client.close()
            return
        if self._client_tls is None:
            self._accept_later(self._accept_delivery(client, source))
            return

        def fail(failure: HandshakeFailure) -> None:
            self._show_note_once(failure.note)

        begin = partial(self._make_delivery_client, source)
        self._accept_later(self._client_tls.accept(client, begin, fail))

    async def _accept_delivery(self, client: socket.socket, source: str) -> None:
        one = self._make_delivery_client(source, None)
        try:
            await self._learn_process(client)
            await self._context.loop.connect_accepted_socket(lambda: one, client)
        except OSError:  # the agent is already gone
            self._forward_clients.discard(one)
            client.close()

    def _make_delivery_client(self, source: str, tls: TlsFacts | None) -> ForwardClient:
        from a2a_proxy.relay.webhooks.delivery import DeliveryClient
        from a2a_proxy.relay.webhooks.delivery_requests import DeliveryRequests

        assert self._webhooks is not None

        def open_receiver(receiver: Upstream) -> ProxyConnection:
            assert self._webhooks is not None
            connection = self._open_origin(
                self._webhooks.listen, receiver, deliverer=requests.agent
            )
            connection.client_tls = tls
            return connection

        requests = DeliveryRequests(self._webhooks.registry, source)
        one = DeliveryClient(self._context, requests, open_receiver, self._forward_clients.discard)
        self._forward_clients.add(one)
        return one

    def _open_origin(
        self,
        listen: Listen,
        origin: Upstream,
        early: EarlyUpstream | None = None,
        *,
        deliverer: str = "",
    ) -> ProxyConnection:
        """Return a connection of a forward proxy to this origin, whose card and authority stay
        unchanged."""
        listener = ListenerState(
            Route(listen, origin),
            self._forward_editing,
            self._show_note_once,
            self._learn_interface,
            self._is_own_interface,
            loopback=True,
            forwarded=True,
        )
        if deliverer:
            listener.upstream_label, listener.deliverer = "webhook", deliverer
        return self._open_connection(listener, early)

    def _begin_after_handshake(self, listener: ListenerState, tls: TlsFacts | None) -> Leg:
        connection = self._open_connection(listener)
        connection.client_tls = tls
        return connection.client

    def _record_failed_handshake(
        self, listener: ListenerState, client: str, listen: str, failure: HandshakeFailure
    ) -> None:
        self._show_note_once(failure.note)
        self._open_connection(listener).record_failed_handshake(client, listen, failure.reason)

    async def _adopt_client(self, client: socket.socket, connection: ProxyConnection) -> None:
        try:
            await self._learn_process(client)
            await self._context.loop.connect_accepted_socket(lambda: connection.client, client)
        except OSError:  # the client is already gone
            client.close()
            if connection.client.transport is None:
                self._connections.discard(connection)

    def _on_closed(self, connection: ProxyConnection) -> None:
        self._connections.discard(connection)
        self._bytes_to_agent += connection.client.received_bytes
        self._bytes_to_client += connection.agent.received_bytes

    async def stop(self, grace: float = 0.0) -> None:
        """Stop accepting and close idle connections, reset the others after `grace` seconds, and
        return after that."""
        self._close_listeners()
        for handshake in self._handshakes:
            handshake.cancel()
        for client in list(self._forward_clients):
            if client.is_unused:
                client.close()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + grace
        while self._connections and loop.time() < deadline:
            self._close_quiet_connections()
            await asyncio.sleep(STOP_POLL_SECONDS)
        while self._connections:
            for connection in list(self._connections):
                connection.abort()
            await asyncio.sleep(0)

    def _close_quiet_connections(self) -> None:
        now = self._clock()
        for connection in list(self._connections):
            since = connection.quiet_since
            if since is not None and now - since >= QUIET_CONNECTION_NS:
                connection.close()

    def _close_listeners(self) -> None:
        loop = asyncio.get_running_loop()
        for sockets in (
            self._webhook_sockets,
            *(each for _, each in (*self._sockets, *self._forward_sockets)),
        ):
            for sock in sockets:
                loop.remove_reader(sock)
                sock.close()
        self._sockets.clear()
        self._forward_sockets.clear()
        self._webhook_sockets.clear()


def _addresses_of(sockets: list[socket.socket]) -> list[str]:
    return [format_address(*sock.getsockname()[:2]) for sock in sockets]


def _port_of(sockets: list[socket.socket]) -> int:
    port: int = sockets[0].getsockname()[1]
    return port
