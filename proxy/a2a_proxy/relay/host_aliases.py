"""Look up the names and addresses of an upstream's machine in advance, for the rewriting of cards. Reads no cards."""

from __future__ import annotations

import asyncio
import ipaddress
import socket

LOOKUP_SECONDS = 3.0
"""Seconds for all look-ups of one upstream."""


async def find_aliases(host: str, seconds: float = LOOKUP_SECONDS) -> set[str]:
    """Return the addresses and other names of `host` in lower case, with the names of this machine if `host` is this
    machine. Empty if the look-ups take longer than `seconds`."""
    try:
        async with asyncio.timeout(seconds):
            found = await _resolve_names(host)
            if any(ipaddress.ip_address(one).is_loopback for one in found if is_ip_address(one)):
                name = socket.gethostname()
                found |= {name.lower()} | await _resolve_names(name)
            return found
    except TimeoutError:
        return set()


async def _resolve_names(host: str) -> set[str]:
    """Return the addresses and canonical names of `host`; empty if it cannot be resolved."""
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_CANONNAME)
    except (OSError, UnicodeError):
        return set()
    return {str(info[4][0]).lower() for info in found} | {info[3].lower() for info in found if info[3]}


def is_ip_address(text: str) -> bool:
    """Return whether the text is an IP address."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
