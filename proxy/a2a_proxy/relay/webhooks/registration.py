"""One registered webhook: the URL that the agent has, and the receiver for which it stands. Does no
I/O."""

import re
from urllib.parse import quote, unquote, urlsplit

import msgspec

from a2a_proxy.relay.edits.edit import PushConfig
from a2a_proxy.relay.edits.http1_forward import make_origin
from a2a_proxy.relay.route import HTTP_PORT, HTTPS_PORT, Upstream, format_address

KEY_BYTES = 16
"""Random bytes of a key."""
LIFETIME_SECONDS = 30 * 24 * 3600
"""Seconds after which a registration is forgotten."""
MAX_ENCODINGS = 3
"""Times that a path may be percent-encoded; each takes a pass over it."""

_KEY = re.compile(r"[0-9a-f]{32}")
_SAFE_PATH, _SAFE_QUERY = "%/:@!$&'()*+,;=~-._", "%/:@!$&'()*+,;=~-._?"
_SCHEMES = ("http", "https")
_INVALID_ENCODING = re.compile(
    r"%[uU][0-9a-fA-F]{4}|[\xc0\xc1][\x80-\xbf]|\xe0[\x80-\x9f][\x80-\xbf]|"
    r"\xf0[\x80-\x8f][\x80-\xbf]"
)
"""A character as `%u` and its number, or longer UTF-8 than it needs (RFC 3629 section 3): some
servers decode both."""


class Registration(msgspec.Struct, frozen=True):
    """A webhook of a client."""

    key: str
    """Random hexadecimal digits, the last segment of the URL that the agent has."""
    url: str
    """The client's URL."""
    agent: str
    """The agent's upstream, as the user wrote it."""
    port: int
    """The port of the listener to which its URL leads."""
    created: float
    """Seconds since the epoch."""
    sources: tuple[str, ...] = ()
    """IP addresses that may deliver; empty for any."""
    config: PushConfig = PushConfig()
    """The configuration that has the URL, as far as it is known."""
    client: str = ""
    """The IP address of the client; empty if it is unknown."""

    def is_expired(self, now: float) -> bool:
        """Return whether the registration is too old at `now`, in seconds since the epoch."""
        return now - self.created > LIFETIME_SECONDS


class Receiver(msgspec.Struct, frozen=True):
    """The address of a client's webhook."""

    origin: Upstream
    authority: str
    """The value of `Host`."""
    path: str
    query: str
    credentials: str
    """User information of the URL; empty if there is none."""

    def join_target(self, path: str, query: str) -> str | None:
        """Return the request target with a path and a query joined to those of the URL, or None if
        the path leads out of it. `path` is empty or begins with a slash."""
        if has_dot_segments(path):
            return None
        joined = (self.path.rstrip("/") if path else self.path) + path or "/"
        queries = "&".join(filter(None, (self.query, query)))
        return f"{joined}?{queries}" if queries else joined


def has_dot_segments(path: str) -> bool:
    """Return whether a server may read a segment of the path as `.` or `..`: some decode it several
    times, or ignore parameters (`..;a=b`) and control characters. True for a path with an invalid
    encoding, which may hide a segment, and for a path that is encoded more than `MAX_ENCODINGS`
    times."""
    for _ in range(MAX_ENCODINGS + 1):
        encoded, path = path, unquote(path, "latin-1")
        if path == encoded:
            segments = re.split(r"[/\\]", re.sub(r"[\0-\x20]|;[^/\\]*", "", path))
            return _INVALID_ENCODING.search(path) is not None or not {".", ".."}.isdisjoint(
                segments
            )
    return True


def is_key(text: str) -> bool:
    """Return whether a text has the form of a key."""
    return _KEY.fullmatch(text) is not None


def parse_receiver(url: str) -> Receiver | None:
    """Return the address of a webhook, or None if notifications cannot be sent there."""
    try:
        parts = urlsplit(url)
        port, host = parts.port, parts.hostname
        host = host if host is None or host.isascii() else host.encode("idna").decode("ascii")
    except ValueError:
        return None
    if parts.scheme not in _SCHEMES or not host or port == 0 or not url.isprintable() or " " in url:
        return None
    tls = parts.scheme == "https"
    usual = HTTPS_PORT if tls else HTTP_PORT
    origin = make_origin(host, port or usual, tls=tls)
    authority = format_address(origin.host, origin.port)
    return Receiver(
        origin,
        authority.removesuffix(f":{usual}") if origin.port == usual else authority,
        quote(parts.path, safe=_SAFE_PATH),
        quote(parts.query, safe=_SAFE_QUERY),
        parts.netloc.rpartition("@")[0],
    )
