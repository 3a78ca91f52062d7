"""Edits on one HTTP/1.1 connection: `Host`, `traceparent`, and agent cards on their way to the client.

Held are only: heads where one of these fields is rewritten; else a GET until its path is known not to be that of a
card; the response to a card request. From octets on that the scanner does not understand, everything passes for good.
"""

from __future__ import annotations

from collections import deque

import msgspec

from a2a_proxy.model.chunk import Direction
from a2a_proxy.relay.edits.edit import UNLIMITED, EditFact, EditPlan, Output, traced
from a2a_proxy.relay.edits.http1_message import (
    CARD_PATHS,
    CONDITIONS,
    HINT,
    asks_for_card,
    content_of,
    may_ask_for_card,
    rewritten_head,
    trace_of,
    with_fields,
    with_trace,
)
from a2a_proxy.relay.edits.http1_repeat import Again, again
from a2a_proxy.relay.edits.http1_scan import (
    CHUNKED,
    Http1Scanner,
    MessagePart,
    NotUnderstood,
    field,
    request_head,
    response_head,
    unchunked,
)

MOST_RESPONSE = 1024 * 1024
"""Octets of a response that are held, its head included."""
HOLD_SECONDS = 5.0
MOST_CALL = 64 * 1024
"""Longest JSON-RPC request that is looked into."""
MOST_CHUNK_LINES, MOST_TOKENS = 20_000, 50_000
"""Lines of the chunked coding, and JSON tokens, of a card that is rewritten: that takes at most 30 ms in one go."""

PART_WORK = 12
"""Units of the budget for each part of a message that the scanner finds."""
HEAD_SHIFT = 2
"""A head costs one unit more for each 2 ** HEAD_SHIFT bytes of it."""

_TOO_LARGE = "it is larger than 1 MiB"
_TO_AGENT, _TO_CLIENT = Direction.TO_AGENT, Direction.TO_CLIENT


class _Asked(msgspec.Struct):
    """A request whose response has not begun."""

    head: bool = False
    """It is a HEAD."""
    connect: bool = False
    form: str = ""
    """What the response holds (`CardRewriter`); empty: no card."""
    authority: str = ""


_PLAIN = _Asked()


class Http1Editor:
    """An `Editor` for HTTP/1.1. Pipelined requests and their responses are matched in order (RFC 9112 9.3)."""

    def __init__(self, plan: EditPlan) -> None:
        self.budget = UNLIMITED
        self.position = 0
        self._plan = plan
        self._host = plan.authority
        self._trace = plan.trace
        self._streams = 0
        """Requests so far."""
        self._like: Again | None = None
        """The last one, where the next may be like it."""
        self._may_be_alike = False
        """There is one, and a message begins with the next octet of the client."""
        self._cards = plan.cards
        self._active = True
        self._why = ""
        """Why editing ends."""
        self._facts: list[EditFact] = []
        self._hosts: set[bytes] = set()
        self._asked: deque[_Asked] = deque()
        self._requests, self._responses = Http1Scanner(), Http1Scanner()
        self._octets = [0, 0]
        self._held_head: list[bytes] | None = None
        """Of a request; None: the head that is coming in passes."""
        self._line_known = False
        """The request line of what is held is complete."""
        self._call: list[bytes] | None = None
        """Of a POST's body, while it may be a call for a card."""
        self._call_size = 0
        self._held: list[bytes] | None = None
        """Of a response that may be rewritten."""
        self._held_size = 0
        self._held_from = 0
        self._answer = _PLAIN
        """What the response that is coming in answers."""
        self._framing = 0
        self._deadline: float | None = None
        # The shortest way for what comes most: a whole message with a head as the one before.
        self._known_request = self._known_response = b""
        self._known_request_body = self._known_response_body = 0
        self._known_request_size = self._known_response_size = 0
        """Of head and body; 0 where the short way is not to be tried."""

    # The interface of Editor.

    @property
    def active(self) -> bool:
        """False: editing has ended for good."""
        return self._active

    @property
    def deadline(self) -> float | None:
        """When a held response is released."""
        return self._deadline

    def edits(self) -> list[EditFact]:
        """What changed since this was last asked."""
        facts = self._facts
        if facts:
            self._facts = []
        return facts

    def feed(self, direction: Direction, data: bytes, now: float, start: int = 0) -> list[Output]:
        """Octets of one peer in, octets to write out."""
        self.position = len(data)
        if not self._active:
            return [Output(direction, data[start:])]
        if start:
            return self._scan(direction, data, now, start)
        passes = self.pass_to_agent if direction is _TO_AGENT else self.pass_to_client
        if passes(data):
            return [Output(direction, data)]
        if self._may_be_alike and direction is _TO_AGENT and (sent := self._sent_again(data)):
            return [Output(direction, sent)]
        return self._scan(direction, data, now, 0)

    # The short way for what comes most, one whole message with a head as the one before: some 0.4 us.

    def pass_to_agent(self, data: bytes) -> bool:
        """These octets of the client go on as they are. False: ask `feed`."""
        if (
            len(data) == self._known_request_size
            and data.startswith(self._known_request)
            and data.find(HINT, len(self._known_request)) < 0
        ):
            self._asked.append(_PLAIN)
            self._octets[0] += len(data)
            return True
        return False

    def pass_to_client(self, data: bytes) -> bool:
        """These octets of the agent go on as they are. False: ask `feed`."""
        asked = self._asked
        if (
            len(data) == self._known_response_size
            and asked
            and asked[0] is _PLAIN
            and data.startswith(self._known_response)
        ):
            asked.popleft()
            self._octets[1] += len(data)
            return True
        return False

    def _sent_again(self, data: bytes) -> bytes:
        """What to send for a whole request like the one before; empty where it is none."""
        like, bits = self._like, self._trace
        origin = like.origin_of(data) if like is not None else None
        if like is None or bits is None or origin is None:
            return b""
        self._streams += 1
        after = origin.next(bits)
        self._facts.append(traced(self._streams, self._octets[0], origin, after, state=like.stateless))
        self._asked.append(_PLAIN)
        self._octets[0] += len(data)
        return like.sent(data, after.encode())

    def _scan(self, direction: Direction, data: bytes, now: float, at: int) -> list[Output]:
        outs: tuple[list[bytes], list[bytes]] = ([], [])
        scan = self._scan_request if direction is _TO_AGENT else self._scan_response
        self.budget = max(self.budget, 1)
        try:
            while at < len(data) and self.budget > 0 and not self._why:
                at = scan(data, at, now, outs[direction])
                self.budget -= PART_WORK
        except NotUnderstood as reason:
            self._why = str(reason)
        if self._why:
            self._end(direction, outs)
            outs[direction].append(data[at:])
            at = len(data)
        self.position = at
        if at == len(data):
            self._octets[direction] += at
        self._know()
        return [Output(way, b"".join(parts)) for way, parts in zip(Direction, outs, strict=True) if any(parts)]

    def _know(self) -> None:
        """The short way may be tried where a message begins, and nowhere else."""
        plain = self._active and self._requests.between
        self._may_be_alike = plain and self._like is not None
        self._known_request_size = len(self._known_request) + self._known_request_body if plain else 0
        plain = self._active and self._responses.between and self._held is None
        self._known_response_size = len(self._known_response) + self._known_response_body if plain else 0

    def _end(self, direction: Direction, outs: tuple[list[bytes], list[bytes]]) -> None:
        """From here everything passes."""
        self._active = False
        if self._held is not None:
            self._release(self._why, outs[_TO_CLIENT])
        outs[_TO_AGENT].extend(self._held_head or ())
        self._held_head = None
        self._facts.append(EditFact(direction, "ended", self._octets[direction], {"reason": self._why}))

    def eof(self, direction: Direction, now: float) -> list[Output]:  # noqa: ARG002 (the interface)
        """What is held of that direction goes on its way."""
        out: list[bytes] = []
        if direction is _TO_AGENT:
            out += self._held_head or ()
            self._held_head = None
        else:
            if self._held is not None and self._responses.until_close:
                self._finish(out)
            elif self._held is not None:
                self._release("it ended too early", out)
            self._active = self._held_head is not None
        return [Output(direction, b"".join(out))] if out else []

    def tick(self, now: float) -> list[Output]:
        """Release what was held too long."""
        if self._deadline is None or now < self._deadline:
            return []
        out: list[bytes] = []
        self._release(f"it took more than {HOLD_SECONDS:g} s", out)
        return [Output(_TO_CLIENT, b"".join(out))]

    # Requests.

    def _scan_request(self, data: bytes, at: int, now: float, out: list[bytes]) -> int:  # noqa: ARG002 (as below)
        scanner = self._requests
        begins = scanner.between
        part, end = scanner.next(data, at)
        octets = data[at:end]
        if begins:
            self._held_head, self._line_known = [], False
        if self._held_head is None:
            out.append(octets)
        else:
            self._held_head.append(octets)
        if part is MessagePart.HEAD:
            self._on_head_part(out)
        elif part is MessagePart.HEAD_END:
            self._on_request(end + self._octets[_TO_AGENT] - len(scanner.head), out)
        elif self._call is not None:
            self._on_call_part(octets, done=part is MessagePart.BODY_END)
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
        self._like = None
        try:
            method, target, framing = request_head(head)
            asked = self._asked_by(head, method, target)
            new = head if held is None else self._edited(head, asked, framing, offset)
        except NotUnderstood as reason:
            self._why = str(reason)
            out += held or ()
            return
        if held is not None:
            out.append(new)
        self._asked.append(asked)
        empty = self._requests.begin_body(framing)
        self._call = [] if not empty and method == b"POST" and self._cards is not None else None
        self._call_size = 0
        if asked is _PLAIN and framing >= 0 and new is head:
            self._known_request, self._known_request_body = head, framing

    def _asked_by(self, head: bytes, method: bytes, target: bytes) -> _Asked:
        if method == b"CONNECT":
            return _Asked(connect=True)
        if method == b"HEAD":
            return _Asked(head=True)
        if method == b"GET" and self._cards is not None and target.partition(b"?")[0].endswith(CARD_PATHS):
            return _Asked(form="json", authority=self._authority(head))
        return _PLAIN

    def _authority(self, head: bytes) -> str:
        host = field(head, b"host")
        return host.decode("latin-1") if host else self._plan.listen

    def _edited(self, head: bytes, asked: _Asked, framing: int, offset: int) -> bytes:
        changes: dict[bytes, bytes | None] = {}
        host = field(head, b"host")
        if self._host is not None and host is not None and host != self._host:
            changes[b"host"] = self._host
            self._tell_host(host, offset)
        if asked.form:
            wanted: dict[bytes, bytes | None] = {b"accept-encoding": b"identity", **dict.fromkeys(CONDITIONS)}
            low = head.lower()
            asks = {name: value for name, value in wanted.items() if b"\r\n" + name + b":" in low}
            if asks:
                changes |= asks
                fields = [name.decode() for name in asks]
                self._facts.append(EditFact(_TO_AGENT, "card-request", offset, {"fields": fields}))
        new = with_fields(head, changes) if changes else head
        if self._trace is None or asked.connect:
            return new
        origin, state = trace_of(head)
        after, stateless = origin.next(self._trace), state and not origin.trace
        self._facts.append(traced(self._streams, offset, origin, after, state=stateless))
        if asked is _PLAIN and framing >= 0:
            self._like = again(head, new, origin, framing, stateless=stateless)
        return with_trace(new, origin, after.encode())

    def _tell_host(self, before: bytes, offset: int) -> None:
        if before not in self._hosts and len(self._hosts) < 16:
            self._hosts.add(before)
            assert self._host is not None
            detail = {"before": before.decode("latin-1"), "after": self._host.decode("latin-1")}
            self._facts.append(EditFact(_TO_AGENT, "host", offset, detail))

    def _on_call_part(self, octets: bytes, *, done: bool) -> None:
        assert self._call is not None
        self._call.append(octets)
        self._call_size += len(octets)
        if self._call_size > MOST_CALL:
            self._call = None
        elif done:
            head, body, self._call = self._requests.head, b"".join(self._call), None
            # Its response may have begun already: then that one does not answer this call.
            if self._asked and asks_for_card(head, body):
                self._asked[-1] = _Asked(form="jsonrpc", authority=self._authority(head))

    # Responses.

    def _scan_response(self, data: bytes, at: int, now: float, out: list[bytes]) -> int:
        scanner = self._responses
        begins = scanner.between and self._asked and self._asked[0].form
        part, end = scanner.next(data, at)
        octets = data[at:end]
        if begins:
            self._held, self._held_size, self._held_from = [], 0, self._octets[_TO_CLIENT] + at
            self._deadline = now + HOLD_SECONDS
        if self._held is None:
            out.append(octets)
        else:
            self._held.append(octets)
            self._held_size += len(octets)
        if part is MessagePart.HEAD_END:
            self._on_response(out)
        elif self._held is not None and self._held_size > MOST_RESPONSE:
            self._release(_TOO_LARGE, out)
        elif self._held is not None and part is MessagePart.BODY_END:
            self._finish(out)
        return end

    def _on_response(self, out: list[bytes]) -> None:
        """A head is complete, and is in `out` or held."""
        scanner, head = self._responses, self._responses.head
        self.budget -= len(head) >> HEAD_SHIFT
        self._known_response, self._known_response_body = b"", 0
        try:
            if not self._asked:
                raise NotUnderstood("a response to no request")
            asked = self._asked[0]
            status, framing = response_head(head, asked.head)
            if status == 101 or (asked.connect and 200 <= status < 300):
                raise NotUnderstood("another protocol from here")
        except NotUnderstood as reason:
            self._why = str(reason)
            return
        empty = scanner.begin_body(framing)
        if status < 200:
            self._pass_held(out)
            return
        self._asked.popleft()
        self._answer, self._framing = asked, framing
        if self._held is not None:
            if status != 200 or empty:
                self._pass_held(out)
            elif framing > MOST_RESPONSE:
                self._release(_TOO_LARGE, out)
        elif asked is _PLAIN and framing >= 0:
            self._known_response, self._known_response_body = head, framing

    def _finish(self, out: list[bytes]) -> None:
        """The held response is complete."""
        assert self._held is not None
        assert self._cards is not None
        head = self._responses.head
        raw = b"".join(self._held)[len(head) :]
        if self._framing == CHUNKED and raw.count(b"\r\n") > MOST_CHUNK_LINES:
            self._release("it came in too many chunks", out)
            return
        payload = content_of(head, unchunked(raw) if self._framing == CHUNKED else raw)
        if payload is None:
            self._release("it is compressed in a way that the proxy does not read", out)
            return
        if sum(map(payload.count, (b'"', b",", b"{", b"["))) > MOST_TOKENS:
            self._release("it has too many members", out)
            return
        outcome = self._cards(payload, self._answer.form, self._answer.authority)
        if outcome.payload is None:
            self._pass_held(out)
            return
        out += (rewritten_head(head, outcome.payload), outcome.payload)
        detail = {"urls": outcome.urls, "length_before": len(payload), "length_after": len(outcome.payload)}
        self._facts.append(EditFact(_TO_CLIENT, "card", self._held_from, detail))
        self._held = self._deadline = None

    def _release(self, reason: str, out: list[bytes]) -> None:
        """What is held goes on as it is, and that is said."""
        self._facts.append(EditFact(_TO_CLIENT, "untouched", self._held_from, {"reason": reason}))
        self._pass_held(out)

    def _pass_held(self, out: list[bytes]) -> None:
        out += self._held or ()
        self._held = self._deadline = None
