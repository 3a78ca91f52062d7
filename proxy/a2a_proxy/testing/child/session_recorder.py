"""Decoding and checking of a relay's records into a recording: the recorder's work without its
journal."""

from __future__ import annotations

from a2a_proxy.capture.file_layout import SessionFile
from a2a_proxy.model.chunk import Chunk
from a2a_proxy.model.values import Finding, Frame, Observation
from a2a_proxy.observer import Observer
from a2a_proxy.recorder.recording_output import open_writer
from a2a_proxy.redaction import create_redactor
from a2a_proxy.redaction.policy import policy_of


class SessionRecorder:
    """The recording of one session with a valid redaction policy."""

    def __init__(self, session: SessionFile, key: bytes) -> None:
        """`key` is the key of the redaction labels. Raises RecordingError."""
        clean = create_redactor(key, policy_of(session.redact))
        self._observer = Observer(clean, session.live)
        self._writer = open_writer(session, clean)

    def store_chunks(self, chunks: list[Chunk]) -> None:
        """Store chunks in one transaction. Raises RecordingError."""
        out: list[Observation] = []
        self._observer.hold_rules()
        for chunk in chunks:
            self._observer.feed(chunk, out)
        self._observer.judge_held(out)
        frames = [each for each in out if type(each) is Frame]
        findings = [each for each in out if type(each) is Finding]
        self._writer.write(frames, findings, self._observer.pop_changes())

    def finish(self, at: int) -> None:
        """Store the end of the session at `at` (ns). Raises RecordingError."""
        self._writer.finish(at, edits=self._observer.edits)

    def close(self) -> None:
        """Close the recording without an end."""
        self._writer.close()
