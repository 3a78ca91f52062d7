"""The editor of an HTTP/2 connection: request authority, `traceparent`, agent cards, and over gRPC
the URLs of webhooks.

If the authority or `traceparent` is rewritten, every header block of the client is decoded and sent
as literals without its padding. If messages are edited, header blocks are only read, to learn the
path of a call and the kind of its response; those of the agent are sent as literals from the first
response on whose head waits for a card in JSON.

Bytes that cannot be followed end editing: they are forwarded unchanged, and the peers judge them.
If header blocks of a direction were sent as literals, its receiver lacks the sender's dynamic
table, so forwarding the rest would put wrong headers into a call. The receiver gets an undecodable
header block instead, answers COMPRESSION_ERROR ("unable to maintain the field section compression
context", RFC 9113 7) and closes; nothing of that direction is sent after it.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from a2a_proxy.http.h2 import (
    ACK,
    DATA,
    END_STREAM,
    FRAME_HEAD_SIZE,
    HEADERS,
    RST_STREAM,
    SETTINGS,
    Frame,
    HeaderBlock,
    Violation,
    encode_block,
)
from a2a_proxy.http.h2_scan import EditFrame, Http2Scanner
from a2a_proxy.model.wire import Direction
from a2a_proxy.protocol.schema import JSON
from a2a_proxy.relay.edits.edit import EditFact, EditPlan, Output, traceparent_edit
from a2a_proxy.relay.edits.http2_delivery import FlowController, QueuedFrame
from a2a_proxy.relay.edits.http2_headers import (
    HeaderChange,
    LiteralWriter,
    RequestHead,
    RequestHeaders,
    ResponseHead,
    ResponseHeaders,
    encode_traceparent,
)
from a2a_proxy.relay.edits.http2_messages import CardEdit, HeldBody, HeldMessages
from a2a_proxy.relay.edits.http2_stage import Http2Stage

if TYPE_CHECKING:
    from a2a_proxy.relay.edits.push_config import PushCall

_TO_AGENT, _TO_CLIENT = Direction.TO_AGENT, Direction.TO_CLIENT
_MAX_NOTED_CHANGES = 100
_NOTHING_HELD = (0, 0)


class Http2Editor(Http2Stage):
    """An `Editor` of one connection that begins with the HTTP/2 preface."""

    delays = (False, False)

    def __init__(self, plan: EditPlan) -> None:
        self._plan = plan
        self._noted_changes: set[HeaderChange] = set()
        self._latest_changes: tuple[HeaderChange, ...] = ()
        self._requests = RequestHeaders(
            plan.authority,
            trace=plan.trace is not None,
            cards=plan.cards is not None,
            webhooks=plan.webhooks is not None,
        )
        self._responses = ResponseHeaders()
        self._writer = LiteralWriter()
        self._delivery = FlowController(self._responses)
        self._answers = (
            HeldMessages(_TO_CLIENT, self._delivery, self) if plan.cards or plan.webhooks else None
        )
        self._calls = (
            HeldMessages(_TO_AGENT, FlowController(ResponseHeaders(), "client", "agent"), self)
            if plan.webhooks
            else None
        )
        """The requests whose messages are held; None if no message of a client is edited."""
        self._held = [messages for messages in (self._calls, self._answers) if messages is not None]
        agent, client = self._make_scanners()
        super().__init__(agent, client)
        self._agent = self._delivery.to_sender = agent
        self._client = self._delivery.to_receiver = client
        if self._calls is not None:
            self._calls.delivery.to_sender, self._calls.delivery.to_receiver = client, agent
        if not self._requests.rewriting and self._answers is None:
            agent.pass_all()
            client.pass_all()

    def _make_scanners(self) -> tuple[Http2Scanner, Http2Scanner]:
        to_agent: dict[int, EditFrame] = {}
        to_client: dict[int, EditFrame] = {SETTINGS: self._on_agent_settings}
        known = self._requests.unchanged
        if self._answers is None:
            return Http2Scanner(
                whole=to_agent, blocks=self._on_request, preface=True, known=known
            ), Http2Scanner(whole=to_client)
        to_agent[SETTINGS] = self._on_client_settings
        to_agent[RST_STREAM] = self._on_client_reset
        to_client[RST_STREAM] = self._on_agent_reset
        delivery, responses = self._delivery, self._responses
        calls = None if self._calls is None else self._calls.delivery
        return (
            Http2Scanner(
                whole=to_agent,
                blocks=self._on_request,
                windows=delivery.apply_window_update,
                on_data=(lambda *_: None) if calls is None else calls.begin_data,
                preface=True,
                known=known,
                watched=() if calls is None else calls.streams,
            ),
            Http2Scanner(
                whole=to_client,
                blocks=self._on_response,
                windows=None if calls is None else calls.apply_window_update,
                on_data=delivery.begin_data,
                known=responses.unchanged,
                watched=delivery.streams,
            ),
        )

    # Interface of `QuickEditor`

    def pass_to_agent(self, _: bytes) -> bool:
        """Return False: `feed` must be called."""
        return False

    def pass_to_client(self, data: bytes) -> bool:
        """Account for a DATA frame while no message is edited, and return True; False if `feed`
        must be called."""
        scanner, length = self._client, len(data) - FRAME_HEAD_SIZE
        if (
            length < 0
            or data[3] != DATA
            or int.from_bytes(data[:3]) != length
            or scanner.is_inside_frame
        ):
            return False
        if self._answers is not None:  # otherwise nothing is held, and no windows are followed
            delivery = self._delivery
            if delivery.streams or delivery.connection < length:
                return False
            delivery.connection -= length
        scanner.offset += len(data)
        return True

    # Interface of `Editor`

    def feed_eof(self, direction: Direction, now: float) -> list[Output]:
        """Handle a FIN of the sender of `direction`: held bytes are released as far as the client's
        windows allow."""
        whose = "client" if direction is _TO_AGENT else "agent"
        self.now = now
        for messages in self._held:
            messages.stop()
            released = messages.delivery.release_all_holds(f"the {whose} sends no more")
            self._scanners[messages.direction].insert_frames(released)
        if not self._scanners[direction].dumb:
            self._scanners[direction].feed_eof()
        return self._collect_outputs()

    def tick(self, now: float) -> list[Output]:
        """Release bytes that were held too long. Must be called at `deadline`."""
        self.now = now
        for messages in self._held:
            self._scanners[messages.direction].insert_frames(messages.release_overdue())
        return self._collect_outputs()

    @property
    def deadline(self) -> float | None:
        """When to call `tick`; None if nothing is held."""
        if self._answers is None:
            return None
        if self._calls is None or self._calls.deadline is None:
            return self._answers.deadline if self._answers.held else None
        return min(self._calls.deadline, self._answers.deadline or self._calls.deadline)

    @property
    def held_bytes(self) -> tuple[int, int]:
        """Bytes of DATA of each direction that are held or wait for the receiver's windows."""
        if self._calls is not None:
            to_agent = self._calls.delivery.queued_bytes - self._agent.missing_bytes
        elif not self._delivery.queued_bytes:  # in most cases
            return _NOTHING_HELD
        else:
            to_agent = 0
        return to_agent, self._delivery.queued_bytes - self._client.missing_bytes

    @property
    def is_active(self) -> bool:
        """False once editing has ended and nothing is held."""
        return not (self._agent.is_passing and self._client.is_passing)

    # The client's frames

    def _on_request(self, block: HeaderBlock) -> bytes | None:
        request = self._requests.read(block.fragment)
        released = (
            b""
            if self._calls is None
            else self._release_before_trailers(self._calls.delivery, block.stream)
        )
        if self._answers is not None and block.stream > self._agent.highest_stream:
            if request.form and self._plan.cards is not None:
                authority = request.authority or self._plan.listen
                self._answers.watch_stream(
                    block.stream,
                    CardEdit(self._plan.cards, request.form, authority),
                    HeldBody if request.form == JSON else None,
                )
            elif request.push is not None and not block.flags & END_STREAM:
                self._watch_push(block, request.push)
        if not request.encoded:
            return released + encode_block(block, block.fragment) if released else None
        if request.changes is not self._latest_changes:
            self._latest_changes = request.changes
            self._note_changes(request.changes, block.start)
        if request.asked:
            detail = {"fields": list(request.asked)}
            self.facts.append(EditFact(_TO_AGENT, "card-request", block.start, detail))
        return released + self._writer.make_frames(
            block, request.encoded + self._encode_traceparent(request, block)
        )

    def _release_before_trailers(self, delivery: FlowController, number: int) -> bytes:
        """Return the DATA that waits on a stream whose client ends it with trailers, which gRPC
        clients do not send. Raises `Violation` if the agent's windows do not cover it."""
        if not delivery.is_waiting(number):
            return b""
        released = delivery.release_stream(delivery.streams[number], "trailers of a request")
        if delivery.is_waiting(number):
            raise Violation(self._agent.offset, "DATA within the windows before trailers", "more")
        return released

    def _watch_push(self, block: HeaderBlock, call: PushCall) -> None:
        """Hold the messages of a call that concerns push configurations."""
        from a2a_proxy.relay.edits.http2_webhooks import PushAnswerEdit, PushRequestEdit

        assert self._answers is not None
        assert self._calls is not None
        assert self._plan.webhooks is not None
        edit, watched = PushRequestEdit(call, self._plan.webhooks), True
        if call.kind == "send":
            edit.on_replaced = partial(self._answers.watch_failure, block.stream, edit.withdraw)
        if call.kind in ("send", "create", "delete"):
            watched = self._calls.watch_stream(block.stream, edit)
        if call.kind != "send":
            answer = PushAnswerEdit(edit, self._plan.webhooks)
            watched = self._answers.watch_stream(block.stream, answer) and watched
        if not watched:
            detail = {"reason": "there are too many calls at the same time", "what": "webhook"}
            self._calls.note_edit("untouched", block.start, detail)

    def _encode_traceparent(self, request: RequestHead, block: HeaderBlock) -> bytes:
        if request.origin is None or self._plan.trace is None:
            return b""
        after = request.origin.next_traceparent(self._plan.trace)
        self.facts.append(
            traceparent_edit(
                block.stream, block.start, request.origin, after, state=request.stateless
            )
        )
        return encode_traceparent(after)

    def _note_changes(self, changes: tuple[HeaderChange, ...], offset: int) -> None:
        for change in changes:
            if change not in self._noted_changes and len(self._noted_changes) < _MAX_NOTED_CHANGES:
                self._noted_changes.add(change)
                before, after = change.before.decode("latin-1"), change.after.decode("latin-1")
                self.facts.append(
                    EditFact(_TO_AGENT, change.kind, offset, {"before": before, "after": after})
                )

    def _on_client_settings(self, frame: Frame) -> bytes | None:
        if not frame.flags & ACK:
            self._delivery.apply_settings(frame)
            self._responses.apply_settings(frame.read_settings())
        elif self._calls is not None and (released := self._calls.delivery.on_settings_ack()):
            return released + frame.raw
        return None

    def _on_client_reset(self, frame: Frame) -> bytes | None:
        self._delivery.on_receiver_reset(frame.stream)
        return (
            None
            if self._calls is None
            else self._calls.delivery.on_sender_reset(frame.stream, frame.raw)
        )

    # The agent's frames

    def _on_agent_settings(self, frame: Frame) -> bytes | None:
        if not frame.flags & ACK:
            self._requests.apply_settings(frame.read_settings())
            if self._calls is not None:
                self._calls.delivery.apply_settings(frame)
        elif self._answers is not None and (released := self._delivery.on_settings_ack()):
            return released + frame.raw
        return None

    def _on_response(self, block: HeaderBlock) -> bytes | None:
        assert self._answers is not None
        responses = self._responses
        response = responses.read(block.fragment)
        if block.kind == HEADERS:
            if self._delivery.is_waiting(block.stream):
                return self._on_later_block(block, response)
            if self._answers.on_response(block, response):
                return b""
        return responses.make_frames(block, response.encode_head()) if responses.rewriting else None

    def _on_later_block(self, block: HeaderBlock, response: ResponseHead) -> bytes:
        """Handle a header block of the agent on a stream with waiting frames, and return the bytes
        to send now."""
        responses, delivery, ends = self._responses, self._delivery, bool(block.flags & END_STREAM)
        responses.start_rewriting()
        encoded, hold = response.encode_head(), delivery.streams[block.stream].hold
        released = b""
        if isinstance(hold, HeldBody) and not ends:
            released = hold.release_bytes("a header block inside the body")
            if not delivery.is_waiting(block.stream):
                return released + responses.make_frames(block, encoded)
        delivery.queue_frame(block.stream, QueuedFrame(encoded, ends, block))
        return hold.on_trailers(response) if isinstance(hold, HeldBody) and ends else released

    def _on_agent_reset(self, frame: Frame) -> bytes | None:
        if self._calls is not None:
            self._calls.delivery.on_receiver_reset(frame.stream)
        return self._delivery.on_sender_reset(frame.stream, frame.raw)

    # The end of editing

    def _stop_direction(self, direction: Direction, wrong: Violation) -> None:
        """End editing because a direction cannot be followed: see the module docstring."""
        for messages in self._held:
            messages.stop()
            self._scanners[messages.direction].insert_frames(messages.delivery.flush_unbounded())
        writes_literals = (
            self._writer.began if direction is _TO_AGENT else self._responses.rewriting
        )
        if writes_literals:
            super()._stop_direction(direction, wrong)
        else:
            reason = f"expected {wrong.expected}, got {wrong.got}"
            self.facts.append(EditFact(direction, "ended", wrong.offset, {"reason": reason}))
            self._scanners[direction].pass_all()
        self._stop_other_direction(direction)

    def _stop_other_direction(self, failed: Direction) -> None:
        """Stop scanning the other direction, unless its header blocks must still be sent as
        literals."""
        if failed is _TO_AGENT and not self._responses.rewriting:
            self._client.pass_all()
        elif failed is _TO_CLIENT and not self._requests.rewriting:
            self._agent.pass_all()
