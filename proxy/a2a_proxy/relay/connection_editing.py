"""The editing of one connection: runs an editor between its two legs. Bytes in, timers, bytes out, in any protocol."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial

import msgspec

from a2a_proxy.model.chunk import Direction
from a2a_proxy.relay.edits.edit import ConsoleNote, EditFact, Editor, EditPlan, Output, QuickEditor

Write = Callable[[bytes], object]

WORK_AT_ONCE = 8192
"""Units of work (`Editor.budget`) that a connection may do for bytes received within one millisecond: about 400 small
requests, which is more than it can do in that time without delaying others. The rest is queued."""
WORK_PER_STEP = 1024
"""Units of queued work of one connection before the next connection gets its turn."""
WORK_PER_TURN = 4096
"""Units of queued work of all connections in one turn of the event loop: about 1 ms."""

_TO_AGENT, _TO_CLIENT = Direction.TO_AGENT, Direction.TO_CLIENT
_RECORDED_KINDS = frozenset(
    {"host", "authority", "traceparent", "card", "card-request", "webhook", "fault", "fault-end"}
)


class _Backlog(msgspec.Struct, frozen=True):
    """Bytes of one direction that wait for the next turn of the event loop."""

    data: bytes
    start: int
    """Index in `data` up to which the bytes are handled."""


class WorkQueue:
    """Work of all connections that is deferred to later turns of the event loop. Connections take turns."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[Callable[[], int]] = deque()
        self._scheduled = False

    def add(self, step: Callable[[], int]) -> None:
        """Call `step` once, in a later turn. It returns the units of work that it did."""
        self._waiting.append(step)
        self._schedule_turn()

    def _schedule_turn(self) -> None:
        if self._waiting and not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._run_turn)

    def _run_turn(self) -> None:
        left, waiting = WORK_PER_TURN, self._waiting
        try:
            while waiting and left > 0:
                left -= waiting.popleft()()
        finally:
            self._scheduled = False
            self._schedule_turn()


class ConnectionEditing:
    """Feeds one editor. Its methods return the edits to record in the journal.

    Of the bytes received in one turn, WORK_AT_ONCE units are processed immediately. The others wait in a backlog that
    the queue processes in order; `delay` tells the caller to stop reading meanwhile.
    """

    def __init__(
        self,
        editor: Editor,
        loop: asyncio.AbstractEventLoop,
        queue: WorkQueue,
        forwards: tuple[Write, Write],
        writes: tuple[Write, Write],
        on_edits: Callable[[list[EditFact]], None],
        delay: Callable[[Direction, bool], None],
    ) -> None:
        """Create the editing of one connection. Each pair holds the function for the agent and the one for the client.

        `forwards` are the fast functions for bytes of a peer that has just sent some. `writes` may be called at any
        time, also when the receiver is gone. `on_edits` gets the edits made while no bytes arrived. `delay` is called
        with True when a direction gets a backlog, and with False when the backlog is empty again.
        """
        self._editor = editor
        self._feed_editor, self._take_edits = editor.feed, editor.take_edits
        self._pass_to_agent = editor.pass_to_agent if isinstance(editor, QuickEditor) else _never_pass
        self._pass_to_client = editor.pass_to_client if isinstance(editor, QuickEditor) else _never_pass
        self._loop, self._loop_time = loop, loop.time
        self._forward_to_agent, self._forward_to_client = forwards
        self._writes, self._on_edits = writes, on_edits
        self._timer: asyncio.TimerHandle | None = None
        self._deadline: float | None = None
        self._queue, self._delay = queue, delay
        self._turn = -1.0
        self._backlogs: list[_Backlog | None] = [None, None]

    def forward_to_agent(self, data: bytes) -> list[EditFact] | None:
        """Forward bytes of the client and return the edits made."""
        if self._backlogs[0] is None and self._pass_to_agent(data):
            self._forward_to_agent(data)
            return None
        return self._queue_bytes(_TO_AGENT, data)

    def forward_to_client(self, data: bytes) -> list[EditFact] | None:
        """Forward bytes of the agent and return the edits made."""
        if self._backlogs[1] is None and self._pass_to_client(data):
            self._forward_to_client(data)
            return None
        return self._queue_bytes(_TO_CLIENT, data)

    def feed_eof(self, direction: Direction) -> list[EditFact]:
        """Handle the FIN sent by the sender of `direction` and return the edits made."""
        return self._write_outputs(self._editor.feed_eof(direction, self._loop_time()))

    @property
    def is_active(self) -> bool:
        """Whether the editor may still edit or holds bytes."""
        return self._editor.is_active

    def stop(self) -> None:
        """Stop at once, because the connection is closed."""
        self._cancel_timer()
        self._backlogs = [None, None]

    def finish(self) -> None:
        """Stop after editing has ended: backlogs are forwarded unchanged."""
        backlogs = self._backlogs
        self.stop()
        for direction, backlog in zip(Direction, backlogs, strict=True):
            if backlog is not None:
                self._writes[direction](backlog.data[backlog.start :])
                self._delay(direction, False)

    def _queue_bytes(self, direction: Direction, data: bytes) -> list[EditFact] | None:
        backlog = self._backlogs[direction]
        if backlog is not None:  # reading is paused, but the last bytes before a reset still arrive
            self._backlogs[direction] = _Backlog(backlog.data + data, backlog.start)
            return None
        now = self._loop_time()
        if now != self._turn:  # uvloop reads up to 32 times in one turn, at the same clock time (ms)
            self._turn, self._editor.budget = now, WORK_AT_ONCE
        facts = self._edit_bytes(direction, data, 0, now)
        if self._backlogs[direction] is not None:
            self._delay(direction, True)
        return facts

    def _go_on(self, direction: Direction) -> int:
        backlog, now = self._backlogs[direction], self._loop_time()
        if backlog is None:  # the connection is closed, or editing has ended
            return 0
        self._turn, self._editor.budget = now, WORK_PER_STEP
        if facts := self._edit_bytes(direction, backlog.data, backlog.start, now):
            self._on_edits(facts)
        if self._backlogs[direction] is None:
            self._delay(direction, False)
        return WORK_PER_STEP - self._editor.budget

    def _edit_bytes(self, direction: Direction, data: bytes, start: int, now: float) -> list[EditFact]:
        parts, position = self._feed_editor(direction, data, now, start), self._editor.position
        self._backlogs[direction] = _Backlog(data, position) if position < len(data) else None
        if position < len(data):
            self._queue.add(partial(self._go_on, direction))
        return self._write_outputs(parts)

    def _write_outputs(self, parts: list[Output]) -> list[EditFact]:
        for part in parts:
            self._writes[part.direction](part.data)
        deadline = self._editor.deadline
        if deadline != self._deadline:
            self._arm_timer(deadline)
        return self._take_edits()

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm_timer(self, deadline: float | None) -> None:
        self._cancel_timer()
        self._deadline = deadline
        if deadline is not None:
            self._timer = self._loop.call_at(deadline, self._on_timer)

    def _on_timer(self) -> None:
        self._timer, self._deadline = None, None
        facts = self._write_outputs(self._editor.tick(self._loop_time()))
        if facts:
            self._on_edits(facts)


def _never_pass(_: bytes) -> bool:
    return False


def make_editor(http2: bool, plan: EditPlan) -> Editor:
    """Return the editor for a connection: `http2` says whether it begins with the HTTP/2 preface."""
    if http2:
        from a2a_proxy.relay.edits.http2 import Http2Editor

        return Http2Editor(plan)
    from a2a_proxy.relay.edits.http1 import Http1Editor

    return Http1Editor(plan)


def encode_edit_record(fact: EditFact) -> bytes | None:
    """Return the data of the EDIT record of `fact`, or None if no byte changed."""
    if fact.kind not in _RECORDED_KINDS:
        return None
    return msgspec.json.encode({"kind": fact.kind, "offset": fact.offset, **fact.detail})


def note_for_edit(fact: EditFact) -> ConsoleNote | None:
    """Return a note for the user if an edit could not be made, else None."""
    if fact.kind != "untouched":
        return None
    reason = fact.detail.get("reason")
    if fact.detail.get("what") == "webhook":
        whose = "a request" if fact.direction is _TO_AGENT else "an answer"
        text = f"{whose} was forwarded without a search for webhooks: {reason}"
        return ConsoleNote(text, "if it has a push configuration, its URL stays as it is", loud=True)
    text = f"an agent card was forwarded unchanged: {reason}"
    return ConsoleNote(text, "clients that follow its URLs bypass the proxy", loud=True)
