"""The webhooks of one relay: the address of the listener for deliveries, and the URLs for each agent."""

from __future__ import annotations

from collections.abc import Callable

from a2a_proxy.relay.edits.card_urls import is_local
from a2a_proxy.relay.hosts import is_ip_address
from a2a_proxy.relay.listener_state import ShowNote
from a2a_proxy.relay.route import LOOPBACK, Listen, Upstream
from a2a_proxy.relay.webhooks.agent_urls import AgentUrls, WebhookAddress, delivery_sources
from a2a_proxy.relay.webhooks.registration import Receiver
from a2a_proxy.relay.webhooks.registry import WebhookRegistry


class WebhookService:
    """Makes the URLs that agents get (`--webhooks`, `--webhook-url`)."""

    def __init__(self, listen: Listen, url: str, registry: WebhookRegistry) -> None:
        """Create the service. `url` is the base of the URLs; empty for the address by which the proxy reaches an
        agent."""
        self.listen = listen
        self.registry = registry
        self._url = url
        self._address = WebhookAddress((), 0, url=url)

    def set_address(self, hosts: tuple[str, ...], port: int, *, tls: bool) -> None:
        """Set the addresses to which the listener is bound, and whether it takes TLS."""
        self._address = WebhookAddress(hosts, port, tls=tls, url=self._url)
        self.registry.port = port

    def urls_for(
        self,
        agent: Upstream,
        aliases: set[str],
        ends: tuple[str, str],
        show_note: ShowNote,
        is_own: Callable[[list[str], int], bool],
    ) -> AgentUrls:
        """Return the URLs for an agent that the proxy has reached; `ends` are the IP addresses of the connection, the
        proxy's and the agent's. `is_own` says whether one of some addresses is a port of the proxy."""
        local, peer = ends

        def is_own_receiver(receiver: Receiver) -> bool:
            host = receiver.origin.host
            hosts = [host] if is_ip_address(host) else [*LOOPBACK] if is_local(host) else []
            return bool(hosts) and is_own(hosts, receiver.origin.port)

        # An agent for which another URL was given may reach the proxy through other machines, with their addresses.
        sources = () if self._url else delivery_sources(peer, aliases)
        return AgentUrls(self.registry, agent, self._address.base_for(local), sources, show_note, is_own_receiver)
