"""Misses in words: what was asked, what is nearest, what to do. Credentials are left out."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec

from a2a_proxy.protocol.operations import BY_NAME
from a2a_proxy.protocol.text import one_line, shell_line
from a2a_proxy.recording.difference.values import DifferenceRow
from a2a_proxy.redaction.payload import redact
from a2a_proxy.redaction.scrubber import Scrubber
from a2a_proxy.replay.core.matching import asked_task
from a2a_proxy.replay.core.miss import Miss, MissKind
from a2a_proxy.replay.core.player_io import PlayerRequest
from a2a_proxy.replay.core.script import POLLING, RecordedCall, ReplayScript

if TYPE_CHECKING:
    from a2a_proxy.replay.core.call_playback import CallPlayback

_LABEL = re.compile(rb"redacted-[0-9a-f]{12}")
_WORDS = 60
"""Characters of a message's text."""


def unknown(script: ReplayScript, asked: PlayerRequest) -> Miss:
    """The recording has no such operation."""
    known = Counter(call.operation for call in script.calls)
    cannot = next((each for each in script.unservable if each.operation == asked.operation), None)
    if cannot is not None:
        why = f"the recording has it in {cannot.place}, which is not replayed: {cannot.reason}"
    elif asked.operation in BY_NAME:
        why = f"the recording has no call of {asked.operation}"
    else:
        why = f"{one_line(asked.operation)} is no operation of A2A, and the recording has no such call either"
    hints = [f"see what it has: {shell_line('a2a-inspect', 'ls', script.name)}"]
    if asked.operation == POLLING and asked_task(asked.value) and any(call.streams for call in script.calls):
        hints.append(f"answer with what streams have told of the task: --policy {POLLING}=by-progress")
    return Miss(
        kind=MissKind.UNKNOWN,
        operation=asked.operation,
        asked=words(asked.operation, asked.value),
        why=why,
        known=tuple(f"{name} x{count}" for name, count in known.items()),
        recording=script.name,
        hints=(*hints, AGAIN),
    )


def differs(
    script: ReplayScript, asked: PlayerRequest, nearest: RecordedCall, rows: tuple[DifferenceRow, ...], *, strange: bool
) -> Miss:
    """No call of this operation was asked this. `strange`: it names a task that the replay has not told of."""
    places = [row.right or row.left or () for row in rows]
    hints = [_show(script, nearest)]
    if strange and any((path and path[0] in ("id", "taskId")) or path[-1:] == ("taskId",) for path in places):
        hints.append("the task is another one than the recorded call's: ask about the one that this replay has told of")
    hints += ["answer it all the same: --match loose, or --match by-operation", AGAIN]
    return Miss(
        kind=MissKind.DIFFERS,
        operation=asked.operation,
        asked=words(asked.operation, asked.value),
        nearest=nearest.place,
        rows=_clean(rows),
        why="" if isinstance(asked.value, dict) else f"nobody can read it as what {asked.operation} takes",
        recording=script.name,
        hints=tuple(hints),
    )


def exhausted(script: ReplayScript, asked: PlayerRequest, last: RecordedCall, times: int) -> Miss:
    """What was asked fits, and all that fits has been played."""
    played = "once" if times == 1 else f"{times} times"
    return Miss(
        kind=MissKind.EXHAUSTED,
        operation=asked.operation,
        asked=words(asked.operation, asked.value),
        nearest=last.place,
        why=f"nothing differs from {last.place}, but it was recorded {played} and has been played {played}",
        recording=script.name,
        hints=(f"let the last answer repeat: --policy {asked.operation}=last-sticky", AGAIN),
    )


def diverged(
    script: ReplayScript,
    play: CallPlayback,
    why: str,
    place: str,
    rows: tuple[DifferenceRow, ...],
    value: Any,
    *,
    stuck: bool,
) -> Miss:
    """The call fits, and within it the client left the recording. `stuck`: it cannot go on, whatever is allowed."""
    operation = play.call.operation
    return Miss(
        kind=MissKind.DIVERGED,
        operation=operation,
        asked=words(operation, play.asked.value if value is None else value),
        nearest=place,
        why=why,
        rows=_clean(rows),
        recording=script.name,
        hints=(_show(script, play.call), AGAIN if stuck else "go on all the same: --lenient"),
    )


AGAIN = "record it again where the agent or the client has changed"


def _show(script: ReplayScript, call: RecordedCall) -> str:
    """A shell takes what follows `#` for a comment."""
    return f"see it: {shell_line('a2a-inspect', 'show', script.name)} {call.place.removeprefix('#')}"


def words(operation: str, value: Any) -> str:
    """A request in one line: the operation, what it says, which task."""
    said = [one_line(operation, 80)]
    value = clean(value)
    message = value.get("message") if isinstance(value, dict) else None
    if isinstance(message, dict):
        parts = message.get("parts")
        texts = (
            [part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)]
            if (isinstance(parts, list))
            else []
        )
        said += [msgspec.json.encode(one_line(texts[0], _WORDS)).decode()] if texts else []
        task = message.get("taskId")
    else:
        task = (value.get("taskId") or value.get("id")) if isinstance(value, dict) else None
    if isinstance(task, str):
        said.append(f"of task {one_line(task, 48)}")
    return " ".join(said)


def clean(value: Any, name: str = "") -> Any:
    """A value without credentials, as redaction at capture would leave it out."""
    octets = msgspec.json.encode({name: value} if name else value)
    made = redact(Scrubber(b"replay"), "json", octets, cut=False)[0]
    found = msgspec.json.decode(_LABEL.sub(b"redacted", made))
    return found[name] if name else found


def _clean(rows: tuple[DifferenceRow, ...]) -> tuple[DifferenceRow, ...]:
    def name(row: DifferenceRow) -> str:
        return next((step for step in reversed(row.right or row.left or ()) if isinstance(step, str)), "")

    return tuple(
        msgspec.structs.replace(row, before=clean(row.before, name(row)), after=clean(row.after, name(row)))
        for row in rows
    )
