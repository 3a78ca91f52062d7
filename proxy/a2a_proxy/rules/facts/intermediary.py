"""Servers between the proxy and an agent, as far as the response names them."""

from __future__ import annotations

from a2a_proxy.model.wire import Headers

_PROXY_WORDS = (
    "nginx",
    "envoy",
    "haproxy",
    "traefik",
    "varnish",
    "cloudflare",
    "cloudfront",
    "awselb",
    "google frontend",
)
"""Parts of the `Server` field of proxies and load balancers, in lower case."""


def intermediary_field(headers: Headers) -> str:
    """Return the response header field that shows a proxy in front of the agent: `Via: 1.1 google`; empty if there is
    none.
    """
    for name, value in headers:
        low, text = name.lower(), value.decode("latin-1").strip()[:60]
        if low == b"via" and text:
            return f"Via: {text}"
        if low == b"server" and any(word in text.lower() for word in _PROXY_WORDS):
            return f"Server: {text}"
    return ""
