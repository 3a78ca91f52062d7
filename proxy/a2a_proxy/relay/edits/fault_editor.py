"""The editor of a connection with faults: the other edits are next to the client, the faults next
to the agent.

So the other editor sees the client's bytes as they were sent, and a conversation without
contradictions; the faults see the agent's.
"""

from collections import deque

from a2a_proxy.model.wire import Direction
from a2a_proxy.relay.edits.edit import UNLIMITED, EditFact, Editor, Output

_TO_AGENT, _TO_CLIENT = Direction.TO_AGENT, Direction.TO_CLIENT


class FaultEditor:
    """An `Editor` that consists of another one, if there are other edits, and a stage of faults."""

    def __init__(self, stage: Editor, inner: Editor | None) -> None:
        self.budget = UNLIMITED
        self.position = 0
        self._editors = (stage, stage) if inner is None else (inner, stage)
        """The editors that get the bytes of each direction first."""
        self._parts = (stage,) if inner is None else (stage, inner)
        self._between: tuple[deque[bytes], deque[bytes]] = (deque(), deque())
        """Bytes of each direction that the first editor has sent and the second has not handled."""
        self._starts = [0, 0]
        """Index in the first of these bytes up to which the second editor has handled them."""

    def feed(self, direction: Direction, data: bytes, now: float, start: int = 0) -> list[Output]:
        """Handle bytes of the sender of `direction` and return the bytes to write now."""
        sent: list[Output] = []
        self.position = start
        self._feed_second(now, sent)
        if not self._between[direction]:
            self.position = self._feed_one(
                self._editors[direction], direction, data, now, start, sent
            )
            self._feed_second(now, sent)
        return sent

    def feed_eof(self, direction: Direction, now: float) -> list[Output]:
        """Handle a FIN of the sender of `direction` and return the held bytes. Must be called again
        after the end of the delay of that direction, if it is delayed."""
        sent: list[Output] = []
        first = self._editors[direction]
        for editor in dict.fromkeys((first, *self._parts)):
            if editor is first or not self.delays[direction]:
                self._pass_on(editor, editor.feed_eof(direction, now), sent)
                self._feed_second(now, sent)
        return sent

    def tick(self, now: float) -> list[Output]:
        """Return the bytes that are due in either part."""
        sent: list[Output] = []
        self._feed_second(now, sent)
        for editor in self._parts:
            editor.budget = self.budget
            parts = editor.tick(now)
            self.budget = editor.budget
            self._pass_on(editor, parts, sent)
        self._feed_second(now, sent)
        return sent

    @property
    def deadline(self) -> float | None:
        """When to call `tick`; None if nothing is held."""
        if any(self._between):
            return 0.0
        return min(
            [due for each in self._parts if (due := each.deadline) is not None], default=None
        )

    @property
    def delays(self) -> tuple[bool, bool]:
        """Whether no more bytes must be read of each direction, and its end must wait."""
        to_agent, to_client = self._parts[0].delays
        return to_agent or bool(self._between[0]), to_client or bool(self._between[1])

    @property
    def held_bytes(self) -> tuple[int, int]:
        """Bytes of each direction that are held."""
        to_agent, to_client = zip(*[each.held_bytes for each in self._parts], strict=True)
        return sum(to_agent, sum(map(len, self._between[0]))), sum(
            to_client, sum(map(len, self._between[1]))
        )

    @property
    def is_active(self) -> bool:
        """False once nothing can be edited any more and nothing is held."""
        return any(each.is_active for each in self._parts) or any(self._between)

    def take_edits(self) -> list[EditFact]:
        """Return the edits made since the last call."""
        return [fact for each in self._parts for fact in each.take_edits()]

    def _feed_one(
        self,
        editor: Editor,
        direction: Direction,
        data: bytes,
        now: float,
        start: int,
        sent: list[Output],
    ) -> int:
        """Feed one of the editors, pass on what it sends, and return its position."""
        editor.budget = self.budget
        parts = editor.feed(direction, data, now, start)
        self.budget = editor.budget
        self._pass_on(editor, parts, sent)
        return editor.position

    def _pass_on(self, editor: Editor, parts: list[Output], sent: list[Output]) -> None:
        for part in parts:
            if len(self._parts) > 1 and editor is self._editors[part.direction]:
                self._between[part.direction].append(part.data)
            else:
                sent.append(part)

    def _feed_second(self, now: float, sent: list[Output]) -> None:
        """Feed the bytes between the editors to the second one of their direction, as far as the
        budget allows."""
        while self.budget > 0 and any(self._between):
            direction = _TO_AGENT if self._between[0] else _TO_CLIENT
            data = self._between[direction][0]
            second, start = self._editors[direction.other], self._starts[direction]
            position = self._starts[direction] = self._feed_one(
                second, direction, data, now, start, sent
            )
            if position == len(data):
                self._between[direction].popleft()
                self._starts[direction] = 0
