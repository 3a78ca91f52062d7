"""An editor at work between the two sides of a connection: octets in, timers, octets out. Knows no protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from a2a_proxy.model.chunk import Direction
from a2a_proxy.relay.edits.edit import EditFact, Editor, EditPlan, Note, QuickEditor, Sent

Write = Callable[[bytes], object]

_TO_AGENT, _TO_CLIENT = Direction.TO_AGENT, Direction.TO_CLIENT
_CHANGES = frozenset({"host", "authority", "traceparent", "card", "card-request"})


class EditLine:
    """Feeds one editor. Its methods return what changed, for the journal."""

    def __init__(
        self,
        editor: Editor,
        loop: asyncio.AbstractEventLoop,
        forwards: tuple[Write, Write],
        writes: tuple[Write, Write],
        told: Callable[[list[EditFact]], None],
    ) -> None:
        """Both pairs are for the agent and the client: `forwards` as fast as may be, for octets of the peer that has
        just sent some; `writes` at any time, also when nobody takes them any more. `told` gets what changed while no
        octets came in."""
        self._editor = editor
        self._feed, self._facts = editor.feed, editor.edits
        self._pass_to_agent = editor.pass_to_agent if isinstance(editor, QuickEditor) else _never
        self._pass_to_client = editor.pass_to_client if isinstance(editor, QuickEditor) else _never
        self._loop, self._now = loop, loop.time
        self._forward_to_agent, self._forward_to_client = forwards
        self._writes, self._told = writes, told
        self._timer: asyncio.TimerHandle | None = None
        self._deadline: float | None = None

    def to_agent(self, data: bytes) -> list[EditFact] | None:
        """Octets of the client."""
        if self._pass_to_agent(data):
            self._forward_to_agent(data)
            return None
        return self._send(self._feed(_TO_AGENT, data, self._now()))

    def to_client(self, data: bytes) -> list[EditFact] | None:
        """Octets of the agent."""
        if self._pass_to_client(data):
            self._forward_to_client(data)
            return None
        return self._send(self._feed(_TO_CLIENT, data, self._now()))

    def eof(self, direction: Direction) -> list[EditFact]:
        """The sender of `direction` sends no more."""
        return self._send(self._editor.eof(direction, self._now()))

    @property
    def active(self) -> bool:
        """The editor still has something to do."""
        return self._editor.active

    def stop(self) -> None:
        """Nothing is held any more, or nobody is left to send it to."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _send(self, parts: list[Sent]) -> list[EditFact]:
        for part in parts:
            self._writes[part.direction](part.data)
        deadline = self._editor.deadline
        if deadline != self._deadline:
            self._arm(deadline)
        return self._facts()

    def _arm(self, deadline: float | None) -> None:
        self.stop()
        self._deadline = deadline
        if deadline is not None:
            self._timer = self._loop.call_at(deadline, self._tick)

    def _tick(self) -> None:
        self._timer, self._deadline = None, None
        facts = self._send(self._editor.tick(self._now()))
        if facts:
            self._told(facts)


def _never(_: bytes) -> bool:
    return False


def editor_for(http2: bool, plan: EditPlan) -> Editor:
    """The editor of a connection that begins with the HTTP/2 preface, or not."""
    if http2:
        from a2a_proxy.relay.edits.http2 import Http2Editor

        return Http2Editor(plan)
    from a2a_proxy.relay.edits.http1 import Http1Editor

    return Http1Editor(plan)


def record_of(fact: EditFact) -> bytes | None:
    """The data of its EDIT record; None where no octet changed."""
    if fact.kind not in _CHANGES:
        return None
    return msgspec.json.encode({"kind": fact.kind, "offset": fact.offset, **fact.detail})


def note_of(fact: EditFact) -> Note | None:
    """The line for the user, where what was wanted could not be done."""
    if fact.kind != "untouched":
        return None
    text = f"an agent card was passed on untouched: {fact.detail.get('reason')}"
    return Note(text, "clients that follow it leave the proxy", loud=True)
