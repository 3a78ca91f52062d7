"""The lines of a cassette to a recording. The format is described in `cassette`."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from a2a_proxy.model.finding import Finding
from a2a_proxy.model.frame import Frame
from a2a_proxy.model.note import Note
from a2a_proxy.model.observation import Changes
from a2a_proxy.protocol.text import shell_line
from a2a_proxy.recording.cassette import json_objects, payload_text
from a2a_proxy.recording.cassette.exporter import COUNTED, FORMAT_VERSION
from a2a_proxy.recording.cassette.json_objects import Line
from a2a_proxy.recording.errors import CassetteChanged, RecordingError
from a2a_proxy.recording.read.conversations import cut_again
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import SessionFacts, SessionRow
from a2a_proxy.recording.store.notes import store
from a2a_proxy.recording.store.row_types import SENSELESS
from a2a_proxy.recording.write.writer import Writer

_BATCH = 500
_BATCH_OCTETS = 4 << 20
LONGEST = 512 << 20
"""Octets of a line. A stored payload has 64 MiB at most; escaped as text it is six times that."""
_REASON = 300
"""Characters of what an error says: it may repeat a value of the file."""
_SHA256 = re.compile("[0-9a-f]{64}")


class Importer:
    """Reads one cassette into an empty database."""

    def __init__(self, path: Path, stream: BinaryIO, db: sqlite3.Connection, verify: bool) -> None:
        self._path = path
        self._stream = stream
        self._db = db
        self._verify = verify
        self._digest = hashlib.sha256()
        self._payloads = hashlib.sha256()
        self._counts = dict.fromkeys(COUNTED, 0)
        self._number = 0
        self._writers: list[tuple[Writer, Line, int]] = []
        self._session = 1
        self._starts: dict[int, int] = {}
        self._batch = _ImportBatch()
        self.version = 0
        """Of the format, as the first line says."""
        self.blobs = False
        """Some payloads lie beside it."""

    def run(self) -> None:
        """The whole file."""
        octets = self._stream.readline(LONGEST)
        self._number = 1
        self._header(self._parsed(octets))
        self._digest.update(octets)
        while octets := self._stream.readline(LONGEST):
            self._number += 1
            line = self._parsed(octets)
            kind = next(iter(line), "")
            if kind == "end":
                self._end(line)
                return
            self._take(kind, line)
            self._digest.update(octets)
        raise self._wrong("it ends without its last line: truncated", "get it again, or restore it from git")

    def _parsed(self, octets: bytes) -> Line:
        try:
            line = json.loads(octets)
        except (ValueError, RecursionError):
            line = None
        if isinstance(line, dict) and octets.endswith(b"\n"):
            return line
        cut = not octets.endswith(b"\n")
        if len(octets) >= LONGEST:
            raise self._wrong(f"longer than {LONGEST >> 20} MiB", "no recording has such a line: do not use this file")
        raise self._wrong("truncated in the middle of a line" if cut else "not a JSON object", "restore it from git")

    def _header(self, line: Line) -> None:
        version = line.get("version")
        if line.get("cassette") != "a2a" or not isinstance(version, int) or version < 1:
            raise self._wrong("not a cassette", "name a file that `a2a-inspect export` wrote")
        if version > FORMAT_VERSION:
            raise self._wrong(
                f"made by a newer a2a-proxy (format {version}, this one knows {FORMAT_VERSION})",
                "upgrade: pip install -U a2a-proxy",
            )
        self.version = version
        with self._sense():
            for session in line["sessions"]:
                facts = self._facts(session)
                self._writers.append((Writer.into(self._db, facts), session, facts.started))
            self._starts = {place: start for place, (_, _, start) in enumerate(self._writers, 1)}

    @staticmethod
    def _facts(session: Line) -> SessionFacts:
        return msgspec.convert(session, SessionFacts)

    def _take(self, kind: str, line: Line) -> None:
        with self._sense():
            session = line.get("session", 1)
        if session != self._session or self._batch.full:
            self._flush()
            self._session = session
        with self._sense():
            start = self._starts[session]
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._batch.add(kind, self._value(kind, line, start))

    def _value(self, kind: str, line: Line, start: int) -> Any:
        if kind == "frame":
            payload = self._payload(line)
            self._payloads.update(payload)
            return json_objects.read_frame(line, start, payload)
        return _READERS[kind](line, start)

    def _payload(self, line: Line) -> bytes:
        if "blob" not in line:
            return payload_text.read(line, line.get("schema", ""))
        name = str(line["blob"])
        if not _SHA256.fullmatch(name):
            raise ValueError("a blob is named by its SHA-256")
        self.blobs = True
        blob = self._path.parent / "blobs" / name
        try:
            payload = blob.read_bytes() if blob.is_file() else None
        except OSError as error:
            raise self._wrong(f"blobs/{name} cannot be read: {error.strerror}", "check its permissions") from None
        if payload is None:
            raise self._wrong(f"blobs/{name} is missing", "keep the folder `blobs` beside the cassette")
        if hashlib.sha256(payload).hexdigest() != name:
            raise self._wrong(f"blobs/{name} has been changed", "restore it from git")
        return payload

    def _flush(self) -> None:
        batch, self._batch = self._batch, _ImportBatch()
        if batch.size:
            with self._sense(f"one of the {batch.size} lines before makes no sense"):
                self._store(batch)

    def _store(self, batch: _ImportBatch) -> None:
        changes = Changes(batch.connection, batch.exchange, batch.task)
        writer, _, start = self._writers[self._session - 1]
        writer.write(batch.frame, batch.finding, changes)
        if batch.note:
            store(self._db, writer.session, start, batch.note)

    def _end(self, line: Line) -> None:
        self._flush()
        if self._stream.read(1):
            self._number += 1
            raise self._wrong("there are lines after the last one", "restore it from git")
        if self._verify:
            self._check(line)
        self.finish()

    def finish(self) -> None:
        """End the sessions. For who takes a cassette that has `Changed` as it is: all its lines have been read."""
        with self._sense():
            self._finish()

    def _finish(self) -> None:
        recording = Recording.over(self._db, "the recording")
        for writer, session, start in self._writers:
            ended = session.get("ended")
            state = {name: session[name] for name in ("how", "complete", "lost", "edits") if name in session}
            over = 0 if ended is None else start + ended
            cut = SessionRow(id=writer.session, facts=self._facts(session), ended=over, how=state.get("how", ""))
            for changes in cut_again(recording, cut):
                writer.write([], [], changes)
            writer.finish(over, **state)

    def _check(self, line: Line) -> None:
        if line["end"] != {f"{name}s": count for name, count in self._counts.items()}:
            raise self._wrong("lines are missing: the counts differ", self._mend(), CassetteChanged)
        if line.get("sha256") != self._digest.hexdigest():
            raise self._wrong(
                "it has been changed since it was written: the digest differs", self._mend(), CassetteChanged
            )
        if line.get("payloads") != self._payloads.hexdigest():
            raise self._wrong("payloads do not come out as they were recorded", "report this as a bug of a2a-proxy")

    def _mend(self) -> str:
        command = shell_line("a2a-inspect", "cassette", "fmt", str(self._path))
        return f"restore it from git; if the change is yours, take it over with: {command}"

    @contextlib.contextmanager
    def _sense(self, what: str = "this line makes no sense") -> Iterator[None]:
        try:
            yield
        except SENSELESS as error:
            reason = f"{type(error).__name__}: {error}"[:_REASON]
            raise self._wrong(f"{what} ({reason})", "restore it from git") from error

    def _wrong(self, what: str, hint: str, kind: type[RecordingError] = RecordingError) -> RecordingError:
        return kind(f"{self._path}, line {self._number}: {what}", hint)


class _ImportBatch:
    """Values of one session on their way into one transaction."""

    def __init__(self) -> None:
        self.size = 0
        self._octets = 0
        self.connection: list[Any] = []
        self.exchange: list[Any] = []
        self.frame: list[Frame] = []
        self.task: list[Any] = []
        self.finding: list[Finding] = []
        self.note: list[Note] = []

    def add(self, kind: str, value: Any) -> None:
        """Keep a value."""
        getattr(self, kind).append(value)
        self.size += 1
        if kind == "frame":
            self._octets += len(value.payload)

    @property
    def full(self) -> bool:
        """Enough for one transaction."""
        return self.size >= _BATCH or self._octets >= _BATCH_OCTETS


_READERS = {
    "connection": json_objects.read_connection,
    "exchange": json_objects.read_exchange,
    "task": json_objects.read_task,
    "finding": json_objects.read_finding,
    "note": json_objects.read_note,
}
