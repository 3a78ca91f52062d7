"""Fetch a URL by httpx, requests or aiohttp, and print the status, and what the library says about
TLS.

`http_client.py httpx URL`. All clients of this folder print `status: N`, `protocol: ALPN`, and the
server's certificate (PEM).
"""

from __future__ import annotations

import asyncio
import ssl
import sys
from typing import Any


def tell(status: int, tls: Any) -> None:
    """Print the status, and the facts of an SSLSocket or SSLObject."""
    print(f"status: {status}\nprotocol: {tls.selected_alpn_protocol()}")
    print(ssl.DER_cert_to_PEM_cert(tls.getpeercert(True)))


def fetch_with_httpx(url: str) -> None:
    import httpx

    with httpx.stream("GET", url) as answer:
        tell(answer.status_code, answer.extensions["network_stream"].get_extra_info("ssl_object"))


def fetch_with_requests(url: str) -> None:
    import requests

    with requests.get(url, stream=True) as answer:
        tell(answer.status_code, answer.raw.connection.sock)


def fetch_with_aiohttp(url: str) -> None:
    import aiohttp

    class Answer(aiohttp.ClientResponse):
        """Reads the facts before the body: with its end the answer gives up the connection."""

        async def start(self, connection: Any) -> Any:
            tls = connection.transport.get_extra_info("ssl_object")
            started = await super().start(connection)
            tell(self.status, tls)
            return started

    async def fetch() -> None:
        async with (
            aiohttp.ClientSession(trust_env=True, response_class=Answer) as session,
            session.get(url),
        ):
            pass

    asyncio.run(fetch())


if __name__ == "__main__":
    fetch = {
        "httpx": fetch_with_httpx,
        "requests": fetch_with_requests,
        "aiohttp": fetch_with_aiohttp,
    }[sys.argv[1]]
    fetch(sys.argv[2])
