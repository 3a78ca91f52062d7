"""Edits on one HTTP/1.1 connection: `Host`, `traceparent`, and agent cards on their way to the client.

Held are only: heads if one of these fields is rewritten, else a GET until its path is known not to be a card's; and the
response to a card request. After bytes that the scanner does not understand, all bytes are forwarded unchanged.
"""

from __future__ import annotations

from collections import deque

import msgspec

from a2a_proxy.model.chunk import Direction
from a2a_proxy.relay.edits.edit import UNLIMITED, EditFact, EditPlan, Output, traceparent_edit
from a2a_proxy.relay.edits.http1_message import (
    CARD_CALL_HINT,
    CARD_PATHS,
    CONDITIONAL_FIELDS,
    decode_content,
    is_card_call,
    may_ask_for_card,
    parse_trace,
    replace_fields,
    replace_trace,
    rewrite_head,
)
from a2a_proxy.relay.edits.http1_repeat import RepeatedRequest, remember_request
from a2a_proxy.relay.edits.http1_scan import (
    CHUNKED,
    HEAD_SHIFT,
    PART_WORK,
    Http1ScanError,
    Http1Scanner,
    MessagePart,
    decode_chunked,
    header_field,
    parse_request_head,
    parse_response_head,
)

MAX_RESPONSE_BYTES = 1024 * 1024
"""Bytes of a response that are held, its head included."""
HOLD_SECONDS = 5.0
MAX_CALL_BYTES = 64 * 1024
"""Bytes of the longest JSON-RPC request that is examined."""
MOST_CHUNK_LINES, MOST_TOKENS = 20_000, 50_000
"""Lines of the chunked coding, and JSON tokens, of a card that is rewritten: this many take at most 30 ms without
interruption."""

_TOO_LARGE = "it is larger than 1 MiB"
_TO_AGENT, _TO_CLIENT = Direction.TO_AGENT, Direction.TO_CLIENT


class _PendingRequest(msgspec.Struct):
    """A request whose response has not begun."""

    head: bool = False
    """Whether it is a HEAD request."""
    connect: bool = False
    form: str = ""
    """Form of the card in the response (`CardRewriter`); empty if it is not a card request."""
    authority: str = ""


_PLAIN_REQUEST = _PendingRequest()


class Http1Editor:
    """An `Editor` for HTTP/1.1. Pipelined requests and their responses are matched in order (RFC 9112 9.3)."""

    def __init__(self, plan: EditPlan) -> None:
        self.budget = UNLIMITED
        self.position = 0
        self._plan = plan
        self._host = plan.authority
        self._trace = plan.trace
        self._streams = 0
        """Number of requests so far."""
        self._repeat: RepeatedRequest | None = None
        """The previous request, if the next one may repeat it."""
        self._may_repeat = False
        """Whether there is a previous request and a message begins with the next byte of the client."""
        self._cards = plan.cards
        self._active = True
        self._end_reason = ""
        """Why editing ends; empty while it does not."""
        self._facts: list[EditFact] = []
        self._noted_hosts: set[bytes] = set()
        self._pending_requests: deque[_PendingRequest] = deque()
        self._requests, self._responses = Http1Scanner(), Http1Scanner()
        self._byte_counts = [0, 0]
        self._held_head: list[bytes] | None = None
        """Held parts of a request's head; None if the current head is forwarded as it arrives."""
        self._line_known = False
        """Whether the request line of the held head is complete."""
        self._call_body: list[bytes] | None = None
        """Held parts of a POST's body while it may be a call for a card."""
        self._call_size = 0
        self._held_response: list[bytes] | None = None
        """Held parts of a response that may be rewritten."""
        self._held_response_size = 0
        self._held_response_offset = 0
        self._answered_request = _PLAIN_REQUEST
        """The request that the current response answers."""
        self._framing = 0
        self._deadline: float | None = None
        # The shortcut for the most frequent case: a whole message with the head of the previous one.
        self._known_request = self._known_response = b""
        self._known_request_body = self._known_response_body = 0
        self._known_request_size = self._known_response_size = 0
        """Bytes of head and body; 0 if the shortcut must not be tried."""

    # Interface of `Editor`.

    @property
    def is_active(self) -> bool:
        """False once editing has ended."""
        return self._active

    @property
    def deadline(self) -> float | None:
        """When a held response is released."""
        return self._deadline

    def take_edits(self) -> list[EditFact]:
        """Return the edits made since the last call."""
        facts = self._facts
        if facts:
            self._facts = []
        return facts

    def feed(self, direction: Direction, data: bytes, now: float, start: int = 0) -> list[Output]:
        """Handle bytes of one peer and return the bytes to write."""
        self.position = len(data)
        if not self._active:
            return [Output(direction, data[start:])]
        if start:
            return self._scan_messages(direction, data, now, start)
        passes = self.pass_to_agent if direction is _TO_AGENT else self.pass_to_client
        if passes(data):
            return [Output(direction, data)]
        if self._may_repeat and direction is _TO_AGENT and (sent := self._edit_repeat(data)):
            return [Output(direction, sent)]
        return self._scan_messages(direction, data, now, 0)

    # The shortcut for a whole message with the head of the previous one takes about 0.4 us.

    def pass_to_agent(self, data: bytes) -> bool:
        """Account for these bytes of the client and return True if they stay unchanged; False if `feed` must be
        called.
        """
        if (
            len(data) == self._known_request_size
            and data.startswith(self._known_request)
            and data.find(CARD_CALL_HINT, len(self._known_request)) < 0
        ):
            self._pending_requests.append(_PLAIN_REQUEST)
            self._byte_counts[0] += len(data)
            return True
        return False

    def pass_to_client(self, data: bytes) -> bool:
        """Account for these bytes of the agent and return True if they stay unchanged; False if `feed` must be
        called.
        """
        requests = self._pending_requests
        if (
            len(data) == self._known_response_size
            and requests
            and requests[0] is _PLAIN_REQUEST
            and data.startswith(self._known_response)
        ):
            requests.popleft()
            self._byte_counts[1] += len(data)
            return True
        return False

    def _edit_repeat(self, data: bytes) -> bytes:
        """Return the bytes to send for a whole request that repeats the previous one, or none if it does not."""
        like, bits = self._repeat, self._trace
        origin = like.origin_of(data) if like is not None else None
        if like is None or bits is None or origin is None:
            return b""
        self._streams += 1
        after = origin.next_traceparent(bits)
        self._facts.append(traceparent_edit(self._streams, self._byte_counts[0], origin, after, state=like.stateless))
        self._pending_requests.append(_PLAIN_REQUEST)
        self._byte_counts[0] += len(data)
        return like.next_request(data, after.encode())

    def _scan_messages(self, direction: Direction, data: bytes, now: float, at: int) -> list[Output]:
        outs: tuple[list[bytes], list[bytes]] = ([], [])
        scan = self._scan_request if direction is _TO_AGENT else self._scan_response
        self.budget = max(self.budget, 1)
        try:
            while at < len(data) and self.budget > 0 and not self._end_reason:
                at = scan(data, at, now, outs[direction])
                self.budget -= PART_WORK
        except Http1ScanError as reason:
            self._end_reason = str(reason)
        if self._end_reason:
            self._end_editing(direction, outs)
            outs[direction].append(data[at:])
            at = len(data)
        self.position = at
        if at == len(data):
            self._byte_counts[direction] += at
        self._update_known_sizes()
        return [
            Output(listener, b"".join(parts)) for listener, parts in zip(Direction, outs, strict=True) if any(parts)
        ]

    def _update_known_sizes(self) -> None:
        """Update the sizes of the shortcut, which may be tried only where a message begins."""
        plain = self._active and self._requests.is_between_messages
        self._may_repeat = plain and self._repeat is not None
        self._known_request_size = len(self._known_request) + self._known_request_body if plain else 0
        plain = self._active and self._responses.is_between_messages and self._held_response is None
        self._known_response_size = len(self._known_response) + self._known_response_body if plain else 0

    def _end_editing(self, direction: Direction, outs: tuple[list[bytes], list[bytes]]) -> None:
        """End editing and release all held bytes."""
        self._active = False
        if self._held_response is not None:
            self._release_response(self._end_reason, outs[_TO_CLIENT])
        outs[_TO_AGENT].extend(self._held_head or ())
        self._held_head = None
        self._facts.append(EditFact(direction, "ended", self._byte_counts[direction], {"reason": self._end_reason}))

    def feed_eof(self, direction: Direction, now: float) -> list[Output]:  # noqa: ARG002 (the interface)
        """Return the held bytes of that direction."""
        out: list[bytes] = []
        if direction is _TO_AGENT:
            out += self._held_head or ()
            self._held_head = None
        else:
            if self._held_response is not None and self._responses.is_until_close:
                self._finish_response(out)
            elif self._held_response is not None:
                self._release_response("it ended too early", out)
            self._active = self._held_head is not None
        return [Output(direction, b"".join(out))] if out else []

    def tick(self, now: float) -> list[Output]:
        """Release a response that was held too long."""
        if self._deadline is None or now < self._deadline:
            return []
        out: list[bytes] = []
        self._release_response(f"it took more than {HOLD_SECONDS:g} s", out)
        return [Output(_TO_CLIENT, b"".join(out))]

    # Requests

    def _scan_request(self, data: bytes, at: int, now: float, out: list[bytes]) -> int:  # noqa: ARG002 (as below)
        scanner = self._requests
        begins = scanner.is_between_messages
        part, end = scanner.read_part(data, at)
        raw = data[at:end]
        if begins:
            self._held_head, self._line_known = [], False
        if self._held_head is None:
            out.append(raw)
        else:
            self._held_head.append(raw)
        if part is MessagePart.HEAD:
            self._on_head_part(out)
        elif part is MessagePart.HEAD_END:
            self._on_request(end + self._byte_counts[_TO_AGENT] - len(scanner.head), out)
        elif self._call_body is not None:
            self._on_call_part(raw, done=part is MessagePart.BODY_END)
        return end

    def _on_head_part(self, out: list[bytes]) -> None:
        if self._held_head is None or self._host is not None or self._trace is not None or self._line_known:
            return
        begin = b"".join(self._held_head)
        self._line_known = b"\r\n" in begin
        if not may_ask_for_card(begin):
            out += self._held_head
            self._held_head = None

    def _on_request(self, offset: int, out: list[bytes]) -> None:
        head, held = self._requests.head, self._held_head
        self.budget -= len(head) >> HEAD_SHIFT
        self._held_head = None
        self._known_request, self._known_request_body = b"", 0
        self._streams += 1
        self._repeat = None
        try:
            method, target, framing = parse_request_head(head)
            request = self._classify_request(head, method, target)
            new = head if held is None else self._edit_request_head(head, request, framing, offset)
        except Http1ScanError as reason:
            self._end_reason = str(reason)
            out += held or ()
            return
        if held is not None:
            out.append(new)
        self._pending_requests.append(request)
        empty = self._requests.begin_body(framing)
        self._call_body = [] if not empty and method == b"POST" and self._cards is not None else None
        self._call_size = 0
        if request is _PLAIN_REQUEST and framing >= 0 and new is head:
            self._known_request, self._known_request_body = head, framing

    def _classify_request(self, head: bytes, method: bytes, target: bytes) -> _PendingRequest:
        if method == b"CONNECT":
            return _PendingRequest(connect=True)
        if method == b"HEAD":
            return _PendingRequest(head=True)
        if method == b"GET" and self._cards is not None and target.partition(b"?")[0].endswith(CARD_PATHS):
            return _PendingRequest(form="json", authority=self._authority_of_head(head))
        return _PLAIN_REQUEST

    def _authority_of_head(self, head: bytes) -> str:
        host = header_field(head, b"host")
        return host.decode("latin-1") if host else self._plan.listen

    def _edit_request_head(self, head: bytes, request: _PendingRequest, framing: int, offset: int) -> bytes:
        changes: dict[bytes, bytes | None] = {}
        host = header_field(head, b"host")
        if self._host is not None and host is not None and host != self._host:
            changes[b"host"] = self._host
            self._note_host_edit(host, offset)
        if request.form:
            replacements: dict[bytes, bytes | None] = {
                b"accept-encoding": b"identity",
                **dict.fromkeys(CONDITIONAL_FIELDS),
            }
            low = head.lower()
            asks = {name: value for name, value in replacements.items() if b"\r\n" + name + b":" in low}
            if asks:
                changes |= asks
                fields = [name.decode() for name in asks]
                self._facts.append(EditFact(_TO_AGENT, "card-request", offset, {"fields": fields}))
        new = replace_fields(head, changes) if changes else head
        if self._trace is None or request.connect:
            return new
        origin, state = parse_trace(head)
        after, stateless = origin.next_traceparent(self._trace), state and not origin.trace
        self._facts.append(traceparent_edit(self._streams, offset, origin, after, state=stateless))
        if request is _PLAIN_REQUEST and framing >= 0:
            self._repeat = remember_request(head, new, origin, framing, stateless=stateless)
        return replace_trace(new, origin, after.encode())

    def _note_host_edit(self, before: bytes, offset: int) -> None:
        if before not in self._noted_hosts and len(self._noted_hosts) < 16:
            self._noted_hosts.add(before)
            assert self._host is not None
            detail = {"before": before.decode("latin-1"), "after": self._host.decode("latin-1")}
            self._facts.append(EditFact(_TO_AGENT, "host", offset, detail))

    def _on_call_part(self, data: bytes, *, done: bool) -> None:
        assert self._call_body is not None
        self._call_body.append(data)
        self._call_size += len(data)
        if self._call_size > MAX_CALL_BYTES:
            self._call_body = None
        elif done:
            head, body, self._call_body = self._requests.head, b"".join(self._call_body), None
            # Its response may have begun already; the latest pending response is then not the one to this call.
            if self._pending_requests and is_card_call(head, body):
                self._pending_requests[-1] = _PendingRequest(form="jsonrpc", authority=self._authority_of_head(head))

    # Responses

    def _scan_response(self, data: bytes, at: int, now: float, out: list[bytes]) -> int:
        scanner = self._responses
        begins = scanner.is_between_messages and self._pending_requests and self._pending_requests[0].form
        part, end = scanner.read_part(data, at)
        raw = data[at:end]
        if begins:
            self._held_response, self._held_response_size, self._held_response_offset = (
                [],
                0,
                self._byte_counts[_TO_CLIENT] + at,
            )
            self._deadline = now + HOLD_SECONDS
        if self._held_response is None:
            out.append(raw)
        else:
            self._held_response.append(raw)
            self._held_response_size += len(raw)
        if part is MessagePart.HEAD_END:
            self._on_response(out)
        elif self._held_response is not None and self._held_response_size > MAX_RESPONSE_BYTES:
            self._release_response(_TOO_LARGE, out)
        elif self._held_response is not None and part is MessagePart.BODY_END:
            self._finish_response(out)
        return end

    def _on_response(self, out: list[bytes]) -> None:
        """Handle a complete head, which is in `out` or held."""
        scanner, head = self._responses, self._responses.head
        self.budget -= len(head) >> HEAD_SHIFT
        self._known_response, self._known_response_body = b"", 0
        try:
            if not self._pending_requests:
                raise Http1ScanError("a response without a request")
            request = self._pending_requests[0]
            status, framing = parse_response_head(head, request.head)
            if status == 101 or (request.connect and 200 <= status < 300):
                raise Http1ScanError("another protocol from here")
        except Http1ScanError as reason:
            self._end_reason = str(reason)
            return
        empty = scanner.begin_body(framing)
        if status < 200:
            self._pass_held_response(out)
            return
        self._pending_requests.popleft()
        self._answered_request, self._framing = request, framing
        if self._held_response is not None:
            if status != 200 or empty:
                self._pass_held_response(out)
            elif framing > MAX_RESPONSE_BYTES:
                self._release_response(_TOO_LARGE, out)
        elif request is _PLAIN_REQUEST and framing >= 0:
            self._known_response, self._known_response_body = head, framing

    def _finish_response(self, out: list[bytes]) -> None:
        """Rewrite the held response, which is complete."""
        assert self._held_response is not None
        assert self._cards is not None
        head = self._responses.head
        raw = b"".join(self._held_response)[len(head) :]
        if self._framing == CHUNKED and raw.count(b"\r\n") > MOST_CHUNK_LINES:
            self._release_response("it came in too many chunks", out)
            return
        payload = decode_content(head, decode_chunked(raw) if self._framing == CHUNKED else raw)
        if payload is None:
            self._release_response("its content coding is not supported", out)
            return
        if sum(map(payload.count, (b'"', b",", b"{", b"["))) > MOST_TOKENS:
            self._release_response("it has too many members", out)
            return
        outcome = self._cards(payload, self._answered_request.form, self._answered_request.authority)
        if outcome.payload is None:
            self._pass_held_response(out)
            return
        out += (rewrite_head(head, outcome.payload), outcome.payload)
        detail = {"urls": outcome.urls, "length_before": len(payload), "length_after": len(outcome.payload)}
        self._facts.append(EditFact(_TO_CLIENT, "card", self._held_response_offset, detail))
        self._held_response = self._deadline = None

    def _release_response(self, reason: str, out: list[bytes]) -> None:
        """Release the held response unchanged, and record why."""
        self._facts.append(EditFact(_TO_CLIENT, "untouched", self._held_response_offset, {"reason": reason}))
        self._pass_held_response(out)

    def _pass_held_response(self, out: list[bytes]) -> None:
        out += self._held_response or ()
        self._held_response = self._deadline = None
