"""The URLs of the proxy that one agent gets in place of those of its clients' webhooks."""

import ipaddress
from collections.abc import Callable

import msgspec

from a2a_proxy.relay.edits.edit import ConsoleNote, PushConfig
from a2a_proxy.relay.hosts import is_ip_address
from a2a_proxy.relay.listener_state import ShowNote
from a2a_proxy.relay.route import LOOPBACK, RouteError, Upstream, format_address, is_loopback
from a2a_proxy.relay.webhooks.registration import (
    Receiver,
    Registration,
    has_dot_segments,
    parse_receiver,
)
from a2a_proxy.relay.webhooks.registry import MOST_OF_CLIENT, MOST_REGISTRATIONS, WebhookRegistry

_URL_HINT = "write the address at which agents reach the proxy: --webhook-url https://proxy.example"
_UNSPECIFIED = ("0.0.0.0", "::")


class WebhookAddress(msgspec.Struct, frozen=True):
    """Where agents reach the listener for deliveries."""

    hosts: tuple[str, ...]
    """The addresses to which it is bound."""
    port: int
    tls: bool = False
    url: str = ""
    """The option `--webhook-url`; empty without it."""

    def base_for(self, local: str) -> str:
        """Return the URL for an agent that the proxy reaches from its address `local`, or an empty
        text if that agent cannot reach the listener."""
        if self.url:
            return self.url
        own = _plain_address(local)
        if own not in self.hosts and not set(_UNSPECIFIED) & set(self.hosts):
            return ""
        return f"http{'s' if self.tls else ''}://{format_address(own, self.port)}"


def parse_webhook_url(text: str) -> str:
    """Return the base of the URLs that agents get. Raises RouteError."""
    found = parse_receiver(text)
    if found is not None and found.credentials:  # not shown: it may be a password
        raise RouteError(
            "--webhook-url contains user information, which every agent would get", _URL_HINT
        )
    problem = ""
    if found is None:
        problem = "is no http:// or https:// URL"
    elif found.query or "#" in text:
        problem = "has a query or fragment"
    elif has_dot_segments(found.path):
        problem = (
            "has . or .. or invalid encodings in its path, which agents resolve in different ways"
        )
    if problem:
        raise RouteError(f"--webhook-url {text} {problem}", _URL_HINT)
    if _host_of(text) in _UNSPECIFIED:
        raise RouteError(f"no agent can connect to --webhook-url {text}", _URL_HINT)
    return text.rstrip("/")


class AgentUrls:
    """`WebhookUrls` for the agent behind one connection."""

    def __init__(
        self,
        registry: WebhookRegistry,
        name: str,
        agent: Upstream,
        base: str,
        sources: tuple[str, ...],
        show_note: ShowNote,
        is_own: Callable[[Receiver], bool],
        keep_request: Callable[[str, Upstream, bytes], None],
    ) -> None:
        """Create the URLs of an agent. `name` is its upstream as the user wrote it, `base` is empty
        if the agent cannot reach the proxy, `sources` are the IP addresses from which it may
        deliver (any, if empty), and `is_own` says whether a receiver is a listener of the proxy, so
        that notifications pass here anyway. `keep_request` keeps the request of a key to this
        agent."""
        self.client = ""
        """The IP address of the client whose URLs are replaced."""
        self._registry = registry
        self._upstream = agent
        self._keep_request = keep_request
        self._agent = name
        self._base = base
        self._sources = sources
        self._show_note = show_note
        self._is_own = is_own

    def replace_url(self, url: str, config: PushConfig) -> str | None:
        """Return the proxy's URL for a client's webhook, or None if the URL must stay."""
        receiver = parse_receiver(url)
        if receiver is None or self._is_own(receiver):
            return None
        if not self._base:
            self._tell_unreachable(receiver)
            return None
        try:
            registration = self._registry.add(url, self._agent, self._sources, config, self.client)
        except OSError as error:
            self._tell_kept(
                receiver,
                f"the registration cannot be stored: {error.strerror}",
                "check the state directory",
            )
            return None
        if registration is None:
            hint = "delete registrations at the agents; each is forgotten after 30 days"
            limits = (
                f"{MOST_OF_CLIENT:,} registrations of its client or {MOST_REGISTRATIONS:,} of all"
            )
            self._tell_kept(receiver, f"{limits} are known already", hint)
            return None
        if _is_public(receiver.origin.host) and not _is_public(_host_of(self._base)):
            self._tell_private(receiver)
        scheme, _, rest = self._base.partition("://")
        credentials = f"{receiver.credentials}@" if receiver.credentials else ""
        return f"{scheme}://{credentials}{rest}/{registration.key}"

    def restore_url(self, url: str, config: PushConfig) -> str | None:
        """Return the client's URL for one of the proxy, or None if it is another one."""
        found = self._find(url)
        if found is None:
            return None
        named = PushConfig(config.task_id or found.config.task_id, config.id or found.config.id)
        try:
            self._registry.name_config(found, named)
        except OSError:  # the name is only needed to forget the registration earlier
            return found.url
        return found.url

    def keep_request(self, url: str, request: bytes) -> None:
        """Keep the request that created a configuration, as its client wrote it."""
        if (found := self._find(url)) is not None:
            self._keep_request(found.key, self._upstream, request)

    def discard_url(self, url: str) -> None:
        """Forget a URL of the proxy, because the agent did not accept the configuration."""
        if (found := self._find(url)) is not None:
            self._registry.remove(found.key)

    def forget_config(self, config: PushConfig) -> None:
        """Forget the URL of a configuration, because the agent deleted it."""
        self._registry.remove_config(self._agent, config)

    def _find(self, url: str) -> Registration | None:
        found = self._registry.find(url.rpartition("/")[2])
        if (
            found is None or Upstream.parse(found.agent).host != self._upstream.host
        ):  # it may have several ports
            return None
        return found

    def _tell_unreachable(self, receiver: Receiver) -> None:
        self._tell_kept(
            receiver,
            f"the agent {self._agent} cannot reach the port of --webhooks",
            "let it listen where the agent reaches it: --webhooks 0.0.0.0:PORT; or --webhook-url "
            "URL",
        )

    def _tell_kept(self, receiver: Receiver, reason: str, hint: str) -> None:
        text = f"notifications for {receiver.origin.text} do not pass here: {reason}"
        self._show_note(ConsoleNote(text, hint, loud=True))

    def _tell_private(self, receiver: Receiver) -> None:
        text = (
            f"the agent {self._agent} gets the private URL {self._base} in place of the public one "
            f"of "
            f"{receiver.origin.text}: agents that refuse private webhooks refuse it"
        )
        self._show_note(
            ConsoleNote(
                text,
                "give the proxy a public address: --webhook-url https://proxy.example",
                loud=True,
            )
        )


def delivery_sources(peer: str, aliases: set[str]) -> tuple[str, ...]:
    """Return the addresses from which an agent may deliver: those by which the proxy knows it."""
    known = {_plain_address(peer), *filter(is_ip_address, aliases)}
    if any(map(is_loopback, known)):
        known.update(LOOPBACK)
    return tuple(sorted(known))


def is_allowed_source(registration: Registration, client: str) -> bool:
    """Return whether the client at this IP address may deliver."""
    return not registration.sources or _plain_address(client) in registration.sources


def _plain_address(host: str) -> str:
    """Return an IP address without a zone, an IPv4 address that is mapped into IPv6 as IPv4."""
    found = ipaddress.ip_address(host.partition("%")[0])
    return str(getattr(found, "ipv4_mapped", None) or found)


def _host_of(base: str) -> str:
    receiver = parse_receiver(base)
    return "" if receiver is None else receiver.origin.host


def _is_public(host: str) -> bool:
    """Return whether a host is on the Internet, as far as its name or address tells."""
    if not is_ip_address(host):
        return "." in host and not host.endswith((".local", ".internal", ".localhost"))
    return ipaddress.ip_address(host).is_global
