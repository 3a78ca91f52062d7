"""The value of the fixtures `a2a_agent` and `a2a_live`."""

import json
from functools import cached_property
from typing import Any

_CARDS = ("/.well-known/agent-card.json", "/.well-known/agent.json")
"""Paths of the agent card (A2A 1.0 section 8.2), the newer path first."""
_TIMEOUT_SECONDS = 30.0
"""Timeout of a request for the card, in seconds."""


class Agent:
    """An agent on a local port, for clients in this process and in others."""

    def __init__(self, address: str) -> None:
        self._address = address

    def __repr__(self) -> str:
        return f"<Agent {self.url}>"

    @property
    def url(self) -> str:
        """Base URL for HTTP clients, without a trailing slash: `http://127.0.0.1:40123`."""
        return f"http://{self._address}"

    @property
    def grpc_target(self) -> str:
        """Target for gRPC clients, without TLS: `127.0.0.1:40123`."""
        return self._address

    @cached_property
    def card(self) -> dict[str, Any]:
        """The agent card, fetched on first access; its URLs have the address of this agent.

        Raises LookupError if the agent has no card.
        """
        import urllib.error
        import urllib.request

        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        tried = ""
        for path in _CARDS:
            try:
                with direct.open(self.url + path, timeout=_TIMEOUT_SECONDS) as answer:
                    found = json.load(answer)
            except urllib.error.HTTPError as refused:
                tried += (
                    f"\n  GET {path}: {refused.code} "
                    f"{refused.read().decode('utf-8', 'replace')[:500]}"
                )
                continue
            if isinstance(found, dict):
                return found
        raise LookupError(f"the agent at {self.url} serves no agent card:{tried}")
