"""`a2a-inspect show`: print the conversation as a tree of sessions, contexts, tasks, exchanges and
frames."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from a2a_inspect.commands.filters import print_no_match
from a2a_inspect.commands.segments.marks import SegmentMarks
from a2a_inspect.commands.show_selection import FrameNumbers, ShowSelection
from a2a_inspect.data.finding_counts import ending_words
from a2a_inspect.data.finding_words import RuleMeanings, finding_facts, finding_words
from a2a_inspect.data.frame_objects import frame_object
from a2a_inspect.data.generation_gaps import operation_of
from a2a_inspect.data.notes import SessionNotes
from a2a_inspect.data.payload_lines import decoded_lines, part_text, raw_lines
from a2a_inspect.data.session_lines import connection_findings, connection_lines, session_line
from a2a_proxy.model.event import state_label
from a2a_proxy.model.values import Connection, Exchange, Finding, Frame, FrameKind, Task
from a2a_proxy.model.wire import Direction
from a2a_proxy.present import generations, text
from a2a_proxy.present.output import print_json, print_line
from a2a_proxy.present.text import exchange_object
from a2a_proxy.present.tls import describe_other_host, describe_tls
from a2a_proxy.protocol.describe import describe_frame
from a2a_proxy.protocol.text import make_visible
from a2a_proxy.recording.read.artifacts import artifacts_of
from a2a_proxy.recording.read.endings import EndingReader
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import ExchangeRow, SessionRow, make_key
from a2a_proxy.rules.endings.ending import Ending

ARROWS = {Direction.TO_AGENT: "-->", Direction.TO_CLIENT: "<--"}


def show_conversation(recording: Recording, selection: ShowSelection, *, as_json: bool) -> None:
    """Print the tree, or with `as_json` one object per exchange and one per finding about a
    connection.

    Raises:
        UserError: a word names no place in the recording.
    """
    selection.check_words(recording)
    found = False
    meanings = RuleMeanings()
    for session in recording.read_sessions():
        rows, frame_numbers = selection.select_rows(recording, session.id)
        found = found or bool(rows)
        if as_json:
            for facts in _session_objects(recording, session, rows, selection, frame_numbers):
                print_json(facts)
        elif rows or selection.is_session_selected(session.id):
            for line in _session_tree_lines(
                recording, session, rows, selection, meanings, frame_numbers
            ):
                print_line(line)
    if selection.where and not found:
        print_no_match(selection.where)


def _session_tree_lines(
    recording: Recording,
    session: SessionRow,
    rows: list[ExchangeRow],
    selection: ShowSelection,
    meanings: RuleMeanings,
    frame_numbers: FrameNumbers,
) -> Iterator[str]:
    yield session_line(session)
    everything = selection.is_session_selected(session.id)
    connections = list(connection_lines(recording, session)) if everything else []
    yield from ("  " + line for line in connections)
    if not rows and not connections:
        yield "  nothing was recorded"
    tasks = _SessionTasks(recording, session.id)
    marks, notes = SegmentMarks(recording, session.id), SessionNotes(recording, session.id)
    about = _Remarks(marks, notes, EndingReader(recording).read_all(rows))
    yield from (f"  {words}" for words in notes.line_at(0))
    for context, members in _group_by_context(rows, tasks):
        yield f"  context {make_visible(context)}" if context else "  outside any context"
        for (agent, task_id), exchanges in members.items():
            depth = 4
            if task_id:
                depth = 6
                task = tasks.find(exchanges[0].exchange)
                yield "    " + _task_line(task_id, task)
                if task is not None:
                    yield from _generation_lines(recording, session.id, task)
                    if selection.artifacts:
                        yield from _artifact_lines(recording, session.id, task)
            for row in exchanges:
                yield from (
                    " " * depth + line
                    for line in _exchange_lines(
                        recording,
                        row,
                        selection,
                        meanings,
                        frame_numbers.get(row.key),
                        about,
                        agent,
                    )
                )
    if everything:
        yield from ("  " + line for line in _process_lines(recording, session))


class _Remarks(NamedTuple):
    """What is said about exchanges and frames besides themselves."""

    marks: SegmentMarks
    notes: SessionNotes
    endings: dict[int, Ending]
    """By the keys of their exchanges."""


class _SessionTasks:
    """The tasks of a session, by exchange."""

    def __init__(self, recording: Recording, session: int) -> None:
        self._tasks: dict[tuple[str, str], Task] = {}
        for row in recording.read_tasks(session):
            task = row.task
            self._tasks[task.agent, task.task_id] = self._tasks["", task.task_id] = task

    def find(self, exchange: Exchange) -> Task | None:
        """Return the task of an exchange: of its agent, or of another one if it is a delivery."""
        task_id = exchange.task_id
        return self._tasks.get((exchange.agent, task_id)) or self._tasks.get(("", task_id))


_ExchangesByTask = dict[tuple[str, str], list[ExchangeRow]]
"""Exchanges by agent and id of their task; no agent if the recording does not have the task."""


def _group_by_context(
    rows: list[ExchangeRow], tasks: _SessionTasks
) -> list[tuple[str, _ExchangesByTask]]:
    """Group exchanges by context and task, in order of first appearance.

    If an exchange names no context, that of its task is used. Exchanges without either keep their
    place in time, in as many groups as that takes.
    """
    groups: list[tuple[str, _ExchangesByTask]] = []
    homes: dict[tuple[str, str], _ExchangesByTask] = {}
    for row in rows:
        task_id = row.exchange.task_id
        task = tasks.find(row.exchange)
        context = row.exchange.context_id or (task.context_id if task is not None else "")
        home = (context, "" if context else task_id)
        if home == ("", "") or home not in homes:
            if context or not groups or groups[-1][0]:
                groups.append((context, {}))
            homes[home] = groups[-1][1]
        key = task.agent if task is not None else "", task_id
        homes[home].setdefault(key, []).append(row)
    return groups


def _task_line(task_id: str, task: Task | None) -> str:
    if task is None:
        return f"task {make_visible(task_id)}"
    states = " > ".join(state_label(state) for _, state in task.states)
    artifacts = "".join(
        f"  artifact {make_visible(a.name or a.artifact_id)} "
        f"({text.format_count(max(a.chunks, 1), 'chunk')}, {text.format_size(a.size)})"
        for a in task.artifacts
    )
    return f"task {make_visible(task_id)}  {states}{artifacts}"


def _generation_lines(recording: Recording, session: int, task: Task) -> Iterator[str]:
    line = generations.generations_line(
        task, lambda number: operation_of(recording, session, number)
    )
    if line:
        yield f"      {line}"


def _artifact_lines(recording: Recording, session: int, task: Task) -> Iterator[str]:
    for name, found in artifacts_of(recording, session, task).items():
        end = "complete" if found.complete else "not complete"
        title = make_visible(found.artifact.name or name)
        yield (
            f"      artifact {title}  {text.format_count(len(found.artifact.parts), 'part')}, {end}"
        )
        for part in found.artifact.parts:
            yield from (
                " " * 10 + make_visible(line) for line in part_text(part).split("\n") if line
            )


def _exchange_lines(
    recording: Recording,
    row: ExchangeRow,
    selection: ShowSelection,
    meanings: RuleMeanings,
    frame_numbers: set[int] | None,
    about: _Remarks,
    agent: str,
) -> Iterator[str]:
    """Yield the lines of an exchange. `agent` is the address of its task's agent; empty without a
    task."""
    exchange, ending = row.exchange, about.endings.get(row.key)
    marks, notes = about.marks, about.notes
    parts = [
        f"#{exchange.id} {make_visible(text.exchange_title(exchange))}",
        text.binding_and_dialect(exchange),
        text.live_stream_label(exchange),
    ]
    connection = _connection_of(recording, row)
    if connection is not None and (process := connection.client_process) is not None:
        parts.append(
            make_visible(f"from {process.label} to {marks.names.find(agent or exchange.agent)}")
        )
    parts += [
        text.outcome_label(exchange),
        text.latency_label(exchange),
        generations.requested_generations(exchange),
        make_visible(exchange.error),
    ]
    if text.outcome_of(exchange) == "cut":
        parts.append(make_visible(text.end_reason(exchange)))
    yield "  ".join(part for part in parts if part)
    found = _findings_by_frame(recording, row)
    if (
        ending is not None
        and (words := ending_words(row, ending)) not in ("", exchange.error, exchange.how)
        and not any(each.rule == ending.rule for those in found.values() for each in those)
    ):
        yield f"    {make_visible(words)}"
    yield from (f"    {words}" for words in notes.line_at(exchange.id))
    yield from (f"    card {make_visible(each.describe())}" for each in exchange.card_signatures)
    if connection is not None:
        is_detailed = selection.raw or selection.payloads or bool(selection.words)
        yield from (
            f"    {make_visible(words)}"
            for words in _tls_lines(exchange, connection, is_detailed=is_detailed)
        )
    if selection.raw or selection.payloads:
        yield from ("    " + line for line in _header_lines(exchange))
    for frame_row in recording.read_frames(row.key):
        frame = frame_row.frame
        findings, note_lines = found.pop(frame.seq, []), notes.line_at(exchange.id, frame.seq)
        if frame_numbers is not None and frame.seq not in frame_numbers:
            continue
        if (
            frame_numbers is None
            and _is_implied_end(frame, exchange)
            and not (selection.raw or selection.payloads or findings or note_lines)
        ):
            continue
        what = describe_frame(
            frame,
            frame.payload,
            exchange.operation,
            exchange.dialect,
            exchange.extensions,
            exchange.binding,
        )
        place = f".{frame.seq}"  # below the `#8` of the heading: the place #8.4
        offset = f"{_frame_offset(exchange, frame):>{14 - len(place)}}"
        yield f" {place} {offset} {ARROWS[frame.direction]} {what}"
        if selection.raw:
            yield from (" " * 20 + line for line in raw_lines(frame))
        elif selection.payloads:
            yield from (" " * 20 + line for line in decoded_lines(frame, exchange))
        yield from _finding_lines(findings, meanings)
        yield from (
            f"{'':21}{words}" for words in (*marks.lines_at(exchange.id, frame.seq), *note_lines)
        )
    for findings in found.values():
        yield from _finding_lines(findings, meanings)


def _connection_of(recording: Recording, row: ExchangeRow) -> Connection | None:
    """Return the connection of the call, or None if the recording lacks it."""
    found = recording.read_connection(make_key(row.session, row.exchange.connection))
    return found.connection if found is not None else None


def _tls_lines(exchange: Exchange, connection: Connection, *, is_detailed: bool) -> Iterator[str]:
    """Yield a line if the call is for another host than its handshake, and in detail one for each
    handshake."""
    if is_detailed:
        yield from (f"{name}: {words}" for name, words in describe_tls(connection))
    if other := describe_other_host(exchange, connection):
        yield other


def _findings_by_frame(recording: Recording, row: ExchangeRow) -> dict[int, list[Finding]]:
    """Return the findings of an exchange by frame number; -1 has the findings about the whole
    exchange."""
    found: dict[int, list[Finding]] = {}
    for each in recording.read_findings(exchange=row.key):
        found.setdefault(each.finding.seq, []).append(each.finding)
    return found


def _finding_lines(findings: list[Finding], meanings: RuleMeanings) -> Iterator[str]:
    for finding in findings:
        yield f"  {finding_words(finding, 14, 5)}"
        yield from (f"{'':21}{line}" for line in meanings.evidence_lines(finding))


def _is_implied_end(frame: Frame, exchange: Exchange) -> bool:
    """Return whether the frame is the successful end of a call with one message each way, or a
    client's half-close right after its only message.
    """
    if (
        frame.kind is not FrameKind.END
        or frame.error_code
        or exchange.requests > 1
        or exchange.live_payload
    ):
        return False
    return frame.direction is Direction.TO_AGENT or not exchange.streaming


def _frame_offset(exchange: Exchange, frame: Frame) -> str:
    """Return the time offset of a frame.

    As for the latency in the heading, the agent's frames are measured from the end of the request,
    the client's frames and those of an answer before that end from the start of the exchange.
    """
    if frame.seq == 0:
        return text.format_time(frame.at)
    zero = text.latency_origin(exchange)
    if frame.direction is Direction.TO_AGENT or frame.at < zero:
        zero = exchange.started
    return "+" + text.format_duration(max(frame.at - zero, 0))


def _header_lines(exchange: Exchange) -> Iterator[str]:
    yield make_visible(f"{exchange.method} {exchange.target}".rstrip())
    for side, headers in (
        ("-->", exchange.request_headers),
        ("<--", exchange.response_headers),
        ("<--", exchange.trailers),
    ):
        for name, value in headers:
            yield (
                f"{side} {make_visible(name.decode('latin-1'))}: "
                f"{make_visible(value.decode('latin-1'))}"
            )
        if side == "-->" and exchange.is_trace_replaced:
            yield (
                f"{side} traceparent: {make_visible(exchange.trace_context)} (added by the proxy)"
            )


def _session_objects(
    recording: Recording,
    session: SessionRow,
    rows: list[ExchangeRow],
    selection: ShowSelection,
    frame_numbers: FrameNumbers,
) -> Iterator[dict[str, object]]:
    tasks = _SessionTasks(recording, session.id)
    marks, notes = SegmentMarks(recording, session.id), SessionNotes(recording, session.id)
    endings = EndingReader(recording).read_all(rows)
    for row in rows:
        ending = endings.get(row.key)
        task, numbers = tasks.find(row.exchange), frame_numbers.get(row.key)
        note_objects = {"notes": notes.list_objects(row.exchange.id)}
        yield {
            **_exchange_object(recording, row, task, numbers),
            **marks.exchange_object(row.exchange.id),
            "ending": ending.to_object() if ending is not None else None,
            **note_objects,
        }
    if selection.is_session_selected(session.id):
        yield from ({"session": session.id, "note": note} for note in notes.list_objects(0))
        for finding in connection_findings(recording, session):
            yield {"session": session.id, "finding": finding_facts(finding.finding)}
        yield from _process_objects(recording, session)


def _exchange_object(
    recording: Recording, row: ExchangeRow, task: Task | None, frame_numbers: set[int] | None
) -> dict[str, object]:
    exchange, connection = row.exchange, _connection_of(recording, row)
    frames = (
        r.frame
        for r in recording.read_frames(row.key)
        if frame_numbers is None or r.frame.seq in frame_numbers
    )
    return {
        "session": row.session,
        **exchange_object(exchange),
        "client_process": msgspec.to_builtins(connection.client_process)
        if connection is not None
        else None,
        "upstream": connection.upstream if connection is not None else None,
        "tls": msgspec.to_builtins(connection.tls) if connection is not None else None,
        "task_generations": generations.generations_object(task) if task is not None else None,
        "request_headers": _decode_headers(exchange.request_headers),
        "response_headers": _decode_headers(exchange.response_headers),
        "trailers": _decode_headers(exchange.trailers),
        "frames": [frame_object(frame, exchange) for frame in frames],
        "findings": [finding_facts(r.finding) for r in recording.read_findings(exchange=row.key)],
    }


def _decode_headers(headers: tuple[tuple[bytes, bytes], ...]) -> list[list[str]]:
    return [[name.decode("latin-1"), value.decode("latin-1")] for name, value in headers]


def _stdio_processes(recording: Recording, session: SessionRow) -> Iterator[Connection]:
    return (
        row.connection
        for row in recording.read_connections(session.id)
        if row.connection.facts.transport == "stdio"
    )


def _process_frames(
    recording: Recording, session: SessionRow, process: Connection
) -> Iterator[Frame]:
    return (row.frame for row in recording.connection_frames(make_key(session.id, process.id)))


def _process_lines(recording: Recording, session: SessionRow) -> Iterator[str]:
    """Yield `process 4711  npx run my-agent  client eof, then agent exited with code 0`, then
    frames without a call."""
    for process in _stdio_processes(recording, session):
        who = process.peer.removeprefix("pid ")
        yield (
            f"process {make_visible(who)}  {make_visible(process.upstream)}  "
            f"{make_visible(process.how) or 'runs'}"
        )
        for frame in _process_frames(recording, session, process):
            yield (
                f"    {text.format_time(frame.at):>14} {ARROWS[frame.direction]} "
                f"{describe_frame(frame)}"
            )


def _process_objects(recording: Recording, session: SessionRow) -> Iterator[dict[str, object]]:
    """Yield the same data as JSON with stable names."""
    for process in _stdio_processes(recording, session):
        frames = [
            {
                "at": text.format_utc(frame.at),
                "direction": frame.direction.name.lower(),
                "kind": frame.kind.name.lower(),
                "note": frame.note,
                "framing": frame.framing,
                "text": frame.payload.decode("utf-8", "replace"),
            }
            for frame in _process_frames(recording, session, process)
        ]
        facts = {
            "id": process.id,
            "process": process.peer,
            "command": process.upstream,
            "how": process.how,
        }
        yield {"session": session.id, "agent_process": {**facts, "frames": frames}}
