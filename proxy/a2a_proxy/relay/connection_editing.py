"""The editing of one connection: runs an editor between its two legs. Bytes in, timers, bytes out,
in any protocol."""

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial

import msgspec

from a2a_proxy.model.wire import Direction
from a2a_proxy.relay.edits.edit import (
    ConsoleNote,
    EditFact,
    EditKind,
    Editor,
    EditPlan,
    Output,
    QuickEditor,
)
from a2a_proxy.relay.held_bytes import HeldBytes

Write = Callable[[bytes], object]

WORK_PER_TURN = 8192
"""Units of work (`Editor.budget`) of all connections in one turn of the event loop: about 2 ms, or
400 small requests. Queued work gets the first half, bytes that arrive in the turn get what is left;
the rest is queued."""
WORK_AT_LEAST = 512
"""Units of work that are done at once for received bytes although the work of the turn is spent, so
that a few small messages need not wait until those who send many have taken their turns."""
WORK_PER_STEP = 1024
"""Units of queued work of one connection before the next connection gets its turn."""

_DIRECTIONS = _TO_AGENT, _TO_CLIENT = Direction.TO_AGENT, Direction.TO_CLIENT
_NO_DELAYS = (False, False)
_UNRECORDED_KINDS = frozenset[EditKind]({"untouched", "ended", "answer"})


class _Backlog(msgspec.Struct, frozen=True):
    """Bytes of one direction that wait for a later turn of the event loop."""

    data: bytes
    start: int
    """Index in `data` up to which the bytes are handled."""
    later: list[bytes]
    """Bytes that arrived after `data`."""


class WorkQueue:
    """The work of all connections, divided among the turns of the event loop. Work beyond that of
    one turn is queued, and connections take turns."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.left = WORK_PER_TURN
        """Units of work that may be done at once; the rest must be queued."""
        self._loop = loop
        self._waiting: deque[Callable[[], int]] = deque()
        self._scheduled = False

    def add(self, step: Callable[[], int]) -> None:
        """Call `step` once, in a later turn. It returns the units of work that it did."""
        self._waiting.append(step)
        self.schedule_turn()

    def spend(self, units: int) -> None:
        """Account for work that was done at once."""
        self.left -= units
        if self.left <= WORK_PER_TURN // 2:
            self.schedule_turn()

    def schedule_turn(self) -> None:
        """Call the queued steps, and renew the work that may be done at once, in the next turn."""
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._run_turn)

    def _run_turn(self) -> None:
        waiting, self.left = self._waiting, WORK_PER_TURN
        try:
            while waiting and self.left > WORK_PER_TURN // 2:
                self.left -= waiting.popleft()()
        finally:
            self._scheduled = False
            if waiting or self.left <= WORK_PER_TURN // 2:
                self.schedule_turn()


class ConnectionEditing:
    """Feeds one editor. Its methods return the edits to record in the journal.

    Received bytes are processed immediately as far as the work of the turn allows. The others wait
    in a backlog that the queue processes in order; `delay` tells the caller to stop reading
    meanwhile, and while the editor delays a direction or all connections together hold too many
    bytes.
    """

    def __init__(
        self,
        editor: Editor,
        loop: asyncio.AbstractEventLoop,
        queue: WorkQueue,
        account: HeldBytes,
        forwards: tuple[Write, Write],
        writes: tuple[Write, Write],
        on_edits: Callable[[list[EditFact]], None],
        delay: Callable[[Direction, bool], None],
    ) -> None:
        """Create the editing of one connection. Each pair holds the function for the agent and the
        one for the client.

        `account` counts the held bytes. `forwards` are the fast functions for bytes of a peer that
        has just sent some. `writes` may be called at any time, also when the receiver is gone.
        `on_edits` gets the edits made while no bytes arrived. `delay` is called with True when the
        bytes of a direction must wait, and with False when they need not wait any more.
        """
        self._editor = editor
        self._feed_editor, self._take_edits = editor.feed, editor.take_edits
        self._pass_to_agent = (
            editor.pass_to_agent if isinstance(editor, QuickEditor) else _never_pass
        )
        self._pass_to_client = (
            editor.pass_to_client if isinstance(editor, QuickEditor) else _never_pass
        )
        self._loop, self._loop_time = loop, loop.time
        self._forward_to_agent, self._forward_to_client = forwards
        self._writes, self._on_edits = writes, on_edits
        self._timer: asyncio.TimerHandle | None = None
        self._deadline: float | None = None
        self._queue, self._account, self._delay = queue, account, delay
        self._backlogs: list[_Backlog | None] = [None, None]
        self._held = (0, 0)
        """Bytes of each direction that are in the account."""
        self._waits = [False, False]
        """For each direction, whether no more bytes are read because of the account."""
        self._delayed = [False, False]
        self._may_delay = False
        """Whether a direction is delayed, or has to be because of a backlog or of the account."""
        self._is_stopped = False

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
        """Handle the FIN sent by the sender of `direction` and return the edits made. The FIN must
        not be passed on if the direction is delayed afterwards: then call again after the delay."""
        self._editor.budget = WORK_PER_STEP
        facts = self._write_outputs(self._editor.feed_eof(direction, self._loop_time()))
        self._queue.spend(WORK_PER_STEP - self._editor.budget)
        self._begin_delays()
        return facts

    @property
    def is_active(self) -> bool:
        """Whether the editor may still edit or holds bytes."""
        return self._editor.is_active

    def stop(self) -> None:
        """Stop at once, because the connection is closed."""
        self._cancel_timer()
        self._is_stopped = True
        self._backlogs = [None, None]
        self._account.add(-sum(self._held))
        self._held = (0, 0)

    def finish(self) -> None:
        """Stop after editing has ended: backlogs are forwarded unchanged."""
        backlogs = self._backlogs
        self.stop()
        for direction, backlog in zip(Direction, backlogs, strict=True):
            if backlog is not None:
                self._writes[direction](b"".join([backlog.data[backlog.start :], *backlog.later]))
            if self._delayed[direction]:
                self._delay(direction, False)

    def _queue_bytes(self, direction: Direction, data: bytes) -> list[EditFact] | None:
        backlog = self._backlogs[direction]
        if backlog is not None:  # reading is paused, but the last bytes before a reset still arrive
            backlog.later.append(data)
            return None
        editor, queue = self._editor, self._queue
        editor.budget = budget = queue.left if queue.left > WORK_AT_LEAST else WORK_AT_LEAST
        facts = self._edit_bytes(direction, data, 0, self._loop_time())
        queue.left -= budget - editor.budget
        if queue.left <= WORK_PER_TURN // 2:
            queue.schedule_turn()
        if self._may_delay or editor.delays != _NO_DELAYS:
            self._begin_delays()
        return facts

    def _go_on(self, direction: Direction) -> int:
        backlog = self._backlogs[direction]
        if backlog is None:  # the connection is closed, or editing has ended
            return 0
        data = b"".join([backlog.data, *backlog.later]) if backlog.later else backlog.data
        return self._do_step(partial(self._edit_bytes, direction, data, backlog.start))

    def _do_step(self, step: Callable[[float], list[EditFact]]) -> int:
        """Do a step of the work in a turn of its own, at the time that it gets, and return its
        units."""
        self._editor.budget = WORK_PER_STEP
        if facts := step(self._loop_time()):
            self._on_edits(facts)
        self._update_delays()
        return WORK_PER_STEP - self._editor.budget

    def _edit_bytes(
        self, direction: Direction, data: bytes, start: int, now: float
    ) -> list[EditFact]:
        parts, position = self._feed_editor(direction, data, now, start), self._editor.position
        if position < len(data):
            self._keep_backlog(direction, data, position)
        else:
            self._backlogs[direction] = None
        return self._write_outputs(parts)

    def _keep_backlog(self, direction: Direction, data: bytes, start: int) -> None:
        self._backlogs[direction], self._may_delay = _Backlog(data, start, []), True
        self._queue.add(partial(self._go_on, direction))

    def _write_outputs(self, parts: list[Output]) -> list[EditFact]:
        for part in parts:
            self._writes[part.direction](part.data)
        deadline = self._editor.deadline
        if deadline != self._deadline:
            self._arm_timer(deadline)
        held = self._editor.held_bytes
        if held != self._held:
            self._account_for(held)
        return self._take_edits()

    def _account_for(self, held: tuple[int, int]) -> None:
        self._account.add(sum(held) - sum(self._held))
        self._held = held
        for direction in _DIRECTIONS:
            if not self._account.must_wait(held[direction]):
                self._waits[direction] = False
            elif not self._waits[direction]:
                self._waits[direction] = self._may_delay = True
                self._account.wait(partial(self._end_wait, direction))

    def _end_wait(self, direction: Direction) -> None:
        self._waits[direction] = False
        self._update_delays()

    def _must_delay(self, direction: Direction) -> bool:
        return (
            self._backlogs[direction] is not None
            or self._waits[direction]
            or self._editor.delays[direction]
        )

    def _begin_delays(self) -> None:
        """Begin the delays that are necessary now. Those that are not end in another turn, because
        the caller has not recorded the received bytes and their edits yet."""
        self._may_delay = False
        for direction in _DIRECTIONS:
            must_delay = self._must_delay(direction)
            self._may_delay = self._may_delay or must_delay or self._delayed[direction]
            if must_delay and not self._delayed[direction]:
                self._delayed[direction] = True
                self._delay(direction, True)
            elif self._delayed[direction] and not must_delay:
                self._loop.call_soon(self._update_delays)

    def _update_delays(self) -> None:
        for direction in _DIRECTIONS:
            if not self._is_stopped and self._must_delay(direction) is not self._delayed[direction]:
                self._delayed[direction] = not self._delayed[direction]
                self._may_delay = True
                self._delay(direction, self._delayed[direction])

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
        self._timer = None
        self._queue.add(self._tick)

    def _tick(self) -> int:
        if self._is_stopped:
            return 0
        self._deadline = None
        return self._do_step(lambda now: self._write_outputs(self._editor.tick(now)))


def _never_pass(_: bytes) -> bool:
    return False


def make_editor(http2: bool, plan: EditPlan) -> Editor:
    """Return the editor for a connection: `http2` says whether it begins with the HTTP/2
    preface."""
    if http2:
        from a2a_proxy.relay.edits.http2 import Http2Editor

        return Http2Editor(plan)
    from a2a_proxy.relay.edits.http1 import Http1Editor

    return Http1Editor(plan)


def encode_edit_record(fact: EditFact) -> bytes | None:
    """Return the data of the EDIT record of `fact`, or None if no byte changed."""
    if fact.kind in _UNRECORDED_KINDS:
        return None
    return msgspec.json.encode({"kind": fact.kind, "offset": fact.offset, **fact.detail})


def note_for_edit(fact: EditFact) -> ConsoleNote | None:
    """Return a note for the user if an edit could not be made, else None."""
    if fact.kind == "ended" and fact.detail.get("refused"):
        whose = "a client" if fact.direction is _TO_AGENT else "an agent"
        text = f"the proxy cannot edit the HTTP/2 of {whose} and ends its connection"
        hint = "without options that edit or fault traffic it is relayed unchanged"
        return ConsoleNote(f"{text}: {fact.detail['reason']}", hint, loud=True)
    if fact.kind != "untouched":
        return None
    reason = fact.detail.get("reason")
    if fact.detail.get("what") == "webhook":
        whose = "a request" if fact.direction is _TO_AGENT else "an answer"
        text = f"{whose} was forwarded without a search for webhooks: {reason}"
        return ConsoleNote(
            text, "if it has a push configuration, its URL stays as it is", loud=True
        )
    if fact.detail.get("what") == "fault":
        whose = "a request" if fact.direction is _TO_AGENT else "an answer"
        return ConsoleNote(f"{whose} was forwarded without faults: {reason}", loud=True)
    text = f"an agent card was forwarded unchanged: {reason}"
    return ConsoleNote(text, "clients that follow its URLs bypass the proxy", loud=True)
