"""A relay on its own port, and the recorder of its traffic.

The traffic stays in memory until it is decoded, checked and stored on request, because a test is
short, and the recording of a killed test is not needed.

Decoding and checking of a relay's records into a recording: the recorder's work without its
journal.
"""

from __future__ import annotations

import os
import secrets
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from a2a_proxy.capture import file_layout
from a2a_proxy.capture.file_layout import KEY_BYTES, SessionFile
from a2a_proxy.capture.recorder_options import RecorderOptions
from a2a_proxy.model.values import Finding, Frame, Observation
from a2a_proxy.model.wire import Chunk, ChunkKind, DialFacts, Direction
from a2a_proxy.observer import Observer
from a2a_proxy.recorder.recording_output import open_writer
from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.redaction import create_redactor
from a2a_proxy.redaction.policy import policy_of
from a2a_proxy.relay.clock import session_clock
from a2a_proxy.relay.edits.edit import ConsoleNote
from a2a_proxy.relay.listener_state import EditPolicy
from a2a_proxy.relay.route import Listen, Route, Upstream
from a2a_proxy.relay.server import Relay

if TYPE_CHECKING:
    from a2a_proxy.faults.plan import FaultPlan

_GRACE_SECONDS = 0.2
"""Seconds for open calls to end. Short, because the test is over and nothing reads the answers."""
_MAX_HELD_BYTES = 8 << 20
"""Maximum number of bytes held in memory; more are stored without a request."""


class SessionRecorder:
    """The recording of one session with a valid redaction policy."""

    def __init__(self, session: SessionFile, key: bytes) -> None:
        """`key` is the key of the redaction labels. Raises RecordingError."""
        clean = create_redactor(key, policy_of(session.options.redact))
        self._observer = Observer(clean, session.options.live)
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


class AgentRelay:
    """Relays from a local port to one agent."""

    def __init__(
        self,
        upstream: str,
        grpc: str,
        recording: str,
        command: tuple[str, ...],
        redact: tuple[str, ...],
        faults: tuple[str, ...] = (),
    ) -> None:
        """`recording` is the path of its recording.

        Raises RouteError for an invalid address, PolicyError for an invalid word of `redact`,
        RecordingError for an invalid fault.
        """
        policy_of(redact)
        self.notes: list[str] = []
        """Notes of the relay, for example about signed cards."""
        self._clock = session_clock()
        route = Route(
            Listen("127.0.0.1", 0), Upstream.parse(upstream), Upstream.parse(grpc) if grpc else None
        )
        self._faults = _make_fault_plan(faults) if faults else None
        self._relay = Relay((route,), self._clock, EditPolicy(faults=self._faults), self._add_note)
        self._upstreams = (f"{upstream} (HTTP/2 to {grpc})" if grpc else upstream,)
        started, session = self._clock(), str(uuid.uuid4())
        self._session = SessionFile(
            recording,
            os.getpid(),
            started,
            session,
            command,
            upstreams=self._upstreams,
            options=RecorderOptions(redact=redact, faults=faults),
        )
        self._recorder: RelayRecorder | None = None

    async def start(self) -> str:
        """Listen and return the address, `127.0.0.1:PORT`. Raises RouteError."""
        await self._relay.bind_listeners()
        [(_, [address])] = self._relay.bound_addresses
        self._recorder = RelayRecorder(
            msgspec.structs.replace(self._session, listens=(address,)), self._note_dial
        )
        self._relay.accept_connections(self._recorder)
        return address

    @property
    def missed_faults(self) -> tuple[str, ...]:
        """The faults that have not happened, each with the reason."""
        missed = () if self._faults is None else self._faults.missed
        return tuple(f"{each.fault.text} ({each.reason})" for each in missed)

    def store_traffic(self) -> None:
        """Store all traffic so far. Raises RecordingError."""
        assert self._recorder is not None
        self._recorder.store_chunks()

    async def stop(self, *, keep: bool) -> None:
        """End open connections; with `keep` finish the recording, otherwise discard unstored
        traffic. Raises RecordingError."""
        await self._relay.stop(_GRACE_SECONDS)
        if self._recorder is None:
            return
        if keep:
            self._recorder.finish(self._clock())
        else:
            self._recorder.discard_chunks()

    def _add_note(self, note: ConsoleNote) -> None:
        self.notes.append(note.text)

    def _note_dial(self, data: bytes) -> None:
        """Note that the agent could not be reached, once for each reason."""
        facts = msgspec.json.decode(data, type=DialFacts)
        note = f"the proxy could not reach the agent {facts.upstream}: {facts.error}"
        if facts.error and note not in self.notes:
            self.notes.append(note)


class RelayRecorder:
    """Journal and recorder of a relay in one. Not thread-safe."""

    def __init__(self, session: SessionFile, on_dial: Callable[[bytes], None]) -> None:
        """Creates no file yet. `on_dial` is called with the data of each DIALED record."""
        self._session = session
        self._on_dial = on_dial
        self._chunks: list[Chunk] = []
        self._held_bytes = 0
        self._session_recorder: SessionRecorder | None = None

    def append(
        self, kind: ChunkKind, direction: Direction, connection: int, at: int, data: bytes
    ) -> None:
        """Append one record of the relay."""
        self._chunks.append(Chunk(connection, kind, direction, at, bytes(data)))
        self._held_bytes += len(data)
        if kind is ChunkKind.DIALED:
            self._on_dial(data)
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
        if self._session_recorder is not None:
            self._session_recorder.close()

    def _open_session(self) -> SessionRecorder:
        if self._session_recorder is None:
            # Imported here because it needs the decoders and rules, which a replay without a
            # recording does without.

            self._session_recorder = SessionRecorder(self._session, _redaction_key())
        return self._session_recorder


def _make_fault_plan(texts: tuple[str, ...]) -> FaultPlan:
    """Return the plan of faults. Raises RecordingError."""
    from a2a_proxy.faults.live import parse_live_fault
    from a2a_proxy.faults.plan import FaultPlan
    from a2a_proxy.faults.words import FaultError

    try:
        return FaultPlan([parse_live_fault(text) for text in texts])
    except FaultError as wrong:
        raise RecordingError(f"a fault cannot be read: {wrong}", wrong.hint) from wrong


def _redaction_key() -> bytes:
    """Return the key of the state directory, so that a secret has one label in all cassettes of a
    user, else a new key."""
    try:
        return file_layout.redaction_key()
    except (OSError, ValueError):
        return secrets.token_bytes(KEY_BYTES)
