"""Pinned gates and injected faults: instructions that an author adds to a script, by place."""

import re
from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from a2a_proxy.faults.words import FaultError, WordScanner, read_fault
from a2a_proxy.replay.core.script import (
    LineKind,
    RecordedCall,
    ReplayScript,
    ScriptLine,
    ScriptSide,
)

PINNED_GATE = re.compile(r"gate: after #?(?:\d+:)?(\d+)\.(\d+)", re.IGNORECASE)
"""A note on an agent line that names the client line it waits for."""

_PLACE = re.compile(r"(#(?:\d+:)?\d+)\.(\d+)")
_MAX_LISTED = 20
"""Maximum number of frames listed in an error."""
FAULT_EXAMPLES = {
    "drop": "drop #3.4",
    "dup": "dup #3.4",
    "swap": "swap #3.4 #3.5",
    "cut": "cut #3.4 @ 50%",
    "stall": "stall 30s before #3.4",
    "gen": "gen+2 at #3.4",
}
"""A fault with each verb, in the order of the manual."""


class InjectedFault(msgspec.Struct, frozen=True):
    """Something that goes wrong in this replay on purpose."""

    text: str
    kind: str
    call: str
    """Place of the call."""
    line: int
    """Number of the frame."""
    other: int = -1
    """Number of the frame with which the line is swapped."""
    amount: float = 0.0
    """Percentage of a message that is still sent, duration of a stall in ns, or increase of a
    generation."""


def parse_fault(text: str) -> InjectedFault:
    """Parse a fault such as `drop #3.4`. Raises FaultError."""
    words = WordScanner(text, FAULT_EXAMPLES)
    read = read_fault(words, _read_lines)
    if read is None:
        raise words.make_verb_error()
    call, lines = read.place
    return InjectedFault(
        read.text, read.verb, call, lines[0], lines[1] if len(lines) > 1 else -1, read.amount
    )


def _read_lines(words: WordScanner, count: int) -> tuple[str, list[int]]:
    """Return the place of a call and the numbers of `count` of its frames."""
    found = [
        words.take_match(_PLACE, "a place in the recording, such as #3.4") for _ in range(count)
    ]
    if found[0][1] != found[-1][1]:
        raise words.make_error("only frames of one call can be swapped", back=1)
    return found[0][1], [int(each[2]) for each in found]


def inject_faults(script: ReplayScript, faults: list[InjectedFault]) -> ReplayScript:
    """Return the script with the faults applied. Must run before the gates are computed. Raises
    FaultError."""
    for each in faults:
        if not any(call.place == each.call for call in script.calls):
            raise FaultError(f'"{each.text}": {script.name} has no call {each.call}')
        calls = tuple(
            _apply_fault(call, each) if call.place == each.call else call for call in script.calls
        )
        script = replace(script, calls=calls, faults=(*script.faults, each.text))
    return script


def _apply_fault(call: RecordedCall, of: InjectedFault) -> RecordedCall:
    lines = list(call.lines)
    at = _line_index(call, of, of.line)
    if of.kind == "swap":
        other = _line_index(call, of, of.other)
        one, two = lines[at], lines[other]
        lines[at], lines[other] = replace(two, at=one.at), replace(one, at=two.at)
    else:
        _MAKERS[of.kind](lines, at, of)
    return replace(call, lines=tuple(lines))


def _line_index(call: RecordedCall, of: InjectedFault, number: int) -> int:
    found = (
        i
        for i, line in enumerate(call.lines)
        if line.number == number and line.side is ScriptSide.AGENT
    )
    index = next(found, None)
    if index is None:
        numbers = ", ".join(str(line.number) for line in call.agent_lines[:_MAX_LISTED])
        more = ", ..." if len(call.agent_lines) > _MAX_LISTED else ""
        raise FaultError(
            f'"{of.text}": the agent did not send {call.place}.{number}; it sent the frames '
            f"{numbers}{more}"
        )
    return index


def _drop_line(lines: list[ScriptLine], at: int, _: InjectedFault) -> None:
    del lines[at]


def _duplicate_line(lines: list[ScriptLine], at: int, _: InjectedFault) -> None:
    lines.insert(at, lines[at])


def _cut_call(lines: list[ScriptLine], at: int, of: InjectedFault) -> None:
    line = lines[at]
    sent = round(len(line.raw) * of.amount / 100)
    lines[at:] = [replace(line, what=LineKind.CUT, sent=sent, note=of.text)]


def _stall_line(lines: list[ScriptLine], at: int, of: InjectedFault) -> None:
    lines[at] = replace(lines[at], stall=round(of.amount))


def _set_generation(lines: list[ScriptLine], at: int, of: InjectedFault) -> None:
    line = lines[at]
    if not line.generation or not isinstance(line.value, dict):
        raise FaultError(f'"{of.text}": {line.place} has no generation')
    number = max(line.generation + round(of.amount), 0)
    value = {
        name: {**inner, "generation": str(number)}
        if isinstance(inner, dict) and "generation" in inner
        else inner
        for name, inner in line.value.items()
    }
    lines[at] = replace(line, value=value, generation=number)


_MAKERS: dict[str, Callable[[list[ScriptLine], int, InjectedFault], None]] = {
    "drop": _drop_line,
    "dup": _duplicate_line,
    "cut": _cut_call,
    "stall": _stall_line,
    "gen": _set_generation,
}
