"""Where calls go: the proxy's address for each of the agent's interfaces, and the path that its card names."""

from __future__ import annotations

import msgspec

from a2a_proxy.model.exchange import Binding, Exchange
from a2a_proxy.protocol.rest_path import match


class Route(msgspec.Struct, frozen=True):
    """How one binding is reached."""

    address: str
    """`host:port` to connect to."""
    path: str | None = None
    """Path of the interface as its card has it, without a closing slash; None: as recorded."""


class Routes(msgspec.Struct, frozen=True):
    """How all of them are."""

    default: Route
    of: dict[Binding, Route] = {}

    def route(self, binding: Binding) -> Route:
        """Where calls of a binding go."""
        return self.of.get(binding, self.default)

    def http(self, exchange: Exchange, target: str) -> tuple[str, str]:
        """`http://host:port`, and the target of a call there."""
        route = self.route(exchange.binding)
        if target.startswith("http"):
            target = "/" + target.split("/", 3)[-1]
        if route.path is not None and exchange.binding is Binding.JSONRPC:
            query = target.partition("?")
            target = (route.path or "/") + query[1] + query[2]
        elif route.path is not None and exchange.binding is Binding.REST:
            target = _moved(exchange.method, target, route.path)
        return f"http://{route.address}", target


def _moved(method: str, target: str, path: str) -> str:
    """A REST target below another path; a tenant in front of the suffix goes with it."""
    found = match(method, target.encode("latin-1", "replace"))
    if found is None:
        return target
    return path + target[len(found.prefix) :]
