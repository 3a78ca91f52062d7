"""The webhooks of one relay: the address of the listener for deliveries, and the URLs for each
agent."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from a2a_proxy.relay.edits.card_urls import is_local
from a2a_proxy.relay.hosts import is_ip_address
from a2a_proxy.relay.listener_state import ShowNote
from a2a_proxy.relay.route import LOOPBACK, Listen, Upstream
from a2a_proxy.relay.tls import Tls
from a2a_proxy.relay.webhooks.agent_urls import AgentUrls, WebhookAddress, delivery_sources
from a2a_proxy.relay.webhooks.registration import Receiver
from a2a_proxy.relay.webhooks.registry import WebhookRegistry
from a2a_proxy.relay.webhooks.restore import restore_webhook

if TYPE_CHECKING:
    from a2a_proxy.relay.upstream_proxy import UpstreamProxy

MAX_KEPT_BYTES, MOST_KEPT_REQUESTS = 16 * 1024, 1000
"""Bytes of the longest request that is kept for `--restore`, and the number of requests."""


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
