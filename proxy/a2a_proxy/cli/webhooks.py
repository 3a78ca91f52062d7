"""`--webhooks`: the registrations in the state directory, and what the user should know about
them."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from a2a_proxy.capture import file_layout
from a2a_proxy.cli.errors import state_directory_errors
from a2a_proxy.protocol.text import make_visible
from a2a_proxy.relay.edits.card_urls import is_local
from a2a_proxy.relay.edits.edit import ConsoleNote
from a2a_proxy.relay.route import Listen, Route, is_loopback
from a2a_proxy.relay.tls import Tls, Trust
from a2a_proxy.relay.webhooks.registry import WebhookRegistry
from a2a_proxy.relay.webhooks.service import WebhookService

if TYPE_CHECKING:
    from a2a_proxy.relay.upstream_proxy import UpstreamProxy

_MAX_LISTED = 5
_RESTORE_SECONDS = 10.0
"""Seconds in which configurations are set back."""


def make_webhooks(listen: Listen, url: str, *, restores: bool) -> WebhookService:
    """Return the webhooks of a run; `url` is `--webhook-url`, or empty, `restores` is `--restore`.
    Raises UserError."""
    with state_directory_errors():
        registry = WebhookRegistry(file_layout.webhooks_dir(), time.time)
        registry.load()
    return WebhookService(listen, url, registry, restores=restores)


def describe_webhooks(
    addresses: Sequence[str], routes: Sequence[Route], url: str
) -> Iterator[ConsoleNote]:
    """Yield a line that says where agents deliver, and one for each agent that probably cannot."""
    shown = f", as {url}" if url else ""
    yield ConsoleNote(f"agents deliver push notifications to {', '.join(addresses)}{shown}")
    elsewhere = [
        route.upstream.text for route in routes if not is_local(route.upstream.host.lower())
    ]
    if url:
        if is_local(urlsplit(url).hostname or ""):
            for agent in elsewhere:
                yield ConsoleNote(
                    f"--webhook-url {url} leads the agent {agent} to its own machine",
                    "unless a tunnel leads from there to the proxy, write the proxy's address: "
                    "--webhook-url https://proxy.example",
                    loud=True,
                )
    elif all(is_loopback(address.rpartition(":")[0].strip("[]")) for address in addresses):
        for agent in elsewhere:
            yield ConsoleNote(
                f"the agent {agent} cannot reach --webhooks on {addresses[0]} from another machine",
                f"let it listen where agents reach it: --webhooks "
                f"0.0.0.0:{addresses[0].rpartition(':')[2]}",
                loud=True,
            )


async def restore_webhooks(
    webhooks: WebhookService, trust: Trust, proxy: UpstreamProxy | None
) -> ConsoleNote:
    """Set push configurations back to the clients' webhooks, through `proxy` where it leads to the
    agent, and return a line with their number."""
    count = 0
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_RESTORE_SECONDS):
            count = await webhooks.restore_webhooks(Tls(trust), proxy)
    what = "configuration was" if count == 1 else "configurations were"
    return ConsoleNote(f"{count} push notification {what} set back to the client's webhook")


def describe_live_webhooks(registry: WebhookRegistry) -> ConsoleNote | None:
    """Return a line about the configurations that lead to the proxy, which ends, or None if they
    do not exist."""
    live = registry.list_live()
    if not live:
        return None
    named = [
        f"{each.config.id} of task {each.config.task_id} at {each.agent}"
        for each in live
        if each.config.task_id
    ]
    what = "configuration still leads" if len(live) == 1 else "configurations still lead"
    listed = [make_visible(each) for each in named[:_MAX_LISTED]]
    if others := len(live) - len(named):
        listed.append(f"{others:,} that came with {'a message' if others == 1 else 'messages'}")
    if len(named) > _MAX_LISTED:
        listed.append("and more")
    return ConsoleNote(
        f"{len(live)} push notification {what} here; without a proxy with --webhooks the "
        f"notifications are lost",
        f"delete those that agents still use: {', '.join(listed)}",
        loud=True,
    )
