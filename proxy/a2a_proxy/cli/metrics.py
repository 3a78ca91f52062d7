"""`--metrics`: the address of the metrics server, and the server of one run."""

from __future__ import annotations

import asyncio
import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

from a2a_proxy.cli.console import Console
from a2a_proxy.installation import install_hint
from a2a_proxy.model.errors import UserError
from a2a_proxy.protocol.text import make_visible
from a2a_proxy.relay.bind import bind_listener
from a2a_proxy.relay.route import Listen, RouteError, format_address

if TYPE_CHECKING:
    from a2a_proxy.follower.metrics.supervisor import MetricsSupervisor


def metrics_listen(text: str) -> Listen:
    """Parse an address such as `:9464` or `0.0.0.0:9464`. Opens no socket.

    Raises:
        UserError: the address is invalid, or prometheus_client is not installed.
    """
    try:
        listen = Listen.parse(text)
    except RouteError as wrong:
        raise UserError(
            f"--metrics {make_visible(text)}: {wrong.message}", "for example: --metrics :9464"
        ) from wrong
    if importlib.util.find_spec("prometheus_client") is None:
        raise UserError("--metrics needs the extra metrics", install_hint("metrics"))
    return listen


class MetricsFollower:
    """The metrics server of one run; does nothing if none is requested."""

    def __init__(self, listen: Listen | None, console: Console) -> None:
        self._listen = listen
        self._console = console
        self._supervisor: MetricsSupervisor | None = None
        self._address = ""

    async def bind_port(self) -> list[str]:
        """Bind the port, and return the addresses, each `host:port`. Raises UserError if it cannot
        be bound."""
        if self._listen is None:
            return []
        try:
            sockets = await bind_listener(asyncio.get_running_loop(), self._listen)
        except RouteError as wrong:
            hint = wrong.hint.replace("--listen", "--metrics")
            raise UserError(f"--metrics: {wrong.message}", hint) from wrong
        from a2a_proxy.follower.metrics.supervisor import MetricsSupervisor

        addresses = [format_address(*sock.getsockname()[:2]) for sock in sockets]
        self._address = addresses[0]
        self._supervisor = MetricsSupervisor(sockets, self._show_notice)
        return addresses

    def start(self, recording: str, session: str, journal: Path) -> None:
        """Serve the metrics of the session of this uuid; returns at once."""
        if self._supervisor is not None:
            self._supervisor.start(recording, session, journal)
            self._console.show_note(
                f"metrics: http://{self._address}/metrics, /healthz and /readyz", loud=False
            )

    def close(self) -> None:
        """Stop the server; no effect if that was done before."""
        supervisor, self._supervisor = self._supervisor, None
        if supervisor is not None:
            supervisor.close()

    def _show_notice(self, message: str, hint: str) -> None:
        self._console.show_note(message, hint)
