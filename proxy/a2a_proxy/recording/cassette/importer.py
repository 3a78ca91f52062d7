"""Import of the lines of a cassette to a recording. The format is described in `cassette.file`."""

import contextlib
import hashlib
import json
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from a2a_proxy.installation import upgrade_hint
from a2a_proxy.model.values import Changes, Connection, Exchange, Finding, Frame, Note, Task
from a2a_proxy.protocol.text import shell_line
from a2a_proxy.recording.cassette import json_objects, payload_text
from a2a_proxy.recording.cassette.exporter import COUNTED_KINDS, FORMAT_VERSION
from a2a_proxy.recording.cassette.json_objects import Line
from a2a_proxy.recording.errors import CassetteChanged, RecordingError
from a2a_proxy.recording.read.conversations import rebuild_segments
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import SessionFacts, SessionRow
from a2a_proxy.recording.store.notes import store_notes
from a2a_proxy.recording.store.row_types import ROW_ERRORS
from a2a_proxy.recording.write.writer import Writer

_BATCH_VALUES = 500
_BATCH_BYTES = 4 << 20
MAX_LINE_BYTES = 512 << 20
"""Maximum bytes of a line. A stored payload has 64 MiB at most; escaped as text it may be six times
as long."""
_MAX_REASON_CHARS = 300
"""Characters of an error's text that are shown, because it may repeat a value of the file."""
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
        self._counts = dict.fromkeys(COUNTED_KINDS, 0)
        self._line_number = 0
        self._writers: list[tuple[Writer, Line, int]] = []
        self._session = 1
        self._starts: dict[int, int] = {}
        self._batch = _ImportBatch()
        self.blobs = False
        """Whether some payloads are in the folder `blobs`."""

    def run(self) -> None:
        """Import the whole file."""
        data = self._stream.readline(MAX_LINE_BYTES)
        self._line_number = 1
        self._read_header(self._parse_line(data))
        self._digest.update(data)
        while data := self._stream.readline(MAX_LINE_BYTES):
            self._line_number += 1
            line = self._parse_line(data)
            kind = next(iter(line), "")
            if kind == "end":
                self._flush_batch()
                if self._stream.read(1):
                    self._line_number += 1
                    raise self._make_error("lines follow the end line", "restore it from git")
                if self._verify:
                    self._check_counts(line)
                self.finish()
                return
            self._take_line(kind, line)
            self._digest.update(data)
        raise self._make_error(
            "the file is truncated: its last line is missing",
            "get it again, or restore it from git",
        )

    def _parse_line(self, data: bytes) -> Line:
        try:
            line = json.loads(data)
        except (ValueError, RecursionError):
            line = None
        if isinstance(line, dict) and data.endswith(b"\n"):
            return line
        cut = not data.endswith(b"\n")
        if len(data) >= MAX_LINE_BYTES:
            raise self._make_error(
                f"longer than {MAX_LINE_BYTES >> 20} MiB",
                "a2a-proxy never writes such a line: do not use this file",
            )
        raise self._make_error(
            "truncated in the middle of a line" if cut else "not a JSON object",
            "restore it from git",
        )

    def _read_header(self, line: Line) -> None:
        version = line.get("version")
        if line.get("cassette") != "a2a" or not isinstance(version, int) or version < 1:
            raise self._make_error("not a cassette", "name a file that `a2a-inspect export` wrote")
        if version > FORMAT_VERSION:
            raise self._make_error(
                f"written by a newer a2a-proxy (format {version}, this one reads {FORMAT_VERSION})",
                upgrade_hint(),
            )
        with self._reject_nonsense():
            for session in msgspec.convert(line["sessions"], list[Line]):
                facts = self._session_facts(session)
                self._writers.append(
                    (Writer.on_connection(self._db, facts), session, facts.started)
                )
            self._starts = {place: start for place, (_, _, start) in enumerate(self._writers, 1)}

    @staticmethod
    def _session_facts(session: Line) -> SessionFacts:
        return msgspec.convert(session, SessionFacts)

    def _take_line(self, kind: str, line: Line) -> None:
        with self._reject_nonsense():
            session = line.get("session", 1)
        if session != self._session or self._batch.is_full:
            self._flush_batch()
            self._session = session
        with self._reject_nonsense():
            start = self._starts[session]
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._batch.add(kind, self._read_value(kind, line, start))

    def _read_value(self, kind: str, line: Line, start: int) -> Any:
        if kind == "frame":
            payload = self._read_payload(line)
            self._payloads.update(payload)
            return json_objects.read_frame(line, start, payload)
        return json_objects.read_line(_KINDS[kind], line, start)

    def _read_payload(self, line: Line) -> bytes:
        if "blob" not in line:
            return payload_text.read_payload(line, line.get("schema", ""))
        name = str(line["blob"])
        if not _SHA256.fullmatch(name):
            raise ValueError("a blob is named by its SHA-256")
        self.blobs = True
        blob = self._path.parent / "blobs" / name
        try:
            payload = blob.read_bytes() if blob.is_file() else None
        except OSError as error:
            raise self._make_error(
                f"blobs/{name} cannot be read: {error.strerror}", "check its permissions"
            ) from None
        if payload is None:
            raise self._make_error(
                f"blobs/{name} is missing", "keep the folder `blobs` next to the cassette"
            )
        if hashlib.sha256(payload).hexdigest() != name:
            raise self._make_error(f"blobs/{name} has been changed", "restore it from git")
        return payload

    def _flush_batch(self) -> None:
        batch, self._batch = self._batch, _ImportBatch()
        if batch.size:
            with self._reject_nonsense(f"one of the {batch.size} preceding lines is not valid"):
                changes = Changes(batch.connection, batch.exchange, batch.task)
                writer, _, start = self._writers[self._session - 1]
                writer.write(batch.frame, batch.finding, changes)
                if batch.note:
                    store_notes(self._db, writer.session, start, batch.note)

    def finish(self) -> None:
        """End the sessions.

        Also called to accept a cassette despite CassetteChanged: then all its lines have been read.
        """
        with self._reject_nonsense():
            self._finish_sessions()

    def _finish_sessions(self) -> None:
        recording = Recording.from_connection(self._db, "the recording")
        for writer, session, start in self._writers:
            ended = session.get("ended")
            state = {
                name: session[name]
                for name in ("how", "complete", "lost", "edits")
                if name in session
            }
            over = 0 if ended is None else start + ended
            cut = SessionRow(
                id=writer.session,
                facts=self._session_facts(session),
                ended=over,
                how=state.get("how", ""),
            )
            for changes in rebuild_segments(recording, cut):
                writer.write([], [], changes)
            writer.finish(over, **state)

    def _check_counts(self, line: Line) -> None:
        if line["end"] != {f"{name}s": count for name, count in self._counts.items()}:
            raise self._make_error(
                "lines are missing: the counts differ", self._repair_hint(), CassetteChanged
            )
        if line.get("sha256") != self._digest.hexdigest():
            raise self._make_error(
                "the file was changed after it was written: the digest differs",
                self._repair_hint(),
                CassetteChanged,
            )
        if line.get("payloads") != self._payloads.hexdigest():
            raise self._make_error(
                "the payloads differ from the recorded ones", "report this as a bug of a2a-proxy"
            )

    def _repair_hint(self) -> str:
        command = shell_line("a2a-inspect", "cassette", "fmt", str(self._path))
        return f"restore it from git; if you changed it, accept the change with: {command}"

    @contextlib.contextmanager
    def _reject_nonsense(self, what: str = "this line is not valid") -> Iterator[None]:
        try:
            yield
        except ROW_ERRORS as error:
            reason = f"{type(error).__name__}: {error}"[:_MAX_REASON_CHARS]
            raise self._make_error(f"{what} ({reason})", "restore it from git") from error

    def _make_error(
        self, what: str, hint: str, kind: type[RecordingError] = RecordingError
    ) -> RecordingError:
        return kind(f"{self._path}, line {self._line_number}: {what}", hint)


class _ImportBatch:
    """Values of one session that are stored in one transaction."""

    def __init__(self) -> None:
        self.size = 0
        self._payload_bytes = 0
        self.connection: list[Any] = []
        self.exchange: list[Any] = []
        self.frame: list[Frame] = []
        self.task: list[Any] = []
        self.finding: list[Finding] = []
        self.note: list[Note] = []

    def add(self, kind: str, value: Any) -> None:
        """Add a value."""
        getattr(self, kind).append(value)
        self.size += 1
        if kind == "frame":
            self._payload_bytes += len(value.payload)

    @property
    def is_full(self) -> bool:
        """Whether there is enough for one transaction."""
        return self.size >= _BATCH_VALUES or self._payload_bytes >= _BATCH_BYTES


_KINDS: dict[str, type[msgspec.Struct]] = {
    kind.__name__.lower(): kind for kind in (Connection, Exchange, Task, Finding, Note)
}
