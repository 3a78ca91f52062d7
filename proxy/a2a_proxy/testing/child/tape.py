"""What passed through one relay, decoded, judged and stored when somebody asks for it.

The relay's copy stays in memory: a test is short, and when it is killed nobody wants its recording.
"""

from __future__ import annotations

import secrets

from a2a_proxy.capture import places
from a2a_proxy.capture.places import KEY_BYTES, SessionFile
from a2a_proxy.model.chunk import Chunk, ChunkKind, Direction
from a2a_proxy.model.finding import Finding
from a2a_proxy.model.frame import Frame
from a2a_proxy.model.observation import Observation
from a2a_proxy.observer import Observer
from a2a_proxy.recorder.store import open_writer
from a2a_proxy.recording.writer import Writer
from a2a_proxy.redaction import redactor
from a2a_proxy.redaction.policy import policy_of

_HELD = 8 << 20
"""Octets that wait in memory; with more of them they are stored without being asked for."""


class Tape:
    """A relay's journal and recorder in one. Not for two threads at once."""

    def __init__(self, session: SessionFile) -> None:
        """Makes no file yet. Raises RecordingError where the state directory's key is none."""
        self._session = session
        self._redactor = redactor(_key(), policy_of(session.redact))
        self._observer = Observer(self._redactor, session.live)
        self._chunks: list[Chunk] = []
        self._held = 0
        self._writer: Writer | None = None

    def append(self, kind: ChunkKind, direction: Direction, connection: int, at: int, data: bytes) -> None:
        """Take one record of the relay."""
        self._chunks.append(Chunk(connection, kind, direction, at, bytes(data)))
        self._held += len(data)
        if self._held > _HELD:
            self.settle()

    def settle(self) -> None:
        """Store all that was taken so far. Raises RecordingError."""
        chunks, self._chunks, self._held = self._chunks, [], 0
        out: list[Observation] = []
        self._observer.hold()
        for chunk in chunks:
            self._observer.feed(chunk, out)
        self._observer.judge(out)
        frames = [each for each in out if type(each) is Frame]
        findings = [each for each in out if type(each) is Finding]
        self._opened().write(frames, findings, self._observer.changes())

    def finish(self, at: int) -> None:
        """Nothing follows: store the rest, and that the session ended at `at` (ns). Raises RecordingError."""
        self.append(ChunkKind.END, Direction.TO_AGENT, 0, at, b"")
        self.settle()
        self._opened().finish(at, edits=self._observer.edits)

    def drop(self) -> None:
        """Nobody wants what was not stored."""
        self._chunks.clear()
        if self._writer is not None:
            self._writer.close()

    def _opened(self) -> Writer:
        if self._writer is None:
            self._writer = open_writer(self._session, self._redactor)
        return self._writer


def _key() -> bytes:
    """That of the state directory, so that a secret has one label in all cassettes of a person; else one of its own."""
    try:
        return places.redaction_key()
    except (OSError, ValueError):
        return secrets.token_bytes(KEY_BYTES)
