"""Edits on one HTTP/1.1 connection: `Host`, `traceparent`, agent cards on their way to the client,
and the URLs of webhooks.

Held are only: heads if one of these fields is rewritten, else a GET until its path is known not to
be a card's; the response to a card request; and if webhooks are edited, requests with a body, and
the answers to calls for push configurations. After bytes that the scanner does not understand, all
bytes are forwarded unchanged.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import msgspec

from a2a_proxy.http.h1 import (
    CHUNKED,
    HEAD_SHIFT,
    PART_WORK,
    Http1Error,
    Http1Scanner,
    MessagePart,
    decode_chunked,
    header_field,
    parse_request_head,
    parse_response_head,
)
from a2a_proxy.model.wire import Direction
from a2a_proxy.relay.edits.card_response import (
    CARD_REQUEST_FIELDS,
    MAX_RESPONSE_BYTES,
    MOST_TOKENS,
    TOO_LARGE,
    TOO_MANY_MEMBERS,
    UNKNOWN_CODING,
    count_tokens,
    is_card_path,
    work_of,
)
from a2a_proxy.relay.edits.edit import UNLIMITED, EditFact, EditPlan, Output, traceparent_edit
from a2a_proxy.relay.edits.http1_message import (
    CARD_CALL_HINT,
    decode_content,
    is_card_call,
    leave_out_http2,
    may_ask_for_card,
    parse_trace,
    replace_fields,
    replace_trace,
    resize_head,
    rewrite_head,
)
from a2a_proxy.relay.edits.http1_repeat import RepeatedRequest, remember_request

HOLD_SECONDS = 5.0
"""Seconds that the response with a card is held."""
WEBHOOK_HOLD_SECONDS = 1.0
"""Seconds that a request, or the answer to a call for push configurations, is held."""
MAX_CALL_BYTES = 64 * 1024
"""Bytes of the longest JSON-RPC request that is examined."""
MOST_CHUNK_LINES = 20_000
"""Lines of the chunked coding of a card that is rewritten."""

_SHORT_BEGIN = 4
"""Parts of a head that have at least the bytes by which a GET is recognised."""
_TO_AGENT, _TO_CLIENT = Direction.TO_AGENT, Direction.TO_CLIENT


if TYPE_CHECKING:
    from a2a_proxy.relay.edits.http1_webhooks import HeldRequest
    from a2a_proxy.relay.edits.push_config import PushCall, UrlEdit


class _PendingRequest(msgspec.Struct):
    """A request whose response has not begun."""

    head: bool = False
    """Whether it is a HEAD request."""
    connect: bool = False
    form: str = ""
    """Form of the card in the response (`CardRewriter`); empty if it is not a card request."""
    authority: str = ""
    push: PushCall | None = None
    """The call for push configurations; None if it is another one."""
    replaced_urls: tuple[str, ...] = ()
    """The URLs of webhooks that it was sent with."""

    @property
    def is_response_held(self) -> bool:
        """Whether the response is held until it is complete."""
        return bool(self.form) or (self.push is not None and self.push.kind != "send")


_PLAIN_REQUEST = _PendingRequest()


class Http1Editor:
    """An `Editor` for HTTP/1.1. Pipelined requests and their responses are matched in order (RFC
    9112 9.3)."""

    delays = (False, False)

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
        """Whether there is a previous request and a message begins with the next byte of the
        client."""
        self._cards = plan.cards
        self._webhooks = plan.webhooks
        self._edits_all = any(x is not None for x in (plan.authority, plan.trace, plan.webhooks))
        """Whether every request may be edited."""
        self._held_request: HeldRequest | None = None
        """A request with a body that may have the URL of a webhook."""
        self._held_pending = _PLAIN_REQUEST
        """The same request, as its response needs it."""
        self._answered_status = 0
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
        self._hold_seconds = HOLD_SECONDS
        # The shortcut for the most frequent case: a whole message with the head of the previous
        # one.
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
        """When a held response or request is released."""
        held = self._held_request
        if held is None:
            return self._deadline
        return held.deadline if self._deadline is None else min(held.deadline, self._deadline)

    @property
    def held_bytes(self) -> tuple[int, int]:
        """The sizes of the held request and response."""
        request = self._held_request
        return (
            0 if request is None else request.size,
            0 if self._held_response is None else self._held_response_size,
        )

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
        """Account for these bytes of the client and return True if they stay unchanged; False if
        `feed` must be called.
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
        """Account for these bytes of the agent and return True if they stay unchanged; False if
        `feed` must be called.
        """
        requests = self._pending_requests
        if (
            len(data) == self._known_response_size
            and requests
            and requests[0] is _PLAIN_REQUEST
            and data.startswith(self._known_response)
        ):
            requests.popleft()
        elif self._held_response is not None or not self._responses.skip_part(data):
            return False
        self._byte_counts[1] += len(data)
        return True

    def _edit_repeat(self, data: bytes) -> bytes:
        """Return the bytes to send for a whole request that repeats the previous one, or none if it
        does not."""
        like, bits = self._repeat, self._trace
        origin = like.origin_of(data) if like is not None else None
        if like is None or bits is None or origin is None:
            return b""
        self._streams += 1
        after = origin.next_traceparent(bits)
        self._facts.append(
            traceparent_edit(
                self._streams, self._byte_counts[0], origin, after, state=like.stateless
            )
        )
        self._pending_requests.append(_PLAIN_REQUEST)
        self._byte_counts[0] += len(data)
        return like.next_request(data, after.encode())

    def _scan_messages(
        self, direction: Direction, data: bytes, now: float, at: int
    ) -> list[Output]:
        outs: tuple[list[bytes], list[bytes]] = ([], [])
        scan = self._scan_request if direction is _TO_AGENT else self._scan_response
        self.budget = max(self.budget, 1)
        try:
            while at < len(data) and self.budget > 0 and not self._end_reason:
                at = scan(data, at, now, outs[direction])
                self.budget -= PART_WORK
        except Http1Error as reason:
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
            Output(listener, b"".join(parts))
            for listener, parts in zip(Direction, outs, strict=True)
            if any(parts)
        ]

    def _update_known_sizes(self) -> None:
        """Update the sizes of the shortcut, which may be tried only where a message begins."""
        plain = self._active and self._requests.is_between_messages
        self._may_repeat = plain and self._repeat is not None
        self._known_request_size = (
            len(self._known_request) + self._known_request_body if plain else 0
        )
        plain = self._active and self._responses.is_between_messages and self._held_response is None
        self._known_response_size = (
            len(self._known_response) + self._known_response_body if plain else 0
        )

    def _end_editing(self, direction: Direction, outs: tuple[list[bytes], list[bytes]]) -> None:
        """End editing and release all held bytes."""
        self._active = False
        if self._held_response is not None:
            self._release_response(self._end_reason, outs[_TO_CLIENT])
        if self._held_request is not None:
            self._release_request(self._end_reason, outs[_TO_AGENT])
        outs[_TO_AGENT].extend(self._held_head or ())
        self._held_head = None
        self._facts.append(
            EditFact(direction, "ended", self._byte_counts[direction], {"reason": self._end_reason})
        )

    def feed_eof(self, direction: Direction, now: float) -> list[Output]:  # noqa: ARG002 (the interface)
        """Return the held bytes of that direction."""
        out: list[bytes] = []
        if direction is _TO_AGENT:
            if self._held_request is not None:
                self._release_request("it ended too early", out)
            out += self._held_head or ()
            self._held_head = None
        else:
            if self._held_response is not None and self._responses.is_until_close:
                self._finish_response(out)
            elif self._held_response is not None:
                self._release_response("it ended too early", out)
            self._active = self._held_head is not None or self._held_request is not None
        return [Output(direction, b"".join(out))] if out else []

    def tick(self, now: float) -> list[Output]:
        """Release what was held too long."""
        sent: list[Output] = []
        out: list[bytes] = []
        if self._held_request is not None and now >= self._held_request.deadline:
            self._release_request("it took more than 1 s", out)
            sent.append(Output(_TO_AGENT, b"".join(out)))
        if self._deadline is not None and now >= self._deadline:
            out = []
            self._release_response(f"it took more than {self._hold_seconds:g} s", out)
            sent.append(Output(_TO_CLIENT, b"".join(out)))
        return sent

    # Requests

    def _scan_request(self, data: bytes, at: int, now: float, out: list[bytes]) -> int:
        scanner = self._requests
        begins = scanner.is_between_messages
        part, end = scanner.read_part(data, at)
        raw = data[at:end]
        if begins:
            self._held_head, self._line_known = [], False
        if self._held_head is not None:
            self._held_head.append(raw)
        elif self._held_request is not None:
            self._held_request.add(raw)
        else:
            out.append(raw)
        if part is MessagePart.HEAD:
            self._on_head_part(out)
        elif part is MessagePart.HEAD_END:
            self._on_request(end + self._byte_counts[_TO_AGENT] - len(scanner.head), now, out)
        elif self._call_body is not None:
            self._on_call_part(raw, done=part is MessagePart.BODY_END)
        if self._held_request is not None and part is not MessagePart.HEAD_END:
            self._on_held_part(out, done=part is MessagePart.BODY_END)
        return end

    def _on_head_part(self, out: list[bytes]) -> None:
        if self._held_head is None or self._line_known:
            return
        if self._edits_all:
            return
        if (
            len(self._held_head) > _SHORT_BEGIN and b"\n" not in self._held_head[-1]
        ):  # the line is not complete
            return
        begin = b"".join(self._held_head)
        self._line_known = b"\r\n" in begin
        if not may_ask_for_card(begin):
            out += self._held_head
            self._held_head = None

    def _on_request(self, offset: int, now: float, out: list[bytes]) -> None:
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
        except Http1Error as reason:
            self._end_reason = str(reason)
            out += held or ()
            return
        empty = self._requests.begin_body(framing)
        if self._webhooks is not None and method == b"POST" and not empty:
            self._held_pending = request
            self._hold_request(new, method, target, framing, offset, now, out)
        elif held is not None:
            out.append(new)
        self._pending_requests.append(request)
        self._call_body = (
            [] if not empty and method == b"POST" and self._cards is not None else None
        )
        self._call_size = 0
        if request is _PLAIN_REQUEST and framing >= 0 and new is head and self._webhooks is None:
            self._known_request, self._known_request_body = head, framing

    def _classify_request(self, head: bytes, method: bytes, target: bytes) -> _PendingRequest:
        if method == b"CONNECT":
            return _PendingRequest(connect=True)
        if method == b"HEAD":
            return _PendingRequest(head=True)
        if method == b"GET" and self._cards is not None and is_card_path(target):
            return _PendingRequest(form="json", authority=self._authority_of_head(head))
        if self._webhooks is None:
            return _PLAIN_REQUEST
        from a2a_proxy.relay.edits.push_config import classify_rest

        return _PendingRequest(push=classify_rest(method, target) if method != b"POST" else None)

    # Requests that may have the URL of a webhook

    def _hold_request(
        self,
        head: bytes,
        method: bytes,
        target: bytes,
        framing: int,
        offset: int,
        now: float,
        out: list[bytes],
    ) -> None:
        """Hold a request with a body, unless that would keep its client waiting."""
        from a2a_proxy.relay.edits.http1_webhooks import HeldRequest, refuse_hold

        held = HeldRequest(
            head, method, target, framing, offset, now + WEBHOOK_HOLD_SECONDS, size=len(head)
        )
        self._held_request = held
        reason = refuse_hold(head) or (TOO_LARGE if framing > MAX_RESPONSE_BYTES else "")
        if reason:
            self._release_request(reason, out)

    def _on_held_part(self, out: list[bytes], *, done: bool) -> None:
        held = self._held_request
        assert held is not None
        assert self._webhooks is not None
        if held.size > MAX_RESPONSE_BYTES:
            self._release_request(TOO_LARGE, out)
        elif done and held.framing == CHUNKED and held.count_lines() > MOST_CHUNK_LINES:
            self._release_request("it came in too many chunks", out)
        elif done:
            from a2a_proxy.relay.edits.http1_webhooks import edit_held_request

            self.budget -= held.size >> HEAD_SHIFT
            result = edit_held_request(held, self._webhooks)
            if isinstance(result, str):
                self._release_request(result, out)
                return
            self._held_request = None
            out.append(result.sent)
            request = self._held_pending
            request.push = result.push
            if result.edit is not None:
                request.replaced_urls = tuple(after for _, after in result.edit.urls)
                if request.push is not None and request.push.kind == "create":
                    for url in request.replaced_urls:
                        self._webhooks.keep_request(url, held.raw)
                self._note_urls(_TO_AGENT, held.offset, result.edit, held.size - len(held.head))

    def _release_request(self, reason: str, out: list[bytes]) -> None:
        """Release the held request unchanged, and record why."""
        held, self._held_request = self._held_request, None
        assert held is not None
        self._facts.append(
            EditFact(_TO_AGENT, "untouched", held.offset, {"reason": reason, "what": "webhook"})
        )
        out.append(held.raw)

    def _note_urls(self, direction: Direction, offset: int, edit: UrlEdit, length: int) -> None:
        detail = {"urls": edit.urls, "length_before": length, "length_after": len(edit.payload)}
        self._facts.append(EditFact(direction, "webhook", offset, detail))

    def _authority_of_head(self, head: bytes) -> str:
        host = header_field(head, b"host")
        return host.decode("latin-1") if host else self._plan.listen

    def _edit_request_head(
        self, head: bytes, request: _PendingRequest, framing: int, offset: int
    ) -> bytes:
        changes: dict[bytes, bytes | None] = {}
        host = header_field(head, b"host")
        if self._host is not None and host is not None and host != self._host:
            changes[b"host"] = self._host
            self._note_host_edit(host, offset)
        if request.form:
            low = head.lower()
            asks = {
                name: value
                for name, value in CARD_REQUEST_FIELDS.items()
                if b"\r\n" + name + b":" in low
            }
            if asks:
                changes |= asks
                fields = [name.decode() for name in asks]
                self._facts.append(EditFact(_TO_AGENT, "card-request", offset, {"fields": fields}))
        new = head
        if request.form or self._edits_all:
            new = leave_out_http2(head, offset, self._facts)
        new = replace_fields(new, changes) if changes else new
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
            # Its response may have begun already; the latest pending response is then not the one
            # to this call.
            if self._pending_requests and is_card_call(head, body):
                self._pending_requests[-1] = _PendingRequest(
                    form="jsonrpc", authority=self._authority_of_head(head)
                )

    # Responses

    def _scan_response(self, data: bytes, at: int, now: float, out: list[bytes]) -> int:
        scanner = self._responses
        requests = self._pending_requests
        begins = (
            requests
            and requests[0] is not _PLAIN_REQUEST
            and scanner.is_between_messages
            and requests[0].is_response_held
        )
        part, end = scanner.read_part(data, at)
        raw = data[at:end]
        if begins:
            self._held_response, self._held_response_size, self._held_response_offset = (
                [],
                0,
                self._byte_counts[_TO_CLIENT] + at,
            )
            self._hold_seconds = (
                HOLD_SECONDS if self._pending_requests[0].form else WEBHOOK_HOLD_SECONDS
            )
            self._deadline = now + self._hold_seconds
        if self._held_response is None:
            out.append(raw)
        else:
            self._held_response.append(raw)
            self._held_response_size += len(raw)
        if part is MessagePart.HEAD_END:
            self._on_response(out)
        elif self._held_response is not None and self._held_response_size > MAX_RESPONSE_BYTES:
            self._release_response(TOO_LARGE, out)
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
                raise Http1Error("a response without a request")
            request = self._pending_requests[0]
            status, framing = parse_response_head(head, request.head)
            if status == 101 or (request.connect and 200 <= status < 300):
                raise Http1Error("another protocol from here")
        except Http1Error as reason:
            self._end_reason = str(reason)
            return
        empty = scanner.begin_body(framing)
        if status < 200:
            self._pass_held_response(out)
            return
        self._pending_requests.popleft()
        self._answered_request, self._framing = request, framing
        self._answered_status = status
        if status >= 300 and self._webhooks is not None and not request.is_response_held:
            for url in request.replaced_urls:
                self._webhooks.discard_url(url)
        if self._held_response is not None:
            if request.push is not None and empty:
                self._edit_answer(request.push, b"", request.replaced_urls)
                self._pass_held_response(out)
            elif empty or (status != 200 and request.push is None):
                self._pass_held_response(out)
            elif framing > MAX_RESPONSE_BYTES:
                self._release_response(TOO_LARGE, out)
        elif request is _PLAIN_REQUEST and framing >= 0:
            self._known_response, self._known_response_body = head, framing

    def _finish_response(self, out: list[bytes]) -> None:
        """Rewrite the held response, which is complete."""
        assert self._held_response is not None
        head = self._responses.head
        raw = b"".join(self._held_response)[len(head) :]
        if self._framing == CHUNKED and raw.count(b"\r\n") > MOST_CHUNK_LINES:
            self._release_response("it came in too many chunks", out)
            return
        payload = decode_content(head, decode_chunked(raw) if self._framing == CHUNKED else raw)
        if payload is None:
            self._release_response(UNKNOWN_CODING, out)
            return
        tokens = count_tokens(payload)
        self.budget -= work_of(payload, tokens)
        if tokens > MOST_TOKENS:
            self._release_response(TOO_MANY_MEMBERS, out)
            return
        request = self._answered_request
        if request.push is not None:
            edit = self._edit_answer(request.push, payload, request.replaced_urls)
            if edit is None:
                self._pass_held_response(out)
                return
            out += (resize_head(head, edit.payload), edit.payload)
            self._note_urls(_TO_CLIENT, self._held_response_offset, edit, len(payload))
            self._held_response = self._deadline = None
            return
        assert self._cards is not None
        outcome = self._cards(
            payload, self._answered_request.form, self._answered_request.authority
        )
        if outcome.payload is None:
            self._pass_held_response(out)
            return
        out += (rewrite_head(head, outcome.payload), outcome.payload)
        detail = {
            "urls": outcome.urls,
            "length_before": len(payload),
            "length_after": len(outcome.payload),
        }
        self._facts.append(EditFact(_TO_CLIENT, "card", self._held_response_offset, detail))
        self._held_response = self._deadline = None

    def _edit_answer(
        self, push: PushCall, payload: bytes, replaced: tuple[str, ...]
    ) -> UrlEdit | None:
        from a2a_proxy.relay.edits.http1_webhooks import edit_held_answer

        assert self._webhooks is not None
        return edit_held_answer(push, self._answered_status, payload, replaced, self._webhooks)

    def _release_response(self, reason: str, out: list[bytes]) -> None:
        """Release the held response unchanged, and record why."""
        what = "card" if self._hold_seconds == HOLD_SECONDS else "webhook"
        detail = {"reason": reason, "what": what}
        self._facts.append(EditFact(_TO_CLIENT, "untouched", self._held_response_offset, detail))
        self._pass_held_response(out)

    def _pass_held_response(self, out: list[bytes]) -> None:
        out += self._held_response or ()
        self._held_response = self._deadline = None
