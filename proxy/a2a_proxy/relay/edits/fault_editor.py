"""The editor of a connection with faults: the other edits are next to the client, the faults next to the agent.

So the other editor sees the client's bytes as they were sent, and a conversation without contradictions; the faults see
the agent's.
"""

from __future__ import annotations

from typing import Protocol

from a2a_proxy.model.chunk import Direction
from a2a_proxy.relay.edits.edit import UNLIMITED, EditFact, Editor, Output

_TO_AGENT, _TO_CLIENT = Direction.TO_AGENT, Direction.TO_CLIENT


class FaultStage(Protocol):
    """The faults of one connection. Never raises."""

    def feed(self, direction: Direction, data: bytes, now: float) -> list[Output]:
        """Handle bytes of the sender of `direction` and return the bytes to write now. `now`: monotonic seconds."""

    def feed_eof(self, direction: Direction, now: float) -> list[Output]:
        """Handle a FIN of the sender of `direction` and return the bytes to write before it."""

    def tick(self, now: float) -> list[Output]:
        """Return the bytes that are due. Must be called at `deadline`."""

    @property
    def deadline(self) -> float | None:
        """When to call `tick`; None if nothing waits for a time."""

    @property
    def is_delaying(self) -> bool:
        """Whether the end of the agent's bytes must wait."""

    @property
    def is_active(self) -> bool:
        """False once all bytes are forwarded unchanged."""

    def take_edits(self) -> list[EditFact]:
        """Return what happened since the last call."""


class FaultEditor:
    """An `Editor` that consists of another one, if there are other edits, and a stage of faults."""

    def __init__(self, stage: FaultStage, inner: Editor | None) -> None:
        self.budget = UNLIMITED
        self.position = 0
        self._stage, self._inner = stage, inner

    def feed(self, direction: Direction, data: bytes, now: float, start: int = 0) -> list[Output]:
        """Handle bytes of the sender of `direction` and return the bytes to write now."""
        inner, self.position = self._inner, len(data)
        if direction is _TO_CLIENT or inner is None:
            return self._pass_on(self._stage.feed(direction, data[start:], now), now)
        inner.budget = self.budget
        parts = inner.feed(direction, data, now, start)
        self.budget, self.position = inner.budget, inner.position
        return self._pass_to_stage(parts, now)

    def feed_eof(self, direction: Direction, now: float) -> list[Output]:
        """Handle a FIN of the sender of `direction` and return the held bytes."""
        stage, inner = self._stage, self._inner
        if inner is None:
            return stage.feed_eof(direction, now)
        if direction is _TO_AGENT:
            return [*self._pass_to_stage(inner.feed_eof(direction, now), now), *stage.feed_eof(direction, now)]
        return [*self._pass_on(stage.feed_eof(direction, now), now), *inner.feed_eof(direction, now)]

    def tick(self, now: float) -> list[Output]:
        """Return the bytes that are due in either part."""
        parts = self._pass_on(self._stage.tick(now), now)
        return parts if self._inner is None else [*parts, *self._pass_to_stage(self._inner.tick(now), now)]

    @property
    def deadline(self) -> float | None:
        """When to call `tick`; None if nothing is held."""
        inner = None if self._inner is None else self._inner.deadline
        found = [each for each in (self._stage.deadline, inner) if each is not None]
        return min(found) if found else None

    @property
    def is_delaying(self) -> bool:
        """Whether the end of the agent's bytes must wait."""
        return self._stage.is_delaying

    @property
    def is_active(self) -> bool:
        """False once nothing can be edited any more and nothing is held."""
        return self._stage.is_active or (self._inner is not None and self._inner.is_active)

    def take_edits(self) -> list[EditFact]:
        """Return the edits made since the last call."""
        return [*self._stage.take_edits(), *(self._inner.take_edits() if self._inner is not None else ())]

    def _pass_on(self, parts: list[Output], now: float) -> list[Output]:
        """Pass what the stage sends to the client through the other editor."""
        inner = self._inner
        if inner is None:
            return parts
        sent: list[Output] = []
        for part in parts:
            if part.direction is _TO_AGENT:
                sent.append(part)
                continue
            inner.budget = UNLIMITED
            sent += self._pass_to_stage(inner.feed(_TO_CLIENT, part.data, now), now)
        return sent

    def _pass_to_stage(self, parts: list[Output], now: float) -> list[Output]:
        """Pass what the other editor sends to the agent through the stage."""
        sent: list[Output] = []
        for part in parts:
            if part.direction is _TO_CLIENT:
                sent.append(part)
            else:
                sent += self._pass_on(self._stage.feed(_TO_AGENT, part.data, now), now)
        return sent
