"""The stdio relay: the client starts it in place of its agent, and it starts the agent
(manual/protocol.md "Stdio").

Three threads relay stdin, stdout and stderr (`stdio_pump`); the main thread relays signals and
waits for the end. Parses nothing.
"""

import os
import shlex
import signal
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from a2a_proxy.model.wire import ChunkKind, ConnectionFacts, DialFacts, Direction
from a2a_proxy.relay.journal_buffer import JournalBuffer
from a2a_proxy.relay.stdio_agent import (
    StdioAgent,
    exit_facts,
    next_signal,
    release_signals,
    signal_name,
    stop_on_signal,
)
from a2a_proxy.relay.stdio_pump import Pump, close_descriptor

DELIVERY_SECONDS = 0.5
"""Seconds that a client which stopped the agent may read nothing before the remaining output is
dropped."""
_STOP_SIGNALS = {signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP}
"""Signals with which a client stops its agent."""
_STOP_SECONDS = 10.0
"""Seconds after such a signal within which the end of the agent counts as caused by it."""
_PROMPT_SECONDS = 0.1
"""Seconds in which a client that reads receives the remaining output of the agent."""
_POLL_SECONDS = 0.05

_IN, _OUT, _ERR = 0, 1, 2


class StdioRelay:
    """One agent between this process's stdin, stdout and stderr."""

    def __init__(self, command: Sequence[str]) -> None:
        """Start the agent. This process must have a single thread. Raises OSError if the agent
        cannot be started."""
        self._command = shlex.join(command)
        self._agent = StdioAgent(command)
        self._stop_requested_at = -_STOP_SECONDS
        """Time of the latest stop signal, on the `time.monotonic` clock."""

    def kill(self) -> None:
        """Kill the agent before any byte is relayed."""
        self._agent.send_signal(signal.SIGKILL)

    def start(self, journal: JournalBuffer) -> None:
        """Start relaying."""
        client = f"pid {os.getppid()}{_process_name(os.getppid())}"
        _record_facts(
            journal, ChunkKind.OPEN, ConnectionFacts(client, "stdio", self._command, "stdio")
        )
        _record_facts(journal, ChunkKind.DIALED, DialFacts(self._command, f"pid {self._agent.pid}"))
        self._journal = journal
        ended, self._agent_end = os.pipe()
        to_agent, to_client = Direction.TO_AGENT, Direction.TO_CLIENT
        agent = self._agent
        self._outputs = [Pump(agent.stdout, _OUT, journal, to_client, ChunkKind.DATA, ended)]
        if agent.stderr >= 0:
            self._outputs.append(Pump(agent.stderr, _ERR, journal, to_client, ChunkKind.LOG, ended))
        else:
            close_descriptor(_ERR)  # it is the same pipe as stdout, and would keep that open
        for pump in (Pump(_IN, agent.stdin, journal, to_agent, ChunkKind.DATA), *self._outputs):
            pump.start()

    def wait(self) -> int:
        """Relay signals until the agent has ended and its output is delivered. Return its end as
        `StdioAgent.poll` does.

        A signal that arrives while a client is slow to read ends this process, as it would have
        ended an agent that waits for its reader.
        """
        while (code := self._agent.poll()) is None:
            number, to_send = next_signal()
            if number != signal.SIGCHLD:
                self._pass_signal_on(number, to_send=to_send)
        os.close(self._agent_end)
        self._deliver_output()
        _record_facts(self._journal, ChunkKind.EXITED, exit_facts(code), Direction.TO_CLIENT)
        self._journal.note_record(ChunkKind.CLOSED, Direction.TO_AGENT)
        self._journal.write()
        return code

    def _pass_signal_on(self, number: int, *, to_send: bool) -> None:
        if number in _STOP_SIGNALS:
            self._stop_requested_at = time.monotonic()
        if to_send:
            self._agent.send_signal(number)
        self._journal.note_record(
            ChunkKind.SIGNAL, Direction.TO_AGENT, signal_name(number).encode()
        )
        self._journal.write()
        if number == signal.SIGTSTP:
            stop_on_signal(number)

    def _deliver_output(self) -> None:
        """Wait until the client has received the remaining output of the agent.

        Without a relay an agent blocks in `write` on a client that does not read, or is killed
        there. So the wait has no limit if the agent ended by itself, and a short one if it was
        stopped by a signal.
        """
        ended = time.monotonic()
        until = ended + _PROMPT_SECONDS
        for pump in self._outputs:
            pump.join(max(0.0, until - time.monotonic()))
        while late := [pump for pump in self._outputs if pump.is_alive()]:
            # not earlier: a signal that was too late for the agent must not change how it ended
            release_signals()
            still = time.monotonic() - max(pump.last_write_at for pump in late)
            if ended - self._stop_requested_at < _STOP_SECONDS and still > DELIVERY_SECONDS:
                break
            late[0].join(_POLL_SECONDS)


def _record_facts(
    journal: JournalBuffer,
    kind: ChunkKind,
    facts: msgspec.Struct,
    direction: Direction = Direction.TO_AGENT,
) -> None:
    journal.note_record(kind, direction, msgspec.json.encode(facts))
    journal.write()


def _process_name(pid: int) -> str:
    """Return the name of a process as ` (node)`, or an empty text if the system does not provide
    it."""
    try:
        return f" ({Path(f'/proc/{pid}/comm').read_text(errors='replace').strip()})"
    except OSError:
        return ""
