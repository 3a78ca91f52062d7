"""The facts from which endings are derived: one call, and all calls of its session."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from operator import attrgetter
from typing import NamedTuple, Protocol

import msgspec

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.values import (
    Binding,
    Connection,
    EventKind,
    Exchange,
    Frame,
    FrameKind,
    MissedGenerations,
    MissedReason,
    Task,
)
from a2a_proxy.model.wire import Direction
from a2a_proxy.protocol.errors import header_value
from a2a_proxy.protocol.event import decode_payload
from a2a_proxy.protocol.schema import JSON
from a2a_proxy.rules.endings.call_index import AGENT_LEFT, CLIENT_LEFT, SENDS, CallIndex
from a2a_proxy.rules.facts.naming import state_label
from a2a_proxy.rules.state.card_declarations import CardDeclarations, read_declarations

_MAX_CALLS = 1000
_MAX_RETRIES = 100
_MAX_SAMPLE = 50
_INDEXED_AT_ONCE = 10_000
_PAGE = 100
"""Calls that are read at once."""
SECOND_NS = 1_000_000_000
MAX_WAIT = 600 * SECOND_NS
"""How long a task may wait for anybody, ns."""
_LONG_TIME = 5 * SECOND_NS
_READS_ON = SECOND_NS // 2
"""Time within which a client that has closed its connection resets it, as the agent's bytes arrive
at it."""
_CLIENT = "(client)"
"""The side of calls that a client broke off, in the place of an agent."""
_TOLERANCE = 150_000_000
_EVENT_WORDS = {
    EventKind.TASK: "task",
    EventKind.MESSAGE: "message",
    EventKind.STATUS: "status",
    EventKind.ARTIFACT: "artifact",
    EventKind.CARD: "agent card",
}
_TERMINAL = frozenset(state.label for state in TaskState if state.terminal)
ACTIVE = frozenset({"submitted", "working"})


class RecordedCalls(Protocol):
    """Where the facts of a session are read."""

    @property
    def ended(self) -> int:
        """End of the recording in ns, or the last time known of it."""

    def read_exchanges(self, numbers: Iterable[int] | None = None) -> Iterable[Exchange]:
        """Return these exchanges, perhaps with their headers, or all in order, without."""

    def read_exchange(self, number: int) -> Exchange:
        """Return an exchange with its headers."""

    def read_frames(self, number: int, *, ids: bool = False) -> Sequence[Frame]:
        """Return the frames of an exchange without their payloads; without `ids` also without ids
        other than that of the artifact."""

    def read_payload(self, number: int, seq: int) -> bytes:
        """Return the payload of a frame."""

    def read_connection(self, number: int) -> Connection | None:
        """Return a connection, or None if it was not recorded."""

    def read_task(self, agent: str, task_id: str) -> Task | None:
        """Return the task of this id of an agent, or of another one if this one has none, without
        its artifacts."""

    def load(self, exchanges: Sequence[Exchange]) -> None:
        """Read the frames and the tasks of these calls at once, for what is read next."""


class FetchedCard(NamedTuple):
    """An agent card."""

    place: tuple[int, int]
    """Its exchange and frame."""
    declarations: CardDeclarations


class LeftCall(NamedTuple):
    """What is compared of calls that were broken off."""

    place: tuple[int, int]
    """The last frame that the client received."""
    elapsed: int
    """ns."""
    silence: int
    """ns."""
    ended: int
    """Time of the end, ns."""


class AlikeCalls(NamedTuple):
    """Calls that one side broke off after the same time."""

    total: int
    calls: list[LeftCall]
    """Some of them."""

    @property
    def is_timer(self) -> bool:
        """Whether a timer ended them: at different times, as one event does not, and after a time
        that is long, or was found often, as chance does not make it."""
        ends = [each.ended for each in self.calls]
        is_apart = max(ends, default=0) - min(ends, default=0) > SECOND_NS // 2
        return is_apart and (self.total > 2 or self.calls[0].elapsed >= _LONG_TIME)


class _AfterFin(NamedTuple):
    """The frames of an answer that came after the FIN of its client."""

    first: Frame
    last: Frame
    is_first: bool
    """Whether the answer has no frames before."""


class SessionCalls:
    """All calls of a session. A call is read when it is asked for; the last ones are kept."""

    def __init__(self, source: RecordedCalls, *, is_brief: bool = False) -> None:
        """`is_brief`: endings do not describe what the client received and what the peers did."""
        self.source = source
        self.is_brief = is_brief
        self._index = CallIndex()
        self._unindexed: Iterator[Exchange] | None = None
        self._calls: dict[int, CallFacts] = {}

    @property
    def ended(self) -> int:
        """End of the recording in ns, or the last time known of it."""
        return self.source.ended

    @cached_property
    def index(self) -> CallIndex:
        """The index of all calls."""
        while not self.prepare(_INDEXED_AT_ONCE):
            pass
        return self._index

    def prepare(self, count: int) -> bool:
        """Index at most so many calls more; return whether all are indexed."""
        if self._unindexed is None:
            self._unindexed = iter(self.source.read_exchanges())
        page = list(islice(self._unindexed, count))
        self._index.add_calls(page)
        return len(page) < count

    def call(self, number: int) -> CallFacts:
        """Return the facts of a call."""
        found = self._calls.get(number)
        if found is None:
            (exchange,) = self.source.read_exchanges((number,))
            found = self._calls[number] = CallFacts(exchange, self)
            if len(self._calls) > _MAX_CALLS:
                del self._calls[next(iter(self._calls))]
        return found

    def find_end(self, exchange: Exchange) -> Exchange:
        """Return a call whose client half-closed the connection and received the whole answer as a
        call that ended with its answer; any other call unchanged.

        The FIN of a client that leaves is no different. One that reads on takes the agent's bytes
        for longer than a reset needs.
        """
        whole = self._read_after_fin(exchange)
        if whole is None or whole.last.at - whole.first.at < _READS_ON:
            return exchange
        return msgspec.structs.replace(exchange, how="complete", closed=whole.last.at)

    def may_half_close(self, exchange: Exchange) -> bool:
        """Whether the client sent its FIN with the request, and the whole answer came after it:
        nothing shows whether the client received it."""
        at_once = exchange.closed - exchange.request_ended < _READS_ON
        whole = self._read_after_fin(exchange) if at_once else None
        return whole is not None and whole.is_first

    def _read_after_fin(self, exchange: Exchange) -> _AfterFin | None:
        """Return the answer that came after the FIN of the client; None if it is not whole."""
        if exchange.how != "client gone" or exchange.grpc_status > 0 or not exchange.request_ended:
            return None
        answers: list[Frame] = []
        begin = -1
        for each in self.source.read_frames(exchange.id):
            if each.kind is FrameKind.CUT and each.note == "eof":
                begin = len(answers)
            elif each.direction is Direction.TO_CLIENT:
                answers.append(each)
        if not 0 <= begin < len(answers):
            return None
        last = answers[-1]
        is_whole = last.kind is FrameKind.END or (
            not exchange.streaming and last.kind in (FrameKind.RESPONSE, FrameKind.ERROR)
        )
        return _AfterFin(answers[begin], last, is_first=not begin) if is_whole else None

    def calls_of_task(self, exchange: Exchange) -> list[Exchange]:
        """Return the other calls that name the task of a call, in order: the nearest before and
        after it."""
        numbers = self.index.calls_of_task(exchange)
        calls = [self.call(each).exchange for each in numbers if each != exchange.id]
        task = (exchange.agent, exchange.task_id)
        return [each for each in calls if (each.agent, each.task_id) == task]

    @cached_property
    def cards(self) -> dict[str, FetchedCard]:
        """The last card of each agent."""
        found: dict[str, FetchedCard] = {}
        for agent, number in self.index.cards.items():
            for frame in self.source.read_frames(number):
                if frame.event is EventKind.CARD and not frame.truncated:
                    card = decode_payload(self.source.read_payload(number, frame.seq), JSON)
                    known = read_declarations([card if isinstance(card, dict) else None], 0, None)
                    found[agent] = FetchedCard((number, frame.seq), known)
        return found

    def succeeded_later(self, call: CallFacts) -> bool:
        """Whether the same call was made again with success. Of messages, the next successful ones
        are compared."""
        exchange = call.exchange
        if not exchange.closed:
            return False
        later = self.index.successes_after(exchange, exchange.closed)
        if exchange.operation not in SENDS and exchange.task_id:
            return any(
                each.operation == exchange.operation
                and each.started >= exchange.closed
                and each.events
                and not (each.error or each.ours)
                for each in call.other_calls
            )
        return any(self.call(each).key == call.key for each in islice(later, _MAX_RETRIES))

    def find_lost(self, exchange: Exchange) -> MissedGenerations | None:
        """Return the first events that a stream left out and that its client never received, nor
        a task that includes them."""
        if not (exchange.streaming and exchange.generation and exchange.closed):
            return None
        task = self.source.read_task(exchange.agent, exchange.task_id)
        gaps = task.gaps if task is not None else ()
        open_gaps = (each for each in gaps if each.exchange == exchange.id and not each.healed)
        return next((each for each in open_gaps if each.reason is not MissedReason.DROPPED), None)

    def is_served(self, exchange: Exchange) -> bool:
        """Whether another call of the same binding was answered by the same agent."""
        return (exchange.agent, exchange.binding) in self.index.served

    def find_alike(self, call: CallFacts, what: str, duration: str) -> AlikeCalls:
        """Return the calls that the same side broke off after the same time, this one too if it is
        among them: of the client all, of an agent those of this agent.

        `what` is `streams` (of active tasks), `unanswered` or `all`; `duration` is `elapsed` or
        `silence`.
        """
        side = _CLIENT if call.by_client else call.exchange.agent
        calls = self._left.get((what, side, duration), [])
        wanted, key = getattr(call, duration), attrgetter(duration)
        tolerance = max(wanted * 3 // 100, _TOLERANCE)
        begin = bisect_left(calls, wanted - tolerance, key=key)
        end = bisect_right(calls, wanted + tolerance, key=key)
        step = max((end - begin) // _MAX_SAMPLE, 1)
        return AlikeCalls(end - begin, sorted(calls[begin:end:step]))

    def _read_calls(self, numbers: Sequence[int]) -> Iterator[CallFacts]:
        for begin in range(0, len(numbers), _PAGE):
            page = list(self.source.read_exchanges(numbers[begin : begin + _PAGE]))
            self.source.load(page)
            yield from (CallFacts(each, self) for each in page)

    @cached_property
    def _left(self) -> dict[tuple[str, str, str], list[LeftCall]]:
        found: dict[tuple[str, str, str], list[LeftCall]] = {}
        numbers = sorted({*self.index.streams_left.numbers, *self.index.calls_unanswered.numbers})
        for call in self._read_calls(numbers):
            if call.was_cancelled or call.by_itself:
                continue
            left = LeftCall(call.place(call.last), call.elapsed, call.silence, call.ended)
            what = ["all"]
            what += ["unanswered"] if not call.exchange.events else []
            what += ["streams"] if call.exchange.streaming and call.is_active else []
            side = _CLIENT if call.by_client else call.exchange.agent
            for kind in what if len(what) > 1 else ():
                for duration in ("elapsed", "silence"):
                    found.setdefault((kind, side, duration), []).append(left)
        for (_, _, duration), calls in found.items():
            calls.sort(key=attrgetter(duration))
        return found


class CallFacts:
    """What is known of one call."""

    def __init__(self, exchange: Exchange, session: SessionCalls) -> None:
        self.exchange = session.find_end(exchange)
        self.session = session

    @cached_property
    def ended(self) -> int:
        """Time of its end, or of the end of the recording if it is open, ns."""
        return self.exchange.closed or self.session.ended

    @cached_property
    def frames(self) -> Sequence[Frame]:
        """All frames, without payloads and without ids other than that of the artifact."""
        return self.session.source.read_frames(self.exchange.id)

    @cached_property
    def frames_with_ids(self) -> Sequence[Frame]:
        """All frames, without payloads."""
        return self.session.source.read_frames(self.exchange.id, ids=True)

    @cached_property
    def headed(self) -> Exchange:
        """The exchange with its headers."""
        exchange = self.exchange
        if exchange.request_headers or exchange.response_headers:
            return exchange
        return self.session.source.read_exchange(exchange.id)

    @cached_property
    def answers(self) -> list[Frame]:
        """The agent's frames that arrived before the end of the call."""
        return [each for each in self._sent if each.at <= self.ended]

    @cached_property
    def answers_after(self) -> list[Frame]:
        """The agent's frames that arrived when the client had left."""
        closed = self.exchange.closed
        return [each for each in self._sent if closed and each.at > closed]

    @cached_property
    def _sent(self) -> list[Frame]:
        ends = (FrameKind.END, FrameKind.CUT, FrameKind.CONTROL, FrameKind.LOG)
        return [
            each
            for each in self.frames
            if each.direction is Direction.TO_CLIENT and each.kind not in ends
        ]

    def response_header(self, name: bytes) -> str:
        """Return a header field of the response; empty if there is none."""
        return header_value(self.headed.response_headers, name).decode("latin-1").strip()

    @property
    def media_type(self) -> str:
        """Media type of the response in lower case, without parameters."""
        return self.response_header(b"content-type").partition(";")[0].lower()

    @property
    def card(self) -> FetchedCard | None:
        """The card of its agent; None if no card was fetched."""
        return self.session.cards.get(self.exchange.agent)

    @property
    def declarations(self) -> CardDeclarations | None:
        """The declarations of that card."""
        return self.card.declarations if self.card is not None else None

    @cached_property
    def connection(self) -> Connection | None:
        """Its connection."""
        return self.session.source.read_connection(self.exchange.connection)

    @cached_property
    def key(self) -> tuple[str, ...]:
        """What is called: equal for a call that is made again."""
        exchange = self.exchange
        message = ""
        if exchange.operation in SENDS:
            known = (each.message_id for each in self.frames_with_ids)
            message = next(filter(None, known), "")
        return exchange.agent, exchange.operation, message or exchange.task_id

    @property
    def by_client(self) -> bool:
        """Whether the client ended it."""
        return self.exchange.how in CLIENT_LEFT

    @property
    def by_agent(self) -> bool:
        """Whether the agent's side broke it off."""
        return self.exchange.how in AGENT_LEFT

    @property
    def last(self) -> Frame | None:
        """The last frame that the client received."""
        return self.answers[-1] if self.answers else None

    @property
    def last_event(self) -> Frame | None:
        """The last frame of the agent, not counting comments."""
        events = (each for each in reversed(self.answers) if each.kind is not FrameKind.COMMENT)
        return next(events, None)

    @property
    def elapsed(self) -> int:
        """Its duration from the end of the request, ns."""
        exchange = self.exchange
        return max(self.ended - (exchange.request_ended or exchange.started), 0)

    @property
    def silence(self) -> int:
        """Time from the last frame that the client received to the end, ns."""
        return self.ended - self.last.at if self.last is not None else self.elapsed

    @cached_property
    def state(self) -> str:
        """The last state that this call had shown when it ended; empty if it had shown none."""
        return next((_label(each.state) for each in reversed(self.answers) if each.state), "")

    @cached_property
    def task(self) -> Task | None:
        """The task of the call."""
        exchange = self.exchange
        return self.session.source.read_task(exchange.agent, exchange.task_id)

    @cached_property
    def task_state(self) -> str:
        """The state of the task when the call ended, as far as any call shows; empty if unknown."""
        if self.task is None:
            return self.state
        known = reversed(self.task.states)
        return next((_label(number) for at, number in known if at <= self.ended), self.state)

    @property
    def by_itself(self) -> bool:
        """Whether it ended with the answer, not by a break."""
        return self.exchange.how == "complete"

    @property
    def size(self) -> int:
        """Bytes of the last answer."""
        return self.last.size if self.last is not None else 0

    @property
    def is_active(self) -> bool:
        """Whether the task was active when the call ended, as far as this call shows: it has shown
        no state in which a stream may end, no `final: true` and no Message."""
        return not any(each.final or each.event is EventKind.MESSAGE for each in self.answers) and (
            self.state in ACTIVE or (not self.state and bool(self.exchange.task_id))
        )

    @cached_property
    def other_calls(self) -> list[Exchange]:
        """The other calls of its task, in order."""
        exchange = self.exchange
        if not exchange.task_id:
            return []
        return self.session.calls_of_task(exchange)

    @cached_property
    def was_cancelled(self) -> bool:
        """Whether a client cancelled its task before its end, or at once after it, or this call by
        a message on its WebSocket."""
        exchange = self.exchange
        if exchange.binding is Binding.WEBSOCKET and exchange.how == "client cancel":
            return True
        return any(
            each.operation == "CancelTask" and each.started <= exchange.closed + SECOND_NS
            for each in self.other_calls
        )

    @cached_property
    def error_body(self) -> bytes:
        """The body of the answer that is no event, as recorded."""
        for each in self.frames:
            if each.direction is Direction.TO_CLIENT and each.kind in (
                FrameKind.ERROR,
                FrameKind.OTHER,
                FrameKind.UNDECODABLE,
                FrameKind.COMMENT,
            ):
                # Under `text/event-stream`, a body of another kind is a comment.
                body = self.session.source.read_payload(self.exchange.id, each.seq)
                return body or each.framing.encode()
        return b""

    def place(self, frame: Frame | None) -> tuple[int, int]:
        """Return the place of a frame, or of the whole call."""
        return self.exchange.id, frame.seq if frame is not None else -1

    def describe_received(self) -> str:
        """Return what the client last received: `status working (#2.2), 6.0 s before the end`."""
        frame = self.last
        if frame is None:
            if self.by_itself and self.exchange.error:
                return "the error"
            started = self.exchange.response_started
            return "only the head of the answer" if started else "nothing"
        before = format_ns(max(self.ended - frame.at, 0))
        return f"{name_frame(frame)} (#{self.exchange.id}.{frame.seq}), {before} before the end"

    def describe_end(self) -> str:
        """Return who ended the call and after how long: `the client, after 14.0 s`."""
        how, exchange = self.exchange.how, self.exchange
        if not exchange.closed:
            return f"nobody; it is open for {format_ns(self.elapsed)}"
        who = "the proxy"
        if not (exchange.ours or how.startswith("proxy ")):
            who = {"complete": "the agent"}.get(how, "")
            who = who or ("the client" if self.by_client else "")
            who = who or ("the agent's side" if self.by_agent else how or "the agent")
        return f"{who}, after {format_ns(self.elapsed)}"

    def describe_agent(self) -> str:
        """Return what the agent was doing, and whether it continued; empty if nothing shows it."""
        doing = f"the task was {self.task_state}" if self.task_state else ""
        later = [each for each in self.answers_after if each.kind is not FrameKind.COMMENT]
        if later:
            more = (
                f"the agent sent {len(later)} more: {name_frame(later[-1])} "
                f"{format_ns(later[-1].at - self.exchange.closed)} after the end"
            )
            return "; ".join(filter(None, (doing, more)))
        if self.task is not None and self.exchange.closed:
            change = next((s for s in self.task.states if s[0] > self.exchange.closed), None)
            if change is not None:
                after = format_ns(change[0] - self.exchange.closed)
                return f"{doing}; it was {_label(change[1])} {after} after the end"
        return doing


def name_frame(frame: Frame) -> str:
    """Return a frame in a few words: `status working`, `artifact a1`, `a comment`."""
    if frame.kind is FrameKind.COMMENT:
        return "a comment"
    if frame.kind is FrameKind.ERROR:
        return f"error {frame.error_code}"
    word = _EVENT_WORDS.get(frame.event, "an answer")
    more = frame.artifact_id[:12] if frame.event is EventKind.ARTIFACT else _label(frame.state)
    return f"{word} {more}".rstrip()


def is_over(state: str) -> bool:
    """Whether a state is terminal."""
    return state in _TERMINAL


def format_ns(ns: int) -> str:
    """Return a duration: `51 ms`, `14.0 s`, `3 min 20 s`."""
    if ns < 1_000_000:
        return "less than 1 ms"
    if ns < SECOND_NS:
        return f"{ns // 1_000_000} ms"
    if ns < 60 * SECOND_NS:
        return f"{ns / SECOND_NS:.1f} s"
    minutes, seconds = divmod(round(ns / SECOND_NS), 60)
    return f"{minutes} min {seconds} s"


def _label(state: int) -> str:
    return state_label(state) if state else ""
