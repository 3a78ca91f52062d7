"""When the agent's lines may go out: what of the client each one waits for, and the pause before it.

Order alone does not prove that a line of the agent was caused by the client's before it: it may have crossed it. So a
line waits for the client only where that is plausible, or where an author has pinned it; the others follow the clock.
"""

from __future__ import annotations

from itertools import pairwise
from statistics import median

import msgspec

from a2a_proxy.model.event import TaskState
from a2a_proxy.replay.core.script import Call, Line, Side, What

_SAID = (What.MESSAGE, What.END)
_WAITS = frozenset({TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED})


class Step(msgspec.Struct, frozen=True):
    """A line of the agent, and what must have been before it goes out."""

    line: Line
    needs: int = 0
    """Lines of the client that must have been heard, of `Steps.client`."""
    pause: int = 0
    """Ns as recorded: after the client's line that opens its gate, else after the agent's line before it."""


class Steps(msgspec.Struct, frozen=True):
    """A call as it is played."""

    agent: tuple[Step, ...]
    client: tuple[Line, ...]
    """What the client said after its request: messages, and that it has no more to say."""
    leaves: Line | None = None
    """The client broke the call off."""


def steps(call: Call) -> Steps:
    """Work out the gates of a call."""
    said_by_client = [line for line in call.lines if line.side is Side.CLIENT]
    client = tuple(line for line in said_by_client if line.what in _SAID)
    leaves = next((line for line in said_by_client if line.what not in _SAID), None)
    numbers = {line.number: index + 1 for index, line in enumerate(client)}
    usual = _usual(call)
    made: list[Step] = []
    gate, said, passed, state, last = 0, 0, 0, 0, 0
    waited = False
    """The client has spoken since the agent asked it to."""
    for line in call.lines:
        if line.side is Side.CLIENT:
            if line.what in _SAID:
                said += 1
                waited = waited or state in _WAITS
            continue
        before = gate
        speaks = said > passed and client[said - 1].what is What.MESSAGE
        if said > passed and (waited or (speaks and (not made or line.at - last > usual))):
            gate = said
        if line.after >= 0:
            gate = max(gate, numbers.get(line.after, 0))
        since = client[gate - 1].at if gate > before else last
        made.append(Step(line, gate, max(line.at - since, 0)))
        state, last, waited, passed = line.state or state, line.at, False, said
    return Steps(tuple(made), client, leaves)


def _usual(call: Call) -> float:
    """The median pause between two lines of the agent, ns."""
    times = [line.at for line in call.answers]
    gaps = [after - before for before, after in pairwise(times)]
    return median(gaps) if gaps else 0.0
