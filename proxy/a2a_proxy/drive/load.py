"""Building of a drive plan from a recording: the calls of the client, its actions in each, and the
calls left out.

Dependencies of each client message, computed from recorded times and from the ids in it.

Order alone does not prove a cause. So a message waits for all calls that had ended when it was
sent, and, for a call that was still open and about the same task, for as many answers as had
arrived. Waiting for too much makes a message late; waiting for too little sends a request for a
task that the agent does not know yet.
"""

from collections.abc import Iterable, Iterator
from itertools import pairwise

import msgspec

from a2a_proxy.drive.plan import (
    BINDINGS,
    CALL_END,
    AwaitedResponse,
    ClientAction,
    ClientTurn,
    DrivePlan,
    PlannedCall,
    SkippedCall,
)
from a2a_proxy.drive.request import RequestedTarget
from a2a_proxy.model.values import Binding, Exchange, Frame, FrameKind
from a2a_proxy.model.wire import Direction
from a2a_proxy.protocol.bindings.card import read_card
from a2a_proxy.protocol.session_facts import card_facts
from a2a_proxy.recording.difference.ids import MIN_TEXT_ID_LENGTH
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import ExchangeRow, FrameRow

_ANSWER_KINDS = (
    FrameKind.RESPONSE,
    FrameKind.EVENT,
    FrameKind.ERROR,
    FrameKind.OTHER,
    FrameKind.UNDECODABLE,
)
_ACTION_OF_KIND = {
    FrameKind.REQUEST: ClientAction.SAY,
    FrameKind.OTHER: ClientAction.SAY,
    FrameKind.END: ClientAction.END,
    FrameKind.CUT: ClientAction.CUT,
}
_BROKEN_OFF_ENDS = (
    "client cancel",
    "client gone",
    "proxy stopped",
    "proxy killed",
    "connection lost",
    "",
)
"""Values of `Exchange.how` for calls that the client, or the end of the recording, broke off."""


def add_waits(steps: list[PlannedCall]) -> Iterator[PlannedCall]:
    """Yield the same steps in the same order, each turn with its dependencies and the recorded
    pause after them."""
    front: list[PlannedCall] = []
    for step in steps:
        # The previous calls that still matter: those that no later call, also ended, waited for.
        ended = [other for other in front if _is_over_before(other, step)]
        latest = max(((other.row.session, other.start_time) for other in ended), default=(0, 0))
        front = [
            other
            for other in front
            if not _is_over_before(other, step)
            or (other.row.session, other.exchange.closed or other.start_time) >= latest
        ]
        turns: list[ClientTurn] = []
        for number, turn in enumerate(step.turns):
            waits = tuple(
                _waits_of_call(front, step)
                if number == 0
                else _waits_within_call(steps, step, turn)
            )
            cause = max(
                _awaited_time(steps, step, turn, waits), *(each.at for each in turns[-1:]), 0
            )
            turns.append(
                msgspec.structs.replace(
                    turn, waits=waits, pause=max(turn.at - cause, 0) if cause else 0
                )
            )
        yield msgspec.structs.replace(step, turns=tuple(turns))
        front.append(step)


def _is_over_before(other: PlannedCall, step: PlannedCall) -> bool:
    """Whether one call had ended when the other began; calls that were open at the end of a session
    ended with it."""
    if other.row.session != step.row.session:
        return True
    return 0 < other.exchange.closed <= step.start_time


def _waits_of_call(front: list[PlannedCall], step: PlannedCall) -> Iterator[AwaitedResponse]:
    """Yield the dependencies of a call."""
    for other in front:
        if _is_over_before(other, step):
            yield AwaitedResponse(other.number, CALL_END)
            continue
        answers = [frame for frame in other.answers if frame.at <= step.start_time]
        if _names_answer(step, {name for frame in answers for name in _ids_in_frame(frame)}):
            yield AwaitedResponse(other.number, len(answers))


def _waits_within_call(
    steps: list[PlannedCall], step: PlannedCall, turn: ClientTurn
) -> Iterator[AwaitedResponse]:
    """Yield the dependencies of a later message or cancel on calls that began and ended while its
    call was open."""
    if turn.action is ClientAction.END:
        return
    for other in steps[step.number + 1 :]:
        if other.start_time > turn.at:
            return
        if 0 < other.exchange.closed <= turn.at:
            yield AwaitedResponse(other.number, CALL_END)


def _awaited_time(
    steps: list[PlannedCall],
    step: PlannedCall,
    turn: ClientTurn,
    waits: tuple[AwaitedResponse, ...],
) -> int:
    """Return when the last dependency of a turn was met in the recording, in ns; 0 if it has
    none."""
    times = [frame.at for frame in step.answers[: turn.answers_before][-1:]]
    for wait in waits:
        other = steps[wait.step]
        times.append(
            other.exchange.closed
            if wait.answers == CALL_END
            else other.answers[wait.answers - 1].at
        )
    return max(times, default=0)


def _names_answer(step: PlannedCall, ids: set[str]) -> bool:
    """Whether the first message of a call contains an id that an answer brought, in a field or in a
    text."""
    frame = step.turns[0].frame
    if frame is None:
        return False
    data = step.exchange.target.encode("latin-1", "replace") + b" " + frame.payload
    found = (name for name in ids if len(name) >= MIN_TEXT_ID_LENGTH and name.encode() in data)
    return not ids.isdisjoint(_ids_in_frame(frame)) or any(found)


def _ids_in_frame(frame: Frame) -> set[str]:
    return {name for name in (frame.task_id, frame.context_id) if name}


def load_plan(
    recording: Recording, rows: Iterable[ExchangeRow], target: RequestedTarget | None = None
) -> DrivePlan:
    """Return the plan of some calls of a recording, in the order in which they began, without those
    that cannot be made.

    Raises RecordingError if the recording cannot be read.
    """
    own = _calls_of_agents(recording)
    steps: list[PlannedCall] = []
    skipped: list[SkippedCall] = []
    for row in rows:
        why = (
            "the agent called another agent"
            if (row.session, row.exchange.id) in own
            else _exchange_obstacle(row.exchange)
        )
        call: PlannedCall | str = why or _load_call(recording, row)
        if isinstance(call, PlannedCall):
            call = (target or RequestedTarget()).obstacle_of(call) or call
        if isinstance(call, str):
            skipped.append(SkippedCall(row, call))
        else:
            steps.append(call)
    steps.sort(key=lambda step: (step.row.session, step.start_time, step.row.exchange.id))
    steps = [msgspec.structs.replace(step, number=number) for number, step in enumerate(steps)]
    return DrivePlan(
        tuple(add_waits(steps)),
        tuple(skipped),
        _interface_paths(steps),
        tuple(_missing_capture(recording, steps, skipped)),
    )


def _interface_paths(steps: list[PlannedCall]) -> dict[Binding, str]:
    """Return the path of the first interface of each binding in the first card."""
    for step in steps:
        card = (
            read_card(step.answers[0].payload)
            if step.exchange.binding is Binding.CARD and step.answers
            else None
        )
        if card is not None:
            facts = card_facts(card)
            found = [(BINDINGS.get(each.binding.lower()), each.path) for each in facts.interfaces]
            return {binding: path for binding, path in reversed(found) if binding is not None}
    return {}


def _calls_of_agents(recording: Recording) -> set[tuple[int, int]]:
    """Return the calls that an agent made while it worked; the live agent makes its own."""
    found = (row for row in recording.read_handoffs() if row.handoff.kind == "delegation")
    return {(row.session, row.handoff.to_exchange) for row in found}


def _exchange_obstacle(exchange: Exchange) -> str:
    """Return why a call cannot be repeated, as far as its exchange shows; empty if it can."""
    if exchange.binding is Binding.WEBHOOK:
        return "a webhook, which the agent sends"
    if exchange.status == 101:
        return "the handshake of a WebSocket"
    if exchange.binding is Binding.OTHER and exchange.http_version.startswith("2"):
        return "it is neither A2A nor HTTP/1.1"
    if (
        exchange.binding is not Binding.GRPC
        and exchange.binding is not Binding.STDIO
        and not exchange.target
    ):
        return "its request line was not recorded"
    return ""


def _load_call(recording: Recording, row: ExchangeRow) -> PlannedCall | str:
    """Return the call, or why it cannot be repeated."""
    turns: list[ClientTurn] = []
    answers: list[Frame] = []
    for found in recording.read_frames(row.key):
        frame = found.frame
        if frame.direction is Direction.TO_AGENT:
            if why := _frame_obstacle(frame):
                return why
            if frame.kind in _ACTION_OF_KIND:
                turns.append(_make_turn(found, len(answers)))
        elif frame.kind in _ANSWER_KINDS:
            answers.append(frame)
    if not any(turn.action is ClientAction.SAY for turn in turns):
        return "its request was not recorded"
    ended = _cancel_turn(row.exchange, turns, len(answers))
    return PlannedCall(
        0, row, (*turns, *ended), tuple(answers), _longest_silence(row.exchange, turns, answers)
    )


def _frame_obstacle(frame: Frame) -> str:
    """Return why a client's frame cannot be sent again; empty if it can."""
    if frame.kind is FrameKind.UNDECODABLE:
        return f"its frame {frame.seq} could not be read"
    if frame.truncated:
        return f"its frame {frame.seq} was too large to be recorded whole"
    return ""


def _make_turn(row: FrameRow, answer_count: int) -> ClientTurn:
    frame = row.frame
    act = _ACTION_OF_KIND[frame.kind]
    return ClientTurn(
        act, frame.seq, frame.at, answer_count, 0, (), frame if act is ClientAction.SAY else None
    )


def _cancel_turn(
    exchange: Exchange, turns: list[ClientTurn], answer_count: int
) -> Iterator[ClientTurn]:
    """Yield the cancel of a call that no frame shows: the recording ended, or an HTTP client closed
    its connection."""
    if (
        any(turn.action is ClientAction.CUT for turn in turns)
        or exchange.how not in _BROKEN_OFF_ENDS
    ):
        return
    yield ClientTurn(
        ClientAction.CUT,
        -1,
        exchange.closed or max(exchange.last_event, exchange.started),
        answer_count,
        0,
    )


def _longest_silence(exchange: Exchange, turns: list[ClientTurn], answers: list[Frame]) -> int:
    times = sorted(
        [exchange.started, *(turn.at for turn in turns), *(frame.at for frame in answers)]
    )
    times.append(max(exchange.closed, times[-1]))
    return max(after - before for before, after in pairwise(times))


def _missing_capture(
    recording: Recording, steps: list[PlannedCall], skipped: list[SkippedCall]
) -> Iterator[str]:
    """Yield what the capture lacks of the wanted calls."""
    sessions = {step.row.session for step in steps} | {each.row.session for each in skipped}
    for session in recording.read_sessions():
        if session.id in sessions and session.missing_text:
            yield f"session {session.id}: {session.missing_text}"
    for step in steps:
        if step.exchange.how in ("connection lost", "proxy killed"):
            yield f"{step.place} {step.exchange.operation}: {step.exchange.how}"
    for each in skipped:
        if "recorded" in each.reason or "could not be read" in each.reason:
            yield f"{each.place} {each.row.exchange.operation}: {each.reason}"
