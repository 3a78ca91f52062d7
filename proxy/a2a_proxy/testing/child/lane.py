"""A relay on its own port, with the recorder of its traffic."""

from __future__ import annotations

import os
import uuid

import msgspec

from a2a_proxy.capture.file_layout import SessionFile
from a2a_proxy.redaction.policy import policy_of
from a2a_proxy.relay.clock import session_clock
from a2a_proxy.relay.edits.edit import ConsoleNote
from a2a_proxy.relay.listener_state import EditPolicy
from a2a_proxy.relay.route import Listen, Route, Upstream
from a2a_proxy.relay.server import Relay
from a2a_proxy.testing.child.tape import RelayRecorder

_GRACE_SECONDS = 0.2
"""Seconds for open calls to end. Short, because the test is over and nothing reads the answers."""


class AgentRelay:
    """Relays from a local port to one agent."""

    def __init__(
        self, upstream: str, grpc: str, recording: str, command: tuple[str, ...], redact: tuple[str, ...]
    ) -> None:
        """`recording` is the path of its recording.

        Raises RouteError for an invalid address, PolicyError for an invalid word of `redact`.
        """
        policy_of(redact)
        self.notes: list[str] = []
        """Notes of the relay, for example about signed cards."""
        self._clock = session_clock()
        route = Route(Listen("127.0.0.1", 0), Upstream.parse(upstream), Upstream.parse(grpc) if grpc else None)
        self._relay = Relay((route,), self._clock, EditPolicy(), self._add_note)
        self._upstreams = (f"{upstream} (HTTP/2 to {grpc})" if grpc else upstream,)
        started, session = self._clock(), str(uuid.uuid4())
        self._session = SessionFile(
            recording, os.getpid(), started, session, command, upstreams=self._upstreams, redact=redact
        )
        self._recorder: RelayRecorder | None = None

    async def start(self) -> str:
        """Listen and return the address, `127.0.0.1:PORT`. Raises RouteError."""
        await self._relay.listen()
        [(_, [address])] = self._relay.bound_addresses
        self._recorder = RelayRecorder(msgspec.structs.replace(self._session, listens=(address,)))
        self._relay.accept(self._recorder)
        return address

    def store_traffic(self) -> None:
        """Store all traffic so far. Raises RecordingError."""
        assert self._recorder is not None
        self._recorder.store_chunks()

    async def stop(self, *, keep: bool) -> None:
        """End open connections; with `keep` finish the recording, otherwise discard unstored traffic. Raises
        RecordingError."""
        await self._relay.stop(_GRACE_SECONDS)
        if self._recorder is None:
            return
        if keep:
            self._recorder.finish(self._clock())
        else:
            self._recorder.discard_chunks()

    def _add_note(self, note: ConsoleNote) -> None:
        self.notes.append(note.text)
