"""What the fixtures `a2a_agent` and `a2a_live` give to a test."""

from __future__ import annotations

import json
from functools import cached_property
from typing import Any

_CARDS = ("/.well-known/agent-card.json", "/.well-known/agent.json")
"""Where a card lies (A2A 1.0 section 8.2), the newer place first."""
_TIMEOUT_SECONDS = 30.0
"""Seconds."""


class Agent:
    """An agent on a port of this machine, for clients in this process and in others."""

    def __init__(self, address: str) -> None:
        self._address = address

    def __repr__(self) -> str:
        return f"<Agent {self.url}>"

    @property
    def url(self) -> str:
        """Where HTTP clients go, without a slash at its end: `http://127.0.0.1:40123`."""
        return f"http://{self._address}"

    @property
    def grpc_target(self) -> str:
        """Where gRPC clients go, without TLS: `127.0.0.1:40123`."""
        return self._address

    @cached_property
    def card(self) -> dict[str, Any]:
        """The agent card, fetched when it is first asked for; its URLs lead here.

        Raises LookupError where the agent has none.
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
                tried += f"\n  GET {path}: {refused.code} {refused.read().decode('utf-8', 'replace')[:500]}"
                continue
            if isinstance(found, dict):
                return found
        raise LookupError(f"the agent at {self.url} serves no agent card:{tried}")
