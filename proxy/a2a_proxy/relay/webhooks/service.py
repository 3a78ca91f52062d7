"""The webhooks of one relay: the address of the listener for deliveries, and the URLs for each
agent.

Set a push configuration back to the client's webhook: the client's own request is sent to the
agent once more, with the URL that the client wrote.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from a2a_proxy.http.h1 import (
    CHUNKED,
    Http1Error,
    Http1Scanner,
    MessagePart,
    decode_chunked,
    parse_response_head,
)
from a2a_proxy.relay.dial import DialError, dial_upstream
from a2a_proxy.relay.edits.card_urls import is_local
from a2a_proxy.relay.edits.http1_message import decode_content
from a2a_proxy.relay.edits.push_config import PushCall, is_failure
from a2a_proxy.relay.hosts import is_ip_address
from a2a_proxy.relay.listener_state import ShowNote
from a2a_proxy.relay.route import LOOPBACK, Listen, Upstream
from a2a_proxy.relay.tls import Tls
from a2a_proxy.relay.webhooks.agent_urls import AgentUrls, WebhookAddress, delivery_sources
from a2a_proxy.relay.webhooks.registration import Receiver
from a2a_proxy.relay.webhooks.registry import WebhookRegistry

if TYPE_CHECKING:
    from a2a_proxy.relay.upstream_proxy import UpstreamProxy

MAX_KEPT_BYTES, MOST_KEPT_REQUESTS = 16 * 1024, 1000
"""Bytes of the longest request that is kept for `--restore`, and the number of requests."""


RESTORE_SECONDS = 5.0
"""Seconds that one agent may take to answer."""
MAX_ANSWER_BYTES = 1024 * 1024

_CALL = PushCall("create", "jsonrpc")
"""A call of either binding: a success over REST has no member `error` either."""


async def restore_webhook(
    agent: Upstream, request: bytes, tls: Tls, proxy: UpstreamProxy | None
) -> bool:
    """Send a request that creates a configuration, through `proxy` if it leads to the agent. Return
    whether the agent accepted it."""
    answer = _Answer(request)
    try:
        async with asyncio.timeout(RESTORE_SECONDS):
            await dial_upstream(agent, lambda: answer, RESTORE_SECONDS, tls=tls, proxy=proxy)
            return await answer.accepted
    except (DialError, TimeoutError):
        return False
    finally:
        answer.close()


class _Answer(asyncio.Protocol):
    """Sends a request and reads its response."""

    def __init__(self, request: bytes) -> None:
        self.accepted: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._request = request
        self._scanner = Http1Scanner()
        self._body = bytearray()
        self._status = self._framing = 0
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the request."""
        self._transport = cast(asyncio.Transport, transport)
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        """Read the response up to its end."""
        at = 0
        try:
            while at < len(data) and not self.accepted.done():
                part, end = self._scanner.read_part(data, at)
                if part is MessagePart.HEAD_END:
                    self._on_head()
                elif part is not MessagePart.HEAD:
                    self._body += data[at:end]
                    if len(self._body) > MAX_ANSWER_BYTES:
                        self._settle(False)
                    elif part is MessagePart.BODY_END:
                        self._finish()
                at = end
        except Http1Error:
            self._settle(False)

    def eof_received(self) -> bool:
        """End a response that the end of the connection ends."""
        if self._scanner.is_until_close:
            self._finish()
        return False

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 (the interface)
        """Give up."""
        self._settle(False)

    def close(self) -> None:
        """Close the connection."""
        if self._transport is not None:
            self._transport.close()

    def _on_head(self) -> None:
        self._status, self._framing = parse_response_head(self._scanner.head, to_head=False)
        if self._scanner.begin_body(self._framing) and self._status >= 200:
            self._settle(self._status < 300)

    def _finish(self) -> None:
        body = decode_chunked(bytes(self._body)) if self._framing == CHUNKED else bytes(self._body)
        payload = decode_content(self._scanner.head, body)
        self._settle(payload is not None and not is_failure(_CALL, self._status, payload))

    def _settle(self, accepted: bool) -> None:
        if not self.accepted.done():
            self.accepted.set_result(accepted)


class WebhookService:
    """Makes the URLs that agents get (`--webhooks`, `--webhook-url`)."""

    def __init__(
        self, listen: Listen, url: str, registry: WebhookRegistry, *, restores: bool = False
    ) -> None:
        """Create the service. `url` is the base of the URLs; empty for the address by which the
        proxy reaches an agent. With `restores`, configurations can be set back to their clients'
        webhooks."""
        self._restores = restores
        self._requests: dict[str, tuple[Upstream, bytes]] = {}
        """The requests that created configurations, by key."""
        self.listen = listen
        self.registry = registry
        registry.on_removed = self._forget_request  # it may have credentials
        self._url = url
        self._address = WebhookAddress((), 0, url=url)

    def set_address(self, hosts: tuple[str, ...], port: int, *, tls: bool) -> None:
        """Set the addresses to which the listener is bound, and whether it takes TLS."""
        self._address = WebhookAddress(hosts, port, tls=tls, url=self._url)
        self.registry.port = port

    def urls_for(
        self,
        name: str,
        agent: Upstream,
        aliases: set[str],
        ends: tuple[str, str, str],
        show_note: ShowNote,
        is_own: Callable[[list[str], int], bool],
    ) -> AgentUrls:
        """Return the URLs for an agent that the proxy has reached. `name` is its upstream as the
        user wrote it, of which gRPC may have another port; `ends` are the IP addresses of the
        connection: the proxy's, the agent's, and the client's. `is_own` says whether one of some
        addresses is a port of the proxy."""
        local, peer, client = ends

        def is_own_receiver(receiver: Receiver) -> bool:
            host = receiver.origin.host
            hosts = [host] if is_ip_address(host) else [*LOOPBACK] if is_local(host) else []
            return bool(hosts) and is_own(hosts, receiver.origin.port)

        # An agent for which another URL was given may reach the proxy through other machines, with
        # their addresses.
        sources = () if self._url else delivery_sources(peer, aliases)
        urls = AgentUrls(
            self.registry,
            name,
            agent,
            self._address.base_for(local),
            sources,
            show_note,
            is_own_receiver,
            self._keep_request,
        )
        urls.client = client
        return urls

    @property
    def kept_count(self) -> int:
        """Number of requests that are kept."""
        return len(self._requests)

    async def restore_webhooks(self, tls: Tls, proxy: UpstreamProxy | None = None) -> int:
        """Set all configurations back whose requests are known, and return how many requests the
        agents accepted. `proxy` is another proxy through which agents are dialled."""
        count = 0
        for key in [each.key for each in self.registry.list_live()]:
            if key in self._requests and await restore_webhook(*self._requests[key], tls, proxy):
                self.registry.remove(key)
                count += 1
        return count

    def _keep_request(self, key: str, agent: Upstream, request: bytes) -> None:
        if not self._restores or len(request) > MAX_KEPT_BYTES:
            return
        if len(self._requests) >= MOST_KEPT_REQUESTS:
            self.registry.remove_expired()
        if len(self._requests) < MOST_KEPT_REQUESTS:
            self._requests[key] = (agent, request)

    def _forget_request(self, key: str) -> None:
        self._requests.pop(key, None)
