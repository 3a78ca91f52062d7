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
from a2a_proxy.replay.core.matching import token
from a2a_proxy.replay.core.script import LineKind, RecordedCall, ReplayScript, ScriptLine, ScriptSide

_SAID = (LineKind.MESSAGE, LineKind.END)
_WAITS = frozenset({TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED})


class GateStep(msgspec.Struct, frozen=True):
    """A line of the agent, and what must have been before it goes out."""

    line: ScriptLine
    needs: int = 0
    """Lines of the client that must have been heard, of `Steps.client`."""
    pause: int = 0
    """Ns as recorded: after the client's line that opens its gate, else after the agent's line before it."""


class Steps(msgspec.Struct, frozen=True):
    """A call as it is played."""

    agent: tuple[GateStep, ...]
    client: tuple[ScriptLine, ...]
    """What the client said after its request: messages, and that it has no more to say."""
    leaves: ScriptLine | None = None
    """The client broke the call off."""


class Gates:
    """Of all calls of a script."""

    def __init__(self, script: ReplayScript) -> None:
        self._alike: dict[bytes, list[RecordedCall]] = defaultdict(list)
        for call in script.calls:
            if call.live:
                self._alike[token(call.request)].append(call)
        self._known: dict[str, Steps] = {}

    def of(self, call: RecordedCall) -> Steps:
        """Those of a call; what other live calls were asked the same is looked at as well."""
        if not call.live:
            return steps(call)
        found = self._known.get(call.place)
        if found is None:
            like = [each for each in self._alike[token(call.request)] if each.place != call.place]
            found = self._known[call.place] = steps(call, like)
        return found


def steps(call: RecordedCall, like: Sequence[RecordedCall] = ()) -> Steps:
    """Work out the gates of a call; `like` are others that were asked the same."""
    said_by_client = [line for line in call.lines if line.side is ScriptSide.CLIENT]
    client = tuple(line for line in said_by_client if line.what in _SAID)
    leaves = next((line for line in said_by_client if line.what not in _SAID), None)
    numbers = {line.number: index + 1 for index, line in enumerate(client)}
    usual = _usual(call)
    evidence = iter(_evidence(call, like))
    made: list[GateStep] = []
    gate, said, passed, state, last = 0, 0, 0, 0, 0
    spoken = waited = False
    """The agent has said something; the client has spoken since the agent asked it to."""
    for line in call.lines:
        if line.side is ScriptSide.CLIENT:
            if line.what in _SAID:
                said += 1
                waited = waited or state in _WAITS
            continue
        if line.what is LineKind.COMMENT:
            made.append(GateStep(line, gate, max(line.at - last, 0)))
            last = line.at
            continue
        before = gate
        least, always = next(evidence)
        speaks = said > passed and client[said - 1].what is LineKind.MESSAGE
        if said > passed and (waited or (speaks and not spoken)):
            gate = said
        elif speaks and line.at - last > usual:
            gate = max(gate, min(said, least))
        if always:
            gate = max(gate, least)
        if line.after >= 0:
            gate = max(gate, numbers.get(line.after, 0))
        since = client[gate - 1].at if gate > before else last
        made.append(GateStep(line, gate, max(line.at - since, 0)))
        state, last, spoken, waited, passed = line.state or state, line.at, True, False, said
    return Steps(tuple(made), client, leaves)


_Face = tuple[LineKind, EventKind, int]


def _evidence(call: RecordedCall, like: Sequence[RecordedCall]) -> Iterator[tuple[int, bool]]:
    """For each line of the agent: the fewest messages of the client that it ever came after, in those calls that have
    gone the same way until here, and whether there are such calls and it always came after as many."""
    others = [list(_told(each)) for each in like]
    for index, (face, mine) in enumerate(_told(call)):
        others = [each for each in others if len(each) > index and each[index][0] == face]
        counts = {each[index][1] for each in others}
        if not counts:
            yield len(call.lines), False
        else:
            yield min(counts | {mine}), counts == {mine}


def _told(call: RecordedCall) -> Iterator[tuple[_Face, int]]:
    """What kind of thing each line of the agent is, and how many messages of the client were before it."""
    said = 0
    for line in call.lines:
        if line.side is ScriptSide.AGENT and line.what is not LineKind.COMMENT:
            yield (line.what, line.event, line.state), said
        elif line.what is LineKind.MESSAGE:
            said += 1


def _usual(call: RecordedCall) -> float:
    """The median pause between two lines of the agent, ns."""
    times = [line.at for line in call.answers if line.what is not LineKind.COMMENT]
    gaps = [after - before for before, after in pairwise(times)]
    return median(gaps) if gaps else 0.0
