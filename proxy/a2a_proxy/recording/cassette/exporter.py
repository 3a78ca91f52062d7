"""Export of a recording to the lines of a cassette. The format is described in `cassette.file`."""

import hashlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from a2a_proxy.model.values import Frame
from a2a_proxy.private_files import open_private
from a2a_proxy.protocol.text import escape_hidden
from a2a_proxy.recording.cassette import json_objects, payload_text
from a2a_proxy.recording.cassette.json_objects import Line
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import SessionRow, TaskRow, make_key
from a2a_proxy.recording.store.codec import pack_json

FORMAT_VERSION = 1
MIN_BLOB_BYTES = 65_536
"""Bytes. A payload of at least this size goes to a file of its own if that is requested."""

STATE_FIELDS = ("ended", "how", "complete", "lost", "edits")
"""Members of a session's object besides its facts."""
_FOLDERS = re.compile(r"(?<![\w.~:/])/(?:[^\s/'\"]+/)+")
"""The folders of an absolute path in a command line."""
COUNTED_KINDS = ("connection", "exchange", "frame", "task", "finding")
"""Kinds of lines between the first and the last. Notes are counted only if there are any."""


class Selection:
    """Selected whole exchanges of a recording, with their connections, tasks, findings and
    notes."""

    def __init__(self, recording: Recording, keys: Iterable[int], remark: str) -> None:
        self._exchanges = set(keys)
        self._connections = set()
        for number in self._exchanges:
            row = recording.read_exchange(number)
            if row is not None:
                self._connections.add(make_key(row.session, row.exchange.connection))
        self.remark = remark
        """Description of the selection. It is written to the sessions, so that the cassette is not
        taken for the whole recording.
        """

    def has_exchange(self, session: int, number: int) -> bool:
        """Whether the exchange is selected."""
        return make_key(session, number) in self._exchanges

    def has_connection(self, session: int, number: int) -> bool:
        """Whether a selected exchange used the connection."""
        return make_key(session, number) in self._connections

    def select_task(self, row: TaskRow) -> TaskRow | None:
        """Return the task with only its selected exchanges, or None if it has none."""
        kept = tuple(
            number for number in row.task.exchanges if self.has_exchange(row.session, number)
        )
        return (
            msgspec.structs.replace(row, task=msgspec.structs.replace(row.task, exchanges=kept))
            if kept
            else None
        )


class Exporter:
    """Writes one cassette of all exchanges of some sessions, or of a selection of them."""

    def __init__(
        self,
        recording: Recording,
        rows: list[SessionRow],
        stream: BinaryIO,
        blobs: Path | None = None,
        selection: Selection | None = None,
        *,
        with_command: bool = False,
    ) -> None:
        """`with_command`: whether command lines, their folders and the process id of the relay are
        written."""
        self.recording = recording
        self.selection = selection
        self._with_command = with_command
        pipes = [] if with_command else [row.facts for row in rows if "stdio" in row.facts.listens]
        self._commands = {upstream for facts in pipes for upstream in facts.upstreams}
        self._rows = [self._clean_facts(_mark_partial(row, selection)) for row in rows]
        self._stream = stream
        self._blobs = blobs
        self._digest = hashlib.sha256()
        self._payloads = hashlib.sha256()
        self._counts = dict.fromkeys(COUNTED_KINDS, 0)
        self._places = {row.id: place for place, row in enumerate(rows, 1)}
        self._started = {row.id: row.facts.started for row in rows}

    def run(self) -> None:
        """Write all lines."""
        tool = self._rows[0].facts.tool if self._rows else ""
        notes = [
            row
            for row in self._filter_sessions(self.recording.read_notes())
            if self._is_selected(row, row.note.exchange or None)
        ]
        sessions = [*map(session_line, self._rows)]
        self._write_line(
            {"cassette": "a2a", "version": FORMAT_VERSION, "tool": tool, "sessions": sessions}
        )
        self._write_conversation()
        for task in self._filter_sessions(self.recording.read_tasks()):
            kept = task if self.selection is None else self.selection.select_task(task)
            if kept is not None:
                named = msgspec.structs.replace(kept.task, agent=self._agent_name(kept.task.agent))
                self._write_session_line(
                    task.session, json_objects.write_line(named, self._started[task.session])
                )
        for finding in self._filter_sessions(self.recording.read_findings()):
            if self._is_selected(finding, finding.finding.exchange):
                self._write_session_line(
                    finding.session,
                    json_objects.write_line(finding.finding, self._started[finding.session]),
                )
        for note in notes:
            self._write_session_line(
                note.session, json_objects.write_line(note.note, self._started[note.session])
            )
        end = {f"{name}s": count for name, count in self._counts.items()}
        digests = {"payloads": self._payloads.hexdigest(), "sha256": self._digest.hexdigest()}
        self._write_line({"end": end, **digests})

    def _write_conversation(self) -> None:
        """Write the frames, each after its connection and its exchange."""
        waiting = {row.id: _PendingLines(self, row.id) for row in self._rows}
        for row in self._filter_sessions(self.recording.frames_after(0, payloads=False)):
            if self._is_selected(row, row.frame.exchange):
                frame = msgspec.structs.replace(row.frame, payload=self.recording.read_payload(row))
                waiting[row.session].write_up_to(frame.connection, frame.exchange)
                start = self._started[row.session]
                self._write_session_line(
                    row.session, json_objects.write_frame(frame, start, self._payload_member(frame))
                )
        for rest in waiting.values():
            rest.write_rest()

    def _clean_facts(self, row: SessionRow) -> SessionRow:
        """Return the session without command line and process id, unless they are wanted."""
        if self._with_command:
            return row
        upstreams = tuple(map(self._agent_name, row.facts.upstreams))
        facts = msgspec.structs.replace(row.facts, command=(), pid=0, upstreams=upstreams)
        return msgspec.structs.replace(row, facts=facts)

    def _agent_name(self, upstream: str) -> str:
        """Return the name of an upstream: the command line of a stdio agent without the folders of
        its paths."""
        return _FOLDERS.sub("", upstream) if upstream in self._commands else upstream

    def _filter_sessions(self, values: Iterable[Any]) -> Iterator[Any]:
        return (value for value in values if value.session in self._places)

    def _is_selected(self, row: Any, exchange: int | None) -> bool:
        """Whether the objects of this exchange are selected. None means an object of the
        session."""
        return (
            self.selection is None
            or exchange is None
            or self.selection.has_exchange(row.session, exchange)
        )

    def _payload_member(self, frame: Frame) -> Line:
        payload = frame.payload
        self._payloads.update(payload)
        if self._blobs is None or len(payload) < MIN_BLOB_BYTES:
            return payload_text.write_payload(payload, frame.schema)
        name = hashlib.sha256(payload).hexdigest()
        self._blobs.mkdir(exist_ok=True)
        with open(self._blobs / name, "wb", opener=open_private) as file:
            file.write(payload)
        return {"blob": name}

    def _write_session_line(self, session: int, line: Line) -> None:
        kind = next(iter(line))
        self._counts[kind] = self._counts.get(kind, 0) + 1
        place = self._places[session]
        self._write_line(line if place == 1 else {kind: line.pop(kind), "session": place, **line})

    def _write_line(self, line: Line) -> None:
        data = escape_hidden(pack_json(line)).encode() + b"\n"
        self._digest.update(data)
        self._stream.write(data)

    def write_connection(self, row: Any) -> None:
        """Write the line of a connection if it is selected."""
        if self.selection is None or self.selection.has_connection(row.session, row.connection.id):
            named = msgspec.structs.replace(
                row.connection, upstream=self._agent_name(row.connection.upstream)
            )
            self._write_session_line(
                row.session, json_objects.write_line(named, self._started[row.session])
            )

    def write_exchange(self, row: Any) -> None:
        """Write the line of an exchange if it is selected."""
        if self._is_selected(row, row.exchange.id):
            named = msgspec.structs.replace(
                row.exchange, agent=self._agent_name(row.exchange.agent)
            )
            self._write_session_line(
                row.session, json_objects.write_line(named, self._started[row.session])
            )


class _PendingLines:
    """Connections and exchanges of one session that have not been written yet, in order of their
    numbers."""

    def __init__(self, exporter: Exporter, session: int) -> None:
        recording = exporter.recording
        self._exporter = exporter
        self._connections = recording.read_connections(session)
        self._exchanges = recording.read_exchanges(session)
        self._connection = next(self._connections, None)
        self._exchange = next(self._exchanges, None)

    def write_up_to(self, connection: int, exchange: int) -> None:
        """Write the connections and exchanges up to these numbers."""
        while self._exchange is not None and self._exchange.exchange.id <= exchange:
            row, self._exchange = self._exchange, next(self._exchanges, None)
            self._write_connections_to(row.exchange.connection)
            self._exporter.write_exchange(row)
        self._write_connections_to(connection)

    def write_rest(self) -> None:
        """Write all remaining lines."""
        self.write_up_to(1 << 62, 1 << 62)

    def _write_connections_to(self, number: int) -> None:
        while self._connection is not None and self._connection.connection.id <= number:
            row, self._connection = self._connection, next(self._connections, None)
            self._exporter.write_connection(row)


def _mark_partial(row: SessionRow, selection: Selection | None) -> SessionRow:
    """Return the session with a remark that it is a selection."""
    if selection is None:
        return row
    known = "" if row.complete in ("", "complete") else f"{row.complete}; "
    return msgspec.structs.replace(row, complete=known + selection.remark)


def session_line(row: SessionRow) -> Line:
    """Return a session as in the first line of a cassette."""
    facts = msgspec.to_builtins(row.facts)
    for name in ("command", "pid", "redaction", "names", "faults"):
        if not facts[name]:
            del facts[name]
    state = {"how": row.how, "complete": row.complete, "lost": row.lost, "edits": row.edits}
    return {**facts, "ended": row.ended - row.facts.started if row.ended else None, **state}
