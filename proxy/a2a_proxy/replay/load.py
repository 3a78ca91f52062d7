"""Building of a replay script: the calls of a recording in canonical form, and the calls that
cannot be replayed."""

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import msgspec

from a2a_proxy.model.values import Binding, Exchange, Frame, FrameKind
from a2a_proxy.model.wire import Direction
from a2a_proxy.protocol.canonical_form import canonical_payload
from a2a_proxy.protocol.errors import GrpcOutcome
from a2a_proxy.protocol.text import shell_line
from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import ExchangeRow, SessionRow
from a2a_proxy.redaction.policy import METADATA_ONLY
from a2a_proxy.replay.core.faults import PINNED_GATE
from a2a_proxy.replay.core.script import (
    LIVE_OPERATIONS,
    LineKind,
    RecordedCall,
    RecordedPush,
    ReplayScript,
    ScriptLine,
    ScriptSide,
    UnservableCall,
    find_unfilled,
    without_labels,
)

_LINE_KINDS = {
    FrameKind.REQUEST: LineKind.MESSAGE,
    FrameKind.RESPONSE: LineKind.MESSAGE,
    FrameKind.EVENT: LineKind.MESSAGE,
    FrameKind.ERROR: LineKind.ERROR,
    FrameKind.OTHER: LineKind.MESSAGE,
    FrameKind.COMMENT: LineKind.COMMENT,
    FrameKind.UNDECODABLE: LineKind.MESSAGE,
    FrameKind.END: LineKind.END,
}
"""Script line for each kind of frame. Log lines are absent because they carry no A2A message and
are not replayed."""
_RESET_ENDS = ("reset", "rst_stream")
_BROKEN_ENDS = frozenset({"", "connection lost", "proxy stopped", "proxy killed"})
"""Values of `Exchange.how` for a call whose end was not captured."""
_MAX_LISTED = 3
"""Maximum number of places listed in an error."""
NOT_CAPTURED = "it was not captured to its end"
UNFILLED_LABEL = (
    "it would deliver a redaction label in place of a credential that no client sent before"
)
_ALL_REFUSED_HINT = (
    "record it again, or allow such calls: --allow-incomplete plays each up to where it breaks "
    "off, --allow-redacted delivers the labels"
)
_EVENT_STREAMS = (Binding.JSONRPC, Binding.REST)
_EVENT_ID = re.compile(r"^id:[ ]?([^\r\n\0]*)", re.MULTILINE)


def load_script(
    recording: Recording,
    *,
    session: int | None = None,
    agent: str = "",
    allow_incomplete: bool = False,
    allow_redacted: bool = False,
) -> ReplayScript:
    """Read a recording into a script, optionally limited to one session or to the calls of one
    agent.

    Calls that were not captured to their end, or would deliver redaction labels in place of
    credentials, are refused (`RecordedCall.refusal`) unless the arguments allow them. All payloads
    are held in memory. Raises RecordingError if the recording cannot be read, or if all its calls
    are refused.
    """
    script = _ScriptLoader(recording, session, agent).load()
    if not allow_incomplete:
        script = msgspec.structs.replace(
            script,
            cards=tuple(map(_refuse_broken, script.cards)),
            calls=tuple(map(_refuse_broken, script.calls)),
        )
    if not allow_redacted:
        checked = [
            _refuse_label(call, label)
            for call, label in find_unfilled((*script.cards, *script.calls))
        ]
        count = len(script.cards)
        script = msgspec.structs.replace(
            script, cards=tuple(checked[:count]), calls=tuple(checked[count:])
        )
    _refuse_all_refused(script)
    return script


def _refuse_all_refused(script: ReplayScript) -> None:
    """Raise RecordingError if the recording has calls, but serves none."""
    reasons = [f"{call.place}: {call.refusal}" for call in script.calls if call.refusal]
    if len(reasons) < len(script.calls):
        return
    reasons += [f"{call.place}: {call.reason}" for call in script.unservable if call.operation]
    if reasons:
        more = f" and {len(reasons) - _MAX_LISTED} more" if len(reasons) > _MAX_LISTED else ""
        listed = "; ".join(reasons[:_MAX_LISTED])
        raise RecordingError(
            f"{script.name} has no call that can be replayed: {listed}{more}", _ALL_REFUSED_HINT
        )


def _refuse_broken(call: RecordedCall) -> RecordedCall:
    return msgspec.structs.replace(call, refusal=NOT_CAPTURED) if call.is_broken else call


def _refuse_label(call: RecordedCall, label: str) -> RecordedCall:
    return (
        msgspec.structs.replace(call, refusal=call.refusal or f"{UNFILLED_LABEL}: {label}")
        if label
        else call
    )


class _ScriptLoader:
    def __init__(self, recording: Recording, session: int | None, agent: str) -> None:
        self._recording = recording
        self.sessions: list[SessionRow] = [
            row for row in recording.read_sessions() if session in (None, row.id)
        ]
        if not self.sessions:
            which = f"session {session}" if session is not None else "session"
            raise RecordingError(
                f"{recording.path} has no {which}",
                f"see: {shell_line('a2a-inspect', 'show', str(recording.path))}",
            )
        self._agent = agent
        self._agents: set[str] = set()
        self._unservable: list[UnservableCall] = []
        self._findings: dict[tuple[int, int, int], list[str]] = defaultdict(list)
        """Rule ids of the findings, by session, exchange and frame number."""
        self._pins: dict[tuple[int, int, int], int] = {}

    def load(self) -> ReplayScript:
        calls: list[RecordedCall] = []
        cards: list[RecordedCall] = []
        pushes: list[RecordedPush] = []
        for session in self.sessions:
            self._load_remarks(session.id)
            for row in self._recording.read_exchanges(session.id):
                if row.exchange.binding is Binding.WEBHOOK:
                    pushes += self._load_push(row)
                elif (call := self._load_call(row)) is not None:
                    (cards if row.exchange.binding is Binding.CARD else calls).append(call)
        if self._agent and not calls:
            agent_names = ", ".join(sorted(self._agents)) or "none"
            raise RecordingError(
                f"{self._recording.path} has no call to the agent {self._agent}",
                f"its agents are: {agent_names}",
            )
        calls.sort(key=lambda call: call.began)
        return ReplayScript(
            name=self._recording.path,
            calls=tuple(calls),
            cards=tuple(cards),
            pushes=tuple(sorted(pushes, key=lambda push: push.at)),
            unservable=tuple(self._unservable),
            sessions=len(self.sessions),
            missing="; ".join(
                dict.fromkeys(filter(None, (row.missing_text for row in self.sessions)))
            ),
        )

    def _load_remarks(self, session: int) -> None:
        """Read the findings and the pinned gates of a session."""
        for row in self._recording.read_findings(session):
            found = row.finding
            if found.exchange and found.seq >= 0:
                self._findings[session, found.exchange, found.seq].append(found.rule)
        for note in self._recording.read_notes(session):
            pin = PINNED_GATE.fullmatch(note.note.text.strip())
            if pin is not None and int(pin[1]) == note.note.exchange:
                self._pins[session, note.note.exchange, note.note.seq] = int(pin[2])

    def _place_of(self, row: ExchangeRow) -> str:
        number = row.exchange.id
        return f"#{number}" if len(self.sessions) == 1 else f"#{row.session}:{number}"

    def _load_call(self, row: ExchangeRow) -> RecordedCall | None:
        exchange = row.exchange
        self._agents.add(exchange.agent)
        if self._agent and exchange.agent != self._agent:
            return None
        frames = [each.frame for each in self._recording.read_frames(row.key)]
        first = next((frame for frame in frames if frame.kind is FrameKind.REQUEST), None)
        half_close = (
            next(filter(_is_half_close, frames), None) if exchange.binding is Binding.GRPC else None
        )
        opening = first or half_close
        redaction = next(each.facts.redaction for each in self.sessions if each.id == row.session)
        if why := _unservable_reason(exchange, opening is not None, frames, redaction):
            self._unservable.append(UnservableCall(self._place_of(row), why, exchange.operation))
            return None
        card = exchange.binding is Binding.CARD
        # Whether the client killed a stdio proxy, which is its child. This breaks the call off, as
        # a kill of the agent.
        return RecordedCall(
            place=self._place_of(row),
            operation="GetAgentCard" if card else exchange.operation or exchange.method,
            binding=exchange.binding,
            dialect=exchange.dialect,
            request=_request_value(first, exchange),
            lines=tuple(self._load_lines(row, [frame for frame in frames if frame is not first])),
            agent=exchange.agent,
            began=exchange.started,
            headers=exchange.request_headers,
            answer_headers=without_labels(exchange.response_headers),
            status=exchange.status,
            early_headers=opening is not None and _has_early_headers(exchange, opening),
            trailers_only=any(frame.note == "trailers-only" for frame in frames),
            streaming=exchange.streaming,
            live_payload=exchange.live_payload,
            target=exchange.target,
            is_broken=exchange.how in _BROKEN_ENDS
            and not (exchange.binding is Binding.STDIO and exchange.how == "proxy killed"),
        )

    def _load_lines(self, row: ExchangeRow, frames: list[Frame]) -> Iterator[ScriptLine]:
        exchange, place = row.exchange, self._place_of(row)
        ended = False
        for frame in frames:
            side = ScriptSide.CLIENT if frame.direction is Direction.TO_AGENT else ScriptSide.AGENT
            if (
                side is ScriptSide.CLIENT
                and exchange.operation not in LIVE_OPERATIONS
                and frame.kind is not FrameKind.CUT
            ):
                continue  # the request is complete, so the agent waits for nothing more
            line = self._load_line(row, frame, side)
            if line is not None:
                ended = (
                    ended
                    or line.what in (LineKind.RESET, LineKind.CUT)
                    or (side is ScriptSide.AGENT and line.is_final)
                )
                yield line
                if side is ScriptSide.CLIENT and line.what in (LineKind.RESET, LineKind.CUT):
                    # the agent's lines after the client broke the call off reached no client
                    return
        if not ended:
            number = frames[-1].seq + 1 if frames else 1
            at = max(
                (exchange.closed or exchange.last_event or exchange.started) - exchange.started, 0
            )
            what = LineKind.END if exchange.how == "complete" else LineKind.CUT
            note = "" if what is LineKind.END else exchange.how or "the recording ends here"
            side = ScriptSide.CLIENT if exchange.how.startswith("client") else ScriptSide.AGENT
            yield ScriptLine(
                number=number, side=side, what=what, at=at, note=note, place=f"{place}.{number}"
            )

    def _load_line(self, row: ExchangeRow, frame: Frame, side: ScriptSide) -> ScriptLine | None:
        exchange = row.exchange
        what = _LINE_KINDS.get(frame.kind)
        if frame.kind is FrameKind.CUT:
            what = LineKind.RESET if frame.note.startswith(_RESET_ENDS) else LineKind.CUT
        if what is None:
            return None
        ended = what is LineKind.END
        trailers = without_labels(exchange.trailers) if ended and side is ScriptSide.AGENT else ()
        remarked = row.session, exchange.id, frame.seq
        event_id = _EVENT_ID.search(frame.framing)
        return ScriptLine(
            number=frame.seq,
            side=side,
            what=what,
            at=max(frame.at - exchange.started, 0),
            value=_canonical_value(frame, exchange)
            if what in (LineKind.MESSAGE, LineKind.ERROR)
            else None,
            raw=frame.payload,
            schema=frame.schema,
            event=frame.event,
            task=frame.task_id,
            state=frame.state,
            generation=frame.generation,
            status=GrpcOutcome(trailers or exchange.response_headers).status if ended else -1,
            trailers=trailers,
            event_id=event_id[1] if event_id else "",
            framing=frame.framing if exchange.binding in _EVENT_STREAMS else "",
            note=frame.note,
            place=f"{self._place_of(row)}.{frame.seq}",
            after=self._pins.get(remarked, -1),
            findings=tuple(self._findings.get(remarked, ())),
        )

    def _load_push(self, row: ExchangeRow) -> Iterator[RecordedPush]:
        exchange = row.exchange
        for each in self._recording.read_frames(row.key):
            frame = each.frame
            if frame.kind is FrameKind.REQUEST:
                yield RecordedPush(
                    place=self._place_of(row),
                    at=frame.at,
                    value=canonical_payload(frame, exchange),
                    raw=frame.payload,
                    url=f"{exchange.authority}{exchange.target}",
                    headers=without_labels(exchange.request_headers),
                    dialect=exchange.dialect,
                    task=frame.task_id,
                )


def _is_half_close(frame: Frame) -> bool:
    return frame.kind is FrameKind.END and frame.direction is Direction.TO_AGENT


def _has_early_headers(exchange: Exchange, opening: Frame) -> bool:
    """Whether the initial metadata of a gRPC call came before what the client sent first."""
    return exchange.binding is Binding.GRPC and 0 < exchange.response_started < (
        opening.began or opening.at
    )


def _request_value(first: Frame | None, exchange: Exchange) -> Any:
    if not exchange.operation:
        return {}
    return canonical_payload(first, exchange) if first is not None else None


def _canonical_value(frame: Frame, exchange: Exchange) -> Any:
    """Return the frame's payload in canonical form; for an unknown JSON-RPC method, without the
    envelope of its response."""
    value = canonical_payload(frame, exchange)
    if not exchange.operation and isinstance(value, dict) and "jsonrpc" in value:
        return {name: item for name, item in value.items() if name in ("result", "error")}
    return value


def _unservable_reason(
    exchange: Exchange, has_request: bool, frames: list[Frame], redaction: tuple[str, ...]
) -> str:
    """Return why a call cannot be replayed, or an empty string if it can."""
    if exchange.binding is Binding.OTHER or (not exchange.method and not exchange.operation):
        return f"{exchange.method} {exchange.target} is not an A2A call"
    if exchange.ours:
        return "the proxy answered, not the agent"
    if not has_request:
        return "its request was not recorded"
    if METADATA_ONLY in redaction:
        return "its payloads were not recorded (--redact metadata-only)"
    if any(frame.truncated for frame in frames):
        return "one of its messages was too large to be stored whole"
    return ""
