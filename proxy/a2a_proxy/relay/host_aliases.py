"""Which names and addresses mean the machine of an upstream, found out before a card asks. Knows no cards."""

from __future__ import annotations

import asyncio
import ipaddress
import socket

LOOKUP_SECONDS = 3.0
"""For all look-ups of one upstream."""


async def find_aliases(host: str, seconds: float = LOOKUP_SECONDS) -> set[str]:
    """Addresses and other names of `host`, in lower case; this machine's own names where it is this machine."""
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
    """Addresses and canonical name; nothing where there are none."""
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_CANONNAME)
    except (OSError, UnicodeError):
        return set()
    return {str(info[4][0]).lower() for info in found} | {info[3].lower() for info in found if info[3]}


def is_ip_address(text: str) -> bool:
    """It is an IP address, and no name."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
