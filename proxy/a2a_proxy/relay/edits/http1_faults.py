"""Faults on one HTTP/1.1 connection: failing calls, and responses whose events are lost, repeated,
moved or late.

A request that may be a call of A2A is held until its operation is known: by its head, or by its
body if it is JSON-RPC. Only responses that a fault concerns are read; they are sent with the
chunked coding. After bytes that the scanner does not understand, all bytes are forwarded unchanged.
"""

from collections import deque
from typing import Any

import msgspec

from a2a_proxy.faults.live import WEBHOOK
from a2a_proxy.faults.plan import CallFaults, FaultPlan, describe_mark
from a2a_proxy.faults.stream import FaultPiece, StreamFaults
from a2a_proxy.http.h1 import (
    CHUNKED,
    HEAD_SHIFT,
    PART_WORK,
    UNTIL_CLOSE,
    Http1Error,
    Http1Scanner,
    MessagePart,
    decode_chunked,
    header_field,
    parse_request_head,
    parse_response_head,
)
from a2a_proxy.model.values import Binding
from a2a_proxy.model.wire import Direction
from a2a_proxy.protocol.bindings.webhook import is_pushed_event
from a2a_proxy.protocol.json_shapes import UNREADABLE_ERRORS
from a2a_proxy.protocol.operations import CARD_OPERATION, JSONRPC_METHODS, STREAMING_OPERATIONS
from a2a_proxy.protocol.rest_path import match_request_line
from a2a_proxy.relay.edits.card_response import MOST_TOKENS, count_tokens, is_card_path
from a2a_proxy.relay.edits.edit import OWN_ANSWER, UNLIMITED, EditFact, Output
from a2a_proxy.relay.edits.fault_answers import encode_http1_failure
from a2a_proxy.relay.edits.fault_events import (
    EVENT_SHIFT,
    EVENT_WORK,
    MAX_MESSAGE_BYTES,
    MOST_LINES,
    SseEvents,
    change_event_generation,
    change_json_generation,
    data_of_event,
    read_json_event,
)
from a2a_proxy.relay.edits.fault_output import (
    HOLD_SECONDS,
    LEAST_WORK,
    PIECE_WORK,
    TimedQueue,
    note_faultless,
    note_late,
)
from a2a_proxy.relay.edits.http1_message import leave_out_http2, replace_fields

MAX_REQUEST_BYTES = 1 << 20
"""Bytes of a request that is held until its operation is known; a longer one is forwarded without
faults."""
BODY_WORK = 16
"""Units of the budget for a piece of a body that is read, besides its events."""
SCAN_BYTES = 4096
"""Bytes that are scanned without interruption."""

_TO_AGENT, _TO_CLIENT = Direction.TO_AGENT, Direction.TO_CLIENT


class _PendingCall(msgspec.Struct):
    """A request whose response has not begun."""

    number: int
    """Number of the request on its connection."""
    head: bool = False
    connect: bool = False
    streaming: bool = False
    faults: CallFaults | None = None
    answer: bytes = b""
    """The response of the proxy; empty if the agent responds."""
    reset: str = ""
    """The text of the fault that resets the connection in place of a response."""


class _CallShape(msgspec.Struct):
    method: str = ""
    id: msgspec.Raw = msgspec.Raw(b"null")


class _Response:
    """A response that faults concern."""

    def __init__(self, call: _PendingCall, faults: CallFaults, framing: int, *, sse: bool) -> None:
        self.number = call.number
        self.reads_chunks = framing == CHUNKED
        self.is_chunked = framing != UNTIL_CLOSE
        """Whether it is sent with the chunked coding."""
        self.slice_size = faults.slice_size
        self.work = 0
        """Units of work for the events so far."""
        self.stream = StreamFaults(
            faults, change_event_generation if sse else change_json_generation
        )
        self._events = SseEvents() if sse else None
        self._body = bytearray()
        self._streaming = call.streaming
        self._is_read = True
        """Whether its events are still read."""

    @property
    def held_bytes(self) -> int:
        """Bytes that wait for the end of an event, or for another event."""
        rest = len(self._body) if self._events is None else self._events.held_bytes
        return rest + self.stream.held_bytes

    def feed(self, data: bytes, end: int) -> list[FaultPiece]:
        """Return the pieces to send for bytes of the body. `end`: the offset after them in what the
        agent sent."""
        if not self._is_read:
            return [FaultPiece(data)]
        if self._events is None:
            self._body += data
            return self.release() if len(self._body) > MAX_MESSAGE_BYTES else []
        pieces = []
        for event, place in self._events.feed(data, end):
            text = data_of_event(event)
            self.work += EVENT_WORK + (len(event) >> EVENT_SHIFT)
            facts = read_json_event(text, streaming=True) if text else None
            pieces += (
                [FaultPiece(event)]
                if facts is None
                else self.stream.feed_event(event, facts, place)
            )
        return [*pieces, *self.release()] if self._events.held_bytes > MAX_MESSAGE_BYTES else pieces

    def finish(self, end: int) -> list[FaultPiece]:
        """Return the last pieces, because the body is complete."""
        if self._events is not None or not self._body:
            return self.release()
        body = self._take_body()
        self.work += EVENT_WORK + (len(body) >> EVENT_SHIFT)
        return self.stream.feed_event(
            body, read_json_event(body, streaming=self._streaming), end - 1
        )

    def release(self) -> list[FaultPiece]:
        """Return what waits, because no more is read."""
        self._is_read = False
        rest = self._take_body() if self._events is None else self._events.take_rest()
        return [*self.stream.finish(), *([FaultPiece(rest)] if rest else [])]

    def _take_body(self) -> bytes:
        body = bytes(self._body)
        self._body.clear()
        return body


class Http1Faults:
    """The faults of one HTTP/1.1 connection: a `FaultStage`."""

    def __init__(self, plan: FaultPlan) -> None:
        self.budget = UNLIMITED
        self.position = 0
        self._plan = plan
        self._facts: list[EditFact] = []
        self._requests, self._responses = Http1Scanner(), Http1Scanner()
        self._offset = 0
        """Bytes of the agent before those being scanned, and of the proxy's own responses."""
        self._request_since = self._response_since = 0.0
        """When the request that is held began, and when an event of the response was complete;
        monotonic seconds."""
        self._numbers = 0
        self._held: list[bytes] | None = None
        """Held parts of a request; None if the current one is forwarded as it arrives."""
        self._held_size = 0
        self._current = _PendingCall(0)
        """The request that is being received."""
        self._dropping = False
        """Whether the rest of the request is dropped, because the proxy responds."""
        self._pending: deque[_PendingCall] = deque()
        self._head_parts: list[bytes] = []
        """The received parts of a response's head that is not complete."""
        self._response: _Response | None = None
        self._latest_number = 0
        """Number of the last call whose response faults concern."""
        self._until_close = False
        """Whether that response ends with the connection."""
        self._answered_bytes = 0
        """Bytes of the proxy's own responses that are not in `_offset` yet."""
        self._is_behind = False
        """Whether received bytes of the agent are not scanned yet: they precede those responses in
        the recording."""
        self._queue = TimedQueue()
        self._ended = False
        """Whether a fault has ended the connection."""
        self._opaque = [False, False]
        """For each direction, whether its bytes are forwarded unchanged."""

    # Interface of `FaultStage`

    @property
    def is_active(self) -> bool:
        """False once the connection cannot be followed and nothing waits."""
        return not all(self._opaque) or bool(self._queue)

    @property
    def delays(self) -> tuple[bool, bool]:
        """Whether bytes for the client wait for their time."""
        return False, bool(self._queue)

    @property
    def held_bytes(self) -> tuple[int, int]:
        """The size of the request that is held, and the number of bytes for the client that
        wait."""
        response = self._response
        return self._held_size, self._queue.size + (0 if response is None else response.held_bytes)

    @property
    def deadline(self) -> float | None:
        """When the next bytes are due, or a request or an event is held too long."""
        found = [] if self._queue.deadline is None else [self._queue.deadline]
        if self._held_size:
            found.append(self._request_since + HOLD_SECONDS)
        if self._response is not None and self._response.held_bytes:
            found.append(self._response_since + HOLD_SECONDS)
        return min(found, default=None)

    def take_edits(self) -> list[EditFact]:
        """Return what happened since the last call."""
        facts, self._facts = self._facts, []
        return facts

    def feed(self, direction: Direction, data: bytes, now: float, start: int = 0) -> list[Output]:
        """Handle bytes of one peer and return the bytes to write."""
        self.position = len(data)
        if self._ended:
            return []
        to_agent: list[bytes] = []
        at, self.budget = start, max(self.budget, 1)
        try:
            while (
                at < len(data)
                and self.budget > 0
                and not self._opaque[direction]
                and not self._ended
            ):
                scanned = data[at : at + SCAN_BYTES]
                if direction is _TO_AGENT:
                    at += self._scan_request(scanned, now, to_agent)
                else:
                    end = self._scan_response(scanned, now)
                    at, self._offset = at + end, self._offset + end
                self.budget -= PART_WORK
        except Http1Error:
            self._opaque[_TO_AGENT] = True
            self._release(to_agent)
            if (
                direction is _TO_CLIENT
            ):  # else a response that is sent with the chunked coding continues
                self._opaque[_TO_CLIENT] = True
                self._release_response(now)
        if self._opaque[direction] and at < len(data):
            if direction is _TO_AGENT:
                to_agent.append(data[at:])
            else:
                self._queue.add(data[at:], now)
                self._offset += len(data) - at
            at = len(data)
        if not self._ended:
            self.position = at
        if direction is _TO_CLIENT:
            self._is_behind = at < len(data)
        if not self._is_behind:
            self._offset += self._answered_bytes
            self._answered_bytes = 0
        sent = b"".join(to_agent)
        return [*([Output(_TO_AGENT, sent)] if sent else []), *self._send_due(now)]

    def feed_eof(self, direction: Direction, now: float) -> list[Output]:
        """Handle a FIN of the sender of that direction and return the bytes that it leaves."""
        if direction is _TO_AGENT:
            to_agent: list[bytes] = []
            self._release(to_agent)
            held = b"".join(to_agent)
            return [Output(_TO_AGENT, held)] if held else []
        if self._response is not None and self._responses.is_until_close:
            self._send(self._response.finish(self._offset), now)
            self._response = None
        self._release_response(now)
        return self._send_due(now)

    def tick(self, now: float) -> list[Output]:
        """Return the bytes that are due, and those that were held too long."""
        to_agent: list[bytes] = []
        if self._held_size and now >= self._request_since + HOLD_SECONDS:
            self._facts.append(note_late(_TO_AGENT))
            self._release(to_agent)
        response = self._response
        if (
            response is not None
            and response.held_bytes
            and now >= self._response_since + HOLD_SECONDS
        ):
            self._facts.append(note_late(_TO_CLIENT))
            self._send(response.release(), now)
        return [*[Output(_TO_AGENT, each) for each in to_agent], *self._send_due(now)]

    def _send_due(self, now: float) -> list[Output]:
        sent: list[bytes | memoryview] = []
        most = max(self.budget, LEAST_WORK) // PIECE_WORK
        while (
            len(sent) < most
            and not self._ended
            and (piece := self._queue.take_due(now)) is not None
        ):
            data = piece.data
            sent.append(b"%x\r\n%s\r\n" % (len(data), data) if piece.is_chunk and data else data)
            if piece.cut:
                self._end(piece.cut, "cut", self._latest_number, reset=self._until_close)
        self.budget -= PIECE_WORK * len(sent)
        joined = b"".join(sent)
        return [Output(_TO_CLIENT, joined)] if joined else []

    # Requests

    def _scan_request(self, data: bytes, now: float, out: list[bytes]) -> int:
        """Scan the next part and return its size."""
        scanner = self._requests
        if scanner.is_between_messages:
            self._held, self._dropping, self._request_since = [], False, now
        part, end = scanner.read_part(data, 0)
        raw = data[:end]
        if self._held is not None:
            self._held.append(raw)
            self._held_size += len(raw)
        elif not self._dropping:
            out.append(raw)
        if part is MessagePart.HEAD_END:
            try:
                self._on_request_head(now, out)
            except Http1Error:
                self._held = [
                    b"".join(self._held or ())[: -len(raw)]
                ]  # the caller forwards the rest
                raise
        elif part is MessagePart.BODY_END:
            self._on_request_end(now, out)
        elif self._held_size > MAX_REQUEST_BYTES:
            self._release(out)
        return end

    def _on_request_head(self, now: float, out: list[bytes]) -> None:
        head = self._requests.head
        self.budget -= len(head) >> HEAD_SHIFT
        method, target, framing = parse_request_head(head)
        self._numbers += 1
        self._current = _PendingCall(self._numbers, method == b"HEAD", method == b"CONNECT")
        self._pending.append(self._current)
        if self._held is not None and (kept := leave_out_http2(head, 0, self._facts)) is not head:
            self._held = [kept]
        is_empty = self._requests.begin_body(framing)
        found = match_request_line(method.decode("latin-1"), target)
        if head.startswith(
            b"HTTP/1.0\r\n", head.index(b"\r\n") - 8
        ):  # its client may not know the chunked coding
            self._release(out)
        elif found is not None:
            self._open_call(found.operation.name, Binding.REST, b"", out)
        elif method == b"GET" and is_card_path(target):
            self._open_call(CARD_OPERATION.name, Binding.CARD, b"", out)
        elif is_empty or method != b"POST" or header_field(head, b"expect") is not None:
            self._release(out)
        if is_empty:
            self._on_request_end(now, out)

    def _on_request_end(self, now: float, out: list[bytes]) -> None:
        """Handle the end of a request, which is held if its operation is not known yet."""
        if self._held is not None:
            self._read_body(b"".join(self._held), out)
        self._dropping = False
        if self._current.reset:
            self._end(self._current.reset, "reset", self._current.number, reset=True)
        self._answer_due(now)

    def _read_body(self, request: bytes, out: list[bytes]) -> None:
        head = self._requests.head
        body = request.partition(b"\r\n\r\n")[2]
        self.budget -= len(body) >> EVENT_SHIFT
        try:
            if header_field(head, b"transfer-encoding") is not None:
                if body.count(b"\n") > MOST_LINES:
                    raise msgspec.DecodeError("too many chunks")
                body = decode_chunked(body)
            call = msgspec.json.decode(body, type=_CallShape)
        except UNREADABLE_ERRORS:
            self._release(out)
            return
        row = JSONRPC_METHODS.get(call.method)
        has_token = b"\r\nx-a2a-notification-token:" in head.lower()
        if row is not None:
            self._open_call(row[0].name, Binding.JSONRPC, bytes(call.id), out)
        elif (
            not call.method
            and count_tokens(body) <= MOST_TOKENS
            and is_pushed_event(body, has_token=has_token)
        ):
            self._open_call(WEBHOOK, Binding.WEBHOOK, b"", out)
        else:
            self._release(out)

    def _open_call(self, operation: str, binding: Binding, rpc_id: bytes, out: list[bytes]) -> None:
        """Apply the faults of a call: forward its request, or drop it and respond."""
        call, faults = self._current, self._plan.open_call(operation, binding)
        call.faults, call.streaming = faults, operation in STREAMING_OPERATIONS
        fault = None if faults is None else faults.refusal
        if faults is None or fault is None:
            self._release(out)
            return
        faults.count_refusal()
        self._held, self._held_size, self._dropping = None, 0, True
        if fault.verb == "reset":
            call.reset = fault.text
            return
        note = describe_mark("answered", fault.text)
        self._facts.append(EditFact(_TO_CLIENT, "fault", OWN_ANSWER, {"note": note}))
        call.answer = encode_http1_failure(fault, rpc_id, streaming=call.streaming, head=call.head)

    def _release(self, out: list[bytes]) -> None:
        out += self._held or ()
        self._held, self._held_size = None, 0

    def _answer_due(self, now: float) -> None:
        """Send the responses of the proxy that are next, after the agent's to earlier requests."""
        pending = self._pending
        while (
            pending
            and pending[0].answer
            and self._responses.is_between_messages
            and not (self._dropping and pending[0] is self._current)
        ):
            answer = pending.popleft().answer
            self._queue.add(answer, now)
            self._answered_bytes += len(answer)
            self._facts.append(EditFact(_TO_CLIENT, "answer", 0, {"data": answer}))

    # Responses

    def _scan_response(self, data: bytes, now: float) -> int:
        """Scan the next part and return its size."""
        part, end = self._responses.read_part(data, 0)
        raw, response = data[:end], self._response
        if part is MessagePart.HEAD:
            self._head_parts.append(raw)
        elif part is MessagePart.HEAD_END:
            self._on_response_head(now)
            self._head_parts.clear()
        elif response is None:
            self._queue.add(raw, now)
        else:
            pieces = self._responses.pieces if response.reads_chunks else [(0, end)]
            self._on_body(response, data, pieces, now)
        if part is MessagePart.BODY_END:
            self._on_response_end(self._offset + end, now)
        return end

    def _on_response_head(self, now: float) -> None:
        head = self._responses.head
        self.budget -= len(head) >> HEAD_SHIFT
        if not self._pending:
            raise Http1Error("a response without a request")
        call = self._pending[0]
        status, framing = parse_response_head(head, call.head)
        if status == 101 or (call.connect and 200 <= status < 300):
            reason = "the connection leaves HTTP/1.1 with it, so its further calls have no faults"
            self._facts.append(note_faultless(_TO_CLIENT, reason))
            raise Http1Error("another protocol from here")
        is_empty = self._responses.begin_body(framing)
        if status >= 200:
            self._pending.popleft()
            faults = call.faults
            plain = (header_field(head, b"content-encoding") or b"identity").lower() == b"identity"
            is_chunkable = head.startswith(
                b"HTTP/1.1"
            )  # RFC 9112 6.1: HTTP/1.0 has no transfer coding
            if faults is not None and status == 200 and plain and is_chunkable and not is_empty:
                kind = (header_field(head, b"content-type") or b"").lower()
                self._response = _Response(
                    call, faults, framing, sse=kind.startswith(b"text/event-stream")
                )
                self._latest_number, self._until_close = call.number, framing == UNTIL_CLOSE
                if framing >= 0:
                    head = (
                        replace_fields(head, {b"content-length": None})[:-2]
                        + b"Transfer-Encoding: chunked\r\n\r\n"
                    )
        self._queue.add(head, now)
        if is_empty and status >= 200:
            self._answer_due(now)

    def _on_body(
        self, response: _Response, data: bytes, pieces: list[tuple[int, int]], now: float
    ) -> None:
        """Handle the pieces of `data` that are bytes of the body."""
        self.budget -= BODY_WORK * len(pieces)
        for start, end in pieces:
            was_holding = response.held_bytes
            found = response.feed(data[start:end], self._offset + end)
            if found or not was_holding:
                self._response_since = now
            self._send(found, now)

    def _on_response_end(self, end: int, now: float) -> None:
        response = self._response
        if response is not None:
            self._send(response.finish(end), now)
            if response.is_chunked:
                self._queue.add(b"0\r\n\r\n", now)
            self._response = None
        self._answer_due(now)

    def _send(self, pieces: list[FaultPiece], now: float) -> None:
        response = self._response
        assert response is not None
        for mark in response.stream.marks:
            self._facts.append(
                EditFact(_TO_CLIENT, "fault", mark.place, mark.make_detail(response.number))
            )
        response.stream.marks.clear()
        for piece in pieces:
            most, is_chunk = response.slice_size, response.is_chunked
            self._queue.add(piece.data, now, piece.delay, piece.cut, most, is_chunk=is_chunk)
        self.budget -= response.work + PIECE_WORK * len(pieces)
        response.work = 0

    def _release_response(self, now: float) -> None:
        """Send what waits of a response that is not read to its end."""
        for part in self._head_parts:
            self._queue.add(part, now)
        self._head_parts.clear()
        if self._response is not None:
            self._send(self._response.release(), now)
            self._response = None

    # The end

    def _end(self, text: str, what: str, number: int, *, reset: bool) -> None:
        """End the connection in the call of this number."""
        self._ended = True
        detail: dict[str, Any] = {
            "note": describe_mark(what, text),
            "reset": reset,
            "stream": number,
        }
        self._facts.append(EditFact(_TO_CLIENT, "fault-end", self._offset, detail))
