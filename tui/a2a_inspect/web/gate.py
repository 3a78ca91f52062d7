"""Access control: only a page of this server, opened with the printed address, may send requests.

Every page in the user's browser and every user of the machine can reach a server on the loopback
address. So the address contains a secret. `Host` must name this server, or a foreign name was
pointed here (DNS rebinding). `Origin` and `Sec-Fetch-Site` must name this server if a browser sends
them; a websocket must have an `Origin`, because the same-origin policy does not cover it.
"""

import hmac
import secrets
from collections.abc import Mapping

_TOKEN_BYTES = 32
_HOST_NAMES = ("127.0.0.1", "localhost")
_OWN_SITE = ("none", "same-origin")
"""Accepted values of `Sec-Fetch-Site`.

`none`: the user typed or pasted the address. Another port of this machine is `same-site` and is
rejected.
"""


def new_token() -> str:
    """Return a new secret for one run, safe in a path."""
    return secrets.token_urlsafe(_TOKEN_BYTES)


class RequestGate:
    """The rules for one server. `port` is its listening port."""

    def __init__(self, token: str, port: int) -> None:
        self._token = token.encode()
        self.hosts = tuple(host for name in _HOST_NAMES for host in _host_values(name, port))
        """Accepted values of `Host`."""

    def refusal_reason(self, headers: Mapping[str, str], path: str, *, websocket: bool) -> str:
        """Return the reason why a request is refused, as a sentence; empty if it is accepted.
        `path` is as sent."""
        host = headers.get("Host", "").lower()
        if host not in self.hosts:
            return f"This server accepts only requests to {self.hosts[0]}."
        origin = headers.get("Origin")
        if origin is None and websocket:
            return "The request for a websocket has no Origin."
        if origin is not None and origin.lower() != f"http://{host}":
            return "Requests from pages of another origin are refused."
        if headers.get("Sec-Fetch-Site", "none") not in _OWN_SITE:
            return "Requests from pages of another site are refused."
        if not hmac.compare_digest(path.removeprefix("/").partition("/")[0].encode(), self._token):
            return (
                "The address lacks the secret of this run: open the address that a2a-inspect "
                "printed."
            )
        return ""


def _host_values(name: str, port: int) -> tuple[str, ...]:
    """Return the values for a name. A browser omits the default port of http."""
    return (name, f"{name}:80") if port == 80 else (f"{name}:{port}",)
