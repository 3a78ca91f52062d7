"""Requests to a forward proxy on one HTTP/1.1 connection: absolute form in, origin form out, each
with its origin.

Only heads of requests are held, until they are complete. Responses are scanned for their ends and
never changed. The caller sends nothing to another origin before `is_idle`.
"""

import re
from collections import deque

from msgspec.structs import replace

from a2a_proxy.http.h1 import (
    HEAD_SHIFT,
    PART_WORK,
    Http1Error,
    Http1Scanner,
    MessagePart,
    header_field,
    parse_request_head,
    parse_response_head,
)
from a2a_proxy.relay.edits.edit import UNLIMITED
from a2a_proxy.relay.problem import USE_HINT, Problem
from a2a_proxy.relay.route import HTTP_PORT, HTTPS_PORT, Upstream, format_address

_CONNECT_TARGET = re.compile(
    rb"(\[[0-9a-f:.]+\]|[a-z0-9._~%!$&'()*+,;=-]+):([0-9]{1,5})", re.IGNORECASE
)
_TARGET = re.compile(
    rb"(https?|wss?)://(\[[0-9a-f:.]+\]|[a-z0-9._~%!$&'()*+,;=-]+)(?::([0-9]{0,"
    rb"5}))?((?:[/?][^#]*)?)(?:#.*)?",
    re.IGNORECASE,
)
_CLOSE = re.compile(rb"\r\nconnection:[^\r\n]*\bclose\b", re.IGNORECASE)
_USER_INFO = re.compile(rb"[a-z][a-z0-9+.-]*://[^/?#]*@", re.IGNORECASE)
_SCHEME = re.compile(rb"([a-z][a-z0-9+.-]*)://", re.IGNORECASE)
_PROXY_PREFIX = b"proxy-"
_LONGEST_SHOWN = 20
_FORM_HINT = "a forward proxy takes whole URLs: GET http://HOST/PATH"


def make_origin(host: str, port: int, *, tls: bool) -> Upstream:
    """Return an origin as an upstream; `host` is a host of a URL. All clients' spellings give the
    same upstream: lower case, no brackets, and a text with the port always."""
    host = host.lower().strip("[]")
    where = format_address(host, port)
    return Upstream(host, port, tls, f"https://{where}" if tls else where)


ForwardTarget = tuple[Upstream, bytes, bytes]
"""The origin of a request, the value of `Host` and the target in origin form."""


class Http1Forward:
    """The requests and responses of one client. After `refusal` is set, no more requests are
    read."""

    may_repeat = True
    """Whether a request with the head of the previous one has the same target."""

    def __init__(self) -> None:
        self.budget = UNLIMITED
        """Units of work, of about 0.25 us each, that the next calls may do; each call handles at
        least one part."""
        self.origin: Upstream | None = None
        """The origin of the current request; None before the first."""
        self.next_origin: Upstream | None = None
        """The origin of the next request if it is another one; no bytes are read before
        `begin_origin`."""
        self.refusal: Problem | None = None
        """The answer to a request that cannot be forwarded, to be sent when the connection is
        idle."""
        self.is_opaque = False
        """Whether the connection speaks another protocol from here: all bytes are forwarded
        unchanged."""
        self.is_last = False
        """Whether the origin closes the connection after the current response, so that the client
        expects no other."""
        self._requests, self._responses = Http1Scanner(trailers_apart=True), Http1Scanner()
        self._unanswered: deque[bool] = deque()
        """For each request whose response has not begun, whether it is a HEAD."""
        self._answers_known = True
        """Whether the ends of responses are known."""
        self._next_head = b""
        self._next_is_head = False
        # The shortcut for the most frequent case: a whole message with the head of the previous
        # one.
        self._known_request = self._sent_request = self._known_response = b""
        self._known_request_size = self._known_response_size = 0
        """Bytes of head and body; 0 if the shortcut must not be tried."""

    @property
    def is_idle(self) -> bool:
        """Whether all responses have ended."""
        return self._answers_known and not self._unanswered and self._responses.is_between_messages

    @property
    def can_become_idle(self) -> bool:
        """Whether the end of the last response can be recognised."""
        return self._answers_known and not self.is_opaque

    # Requests

    def read_requests(self, data: bytes) -> tuple[bytes, int]:
        """Return the bytes to send to `origin`, and the index up to which `data` was handled.

        If that is less than the length of `data`, then `next_origin` or `refusal` is set, or the
        budget is spent.
        """
        if (
            0 < len(data) == self._known_request_size
            and data.startswith(self._known_request)
            and self._requests.is_between_messages
        ):
            self._unanswered.append(False)
            return self._sent_request + data[len(self._known_request) :], len(data)
        out: list[bytes] = []
        at, scanner = 0, self._requests
        self.budget = max(self.budget, 1)
        while (
            at < len(data) and self.budget > 0 and self.next_origin is None and self.refusal is None
        ):
            if (
                data[at] in b"\r\n" and scanner.is_between_messages
            ):  # empty lines before a request (RFC 9112 2.2)
                at, self.budget = at + 1, self.budget - 1
                continue
            try:
                part, end = scanner.read_part(data, at)
                if part is MessagePart.HEAD_END:
                    self._on_request(out)
                elif part is MessagePart.TRAILER:
                    if not scanner.trailer.lower().startswith(_PROXY_PREFIX):
                        out.append(scanner.trailer)
                elif part is not MessagePart.HEAD:
                    out.append(data[at:end])
            except Http1Error as reason:
                self.refusal = _refuse(f"it has {reason}")
                break
            at = end
            self.budget -= PART_WORK
        return b"".join(out), at

    def begin_origin(self) -> bytes:
        """Make the next origin the current one, and return the first bytes for it."""
        self.origin, self.next_origin = self.next_origin, None
        self._unanswered.append(self._next_is_head)
        return self._next_head

    def parse_target(self, method: bytes, target: bytes, framing: int) -> ForwardTarget | Problem:  # noqa: ARG002
        """Return where a request with a target in absolute form goes, or the answer to another
        form."""
        return _parse_target(method, target)

    def _on_request(self, out: list[bytes]) -> None:
        head = self._requests.head
        self.budget -= len(head) >> HEAD_SHIFT
        self._known_request_size = 0
        method, target, framing = parse_request_head(head)
        found = self.parse_target(method, target, framing)
        if isinstance(found, Problem):
            self.refusal = found
            return
        origin, host, path = found
        sent = edit_head(head, method, path, host)
        self._requests.begin_body(framing)
        if origin != self.origin:
            self.next_origin, self._next_head, self._next_is_head = origin, sent, method == b"HEAD"
            return
        self._unanswered.append(method == b"HEAD")
        out.append(sent)
        if framing >= 0 and method != b"HEAD" and self.may_repeat:
            self._known_request, self._sent_request = head, sent
            self._known_request_size = len(head) + framing

    # Responses

    def note_responses(self, data: bytes) -> int:
        """Account for bytes of the origin, which are forwarded unchanged, and return the index up
        to which `data` was handled; it is less than the length of `data` if the budget is spent."""
        if (
            0 < len(data) == self._known_response_size
            and data.startswith(self._known_response)
            and self._unanswered
            and not self._unanswered[0]
            and self._responses.is_between_messages
        ):
            self._unanswered.popleft()
            return len(data)
        at = 0
        self.budget = max(self.budget, 1)
        try:
            while at < len(data) and self.budget > 0 and self._answers_known and not self.is_opaque:
                part, at = self._responses.read_part(data, at)
                if part is MessagePart.HEAD_END:
                    self._on_response()
                self.budget -= PART_WORK
        except Http1Error:
            self._answers_known = False
        return at if self._answers_known and not self.is_opaque else len(data)

    def _on_response(self) -> None:
        head = self._responses.head
        self.budget -= len(head) >> HEAD_SHIFT
        self._known_response_size = 0
        if not self._unanswered:
            raise Http1Error("a response without a request")
        is_head = self._unanswered[0]
        status, framing = parse_response_head(head, is_head)
        if status == 101:
            self.is_opaque = True
            return
        self._responses.begin_body(framing)
        if status < 200:
            return
        self._unanswered.popleft()
        self.is_last = head.startswith(b"HTTP/1.0") or _CLOSE.search(head) is not None
        if framing >= 0 and not is_head and not self.is_last:
            self._known_response, self._known_response_size = head, len(head) + framing


def _parse_target(method: bytes, target: bytes) -> ForwardTarget | Problem:
    found = _TARGET.fullmatch(target)
    if found is None:
        return _explain_target(method, target)
    tls = found[1].lower() in (b"https", b"wss")
    port = int(found[3]) if found[3] else HTTPS_PORT if tls else HTTP_PORT
    if not 0 < port < 65536:
        return _BAD_URL
    authority = found[2] + b":" + found[3] if found[3] else found[2]
    path = found[4]
    if not path.startswith(b"/"):
        path = b"*" if method == b"OPTIONS" and not path else b"/" + path
    return make_origin(found[2].decode("ascii"), port, tls=tls), authority, path


def _explain_target(method: bytes, target: bytes) -> Problem:
    if method == b"CONNECT":
        return _refuse("CONNECT must be the first request of a connection")
    if _USER_INFO.match(target):
        return _refuse("its URL contains user information, which clients send in a header field")
    scheme = _SCHEME.match(target)
    if scheme is None:
        return replace(_refuse(f"its target names no origin; {_FORM_HINT}"), hint=USE_HINT)
    if scheme[1].lower() in (b"http", b"https", b"ws", b"wss"):
        return _BAD_URL
    return _refuse(f"{scheme[1][:_LONGEST_SHOWN].decode()}:// URLs are not forwarded")


def parse_connect(head: bytes) -> tuple[Upstream, bytes] | Problem:
    """Return the origin of a CONNECT request and its target, or the answer to a head without
    them."""
    try:
        _, target, _ = parse_request_head(head)
        header_field(head, b"host")
    except Http1Error as reason:
        return _refuse(f"it has {reason}")
    found = _CONNECT_TARGET.fullmatch(target)
    port = int(found[2]) if found is not None else 0
    if found is None or not 0 < port < 65536:
        return _refuse("its target is not HOST:PORT")
    return make_origin(found[1].decode("ascii"), port, tls=False), target


def edit_head(head: bytes, method: bytes, path: bytes, host: bytes) -> bytes:
    """Return the head with the target in origin form, this `Host`, and without `Proxy-*` fields.
    Raises Http1Error if it has two `Host` fields."""
    before = header_field(head, b"host")
    lines = head[:-4].split(b"\r\n")
    version = lines[0].rpartition(b" ")[2]
    out = [b"%s %s %s" % (method, path, version)]
    if before is None:
        out.append(b"Host: " + host)
    for line in lines[1:]:
        name = line.partition(b":")[0].lower()
        if name == b"host" and before != host:
            out.append(line[:4] + b": " + host)
        elif not name.startswith(_PROXY_PREFIX):
            out.append(line)
    return b"\r\n".join(out) + b"\r\n\r\n"


def _refuse(reason: str) -> Problem:
    return Problem(400, "Bad Request", f"a2a-proxy cannot forward this request: {reason}")


_BAD_URL = _refuse("its URL is not valid")
