"""Texts of misses: the request, the nearest recorded call, and hints. Credentials are left out."""

import re
from collections import Counter
from typing import Any

import msgspec

from a2a_proxy.protocol.operations import OPERATION_BY_NAME
from a2a_proxy.protocol.text import shell_line, to_one_line
from a2a_proxy.recording.difference.fields import DifferenceRow
from a2a_proxy.redaction.payload import redact_payload
from a2a_proxy.redaction.scrubber import Scrubber
from a2a_proxy.replay.core.likeness import are_texts_alike
from a2a_proxy.replay.core.matching import requested_task
from a2a_proxy.replay.core.miss import MaskedMatch, Miss, MissKind, masked_pairs
from a2a_proxy.replay.core.script import (
    POLLING_OPERATION,
    PlayerRequest,
    RecordedCall,
    ReplayScript,
)

_TASK_WORD = re.compile(r"[0-9A-Za-z_-]+")
"""A task id that a filter can name without quotation marks."""
_LABEL = re.compile(rb"redacted-[0-9a-f]{12}")
_MAX_REQUEST_CHARS = 60
"""Maximum number of characters quoted from a message."""


def unknown_operation(script: ReplayScript, request: PlayerRequest) -> Miss:
    """Describe a request for an operation that the recording does not have."""
    call_counts = Counter(call.operation for call in script.calls)
    cannot = next((each for each in script.unservable if each.operation == request.operation), None)
    if cannot is not None:
        why = f"the recording has it in {cannot.place}, which is not replayed: {cannot.reason}"
    elif request.operation in OPERATION_BY_NAME:
        why = f"the recording has no call of {request.operation}"
    else:
        why = (
            f"{to_one_line(request.operation)} is not an A2A operation, and the recording has no "
            f"such call either"
        )
    hints = [f"list its calls: {shell_line('a2a-inspect', 'ls', script.name)}"]
    if (
        request.operation == POLLING_OPERATION
        and requested_task(request.value)
        and any(call.is_stream for call in script.calls)
    ):
        hints.append(f"answer from the task's streams: --policy {POLLING_OPERATION}=by-progress")
    return Miss(
        kind=MissKind.UNKNOWN,
        operation=request.operation,
        request_text=request_text(request.operation, request.value),
        reason=why,
        known_operations=tuple(f"{name} x{count}" for name, count in call_counts.items()),
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
    played: bool = False,
) -> Miss:
    """Describe a request that no recorded call of its operation matches. `strange`: it names a task
    unknown to the replay; `played`: the nearest call has been played."""
    places = [row.right or row.left or () for row in rows]
    hints = [_show_command(script, nearest)]
    is_other_task = any(
        (path and path[0] in ("id", "taskId")) or path[-1:] == ("taskId",) for path in places
    )
    if is_other_task and strange:
        hints.append(
            "the task is not the recorded call's: use the task id that this replay has sent"
        )
    elif is_other_task and _TASK_WORD.fullmatch(task := requested_task(nearest.request)):
        command = shell_line(
            "a2a-inspect", "export", script.name, "-f", f"task:{task[:8]}", "-o", "FILE"
        )
        hints.append(
            f"{nearest.place} belongs to another conversation; to replay only that one: {command}"
        )
    hints += _normalize_hints(rows)
    hints += ["answer it nevertheless: --match loose, or --match by-operation", RECORD_AGAIN]
    reason = f"the nearest call, {nearest.place}, has been played" if played else ""
    if request.value is None:
        reason = "the client ended the call without a message"
    elif not isinstance(request.value, dict):
        reason = f"it cannot be read as a request of {request.operation}"
    return Miss(
        kind=MissKind.DIFFERS,
        operation=request.operation,
        request_text=request_text(request.operation, request.value),
        nearest=nearest.place,
        rows=redact_rows(rows),
        reason=reason,
        recording=script.name,
        hints=tuple(hints),
    )


def exhausted_calls(
    script: ReplayScript,
    request: PlayerRequest,
    last: RecordedCall,
    times: int,
    *,
    masked: bool = False,
) -> Miss:
    """Describe a request that matches, `masked` or exactly, but only calls that have all been
    played."""
    played = "once" if times == 1 else f"{times} times"
    reason = (
        f"nothing differs from {last.place}, but it was recorded {played} and has been played "
        f"{played}"
    )
    if masked:
        reason = (
            f"only masked values differ from {last.place}, but such calls were recorded {played} "
            f"and have been"
        )
        reason += f" played {played}"
    return Miss(
        kind=MissKind.EXHAUSTED,
        operation=request.operation,
        request_text=request_text(request.operation, request.value),
        nearest=last.place,
        reason=reason,
        recording=script.name,
        hints=(
            f"let the last answer repeat: --policy {request.operation}=last-sticky",
            RECORD_AGAIN,
        ),
    )


def refused_call(script: ReplayScript, request: PlayerRequest, call: RecordedCall) -> Miss:
    """Describe a request that matches a call which is not served."""
    option = "--allow-incomplete" if call.is_broken else "--allow-redacted"
    return Miss(
        kind=MissKind.REFUSED,
        operation=request.operation,
        request_text=request_text(request.operation, request.value),
        nearest=call.place,
        reason=f"{call.place} matches, but is not served: {call.refusal}",
        recording=script.name,
        hints=(_show_command(script, call), f"serve it nevertheless: {option}", RECORD_AGAIN),
    )


def masked_match(
    places: list[str], operation: str, value: Any, rows: tuple[DifferenceRow, ...]
) -> MaskedMatch:
    """Describe a message that equals the first of `places` after masking, as it equals the
    others."""
    return MaskedMatch(
        place=places[0],
        operation=operation,
        request_text=request_text(operation, value),
        rows=redact_rows(rows),
        pairs=tuple(masked_pairs(rows)),
        others=tuple(places[1:]),
    )


def diverged_call(
    script: ReplayScript,
    call: RecordedCall,
    request: PlayerRequest,
    why: str,
    place: str,
    rows: tuple[DifferenceRow, ...],
    value: Any,
    *,
    stuck: bool,
) -> Miss:
    """Describe a client that left the recording within a call. `stuck`: the call cannot continue,
    whatever the options allow."""
    operation = call.operation
    return Miss(
        kind=MissKind.DIVERGED,
        operation=operation,
        request_text=request_text(operation, request.value if value is None else value),
        nearest=place,
        reason=why,
        rows=redact_rows(rows),
        recording=script.name,
        hints=(
            _show_command(script, call),
            *_normalize_hints(rows),
            RECORD_AGAIN if stuck else "continue nevertheless: --lenient",
        ),
    )


RECORD_AGAIN = "record it again if the agent or the client has changed"


def _normalize_hints(rows: tuple[DifferenceRow, ...]) -> list[str]:
    """Return the hint for texts that differ in a few words."""
    return (
        ["leave out a part that differs in every run: --normalize 'REGEX'"]
        if any(map(are_texts_alike, rows))
        else []
    )


def _show_command(script: ReplayScript, call: RecordedCall) -> str:
    """Return the hint that shows a call. The `#` is left out because a shell takes the rest of the
    line for a comment."""
    return (
        f"show it: {shell_line('a2a-inspect', 'show', script.name)} {call.place.removeprefix('#')}"
    )


def request_text(operation: str, value: Any) -> str:
    """Return a request as one line: the operation, the text of its message, the task."""
    words = [to_one_line(operation, 80)]
    value = redact_value(value)
    message = value.get("message") if isinstance(value, dict) else None
    if isinstance(message, dict):
        parts = message.get("parts")
        texts = (
            [
                part["text"]
                for part in parts
                if isinstance(part, dict) and isinstance(part.get("text"), str)
            ]
            if (isinstance(parts, list))
            else []
        )
        words += (
            [msgspec.json.encode(to_one_line(texts[0], _MAX_REQUEST_CHARS)).decode()]
            if texts
            else []
        )
        task = message.get("taskId")
    else:
        task = (value.get("taskId") or value.get("id")) if isinstance(value, dict) else None
    if isinstance(task, str):
        words.append(f"of task {to_one_line(task, 48)}")
    return " ".join(words)


def redact_value(value: Any, name: str = "") -> Any:
    """Return a value without credentials, with the scrubber that redacts at capture."""
    data = msgspec.json.encode({name: value} if name else value)
    redacted = redact_payload(Scrubber(b"replay"), "json", data, cut=False)[0]
    found = msgspec.json.decode(_LABEL.sub(b"redacted", redacted))
    return found[name] if name else found


def redact_rows(rows: tuple[DifferenceRow, ...]) -> tuple[DifferenceRow, ...]:
    """Return the rows without credentials."""

    def member_name(row: DifferenceRow) -> str:
        return next(
            (step for step in reversed(row.right or row.left or ()) if isinstance(step, str)), ""
        )

    return tuple(
        msgspec.structs.replace(
            row,
            before=redact_value(row.before, member_name(row)),
            after=redact_value(row.after, member_name(row)),
        )
        for row in rows
    )
