"""Who may come in: only a page of this very server, opened with the address that it printed.

A server on the loopback address can be reached by every page in the user's browser, and by every user of the machine.
So the address holds a secret; `Host` must be ours, or a foreign name has been made to point here (DNS rebinding);
`Origin` and `Sec-Fetch-Site` must be ours where a browser says them, and for a websocket, which no same-origin policy
protects, it has to.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping

_TOKEN_BYTES = 32
_HOST_NAMES = ("127.0.0.1", "localhost")
_OWN_SITE = ("none", "same-origin")
"""`none`: the user typed or pasted the address. Another port of this machine is `same-site`, and not us."""


def new_token() -> str:
    """A secret for one run, safe in a path."""
    return secrets.token_urlsafe(_TOKEN_BYTES)


class RequestGate:
    """The rules for one server. `port` is the one that it listens on."""

    def __init__(self, token: str, port: int) -> None:
        self._token = token.encode()
        self.hosts = tuple(host for name in _HOST_NAMES for host in _host_values(name, port))
        """What `Host` may be."""

    def refusal_reason(self, headers: Mapping[str, str], path: str, *, websocket: bool) -> str:
        """Why a request is refused, in a sentence; empty where it is not. `path` is as it was sent."""
        host = headers.get("Host", "").lower()
        if host not in self.hosts:
            return f"This server answers to the name {self.hosts[0]} only."
        origin = headers.get("Origin")
        if origin is None and websocket:
            return "A websocket must say which page opened it."
        if origin is not None and origin.lower() != f"http://{host}":
            return "Pages of another origin may not use this server."
        if headers.get("Sec-Fetch-Site", "none") not in _OWN_SITE:
            return "Pages of another site may not use this server."
        if not hmac.compare_digest(_first_segment(path).encode(), self._token):
            return "The address is not the one that a2a-inspect printed: it lacks the secret of this run."
        return ""


def _host_values(name: str, port: int) -> tuple[str, ...]:
    """A browser leaves the port of http away."""
    return (name, f"{name}:80") if port == 80 else (f"{name}:{port}",)


def _first_segment(path: str) -> str:
    return path.removeprefix("/").partition("/")[0]
