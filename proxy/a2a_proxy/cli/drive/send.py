"""The `send` command: one recorded call again, as it was or edited, as a drive with a plan of one
step."""

import asyncio
import copy
import json
import os
import re
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec

from a2a_proxy.capture import file_layout
from a2a_proxy.cli.drive.options import DriveCommandOptions, SendOptions
from a2a_proxy.cli.drive.report import DriveReport, text_lines
from a2a_proxy.cli.drive.run import (
    DIFFERENT,
    DriveFactory,
    check_pipe,
    compare_drive,
    drive_agent,
    find_live_session,
    open_drive_recording,
    refuse_cassette,
)
from a2a_proxy.cli.errors import state_directory_errors
from a2a_proxy.drive.edit import (
    EditError,
    decode_request,
    find_labels,
    find_new_faults,
    message_ids_of,
    replace_request,
    set_member,
)
from a2a_proxy.drive.ids import SendIds
from a2a_proxy.drive.load import load_plan
from a2a_proxy.drive.plan import DrivePlan, PlannedCall
from a2a_proxy.drive.request import ReceivedMessage
from a2a_proxy.drive.run import Drive
from a2a_proxy.model.errors import UserError
from a2a_proxy.model.values import Binding
from a2a_proxy.present import text
from a2a_proxy.present.output import print_line, print_note
from a2a_proxy.protocol.event import decode_payload
from a2a_proxy.protocol.text import shell_line
from a2a_proxy.recording.difference.fields import format_path
from a2a_proxy.recording.names import recording_name
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import ExchangeRow, label_place, make_key
from a2a_proxy.recording.write.note_writer import NotePlace, write_note
from a2a_proxy.relay.run import run_loop

_PLACE = re.compile(r"#?(?:(\d{1,9}):)?(\d{1,18})")
_READ_SIZE = 65_536
_MAX_NAMED_FAULTS = 5
"""Places that an error names."""


def run_send(options: SendOptions) -> int:
    """Send the call, print each message of the answer at its arrival, and return the exit code.

    It is 1 for an error, or with `--diff` for a difference.

    Raises:
        UserError: the call cannot be sent, its request is not valid, or the agent cannot be
        reached.
    """
    drive = options.drive
    refuse_cassette(drive.record)
    with open_drive_recording(drive.recording) as recording:
        row = _find_call(recording, options.place)
        plan = _load_call_plan(recording, row, options)
        step = _edit_call(plan.steps[0], options)
        is_edited = step is not plan.steps[0]
        drive = _hide_secrets(plan.steps[0], options)
        plan = msgspec.structs.replace(plan, steps=(step,))
        with state_directory_errors():
            file = drive.record or file_layout.recordings_dir() / recording_name(time.time_ns())
        result = run_loop(drive_agent(plan, drive, file, _make_factory(plan, options)))
        report = compare_drive(
            recording, plan, result, msgspec.structs.replace(drive, record=None), file
        )
        with open_drive_recording(file) as live:
            rows = list(live.read_exchanges(find_live_session(live, result.pid).id))
        if not rows:
            raise UserError("the call was not recorded", "try again")
        sent = rows[-1]
    write_note(
        file,
        NotePlace(sent.session, sent.exchange.id),
        time.time_ns(),
        text=f"{'edited and sent' if is_edited else 'sent'} again: {step.place} of "
        f"{Path(recording.path).absolute()}",
    )
    return _report_answer(report, step, (file, sent), options)


def _find_call(recording: Recording, word: str) -> ExchangeRow:
    """Return the exchange at a place: `3`, or `2:3` in session 2. Raises UserError."""
    found = _PLACE.fullmatch(word)
    listing = f"list the recorded calls: {shell_line('a2a-inspect', 'ls', recording.path)}"
    if found is None:
        raise UserError(
            f"{word!r} is not the place of a call, such as 3, or 2:3 in session 2", listing
        )
    sessions = (
        [int(found[1])] if found[1] else [session.id for session in recording.read_sessions()]
    )
    rows = [recording.read_exchange(make_key(session, int(found[2]))) for session in sessions]
    exchanges = [row for row in rows if row is not None]
    if not exchanges:
        raise UserError(f"the recording has no call {word}", listing)
    if len(exchanges) > 1:
        places = ", ".join(
            label_place(row.session, row.exchange.id, with_session=True) for row in exchanges
        )
        raise UserError(
            f"{len(exchanges)} sessions have a call {word}: {places}",
            f"name one of them; {listing}",
        )
    return exchanges[0]


def _load_call_plan(recording: Recording, row: ExchangeRow, options: SendOptions) -> DrivePlan:
    """Return the plan of one step. Raises UserError."""
    plan = load_plan(recording, [row], options.drive.target)
    if plan.skipped:
        skipped = plan.skipped[0]
        raise UserError(
            f"{skipped.place} {text.exchange_title(row.exchange)} cannot be sent: {skipped.reason}",
            f"choose another call: {shell_line('a2a-inspect', 'ls', recording.path)}",
        )
    check_pipe(
        plan, options.drive, ("a2a-proxy", "send", str(options.drive.recording), options.place)
    )
    return plan


# --- the request


def _edit_call(step: PlannedCall, options: SendOptions) -> PlannedCall:
    """Return the call with the edits, or the same call if nothing changes. Raises UserError."""
    title = f"{step.place} {text.exchange_title(step.exchange)}"
    if not options.assignments and not options.edit and options.request is None:
        _refuse_labels(step, title)
        return step
    recorded = decode_request(step)
    if recorded is None:
        raise UserError(
            f"{title} is not an A2A request that can be edited",
            "leave out --set, --edit, --request",
        )
    request = _edit_request(recorded, options)
    if not options.edit:
        return _replace_request(step, recorded, request, options, title)
    saved = _open_editor(request)
    try:
        return _replace_request(
            step, recorded, _parse_request(saved, "the edited request"), options, title
        )
    except UserError as wrong:
        # Store an edit that was refused, readable by the user only, and return the file.
        handle, name = tempfile.mkstemp(prefix="a2a-proxy-edit-", suffix=".json")
        with open(handle, "w", encoding="utf-8") as file:
            file.write(saved)
        hint = f"{wrong.hint}; your edit is kept; correct it there, and send it: --request {name}"
        raise UserError(wrong.message, hint) from wrong


def _refuse_labels(step: PlannedCall, title: str) -> None:
    """Raise UserError if the request has labels in the place of secrets."""
    if labels := find_labels(step):
        is_member = labels[0].startswith("$") and " of #" not in labels[0]
        raise UserError(
            f"{title} contains labels of secrets, not the secrets: {_name_places(labels)}",
            f"fill them: --set '{labels[0]}=SECRET'"
            if is_member
            else "choose another call: these cannot be filled",
        )


def _edit_request(recorded: dict[str, Any], options: SendOptions) -> dict[str, Any]:
    """Return the edited request. Raises UserError."""
    request = copy.deepcopy(recorded) if options.request is None else _read_request(options.request)
    for each in options.assignments:
        try:
            set_member(request, each.path, each.value)
        except EditError as wrong:
            raise UserError(
                f"--set {format_path(each.path)}: {wrong}", "--edit opens the request in an editor"
            ) from wrong
    return request


def _open_editor(request: dict[str, Any]) -> str:
    """Return the request as saved in the user's editor. Raises UserError."""
    words = json.dumps(request, indent=2, ensure_ascii=False) + "\n"
    try:
        saved = click.edit(words, extension=".json")
    except click.ClickException as wrong:
        raise UserError(
            f"the editor failed: {wrong.format_message()}",
            "choose another one: export EDITOR=COMMAND",
        ) from wrong
    if saved is None:
        raise UserError(
            "the editor saved nothing, so nothing was sent",
            "to send the call as it was, leave --edit out",
        )
    return str(saved)


def _read_request(path: Path) -> dict[str, Any]:
    """Return the request of `--request`. Raises UserError."""
    try:
        data = path.read_bytes()
    except OSError as wrong:
        hint = "name a file with the request as --edit shows it"
        raise UserError(
            f"cannot read --request {path}: {(wrong.strerror or str(wrong)).lower()}", hint
        ) from wrong
    return _parse_request(data, f"--request {path}")


def _parse_request(data: str | bytes, name: str) -> dict[str, Any]:
    """Return the JSON object of an edited request. Raises UserError."""
    hint = "edit it again; nothing was sent"
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as wrong:
        raise UserError(f"{name} is not JSON: {wrong}", hint) from wrong
    if not isinstance(value, dict):
        raise UserError(f"{name} is not a JSON object", hint)
    return value


def _replace_request(
    step: PlannedCall,
    recorded: dict[str, Any],
    request: dict[str, Any],
    options: SendOptions,
    title: str,
) -> PlannedCall:
    """Return the call with the edited request. Raises UserError if it is not valid, unless
    `--force` is given, or has labels in the place of secrets."""
    if request == recorded:
        _refuse_labels(step, title)
        return step
    hint = "correct it (--edit shows its members), or send it anyway: --force"
    try:
        edited = replace_request(step, request, lenient=options.force)
    except EditError as wrong:
        hint = "correct it: these bytes cannot be made" if options.force else hint
        raise UserError(
            f"the edited request of {title} cannot be encoded: {wrong}", hint
        ) from wrong
    if not options.force and (faults := find_new_faults(step, edited)):
        raise UserError(f"the edited request of {title} is not valid: {_name_places(faults)}", hint)
    _refuse_labels(edited, title)
    return edited


def _name_places(places: list[str]) -> str:
    more = len(places) - _MAX_NAMED_FAULTS
    return "; ".join(places[:_MAX_NAMED_FAULTS]) + (f"; and {more} more" if more > 0 else "")


def _hide_secrets(step: PlannedCall, options: SendOptions) -> DriveCommandOptions:
    """Return the options of the drive; what replaces the labels of this recorded call is redacted
    again."""
    places = [place for place in find_labels(step) if place.startswith("$.")]
    hidden = [
        each.text
        for each in options.assignments
        if any(place.startswith(format_path(each.path)) for place in places)
    ]
    redact = tuple(f"path:{place.removeprefix('$.')}" for place in places)
    return msgspec.structs.replace(options.drive, redact=redact, hidden_values=tuple(hidden))


# --- the answer


def _make_factory(plan: DrivePlan, options: SendOptions) -> DriveFactory:
    """Return the function that creates the drive: it prints answers, and reads further messages of
    a live call."""
    step = plan.steps[0]
    is_live = step.exchange.operation == "SendLiveMessage" and step.exchange.binding is Binding.GRPC
    ids = SendIds(frozenset() if options.as_recorded else message_ids_of(step))

    def make_drive(plan: DrivePlan, transports: Any, given: Any) -> Drive:
        texts = _read_texts() if is_live else None
        return Drive(
            plan,
            transports,
            msgspec.structs.replace(given, on_answer=_print_answer, texts=texts),
            ids,
        )

    return make_drive


def _print_answer(message: ReceivedMessage) -> None:
    value = decode_payload(message.payload, message.schema)
    is_read = value is not None
    line = (
        json.dumps(value, ensure_ascii=False)
        if is_read
        else message.payload.decode("utf-8", "backslashreplace")
    )
    print_line(line, flush=True)


def _read_texts() -> asyncio.Queue[str | None]:
    """Return a queue that gets the lines of standard input, and None at its end."""
    texts: asyncio.Queue[str | None] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    if sys.stdin is not None and sys.stdin.isatty():
        print_note("a2a-proxy: each line that you type is a further message; Ctrl-D ends them")

    def put(text: str | None) -> None:
        try:
            loop.call_soon_threadsafe(texts.put_nowait, text)
        except RuntimeError:  # the call is over, and so is its loop
            return

    def read_lines() -> None:
        for line in _iter_input_lines():
            put(line)
        put(None)

    threading.Thread(target=read_lines, daemon=True).start()
    return texts


def _iter_input_lines() -> Iterator[str]:
    """Yield the lines of standard input that are not blank. The descriptor is read itself, because
    a thread that waits in `sys.stdin` would keep the interpreter from its end."""
    rest = b""
    try:
        while data := os.read(0, _READ_SIZE):
            *lines, rest = (rest + data).split(b"\n")
            yield from (line.decode("utf-8", "replace") for line in lines if line.strip())
    except OSError:  # no standard input
        return
    if rest.strip():
        yield rest.decode("utf-8", "replace")


def _report_answer(
    report: DriveReport, step: PlannedCall, found: tuple[Path, ExchangeRow], options: SendOptions
) -> int:
    """Print the outcome, and the difference if it is wanted; return the exit code."""
    file, sent = found
    exchange, place = sent.exchange, label_place(sent.session, sent.exchange.id)
    outcome = text.outcome_label(exchange)
    facts = (
        text.exchange_title(exchange),
        text.binding_and_dialect(exchange),
        outcome,
        text.latency_label(exchange),
    )
    if options.diff:
        for line in text_lines(report):
            print_line(line)
    else:
        for words in (*report.notes, *(remark.text for remark in report.remarks)):
            print_note(f"a2a-proxy: note: {words}")
    line = "  ".join(filter(None, (place, *facts, exchange.error)))
    print_note(line)
    print_note(f"show it: {shell_line('a2a-inspect', 'show', str(file), place[1:])}")
    recorded = label_place(step.row.session, step.exchange.id, with_session=True)
    sides = str(options.drive.recording), recorded[1:], str(file), place[1:]
    print_note(f"show both side by side: {shell_line('a2a-inspect', 'diff', *sides, '--screen')}")
    if options.diff:
        return DIFFERENT if report.difference.count else 0
    return 0 if outcome == "ok" else DIFFERENT
