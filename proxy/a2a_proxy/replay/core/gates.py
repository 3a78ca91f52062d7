"""When the agent's lines may be sent: which client lines each of them waits for, and the pause
before it.

The order alone does not prove that a client line caused the agent line after it, because the two
may have crossed on the wire. So an agent line waits for the client only where that is plausible or
an author has pinned it; the other lines follow the clock. If a stream was recorded more than once,
the recordings are compared: a line that once came without the client line does not wait for it, and
a line that always came after it does.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median

import msgspec

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.values import EventKind
from a2a_proxy.replay.core.matching import request_token
from a2a_proxy.replay.core.script import (
    LineKind,
    RecordedCall,
    ReplayScript,
    ScriptLine,
    ScriptSide,
)

_COUNTED_KINDS = (LineKind.MESSAGE, LineKind.END)
_WAITING_STATES = frozenset({TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED})


class GateStep(msgspec.Struct, frozen=True):
    """A line of the agent and the conditions for sending it."""

    line: ScriptLine
    needs: int = 0
    """Number of lines of `PlaybackSteps.client` that must have been received."""
    pause: int = 0
    """Recorded pause in ns: since the client line that opens the gate, else since the previous
    agent line."""


class PlaybackSteps(msgspec.Struct, frozen=True):
    """A call with its gates."""

    agent: tuple[GateStep, ...]
    client: tuple[ScriptLine, ...]
    """What the client sent after its request: messages and its half-close."""
    leaves: ScriptLine | None = None
    """The line with which the client cancelled the call."""


class Gates:
    """The gates of all calls of a script."""

    def __init__(self, script: ReplayScript) -> None:
        self._calls_by_request: dict[bytes, list[RecordedCall]] = defaultdict(list)
        for call in script.calls:
            if call.is_live:
                self._calls_by_request[request_token(call.request)].append(call)
        self._steps_of_place: dict[str, PlaybackSteps] = {}

    def steps_of(self, call: RecordedCall) -> PlaybackSteps:
        """Return the steps of a call, comparing it with other live calls that had the same
        request."""
        if not call.is_live:
            return make_steps(call)
        found = self._steps_of_place.get(call.place)
        if found is None:
            like = [
                each
                for each in self._calls_by_request[request_token(call.request)]
                if each.place != call.place
            ]
            found = self._steps_of_place[call.place] = make_steps(call, like)
        return found


def make_steps(call: RecordedCall, like: Sequence[RecordedCall] = ()) -> PlaybackSteps:
    """Compute the gates of a call; `like` are other calls with the same request."""
    client_lines = [line for line in call.lines if line.side is ScriptSide.CLIENT]
    client = tuple(line for line in client_lines if line.what in _COUNTED_KINDS)
    leaves = next((line for line in client_lines if line.what not in _COUNTED_KINDS), None)
    numbers = {line.number: index + 1 for index, line in enumerate(client)}
    usual = _median_pause(call)
    evidence = iter(_gate_evidence(call, like))
    steps: list[GateStep] = []
    gate, client_count, passed_count, state, last = 0, 0, 0, 0, 0
    spoken = waited = False
    """Whether the agent has sent something; whether the client has sent something since the agent
    asked it for input."""
    for line in call.lines:
        if line.side is ScriptSide.CLIENT:
            if line.what in _COUNTED_KINDS:
                client_count += 1
                waited = waited or state in _WAITING_STATES
            continue
        if line.what is LineKind.COMMENT:
            steps.append(GateStep(line, gate, max(line.at - last, 0)))
            last = line.at
            continue
        before = gate
        least, always = next(evidence)
        speaks = client_count > passed_count and client[client_count - 1].what is LineKind.MESSAGE
        if client_count > passed_count and (waited or (speaks and not spoken)):
            gate = client_count
        elif speaks and line.at - last > usual:
            gate = max(gate, min(client_count, least))
        if always:
            gate = max(gate, least)
        if line.after >= 0:
            gate = max(gate, numbers.get(line.after, 0))
        since = client[gate - 1].at if gate > before else last
        steps.append(GateStep(line, gate, max(line.at - since, 0)))
        state, last, spoken, waited, passed_count = (
            line.state or state,
            line.at,
            True,
            False,
            client_count,
        )
    return PlaybackSteps(tuple(steps), client, leaves)


_LineShape = tuple[LineKind, EventKind, int]


def _gate_evidence(call: RecordedCall, like: Sequence[RecordedCall]) -> Iterator[tuple[int, bool]]:
    """Yield the evidence for each line of the agent: how many client messages at least preceded it
    in the calls that are the same up to there, and whether there are such calls and the number is
    always the same."""
    others = [list(_agent_line_shapes(each)) for each in like]
    for index, (face, mine) in enumerate(_agent_line_shapes(call)):
        others = [each for each in others if len(each) > index and each[index][0] == face]
        counts = {each[index][1] for each in others}
        if not counts:
            yield len(call.lines), False
        else:
            yield min(counts | {mine}), counts == {mine}


def _agent_line_shapes(call: RecordedCall) -> Iterator[tuple[_LineShape, int]]:
    """Yield the shape of each line of the agent and the number of client messages before it."""
    client_count = 0
    for line in call.lines:
        if line.side is ScriptSide.AGENT and line.what is not LineKind.COMMENT:
            yield (line.what, line.event, line.state), client_count
        elif line.what is LineKind.MESSAGE:
            client_count += 1


def _median_pause(call: RecordedCall) -> float:
    """Return the median pause between two lines of the agent, in ns."""
    times = [line.at for line in call.agent_lines if line.what is not LineKind.COMMENT]
    gaps = [after - before for before, after in pairwise(times)]
    return median(gaps) if gaps else 0.0
