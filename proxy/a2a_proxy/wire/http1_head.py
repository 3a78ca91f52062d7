"""HTTP/1.1 heads: parses whole ones with httptools, which never receives any other bytes.

`http1_body` and `http1` handle the bytes after a head (bodies, pairing of requests and responses).
"""

import re
from functools import lru_cache

import httptools
import msgspec

from a2a_proxy.model.saved_state import State
from a2a_proxy.model.wire import Control, Direction, Headers, WireEvent

MAX_HEAD_SIZE = 1 << 20
"""Longest head (or trailer section) that is parsed, bytes. nginx stops at 32 KiB, Node at 16 KiB,
Go at 1 MiB."""

MIN_SNIFFED = 8
"""Bytes that are enough to see that they do not begin a head."""

MAX_METHOD_LENGTH = 24
"""Longest method that is accepted, bytes."""

_MAX_CACHED_SIZE = 4096
"""Longest head whose result is kept, bytes: successive calls of a client, and answers within a
second, have equal heads."""
_CACHED_HEADS = 256

_METHOD_PATTERN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")
_REQUEST_LINE_PATTERN = re.compile(
    rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+) +([^\x00-\x20\x7f]+) +HTTP/(1\.[01])[ \t]*\r?(?=\n)"
)
_FRAMING_FIELDS = frozenset(
    {b"content-length", b"transfer-encoding", b"host", b"upgrade", b"http2-settings"}
)


class HeadError(Exception):
    """A head that cannot be parsed. The text says why and quotes nothing, because a head holds
    credentials."""


class ParsedHead(msgspec.Struct):
    """One head, with the fields that determine its body. Equal heads share one: do not change
    it."""

    headers: Headers
    version: str
    length: bytes | None = None
    """Value of Content-Length."""
    coding: bytes | None = None
    """The last transfer coding, in lower case."""
    host: bytes = b""
    upgrade: bytes = b""
    http2_settings: bytes = b""
    method: bytes = b""
    target: bytes = b""
    status: int = 0
    reason: bytes = b""
    leniency: str = ""
    """`bare_lf`, `obs_fold`, `request_line` or `field` if a strict parser would have rejected the
    head."""
    complaint: str = ""
    """The strict parser's error message."""


class Leniencies(State):
    """Reports each kind of leniency once per direction."""

    reported: set[str] = set()

    def report_leniency(
        self,
        what: str,
        reason: str,
        direction: Direction,
        at: int,
        start: int,
        end: int,
        out: list[WireEvent],
    ) -> None:
        """Report that the bytes `start` to `end` were accepted although a strict parser rejects
        them."""
        key = f"{int(direction)}{what}"
        if key not in self.reported:
            self.reported.add(key)
            out.append(
                Control(direction, at, start, end, "leniency", {"what": what, "reason": reason})
            )


def is_plausible(direction: Direction, prefix: bytes | bytearray) -> bool:
    """Whether `prefix`, at least `MIN_SNIFFED` bytes or a whole head, may begin a request (or a
    response)."""
    if direction is Direction.TO_CLIENT:
        return prefix[:5] == b"HTTP/"
    method = bytes(prefix[: MAX_METHOD_LENGTH + 1]).partition(b" ")[0]
    return len(method) <= MAX_METHOD_LENGTH and _METHOD_PATTERN.match(method) is not None


class _HeadCollector:
    """Callbacks for httptools."""

    __slots__ = ("complete", "fields", "on_header", "reason", "target")

    def __init__(self) -> None:
        self.fields: list[tuple[bytes, bytes]] = []
        self.target = b""
        self.reason = b""
        self.complete = False
        append = self.fields.append

        def on_header(name: bytes, value: bytes) -> None:
            append((name, value.strip(b" \t")))

        self.on_header = on_header

    def on_url(self, url: bytes) -> None:
        """Add to the target, which may arrive in pieces."""
        self.target += url

    def on_status(self, reason: bytes) -> None:
        """Add to the reason phrase, which may arrive in pieces."""
        self.reason += reason

    def on_headers_complete(self) -> None:
        """Note that the empty line was seen."""
        self.complete = True


_AFTER_SWITCH = "Pause on CONNECT/Upgrade"
"""The error after a 101 whose `Upgrade` or `Connection` is missing, as Jetty sends it."""
_Parser = httptools.HttpRequestParser | httptools.HttpResponseParser


def _feed_head(parser: _Parser, collector: _HeadCollector, head: bytes, lenient: bool) -> str:
    """Parse one head and return the parser's error message, or "" if there is none."""
    if lenient:
        parser.set_dangerous_leniencies(
            lenient_headers=True,
            lenient_chunked_length=True,
            lenient_keep_alive=True,
            lenient_transfer_encoding=True,
            lenient_optional_lf_after_cr=True,
            lenient_optional_cr_before_lf=True,
        )
    try:
        parser.feed_data(head)
    except httptools.HttpParserUpgrade:
        pass  # raised for every CONNECT and Upgrade request; the response decides, not the request
    except httptools.HttpParserError as error:
        if str(error) != _AFTER_SWITCH:
            return str(error) or type(error).__name__
    return "" if collector.complete else "the head is not complete where its empty line is"


def _name_leniency(head: bytes) -> str:
    """Return the name of the leniency that a head needs."""
    if head.count(b"\n") != head.count(b"\r\n"):
        return "bare_lf"
    if b"\n " in head or b"\n\t" in head:
        return "obs_fold"
    return "field"


def _pick_framing_fields(collector: _HeadCollector, parsed: ParsedHead) -> ParsedHead:
    """Copy the fields that determine the body into `parsed`."""
    parsed.headers = tuple(collector.fields)
    for name, value in collector.fields:
        key = name.lower()
        if key not in _FRAMING_FIELDS:
            key = key.rstrip()  # `Content-Length : 3` is accepted only leniently
        if key == b"content-length":
            parsed.length = value  # httptools rejects a second one
        elif key == b"transfer-encoding":
            parsed.coding = value.lower().rpartition(b",")[2].strip(b" \t")
        elif key == b"host":
            parsed.host = parsed.host or value
        elif key == b"upgrade":
            parsed.upgrade = value
        elif key == b"http2-settings":
            parsed.http2_settings = value
    return parsed


def parse_request(head: bytes) -> ParsedHead:
    """Parse a request head, including its empty line. Raises `HeadError`."""
    return (
        _parse_short_request(head) if len(head) <= _MAX_CACHED_SIZE else _parse_request_head(head)
    )


def _parse_request_head(head: bytes) -> ParsedHead:
    collector = _HeadCollector()
    parser = httptools.HttpRequestParser(collector)
    complaint = _feed_head(parser, collector, head, lenient=False)
    if complaint:
        return _parse_request_leniently(head, complaint)
    version = parser.get_http_version()
    if version not in ("1.1", "1.0"):
        raise HeadError(f"version {version}")
    return _pick_framing_fields(
        collector,
        ParsedHead((), version, method=parser.get_method(), target=collector.target),
    )


_parse_short_request = lru_cache(_CACHED_HEADS)(_parse_request_head)


def _parse_request_leniently(head: bytes, complaint: str) -> ParsedHead:
    """Parse a request head that the strict parser rejected.

    The request line is parsed here because httptools accepts only a fixed list of methods and ASCII
    targets, while peers use others too.
    """
    line = _REQUEST_LINE_PATTERN.match(head)
    if line is None:
        raise HeadError(complaint)
    collector = _HeadCollector()
    parser = httptools.HttpRequestParser(collector)
    tail = head[line.end() :]
    ending = b"\r" if head[line.end() - 1 : line.end()] == b"\r" else b""
    neutral = b"GET / HTTP/1.1" + ending + tail
    strict = _feed_head(
        httptools.HttpRequestParser(probe := _HeadCollector()), probe, neutral, lenient=False
    )
    if problem := _feed_head(parser, collector, neutral, lenient=True):
        raise HeadError(problem)
    what = _name_leniency(head) if strict else "request_line"
    method, target, version = line.groups()
    parsed = ParsedHead(
        (),
        version.decode(),
        method=method,
        target=target,
        leniency=what,
        complaint=complaint,
    )
    return _pick_framing_fields(collector, parsed)


def parse_response(head: bytes) -> ParsedHead:
    """Parse a response head, including its empty line. Raises `HeadError`."""
    return (
        _parse_short_response(head) if len(head) <= _MAX_CACHED_SIZE else _parse_response_head(head)
    )


def _parse_response_head(head: bytes) -> ParsedHead:
    collector = _HeadCollector()
    parser = httptools.HttpResponseParser(collector)
    complaint = _feed_head(parser, collector, head, lenient=False)
    what = ""
    if complaint:
        collector = _HeadCollector()
        parser = httptools.HttpResponseParser(collector)
        if problem := _feed_head(parser, collector, head, lenient=True):
            raise HeadError(problem)
        what = _name_leniency(head)
    version = parser.get_http_version()
    if version not in ("1.1", "1.0"):
        raise HeadError(f"version {version}")
    status = parser.get_status_code()
    parsed = ParsedHead(
        (),
        version,
        status=status,
        reason=collector.reason,
        leniency=what,
        complaint=complaint,
    )
    return _pick_framing_fields(collector, parsed)


_parse_short_response = lru_cache(_CACHED_HEADS)(_parse_response_head)


def parse_trailers(block: bytes) -> ParsedHead:
    """Parse a trailer section, including its empty line; only `headers` and `leniency` are
    meaningful.

    Raises `HeadError`.
    """
    return parse_response(b"HTTP/1.1 200 OK\r\n" + block)
