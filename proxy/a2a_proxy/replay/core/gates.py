"""When the agent's lines may go out: what of the client each one waits for, and the pause before it.

Order alone does not prove that a line of the agent was caused by the client's before it: it may have crossed it. So a
line waits for the client only where that is plausible, or where an author has pinned it; the others follow the clock.
Where a stream was recorded more than once, the recordings tell more: what came once without the client's line does not
wait for it, and what always came after it does.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median

import msgspec

from a2a_proxy.model.event import TaskState
from a2a_proxy.model.frame import EventKind
from a2a_proxy.replay.core.matching import request_token
from a2a_proxy.replay.core.script import LineKind, RecordedCall, ReplayScript, ScriptLine, ScriptSide

_COUNTED_KINDS = (LineKind.MESSAGE, LineKind.END)
_WAITING_STATES = frozenset({TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED})


class GateStep(msgspec.Struct, frozen=True):
    """A line of the agent, and what must have been before it goes out."""

    line: ScriptLine
    needs: int = 0
    """Lines of the client that must have been heard, of `Steps.client`."""
    pause: int = 0
    """Ns as recorded: after the client's line that opens its gate, else after the agent's line before it."""


class PlaybackSteps(msgspec.Struct, frozen=True):
    """A call as it is played."""

    agent: tuple[GateStep, ...]
    client: tuple[ScriptLine, ...]
    """What the client said after its request: messages, and that it has no more to say."""
    leaves: ScriptLine | None = None
    """The client broke the call off."""


class Gates:
    """Of all calls of a script."""

    def __init__(self, script: ReplayScript) -> None:
        self._calls_by_request: dict[bytes, list[RecordedCall]] = defaultdict(list)
        for call in script.calls:
            if call.is_live:
                self._calls_by_request[request_token(call.request)].append(call)
        self._steps_of_place: dict[str, PlaybackSteps] = {}

    def steps_of(self, call: RecordedCall) -> PlaybackSteps:
        """Those of a call; what other live calls were asked the same is looked at as well."""
        if not call.is_live:
            return make_steps(call)
        found = self._steps_of_place.get(call.place)
        if found is None:
            like = [each for each in self._calls_by_request[request_token(call.request)] if each.place != call.place]
            found = self._steps_of_place[call.place] = make_steps(call, like)
        return found


def make_steps(call: RecordedCall, like: Sequence[RecordedCall] = ()) -> PlaybackSteps:
    """Work out the gates of a call; `like` are others that were asked the same."""
    client_lines = [line for line in call.lines if line.side is ScriptSide.CLIENT]
    client = tuple(line for line in client_lines if line.what in _COUNTED_KINDS)
    leaves = next((line for line in client_lines if line.what not in _COUNTED_KINDS), None)
    numbers = {line.number: index + 1 for index, line in enumerate(client)}
    usual = _median_pause(call)
    evidence = iter(_gate_evidence(call, like))
    made: list[GateStep] = []
    gate, client_count, passed_count, state, last = 0, 0, 0, 0, 0
    spoken = waited = False
    """The agent has said something; the client has spoken since the agent asked it to."""
    for line in call.lines:
        if line.side is ScriptSide.CLIENT:
            if line.what in _COUNTED_KINDS:
                client_count += 1
                waited = waited or state in _WAITING_STATES
            continue
        if line.what is LineKind.COMMENT:
            made.append(GateStep(line, gate, max(line.at - last, 0)))
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
        made.append(GateStep(line, gate, max(line.at - since, 0)))
        state, last, spoken, waited, passed_count = line.state or state, line.at, True, False, client_count
    return PlaybackSteps(tuple(made), client, leaves)


_LineShape = tuple[LineKind, EventKind, int]


def _gate_evidence(call: RecordedCall, like: Sequence[RecordedCall]) -> Iterator[tuple[int, bool]]:
    """For each line of the agent: the fewest messages of the client that it ever came after, in those calls that have
    gone the same way until here, and whether there are such calls and it always came after as many."""
    others = [list(_agent_line_shapes(each)) for each in like]
    for index, (face, mine) in enumerate(_agent_line_shapes(call)):
        others = [each for each in others if len(each) > index and each[index][0] == face]
        counts = {each[index][1] for each in others}
        if not counts:
            yield len(call.lines), False
        else:
            yield min(counts | {mine}), counts == {mine}


def _agent_line_shapes(call: RecordedCall) -> Iterator[tuple[_LineShape, int]]:
    """What kind of thing each line of the agent is, and how many messages of the client were before it."""
    said = 0
    for line in call.lines:
        if line.side is ScriptSide.AGENT and line.what is not LineKind.COMMENT:
            yield (line.what, line.event, line.state), said
        elif line.what is LineKind.MESSAGE:
            said += 1


def _median_pause(call: RecordedCall) -> float:
    """The median pause between two lines of the agent, ns."""
    times = [line.at for line in call.agent_lines if line.what is not LineKind.COMMENT]
    gaps = [after - before for before, after in pairwise(times)]
    return median(gaps) if gaps else 0.0
