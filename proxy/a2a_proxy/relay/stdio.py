"""The stdio relay: sits where a client expects its agent, and the agent behind it (manual/protocol.md "Stdio").

Three threads pass on stdin, stdout and stderr (`stdio_pump`); this one passes on signals and waits for the end.
Parses nothing.
"""

from __future__ import annotations

import os
import shlex
import signal
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from a2a_proxy.model.chunk import ChunkKind, ConnectionFacts, DialFacts, Direction
from a2a_proxy.relay.journal_buffer import JournalBuffer
from a2a_proxy.relay.stdio_agent import StdioAgent, exit_facts, next_signal, signal_name, stop_as_told, take_signals
from a2a_proxy.relay.stdio_pump import Pump, let_go

DELIVERY_SECONDS = 0.5
"""How long a client that told the agent to end may read nothing before what the agent left is dropped."""
_ENDING = {signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP}
"""Signals by which a client tells its agent to end."""
_MEANT_SECONDS = 10.0
"""An agent that goes on for longer after such a signal has not ended because of it."""
_AT_ONCE = 0.1
"""Seconds in which a client that reads gets what the agent left."""
_POLL_SECONDS = 0.05

_IN, _OUT, _ERR = 0, 1, 2


class StdioRelay:
    """One agent between this process's stdin, stdout and stderr."""

    def __init__(self, command: Sequence[str]) -> None:
        """Start the agent; the first thread is still the only one. Raises OSError where it cannot be started."""
        self._command = shlex.join(command)
        self._agent = StdioAgent(command)
        self._told = -_MEANT_SECONDS
        """When somebody told the agent to end, as `time.monotonic` has it."""

    def kill(self) -> None:
        """End the agent, before anything was passed on."""
        self._agent.send(signal.SIGKILL)

    def start(self, tape: JournalBuffer) -> None:
        """Pass on from now on."""
        client = f"pid {os.getppid()}{_name_of(os.getppid())}"
        _facts(tape, ChunkKind.OPEN, ConnectionFacts(client, "stdio", self._command, "stdio"))
        _facts(tape, ChunkKind.DIALED, DialFacts(self._command, f"pid {self._agent.pid}"))
        self._tape = tape
        ended, self._over = os.pipe()
        to_agent, to_client = Direction.TO_AGENT, Direction.TO_CLIENT
        agent = self._agent
        self._outputs = [Pump(agent.stdout, _OUT, tape, to_client, ChunkKind.DATA, ended)]
        if agent.stderr >= 0:
            self._outputs.append(Pump(agent.stderr, _ERR, tape, to_client, ChunkKind.LOG, ended))
        else:
            let_go(_ERR)  # it leads where stdout does, and would keep that open
        for pump in (Pump(_IN, agent.stdin, tape, to_agent, ChunkKind.DATA), *self._outputs):
            pump.start()

    def wait(self) -> int:
        """Pass on signals until the agent has ended and its output is delivered; its end as `StdioAgent.poll` has it.

        A signal that comes while a client takes its time to read ends this process, as it would have ended an agent
        that waits to be read.
        """
        while (code := self._agent.poll()) is None:
            number, to_send = next_signal()
            if number != signal.SIGCHLD:
                self._pass_on(number, to_send=to_send)
        os.close(self._over)
        self._deliver()
        _facts(self._tape, ChunkKind.EXITED, exit_facts(code), Direction.TO_CLIENT)
        self._tape.note(ChunkKind.CLOSED, Direction.TO_AGENT)
        self._tape.write()
        return code

    def _pass_on(self, number: int, *, to_send: bool) -> None:
        if number in _ENDING:
            self._told = time.monotonic()
        if to_send:
            self._agent.send(number)
        self._tape.note(ChunkKind.SIGNAL, Direction.TO_AGENT, signal_name(number).encode())
        self._tape.write()
        if number == signal.SIGTSTP:
            stop_as_told(number)

    def _deliver(self) -> None:
        """Wait until the client has got what the agent left.

        Without a relay an agent waits in `write` for a client that does not read, or is killed there; so the wait has
        no end where nobody told it to end, and a short one where somebody did.
        """
        ended = time.monotonic()
        until = ended + _AT_ONCE
        for pump in self._outputs:
            pump.join(max(0.0, until - time.monotonic()))
        while late := [pump for pump in self._outputs if pump.is_alive()]:
            take_signals()  # not before: one that came too late for the agent must not change how it ended
            still = time.monotonic() - max(pump.moved for pump in late)
            if ended - self._told < _MEANT_SECONDS and still > DELIVERY_SECONDS:
                break
            late[0].join(_POLL_SECONDS)


def _facts(
    tape: JournalBuffer, kind: ChunkKind, facts: msgspec.Struct, direction: Direction = Direction.TO_AGENT
) -> None:
    tape.note(kind, direction, msgspec.json.encode(facts))
    tape.write()


def _name_of(pid: int) -> str:
    """` (node)`, where the system tells."""
    try:
        return f" ({Path(f'/proc/{pid}/comm').read_text(errors='replace').strip()})"
    except OSError:
        return ""
