"""A recording as a script: its calls in canonical form, and what of it cannot be played."""

from __future__ import annotations

from collections.abc import Iterator

from a2a_proxy.model.chunk import Direction
from a2a_proxy.model.exchange import Binding, Exchange
from a2a_proxy.model.frame import Frame, FrameKind
from a2a_proxy.protocol.errors import GrpcOutcome
from a2a_proxy.protocol.form import canonical
from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.reader import Recording
from a2a_proxy.recording.rows import ExchangeRow, key
from a2a_proxy.replay.core.script import LIVE, Call, Line, Push, Script, Side, Unservable, What

_SAID = {
    FrameKind.REQUEST: What.MESSAGE,
    FrameKind.RESPONSE: What.MESSAGE,
    FrameKind.EVENT: What.MESSAGE,
    FrameKind.ERROR: What.ERROR,
    FrameKind.OTHER: What.MESSAGE,
    FrameKind.UNDECODABLE: What.MESSAGE,
    FrameKind.END: What.END,
}
"""Comments and lines of a log are not replayed: nothing A2A is in them."""
_RESETS = ("reset", "rst_stream")


def load(
    recording: Recording,
    *,
    session: int | None = None,
    agent: str = "",
    allow_incomplete: bool = False,
    allow_redacted: bool = False,
) -> Script:
    """Read a recording, one session of it or what one agent said in it. All payloads are held in memory.

    Raises RecordingError where it cannot be read, or may not be played: it is incomplete, or labels would be delivered
    where credentials stood.
    """
    return _Loader(recording, session, agent, allow_incomplete, allow_redacted).script()


class _Loader:
    def __init__(self, recording: Recording, session: int | None, agent: str, incomplete: bool, redacted: bool) -> None:
        self._recording = recording
        self._sessions = [row for row in recording.sessions() if session in (None, row.id)]
        if not self._sessions:
            which = f"session {session}" if session is not None else "session"
            raise RecordingError(f"{recording.path} has no {which}", "see: a2a-inspect ls")
        self._agent = agent
        self._incomplete = incomplete
        self._redacted = redacted
        self._unservable: list[Unservable] = []

    def script(self) -> Script:
        calls: list[Call] = []
        cards: list[Call] = []
        pushes: list[Push] = []
        for session in self._sessions:
            for row in self._recording.exchanges(session.id):
                exchange = row.exchange
                if exchange.binding is Binding.WEBHOOK:
                    pushes += self._push(row)
                    continue
                call = self._call(row)
                if call is None:
                    continue
                (cards if exchange.binding is Binding.CARD else calls).append(call)
        calls.sort(key=lambda call: call.began)
        return Script(
            name=self._recording.path,
            calls=tuple(calls),
            cards=tuple(cards),
            pushes=tuple(pushes),
            unservable=tuple(self._unservable),
            sessions=len(self._sessions),
            complete="; ".join(dict.fromkeys(row.complete or "still being written" for row in self._sessions)),
        )

    def _place(self, row: ExchangeRow) -> str:
        number = row.exchange.id
        return f"#{number}" if len(self._sessions) == 1 else f"#{row.session}:{number}"

    def _call(self, row: ExchangeRow) -> Call | None:
        exchange, place = row.exchange, self._place(row)
        if not exchange.operation and exchange.binding is not Binding.CARD:
            self._unservable.append(Unservable(place, f"{exchange.method} {exchange.target} is no operation of A2A"))
            return None
        if exchange.ours:
            self._unservable.append(Unservable(place, "the proxy answered, not the agent"))
            return None
        upstream = self._upstream(row)
        if self._agent and upstream != self._agent:
            return None
        frames = [each.frame for each in self._recording.frames(row.key)]
        first = next((frame for frame in frames if frame.kind is FrameKind.REQUEST), None)
        if first is None:
            self._unservable.append(Unservable(place, "its request was not recorded"))
            return None
        lines = tuple(self._lines(row, place, [frame for frame in frames if frame is not first]))
        return Call(
            place=place,
            operation=exchange.operation or "GetAgentCard",
            binding=exchange.binding,
            dialect=exchange.dialect,
            request=canonical(first, exchange),
            lines=lines,
            agent=upstream,
            began=exchange.started,
            headers=exchange.request_headers,
            answer_headers=exchange.response_headers,
            status=exchange.status,
            trailers_only=any(frame.note == "trailers-only" for frame in frames),
            streaming=exchange.streaming,
            live_payload=exchange.live_payload,
            target=exchange.target,
        )

    def _lines(self, row: ExchangeRow, place: str, frames: list[Frame]) -> Iterator[Line]:
        exchange = row.exchange
        ended = False
        for frame in frames:
            side = Side.CLIENT if frame.direction is Direction.TO_AGENT else Side.AGENT
            if side is Side.CLIENT and exchange.operation not in LIVE and frame.kind is not FrameKind.CUT:
                continue  # its request is whole: there is nothing to wait for
            line = _line(frame, exchange, side, place)
            if line is None:
                continue
            ended = ended or (side is Side.AGENT and line.over) or (side is Side.CLIENT and line.what is What.RESET)
            yield line
        if not ended:
            number = frames[-1].seq + 1 if frames else 1
            at = max((exchange.closed or exchange.last_event or exchange.started) - exchange.started, 0)
            what = What.END if exchange.how == "complete" else What.CUT
            note = "" if what is What.END else exchange.how or "the recording ends here"
            yield Line(number=number, side=Side.AGENT, what=what, at=at, note=note, place=f"{place}.{number}")

    def _push(self, row: ExchangeRow) -> Iterator[Push]:
        exchange = row.exchange
        for each in self._recording.frames(row.key):
            frame = each.frame
            if frame.kind is FrameKind.REQUEST:
                yield Push(
                    place=self._place(row),
                    at=frame.at,
                    value=canonical(frame, exchange),
                    raw=frame.payload,
                    url=f"{exchange.authority}{exchange.target}",
                    headers=exchange.request_headers,
                    dialect=exchange.dialect,
                    task=frame.task_id,
                    answered=exchange.status,
                )

    def _upstream(self, row: ExchangeRow) -> str:
        found = self._recording.connection(key(row.session, row.exchange.connection))
        return found.connection.upstream if found is not None else ""


def _line(frame: Frame, exchange: Exchange, side: Side, place: str) -> Line | None:
    what = _SAID.get(frame.kind)
    if frame.kind is FrameKind.CUT:
        what = What.RESET if frame.note.startswith(_RESETS) else What.CUT
    if what is None:
        return None
    ended = what is What.END
    trailers = exchange.trailers if ended and side is Side.AGENT else ()
    return Line(
        number=frame.seq,
        side=side,
        what=what,
        at=max(frame.at - exchange.started, 0),
        value=canonical(frame, exchange) if what in (What.MESSAGE, What.ERROR) else None,
        raw=frame.payload,
        schema=frame.schema,
        event=frame.event,
        task=frame.task_id,
        state=frame.state,
        generation=frame.generation,
        status=GrpcOutcome(trailers or exchange.response_headers).status if ended else -1,
        trailers=trailers,
        note=frame.note,
        place=f"{place}.{frame.seq}",
    )
