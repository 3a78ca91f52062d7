"""Frames in, segments, interruptions and hand-offs out (manual/protocol.md "Segments").

Time comes with frames and ticks.

Reads what frames tell at a glance; payloads only where their octets look as if they held evidence. Bounded: of
tasks that nobody speaks in, the last ones are known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from a2a_proxy.model.chunk import Direction
from a2a_proxy.model.exchange import Binding
from a2a_proxy.model.frame import EventKind, Frame, FrameKind
from a2a_proxy.model.observation import Changes
from a2a_proxy.model.segment import CLIENT, GAP_CLIENT, Handoff, Interruption, Segment
from a2a_proxy.protocol.segments.agent_output import AgentOutput
from a2a_proxy.protocol.segments.call_chain import trace_of
from a2a_proxy.protocol.segments.evidence import (
    MEDIA_DELTA,
    MEDIA_INTERRUPT,
    MEDIA_PAUSE,
    MEDIA_STOP,
    ends_activity,
    is_message,
    media_mark,
)
from a2a_proxy.protocol.segments.handoffs import Handoffs
from a2a_proxy.protocol.segments.index import ConversationIndex
from a2a_proxy.protocol.segments.interruptions import Interruptions, output_open
from a2a_proxy.protocol.segments.segment_builder import SegmentBuilder, is_agents, silent_at
from a2a_proxy.protocol.segments.state import ConversationState, OpenExchange, SegmentState

_ROLES = {
    "SendMessage": "send",
    "SendStreamingMessage": "send",
    "SendLiveMessage": "live",
    "ReconnectToTask": "live",
    "SubscribeToTask": "watch",
    "GetTask": "look",
    "CancelTask": "cancel",
}
_TELLING = frozenset({"send", "live", "watch"})
"""Roles of calls that tell of a task as it goes on."""
_EVENT, _RESPONSE, _REQUEST, _ERROR = FrameKind.EVENT, FrameKind.RESPONSE, FrameKind.REQUEST, FrameKind.ERROR
_END, _CUT = FrameKind.END, FrameKind.CUT
_NONE, _TASK, _MESSAGE = EventKind.NONE, EventKind.TASK, EventKind.MESSAGE
_STATUS, _ARTIFACT = EventKind.STATUS, EventKind.ARTIFACT
_SAYS = frozenset({_TASK, _MESSAGE, _STATUS, _ARTIFACT})
_WEBHOOK = Binding.WEBHOOK
_FLOW_GOES_ON, _FLOW_ENDS = (0, MEDIA_DELTA), (MEDIA_STOP, MEDIA_PAUSE)
"""Marks of a client's media that are no beginning: whose microphone is open all the time interrupts nobody by that."""


class ExchangeView(Protocol):
    """What the tracker looks at of an exchange."""

    @property
    def id(self) -> int: ...  # noqa: D102
    @property
    def binding(self) -> Binding: ...  # noqa: D102
    @property
    def operation(self) -> str: ...  # noqa: D102
    @property
    def agent(self) -> str: ...  # noqa: D102
    @property
    def traceparent(self) -> str: ...  # noqa: D102
    @property
    def sent_traceparent(self) -> str: ...  # noqa: D102


class SegmentTracker:
    """All conversations of a session."""

    def __init__(self, naming: Callable[[str], str] = str, *, whole: bool = False) -> None:
        """`naming` gives what an agent is called outside. Turns that are one unary call are told of only if `whole`:
        elsewhere their exchange says it all."""
        self._naming = naming
        self._whole = whole
        self._book = ConversationIndex()
        self._cuts = SegmentBuilder()
        self._interruptions = Interruptions()
        self._handoffs = Handoffs(self._book)
        self._answers = AgentOutput(self._cuts, self._interruptions, self._handoffs)
        self._quiet: dict[int, ConversationState] = {}
        """Conversations of which nothing is open, until they are told of."""

    def apply(self, frame: Frame, exchange: ExchangeView, client: str) -> ConversationState | None:
        """Learn from one frame of a client at `client` (`host:port`), or of its agent.

        Gives the conversation where the frame has become part of its `said`, else None.
        """
        due = self._cuts.due
        if due and due[0][0] < frame.at:
            self.tick(frame.at)
        kind = frame.kind
        if kind is _EVENT:
            call = self._book.calls.get(frame.exchange)
            if call is not None and call.steady is not None and self._answers.goes_on(call.talk, call.steady, frame):
                return call.talk
            return self._told(frame, exchange)
        if kind is _RESPONSE:
            return self._told(frame, exchange)
        if kind is _REQUEST:
            return self._asked(frame, exchange, client)
        if kind is _END or kind is _CUT or kind is _ERROR:
            self._ended(frame)
        return None

    def traced(self, exchange: ExchangeView) -> None:
        """Its agent may have been sent another trace than the client had: then it hands over in that one."""
        sent = exchange.sent_traceparent
        call = self._book.calls.get(exchange.id) if sent else None
        if call is not None and trace_of(sent) != trace_of(exchange.traceparent):
            self._book.learn_trace(sent, call.talk)

    def tick(self, at: int) -> None:
        """It is `at` (ns), and nothing came before that is not told: judge silence."""
        for talk in self._cuts.late(at):
            said = talk.said
            if said is None or said.ended:
                continue
            over = silent_at(said)
            self._cuts.end(said, over, "silence")
            broken = talk.interruption
            if broken is not None and is_agents(said) and said.start > broken.at:
                self._interruptions.end(talk, over)
            self._rest(talk)

    def end(self, at: int) -> None:
        """The session ends at `at` (ns): so does all that is open."""
        self.tick(at)
        for talk in self._book.all().values():
            if talk.said is not None and not talk.said.ended:
                self._cuts.end(talk.said, at, "closed")
            self._interruptions.end(talk, at)
            self._handoffs.end(talk, at, 0)

    def changed(self) -> tuple[list[Segment], list[Interruption], list[Handoff]]:
        """Snapshots of what changed since the last call. Then conversations that are over may be forgotten."""
        found = self._cuts.changed(), self._interruptions.changed(), self._handoffs.changed()
        for talk in self._quiet.values():
            if not talk.tellers and (talk.said is None or talk.said.ended):
                talk.said = None
        self._quiet.clear()
        return found

    def adopt(self, cut: Changes, last: tuple[int, int, int], at: int) -> None:
        """Begin where another one was lost: what a recording has open of it in `cut` is over at `at` (ns), and new
        segments, interruptions and hand-offs are numbered from `last` on."""
        self._cuts.adopt(cut.segments, last[0], at)
        self._interruptions.adopt(cut.interruptions, last[1], at)
        self._handoffs.adopt(cut.handoffs, last[2], at)

    def touch(self) -> None:
        """All that is open counts as changed."""
        talks = list(self._book.all().values())
        self._cuts.touch(talks)
        self._interruptions.touch(talks)
        self._handoffs.touch(talks)

    # --- the client ---------------------------------------------------------------------------------------------

    def _asked(self, frame: Frame, exchange: ExchangeView, client: str) -> ConversationState | None:
        role = _ROLES.get(exchange.operation)
        if role is None:
            return None
        call = self._book.calls.get(frame.exchange)
        if role == "send" or role == "live":
            return self._says(frame, exchange, client, call, role)
        agent = self._naming(exchange.agent)
        talk = self._book.of_task(agent, frame.task_id) if frame.task_id else None
        if call is None:
            call = self._open(frame.exchange, talk or self._book.make(agent, "", ""), role)
        if role == "cancel" and talk is not None and output_open(talk, frame.at):
            self._interrupt(talk, frame, "cancel")
        return None

    def _says(
        self, frame: Frame, exchange: ExchangeView, client: str, call: OpenExchange | None, role: str
    ) -> ConversationState | None:
        """A message of the client, or a request that only opens a stream again."""
        first = call is None
        if call is None:
            agent = self._naming(exchange.agent)
            known = self._book.of_task(agent, frame.task_id) if frame.task_id else None
            talk = known or self._book.make(agent, frame.task_id, frame.context_id)
            call = self._open(frame.exchange, talk, role)
        talk = call.talk
        mark = media_mark(frame) if frame.event is _NONE else -1
        if role == "live" and _says_nothing(frame, mark, first=first):
            call.role = "watch" if first else call.role
            return None
        if not talk.context_id:
            talk.context_id = frame.context_id
        self._barge_in(talk, frame, mark)
        self._speak(talk, frame, plain=self._is_plain(talk, frame, exchange))
        self._handoffs.asked(talk, frame, exchange.traceparent, client)
        self.traced(exchange)
        if role == "live" and ends_activity(frame):
            assert talk.said is not None
            talk.said.activity_end = frame.at
        return talk

    def _is_plain(self, talk: ConversationState, frame: Frame, exchange: ExchangeView) -> bool:
        """It may become a turn of one unary call."""
        return not self._whole and exchange.operation == "SendMessage" and list(talk.tellers) == [frame.exchange]

    def _barge_in(self, talk: ConversationState, frame: Frame, mark: int) -> None:
        """Does this message of the client come into the agent's output? Not where the client is in the middle of it."""
        said = talk.said
        if said is not None and not said.ended and said.speaker == CLIENT and mark != MEDIA_INTERRUPT:
            return
        if mark in _FLOW_ENDS or (mark in _FLOW_GOES_ON and frame.at - talk.spoke <= GAP_CLIENT):
            return
        if talk.last and output_open(talk, frame.at):
            self._interrupt(talk, frame, "event" if mark == MEDIA_INTERRUPT else "message")
            return
        self._interruptions.end(talk, frame.at)
        if not talk.last and not frame.task_id:
            other = self._book.of_context(frame.context_id)
            if other is not None and other.agent == talk.agent and output_open(other, frame.at):
                self._interrupt(other, frame, "context")

    def _interrupt(self, talk: ConversationState, frame: Frame, kind: str) -> None:
        said = talk.said
        if said is not None and not said.ended and is_agents(said):
            said.plain = False
            self._cuts.end(said, frame.at, "interrupted")
        self._interruptions.begin(talk, frame, kind)

    def _speak(self, talk: ConversationState, frame: Frame, *, plain: bool) -> None:
        """One more frame of the client's segment, or the first one of a new turn."""
        said = talk.said
        talk.spoke = frame.at
        if said is not None and not said.ended:
            if said.speaker == CLIENT:
                self._cuts.grow(said, frame)
                return
            self._cuts.end(said, frame.at, "speaker")
        talk.turn += 1
        self._cuts.begin(talk, CLIENT, frame, plain=plain)
        if talk.turn > 1:
            self._book.touch(talk)

    # --- the agent ----------------------------------------------------------------------------------------------

    def _told(self, frame: Frame, exchange: ExchangeView) -> ConversationState | None:
        call = self._book.calls.get(frame.exchange)
        event = frame.event
        if call is None:
            if exchange.binding is not _WEBHOOK or event not in _SAYS:
                return None
            return self._pushed(frame)
        heard = False
        if event in _SAYS or media_mark(frame) >= 0:
            talk = call.talk
            if frame.task_id and frame.task_id != talk.task_id:
                talk = self._attach(call, frame)
            elif not call.answered and talk.task_id:
                self._confirm(talk)
            if frame.context_id and not talk.context_id:
                talk.context_id = frame.context_id
                self._name(talk)
            heard = self._answers.heard(talk, call, frame)
            call.answered += 1
        talk = call.talk
        if frame.kind is _RESPONSE:
            self._over(frame, call, "closed")
        return talk if heard else None

    def _pushed(self, frame: Frame) -> ConversationState | None:
        """An event at a webhook: of a task that nobody's stream shows."""
        talk = self._book.of_task("", frame.task_id)
        if talk is None or talk.tellers:
            return None
        heard = self._answers.heard(talk, OpenExchange(talk, "look", answered=1), frame)
        self._quiet[talk.number] = talk
        return talk if heard else None

    def _confirm(self, talk: ConversationState) -> None:
        """The agent answers about the task that the client named."""
        if self._book.of_task(talk.agent, talk.task_id) is None:
            self._book.keep(talk)

    def _attach(self, call: OpenExchange, frame: Frame) -> ConversationState:
        """The agent tells which task the call is about."""
        talk, book = call.talk, self._book
        known = book.of_task(talk.agent, frame.task_id)
        if known is None and (not talk.task_id or not call.answered):
            talk.task_id = frame.task_id
            talk.context_id = talk.context_id or frame.context_id
            book.keep(talk)
            self._name(talk)
            self._handoffs.name(talk, talk)
            return talk
        if known is None:  # a second task on one stream
            known = book.make(talk.agent, frame.task_id, frame.context_id)
            book.keep(known)
        self._leave(talk, frame.exchange)
        if not call.answered:
            self._move(talk, known)
            self._handoffs.name(talk, known)
        call.talk = known
        if call.role in _TELLING:
            self._join(known, frame.exchange)
        return known

    def _name(self, talk: ConversationState) -> None:
        """What was said before the task had an id belongs to it."""
        said = talk.said
        if said is not None:
            said.task_id, said.context_id = talk.task_id, talk.context_id
            self._cuts.tell(said)
        if talk.context_id:
            self._book.name_context(talk)

    def _move(self, talk: ConversationState, known: ConversationState) -> None:
        """The client's words were for a task that was known already."""
        said = talk.said
        if said is not None:
            if known.said is not None and not known.said.ended:
                self._cuts.end(known.said, max(known.said.end, said.start), "speaker")
            known.turn += 1
            said.turn, said.task_id, said.context_id = known.turn, known.task_id, known.context_id
            known.said, known.last, talk.said = said, said.id, None
            self._cuts.move(said, known)
        if talk.awaited is not None:
            if known.awaited is not None:
                self._handoffs.end(known, max(known.awaited.at, talk.awaited.at), 0)
            known.awaited, known.busy, talk.awaited = talk.awaited, True, None

    # --- ends ---------------------------------------------------------------------------------------------------

    def _ended(self, frame: Frame) -> None:
        call = self._book.calls.get(frame.exchange)
        if call is None:
            return
        if frame.kind is _END and frame.direction is Direction.TO_AGENT:
            said = call.talk.said
            if call.role == "live" and said is not None and not said.ended and said.speaker == CLIENT:
                self._cuts.end(said, frame.at, "closed")
            return
        failed = frame.kind is _ERROR or (frame.kind is _END and frame.error_code != 0)
        self._over(frame, call, "broken" if frame.kind is _CUT else "error" if failed else "closed")

    def _over(self, frame: Frame, call: OpenExchange, reason: str) -> None:
        """An exchange answers no more."""
        talk, at = call.talk, frame.at
        del self._book.calls[frame.exchange]
        self._leave(talk, frame.exchange)
        broken = talk.interruption
        if reason == "error" and broken is not None and broken.exchange == frame.exchange:
            self._interruptions.end(talk, at, "rejected")
        said = talk.said
        if said is not None:
            self._close(said, frame, reason, alone=not talk.tellers)
        if talk.tellers:
            return
        if call.role != "look":
            self._interruptions.end(talk, at)
            self._handoffs.end(talk, at, 0)
            talk.chains, talk.media = (), False
        self._rest(talk)

    def _close(self, said: SegmentState, frame: Frame, reason: str, *, alone: bool) -> None:
        """The exchange of `frame` answers no more; `alone`: nor does another one."""
        own = said.last_exchange == frame.exchange
        if not said.ended:
            if alone or (own and reason == "error" and said.speaker == CLIENT):
                self._cuts.end(said, frame.at, reason)
        elif own and is_agents(said) and not said.closed and frame.kind is not _RESPONSE:
            said.closed = frame.at
            self._cuts.tell(said)

    def _open(self, number: int, talk: ConversationState, role: str) -> OpenExchange:
        call = self._book.calls[number] = OpenExchange(talk, role)
        if role in _TELLING:
            self._join(talk, number)
        return call

    def _join(self, talk: ConversationState, number: int) -> None:
        if talk.tellers and number not in talk.tellers:
            talk.shown, talk.busy = {} if talk.shown is None else talk.shown, True
            if talk.said is not None and talk.said.plain:  # its turn is more than one call now
                talk.said.plain = False
                self._cuts.tell(talk.said)
        talk.tellers[number] = None

    @staticmethod
    def _leave(talk: ConversationState, number: int) -> None:
        talk.tellers.pop(number, None)
        if not talk.tellers:  # the last one may still be behind those that are over
            talk.shown = None

    def _rest(self, talk: ConversationState) -> None:
        """Nothing of it may be open: look when it has been told of."""
        if not talk.tellers:
            self._quiet[talk.number] = talk

    # --- across a restart ---------------------------------------------------------------------------------------

    def save(self) -> dict[str, Any]:
        """Plain values from which `restore` goes on. They hold payloads, redacted ones."""
        return {
            "book": self._book.save(),
            "cuts": self._cuts.save(),
            "interruptions": self._interruptions.save(),
            "handoffs": self._handoffs.save(),
            "quiet": list(self._quiet),
        }

    @classmethod
    def restore(
        cls, state: dict[str, Any], naming: Callable[[str], str] = str, *, whole: bool = False
    ) -> SegmentTracker:
        """The tracker that gave `state`."""
        tracker = cls(naming, whole=whole)
        book = tracker._book = ConversationIndex.restore(state["book"])
        talks = book.all()
        tracker._cuts.load(state["cuts"], talks)
        tracker._interruptions.load(state["interruptions"], talks)
        tracker._handoffs = Handoffs(book)
        tracker._handoffs.load(state["handoffs"], talks)
        tracker._answers = AgentOutput(tracker._cuts, tracker._interruptions, tracker._handoffs)
        tracker._quiet = {number: talks[number] for number in state["quiet"] if number in talks}
        return tracker


def _says_nothing(frame: Frame, mark: int, *, first: bool) -> bool:
    """A request on a live stream that is neither a message nor media: the form that only reconnects
    (manual/protocol.md "Live rules")."""
    if frame.event is _NONE:
        return mark < 0
    return first and bool(frame.task_id) and not is_message(frame)
