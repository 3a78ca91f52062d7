"""Misses in words: what was asked, what is nearest, what to do. Credentials are left out."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec

from a2a_proxy.protocol.operations import OPERATION_BY_NAME
from a2a_proxy.protocol.text import shell_line, to_one_line
from a2a_proxy.recording.difference.values import DifferenceRow
from a2a_proxy.redaction.payload import redact
from a2a_proxy.redaction.scrubber import Scrubber
from a2a_proxy.replay.core.matching import requested_task
from a2a_proxy.replay.core.miss import Miss, MissKind
from a2a_proxy.replay.core.player_io import PlayerRequest
from a2a_proxy.replay.core.script import POLLING_OPERATION, RecordedCall, ReplayScript

if TYPE_CHECKING:
    from a2a_proxy.replay.core.call_playback import CallPlayback

_LABEL = re.compile(rb"redacted-[0-9a-f]{12}")
_MAX_REQUEST_CHARS = 60
"""Characters of a message's text."""


def unknown_operation(script: ReplayScript, request: PlayerRequest) -> Miss:
    """The recording has no such operation."""
    known = Counter(call.operation for call in script.calls)
    cannot = next((each for each in script.unservable if each.operation == request.operation), None)
    if cannot is not None:
        why = f"the recording has it in {cannot.place}, which is not replayed: {cannot.reason}"
    elif request.operation in OPERATION_BY_NAME:
        why = f"the recording has no call of {request.operation}"
    else:
        why = f"{to_one_line(request.operation)} is no operation of A2A, and the recording has no such call either"
    hints = [f"see what it has: {shell_line('a2a-inspect', 'ls', script.name)}"]
    if (
        request.operation == POLLING_OPERATION
        and requested_task(request.value)
        and any(call.is_stream for call in script.calls)
    ):
        hints.append(f"answer with what streams have told of the task: --policy {POLLING_OPERATION}=by-progress")
    return Miss(
        kind=MissKind.UNKNOWN,
        operation=request.operation,
        request_text=request_text(request.operation, request.value),
        reason=why,
        known_operations=tuple(f"{name} x{count}" for name, count in known.items()),
        recording=script.name,
        hints=(*hints, RECORD_AGAIN),
    )


def different_request(
    script: ReplayScript,
    request: PlayerRequest,
    nearest: RecordedCall,
    rows: tuple[DifferenceRow, ...],
    *,
    strange: bool,
) -> Miss:
    """No call of this operation was asked this. `strange`: it names a task that the replay has not told of."""
    places = [row.right or row.left or () for row in rows]
    hints = [_show_command(script, nearest)]
    if strange and any((path and path[0] in ("id", "taskId")) or path[-1:] == ("taskId",) for path in places):
        hints.append("the task is another one than the recorded call's: ask about the one that this replay has told of")
    hints += ["answer it all the same: --match loose, or --match by-operation", RECORD_AGAIN]
    return Miss(
        kind=MissKind.DIFFERS,
        operation=request.operation,
        request_text=request_text(request.operation, request.value),
        nearest=nearest.place,
        rows=_redact_rows(rows),
        reason="" if isinstance(request.value, dict) else f"nobody can read it as what {request.operation} takes",
        recording=script.name,
        hints=tuple(hints),
    )


def exhausted_calls(script: ReplayScript, request: PlayerRequest, last: RecordedCall, times: int) -> Miss:
    """What was asked fits, and all that fits has been played."""
    played = "once" if times == 1 else f"{times} times"
    return Miss(
        kind=MissKind.EXHAUSTED,
        operation=request.operation,
        request_text=request_text(request.operation, request.value),
        nearest=last.place,
        reason=f"nothing differs from {last.place}, but it was recorded {played} and has been played {played}",
        recording=script.name,
        hints=(f"let the last answer repeat: --policy {request.operation}=last-sticky", RECORD_AGAIN),
    )


def diverged_call(
    script: ReplayScript,
    playback: CallPlayback,
    why: str,
    place: str,
    rows: tuple[DifferenceRow, ...],
    value: Any,
    *,
    stuck: bool,
) -> Miss:
    """The call fits, and within it the client left the recording. `stuck`: it cannot go on, whatever is allowed."""
    operation = playback.call.operation
    return Miss(
        kind=MissKind.DIVERGED,
        operation=operation,
        request_text=request_text(operation, playback.request.value if value is None else value),
        nearest=place,
        reason=why,
        rows=_redact_rows(rows),
        recording=script.name,
        hints=(_show_command(script, playback.call), RECORD_AGAIN if stuck else "go on all the same: --lenient"),
    )


RECORD_AGAIN = "record it again where the agent or the client has changed"


def _show_command(script: ReplayScript, call: RecordedCall) -> str:
    """A shell takes what follows `#` for a comment."""
    return f"see it: {shell_line('a2a-inspect', 'show', script.name)} {call.place.removeprefix('#')}"


def request_text(operation: str, value: Any) -> str:
    """A request in one line: the operation, what it says, which task."""
    said = [to_one_line(operation, 80)]
    value = redact_value(value)
    message = value.get("message") if isinstance(value, dict) else None
    if isinstance(message, dict):
        parts = message.get("parts")
        texts = (
            [part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)]
            if (isinstance(parts, list))
            else []
        )
        said += [msgspec.json.encode(to_one_line(texts[0], _MAX_REQUEST_CHARS)).decode()] if texts else []
        task = message.get("taskId")
    else:
        task = (value.get("taskId") or value.get("id")) if isinstance(value, dict) else None
    if isinstance(task, str):
        said.append(f"of task {to_one_line(task, 48)}")
    return " ".join(said)


def redact_value(value: Any, name: str = "") -> Any:
    """A value without credentials, as redaction at capture would leave it out."""
    data = msgspec.json.encode({name: value} if name else value)
    made = redact(Scrubber(b"replay"), "json", data, cut=False)[0]
    found = msgspec.json.decode(_LABEL.sub(b"redacted", made))
    return found[name] if name else found


def _redact_rows(rows: tuple[DifferenceRow, ...]) -> tuple[DifferenceRow, ...]:
    def name(row: DifferenceRow) -> str:
        return next((step for step in reversed(row.right or row.left or ()) if isinstance(step, str)), "")

    return tuple(
        msgspec.structs.replace(
            row, before=redact_value(row.before, name(row)), after=redact_value(row.after, name(row))
        )
        for row in rows
    )
