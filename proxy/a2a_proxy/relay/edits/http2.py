"""The editor of an HTTP/2 connection: request authority, `traceparent`, and agent cards over gRPC. All else stays.

Where the authority or `traceparent` is rewritten, every header block of the client is decoded and sent as literals; its
padding is left out. Where cards are rewritten, header blocks are read only, to know the path of a call and what to
expect after it.

What cannot be followed ends editing: the octets pass as they are, and the peers judge them. Where a direction's header
blocks have been sent as literals its receiver knows nothing of the sender's dynamic table, so passing the rest would
put wrong headers into a call. The receiver gets an undecodable header block instead, says COMPRESSION_ERROR ("unable to
maintain the field section compression context", RFC 9113 7) and closes; nothing of that direction passes after it.
"""

from __future__ import annotations

from a2a_proxy.model.chunk import Direction
from a2a_proxy.relay.edits.edit import UNLIMITED, EditFact, EditPlan, Output, traced
from a2a_proxy.relay.edits.http2_cards import CardCalls
from a2a_proxy.relay.edits.http2_delivery import FlowController, Other
from a2a_proxy.relay.edits.http2_frames import (
    ACK,
    END_STREAM,
    HEAD,
    HEADER_TABLE_SIZE,
    HEADERS,
    RST_STREAM,
    SETTINGS,
    STREAM_MASK,
    WINDOW_UPDATE,
    HeaderBlockFrame,
    Http2Frame,
    settings_of,
    uint32,
    undecodable,
)
from a2a_proxy.relay.edits.http2_headers import (
    HeaderChange,
    LiteralWriter,
    RequestHead,
    RequestHeaders,
    ResponseHeaders,
    parent_field,
)
from a2a_proxy.relay.edits.http2_scan import Http2Scanner, Whole
from a2a_proxy.wire.http2_frame import Violation, describe

_TO_AGENT, _TO_CLIENT = Direction.TO_AGENT, Direction.TO_CLIENT
_CHANGES_TOLD = 100


class Http2Editor:
    """An `Editor` of one connection that begins with the HTTP/2 preface."""

    def __init__(self, plan: EditPlan) -> None:
        self.budget = UNLIMITED
        self.position = 0
        self._plan = plan
        self._facts: list[EditFact] = []
        self._told: set[HeaderChange] = set()
        self._latest: tuple[HeaderChange, ...] = ()
        self._highest = 0
        self._requests = RequestHeaders(plan.authority, trace=plan.trace is not None)
        self._responses = ResponseHeaders()
        self._writer = LiteralWriter()
        self._delivery = FlowController(self._responses)
        self._cards = (
            None if plan.cards is None else CardCalls(plan.cards, plan.listen, self._delivery, self._facts.append)
        )
        agent, client = self._scanners(cards=plan.cards is not None)
        self._agent = self._delivery.agent = agent
        self._client = self._delivery.client = client
        self._sides = (agent, client)
        if not self._requests.rewriting and plan.cards is None:
            agent.pass_all()
            client.pass_all()

    def _scanners(self, cards: bool) -> tuple[Http2Scanner, Http2Scanner]:
        to_agent: dict[int, Whole] = {}
        to_client: dict[int, Whole] = {SETTINGS: self._on_agent_settings}
        if not cards:
            return Http2Scanner(to_agent, self._on_request, preface=True), Http2Scanner(to_client)
        to_agent[SETTINGS] = self._on_client_settings
        to_agent[WINDOW_UPDATE] = self._on_window_update
        to_agent[RST_STREAM] = self._on_client_reset
        to_client[RST_STREAM] = self._on_agent_reset
        return (
            Http2Scanner(to_agent, self._on_request, preface=True),
            Http2Scanner(to_client, self._on_response, self._delivery.begin),
        )

    # Editor

    def feed(self, direction: Direction, data: bytes, now: float, start: int = 0) -> list[Output]:
        """Octets that the sender of `direction` sent; what is to be written now."""
        scanner = self._sides[direction]
        if self._cards is not None:
            self._cards.now = now
        scanner.budget, self.position = self.budget, len(data)
        try:
            self.position = scanner.feed(data, start)
        except Violation as wrong:
            self._fail(direction, wrong)
        self.budget = scanner.budget
        if self._sides[1 - direction].out:
            return self._collect(direction)
        out = scanner.out
        octets = out[0] if len(out) == 1 else b"".join(out)
        out.clear()
        return [Output(direction, octets)] if octets else []

    def eof(self, direction: Direction, now: float) -> list[Output]:
        """The sender of `direction` sent FIN: what was held is released, as far as the client's windows let it."""
        if self._cards is not None:
            self._cards.now = now
            self._cards.end()
            whose = "client" if direction is _TO_AGENT else "agent"
            self._client.put(self._delivery.let_all_go(f"the {whose} sends no more"))
        if not self._sides[direction].dumb:
            self._sides[direction].eof()
        return self._collect(direction)

    def tick(self, now: float) -> list[Output]:
        """To be called when `deadline` has come: what was held too long is released."""
        if self._cards is None:
            return []
        self._cards.now = now
        self._client.put(self._cards.late())
        return self._collect(_TO_CLIENT)

    @property
    def deadline(self) -> float | None:
        """When to call `tick`; None: nothing is held."""
        return self._cards.deadline if self._cards is not None else None

    @property
    def active(self) -> bool:
        """False: editing has ended for good and nothing is held."""
        return not (self._agent.opaque and self._client.opaque)

    def edits(self) -> list[EditFact]:
        """What changed since this was last asked."""
        facts = self._facts[:]
        self._facts.clear()
        return facts

    def _collect(self, direction: Direction) -> list[Output]:
        sent = []
        for side in (direction, direction.other):
            out = self._sides[side].out
            if out and (octets := b"".join(out)):
                sent.append(Output(side, octets))
            out.clear()
        return sent

    # The client's frames

    def _on_request(self, block: HeaderBlockFrame) -> bytes | None:
        request = self._requests.read(bytes(block.fragment))
        stream = block.stream
        if stream > self._highest:
            self._highest = stream
            if request.form and self._cards is not None:
                self._cards.call(stream, request.form, request.authority)
        if not request.encoded:
            return None
        if request.changes is not self._latest:
            self._latest = request.changes
            self._tell(request.changes, block.start)
        return self._writer.frames(block, request.encoded + self._traced(request, block))

    def _traced(self, request: RequestHead, block: HeaderBlockFrame) -> bytes:
        if request.origin is None or self._plan.trace is None:
            return b""
        after = request.origin.next(self._plan.trace)
        self._facts.append(traced(block.stream, block.start, request.origin, after, state=request.stateless))
        return parent_field(after)

    def _tell(self, changes: tuple[HeaderChange, ...], offset: int) -> None:
        for change in changes:
            if change not in self._told and len(self._told) < _CHANGES_TOLD:
                self._told.add(change)
                before, after = change.before.decode("latin-1"), change.after.decode("latin-1")
                self._facts.append(EditFact(_TO_AGENT, change.kind, offset, {"before": before, "after": after}))

    def _on_client_settings(self, frame: Http2Frame) -> None:
        if not frame.flags & ACK:
            payload = _settings(frame)
            self._delivery.settings(payload)
            _allow(self._responses, payload)

    def _on_window_update(self, frame: Http2Frame) -> bytes | None:
        if len(frame.raw) != HEAD + 4:
            got = describe(WINDOW_UPDATE, frame.stream, len(frame.raw) - HEAD)
            raise Violation(frame.start, "WINDOW_UPDATE of 4 octets", got)
        return self._delivery.update(frame.stream, uint32(frame.raw, HEAD)[0] & STREAM_MASK)

    def _on_client_reset(self, frame: Http2Frame) -> None:
        self._delivery.client_reset(frame.stream)

    # The agent's frames

    def _on_agent_settings(self, frame: Http2Frame) -> bytes | None:
        if not frame.flags & ACK:
            _allow(self._requests, _settings(frame))
        elif self._cards is not None and (released := self._delivery.acknowledged()):
            return released + frame.raw
        return None

    def _on_response(self, block: HeaderBlockFrame) -> bytes | None:
        assert self._cards is not None
        responses, ends = self._responses, bool(block.flags & END_STREAM)
        response = responses.read(bytes(block.fragment))
        if block.kind == HEADERS:
            if self._delivery.waits(block.stream):
                responses.rewrite()
                self._delivery.behind(block.stream, Other(response.encoded(), ends, block))
                return b""
            self._cards.answer(block.stream, response, ends, block.start)
        return responses.frames(block, response.encoded()) if responses.rewriting else None

    def _on_agent_reset(self, frame: Http2Frame) -> bytes | None:
        return self._delivery.agent_reset(frame.stream, frame.raw)

    # The end of editing

    def _fail(self, direction: Direction, wrong: Violation) -> None:
        """A direction cannot be followed: see the top of this module."""
        reason = f"expected {wrong.expected}, got {wrong.got}"
        self._facts.append(EditFact(direction, "ended", wrong.offset, {"reason": reason}))
        if self._cards is not None:
            self._cards.end()
            self._client.put(self._delivery.dump())
        scanner = self._sides[direction]
        writes_literals = self._writer.began if direction is _TO_AGENT else self._responses.rewriting
        if not writes_literals:
            scanner.pass_all()
        else:
            scanner.drop_all()
            scanner.out.append(undecodable(self._highest + 2 if direction is _TO_AGENT else self._highest))
        self._end_other(direction)

    def _end_other(self, failed: Direction) -> None:
        """The direction across goes on where its header blocks must still be sent as literals."""
        if failed is _TO_AGENT and not self._responses.rewriting:
            self._client.pass_all()
        elif failed is _TO_CLIENT and not self._requests.rewriting:
            self._agent.pass_all()


def _settings(frame: Http2Frame) -> bytes:
    payload = frame.raw[HEAD:]
    if frame.stream or len(payload) % 6:
        got = describe(SETTINGS, frame.stream, len(payload))
        raise Violation(frame.start, "SETTINGS on stream 0 of 6 octets each", got)
    return payload


def _allow(headers: RequestHeaders | ResponseHeaders, payload: bytes) -> None:
    for name, value in settings_of(payload):
        if name == HEADER_TABLE_SIZE:
            headers.allow(value)
