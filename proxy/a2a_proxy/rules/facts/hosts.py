"""Network reach of a host as far as its name shows it; used by the rules about plain text and
webhooks."""

import ipaddress
from enum import IntEnum
from functools import lru_cache
from urllib.parse import urlsplit


class HostReach(IntEnum):
    """Network distance of a host."""

    LOOPBACK = 0
    LINK_LOCAL = 1
    PRIVATE = 2
    """A private network: an address that is not global (RFC 1918, RFC 4193, RFC 6598), or a name
    without a dot or under a private top-level domain.
    """
    PUBLIC = 3


_PRIVATE_NAMES = (".local", ".internal", ".localdomain", ".lan", ".home.arpa", ".svc")


@lru_cache(maxsize=1024)
def host_reach(host: str) -> HostReach:
    """Return the reach of `host` (a name or an IP address, without port)."""
    name = host.lower().strip("[]").rstrip(".")
    try:
        address = ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return _reach_of_name(name)
    mapped = getattr(address, "ipv4_mapped", None)
    address = mapped or address
    if address.is_loopback or address.is_unspecified:
        return HostReach.LOOPBACK
    if address.is_link_local:
        return HostReach.LINK_LOCAL
    return HostReach.PUBLIC if address.is_global else HostReach.PRIVATE


def is_address(host: str) -> bool:
    """Whether `host` is an IP address, with or without brackets."""
    try:
        ipaddress.ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        return False
    return True


def _reach_of_name(name: str) -> HostReach:
    if name == "localhost" or name.endswith(".localhost"):
        return HostReach.LOOPBACK
    return (
        HostReach.PRIVATE if "." not in name or name.endswith(_PRIVATE_NAMES) else HostReach.PUBLIC
    )


@lru_cache(maxsize=1024)
def host_of(url: str) -> str:
    """Return the host of a URL or of `host:port`; empty if there is none."""
    try:
        return urlsplit(url if "://" in url else f"//{url}").hostname or ""
    except ValueError:
        return ""


@lru_cache(maxsize=1024)
def scheme_of(url: str) -> str:
    """Return the scheme in lower case; empty if there is none."""
    head, colon, _ = url.partition("://")
    return head.lower() if colon else ""


@lru_cache(maxsize=1024)
def plain_text_reach(url: str) -> HostReach:
    """Return how far plain text travels to reach this `http` URL. LOOPBACK means that it cannot be
    read on the way."""
    host = host_of(url)
    return host_reach(host) if host and scheme_of(url) in ("http", "") else HostReach.LOOPBACK
