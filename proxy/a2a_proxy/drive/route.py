"""Addresses of the calls: the proxy's address for each interface of the agent, and the path in its
card."""

import msgspec

from a2a_proxy.drive.request import CallTarget, DriveRequest
from a2a_proxy.model.values import Binding
from a2a_proxy.protocol.rest_path import match_request_line


class DriveRoute(msgspec.Struct, frozen=True):
    """How one binding is reached."""

    address: str
    """`host:port` to connect to."""
    authority: str
    """The agent's authority as a client without the proxy names it in `Host` or `:authority`; its
    card may depend on it."""
    path: str | None = None
    """Path of the interface in the card; None: as recorded."""


class DriveRoutes(msgspec.Struct, frozen=True):
    """The routes of all bindings."""

    default_route: DriveRoute
    by_binding: dict[Binding, DriveRoute] = {}
    recorded_paths: dict[Binding, str] = {}
    """Paths of the interfaces in the recorded card, without a trailing slash."""

    def route_of(self, binding: Binding) -> DriveRoute:
        """Return the route of a binding."""
        return self.by_binding.get(binding, self.default_route)

    def http_address(self, call_target: CallTarget, request: DriveRequest) -> tuple[str, str]:
        """Return `http://host:port` and the target of a call there."""
        route, target = self.route_of(call_target.binding), request.target
        if "://" in target.partition("?")[0]:  # absolute form, as for a forward proxy
            target = "/" + target.partition("://")[2].partition("/")[2]
        if route.path is not None and call_target.binding is Binding.JSONRPC:
            target = route.path + target[len(target.partition("?")[0]) :]
        elif route.path is not None and call_target.binding is Binding.REST:
            target = (
                route.path.rstrip("/")
                + target[len(self._recorded_path(call_target, request.method, target)) :]
            )
        return f"http://{route.address}", target if target.startswith("/") else f"/{target}"

    def _recorded_path(self, call_target: CallTarget, method: str, target: str) -> str:
        """Return the recorded path of the interface, which is the beginning of the target of a REST
        call."""
        if call_target.is_translated:
            return ""
        recorded_path = self.recorded_paths.get(Binding.REST)
        if recorded_path is not None and target.startswith(recorded_path):
            return recorded_path
        found = match_request_line(method, target.encode("latin-1", "replace"))
        # `/v1` belongs to the paths of 0.3, not to the interface.
        return found.prefix.removesuffix("/v1") if found is not None else ""
