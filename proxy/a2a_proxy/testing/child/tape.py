"""Recorder of the traffic of one relay, which is decoded, checked and stored on request.

The relay's copy stays in memory, because a test is short, and the recording of a killed test is not needed.
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
"""Maximum number of bytes held in memory; more are stored without a request."""


class RelayRecorder:
    """Journal and recorder of a relay in one. Not thread-safe."""

    def __init__(self, session: SessionFile) -> None:
        """Creates no file yet."""
        self._session = session
        self._chunks: list[Chunk] = []
        self._held_bytes = 0
        self._decoded_session: DecodedSession | None = None

    def append(self, kind: ChunkKind, direction: Direction, connection: int, at: int, data: bytes) -> None:
        """Append one record of the relay."""
        self._chunks.append(Chunk(connection, kind, direction, at, bytes(data)))
        self._held_bytes += len(data)
        if self._held_bytes > _MAX_HELD_BYTES:
            self.store_chunks()

    def store_chunks(self) -> None:
        """Store all records so far. Raises RecordingError."""
        chunks, self._chunks, self._held_bytes = self._chunks, [], 0
        self._open_session().store_chunks(chunks)

    def finish(self, at: int) -> None:
        """Store the rest, and the end of the session at `at` (ns). Raises RecordingError."""
        self.append(ChunkKind.END, Direction.TO_AGENT, 0, at, b"")
        self.store_chunks()
        self._open_session().finish(at)

    def discard_chunks(self) -> None:
        """Discard the records that are not stored."""
        self._chunks.clear()
        if self._decoded_session is not None:
            self._decoded_session.close()

    def _open_session(self) -> DecodedSession:
        if self._decoded_session is None:
            # Imported here because it needs the decoders and rules, which a replay without a recording does without.
            from a2a_proxy.testing.child.decoded import DecodedSession

            self._decoded_session = DecodedSession(self._session, _redaction_key())
        return self._decoded_session


def _redaction_key() -> bytes:
    """Return the key of the state directory, so that a secret has one label in all cassettes of a user, else a new
    key."""
    try:
        return file_layout.redaction_key()
    except (OSError, ValueError):
        return secrets.token_bytes(KEY_BYTES)
