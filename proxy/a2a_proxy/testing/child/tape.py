"""What passed through one relay, decoded, judged and stored when somebody asks for it.

The relay's copy stays in memory: a test is short, and when it is killed nobody wants its recording.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from a2a_proxy.capture import file_layout
from a2a_proxy.capture.file_layout import KEY_BYTES, SessionFile
from a2a_proxy.model.chunk import Chunk, ChunkKind, Direction

if TYPE_CHECKING:
    from a2a_proxy.testing.child.decoded import DecodedSession

_MAX_HELD_BYTES = 8 << 20
"""Bytes that wait in memory; with more of them they are stored without being asked for."""


class RelayRecorder:
    """A relay's journal and recorder in one. Not for two threads at once."""

    def __init__(self, session: SessionFile) -> None:
        """Makes no file yet."""
        self._session = session
        self._chunks: list[Chunk] = []
        self._held_bytes = 0
        self._decoded_session: DecodedSession | None = None

    def append(self, kind: ChunkKind, direction: Direction, connection: int, at: int, data: bytes) -> None:
        """Take one record of the relay."""
        self._chunks.append(Chunk(connection, kind, direction, at, bytes(data)))
        self._held_bytes += len(data)
        if self._held_bytes > _MAX_HELD_BYTES:
            self.store_chunks()

    def store_chunks(self) -> None:
        """Store all that was taken so far. Raises RecordingError."""
        chunks, self._chunks, self._held_bytes = self._chunks, [], 0
        self._open_session().store_chunks(chunks)

    def finish(self, at: int) -> None:
        """Nothing follows: store the rest, and that the session ended at `at` (ns). Raises RecordingError."""
        self.append(ChunkKind.END, Direction.TO_AGENT, 0, at, b"")
        self.store_chunks()
        self._open_session().finish(at)

    def discard_chunks(self) -> None:
        """Nobody wants what was not stored."""
        self._chunks.clear()
        if self._decoded_session is not None:
            self._decoded_session.close()

    def _open_session(self) -> DecodedSession:
        if self._decoded_session is None:
            # Decoders and rules: a replay of which nobody wants a recording does without them.
            from a2a_proxy.testing.child.decoded import DecodedSession

            self._decoded_session = DecodedSession(self._session, _redaction_key())
        return self._decoded_session


def _redaction_key() -> bytes:
    """That of the state directory, so that a secret has one label in all cassettes of a person; else one of its own."""
    try:
        return file_layout.redaction_key()
    except (OSError, ValueError):
        return secrets.token_bytes(KEY_BYTES)
