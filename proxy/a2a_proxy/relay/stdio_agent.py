"""The process of a stdio agent: started as its client would have started it, and never alive without this one."""

from __future__ import annotations

import ctypes
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn

from a2a_proxy.model.chunk import ExitFacts
from a2a_proxy.relay.stdio_pump import close_descriptor

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE = 1, 4

_OWN_SIGNALS = {"SIGKILL", "SIGSTOP", "SIGTTIN", "SIGTTOU", "SIGPIPE", "SIGXFSZ", "SIGXCPU"}
"""Cannot be passed on, or are about what this process itself does."""
_FAULT_SIGNALS = {"SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGTRAP", "SIGSYS"}
_TERMINAL_SIGNALS = {signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGWINCH}
"""What a terminal sends to its whole foreground group, and so to the agent as well. When it hangs up, the leader of the
session gets SIGHUP alone, and the group when that leader ends."""

SIGNALS = frozenset(
    number for number in signal.valid_signals() if getattr(number, "name", "") not in _OWN_SIGNALS | _FAULT_SIGNALS
)
"""What is waited for: the end of the agent (SIGCHLD) and all that is passed on."""


class StdioAgent:
    """A running agent and our ends of its three pipes."""

    def __init__(self, command: Sequence[str]) -> None:
        """Start it: no shell, the same environment, folder, group and descriptors as this process was given.

        Raises OSError where there is no such command, or it cannot be run.
        """
        _fill_standard_descriptors()
        inherited = _inherited_descriptors()
        with _hold_signals() as prepare:
            stdin, self.stdin = os.pipe()
            self.stdout, stdout = os.pipe()
            self.stderr, stderr = (-1, stdout) if _is_output_joined() else os.pipe()
            """-1: what goes to stderr comes out of stdout, in the order of the writes."""
            try:
                self._process = subprocess.Popen(
                    command,
                    stdin=stdin,
                    stdout=stdout,
                    stderr=stderr,
                    env=_agent_environment(),
                    close_fds=False,
                    preexec_fn=prepare,  # there is one thread yet
                )
            finally:
                for each in {stdin, stdout, stderr, *inherited}:
                    close_descriptor(each)  # where others wait for the end of a pipe, this process must not hold it

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    def poll(self) -> int | None:
        """None while it runs; else its exit code, or minus the number of the signal that killed it."""
        return self._process.poll()

    def send(self, number: int) -> None:
        """Send it a signal, if it is still there."""
        self._process.send_signal(number)


@contextmanager
def _hold_signals() -> Iterator[Callable[[], None]]:
    """From here on signals wait until `next_signal` asks for them; they come as usual again if the body fails.

    Gives what the new process must do before it becomes the agent: end with this one, and treat signals as this
    process was told to, not as an interpreter does.
    """
    of_children = signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # where it is ignored there are no exit codes
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    libc, parent = _load_libc(), os.getpid()

    def prepare() -> None:
        if libc is not None:
            libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != parent:  # it died before it was asked
                os.kill(os.getpid(), signal.SIGKILL)
        if of_children is signal.SIG_IGN:
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    try:
        yield prepare
    except BaseException:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        raise


def next_signal() -> tuple[int, bool]:
    """Wait for one of `SIGNALS`; whether the agent has to be sent it comes with it."""
    if sys.platform == "darwin":
        return signal.sigwait(SIGNALS), True
    found = signal.sigwaitinfo(SIGNALS)
    number, by_kernel = found.si_signo, found.si_code > 0
    to_group = number in _TERMINAL_SIGNALS or (number == signal.SIGHUP and os.getsid(0) != os.getpid())
    return number, not (by_kernel and to_group)


def release_signals() -> None:
    """Signals do again what they do to any process: there is no agent any more that could get them."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


def stop_on_signal(number: int) -> None:
    """Let a stop signal (Ctrl-Z) do to this process what it does to any; returns when it goes on."""
    os.kill(os.getpid(), number)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    signal.pthread_sigmask(signal.SIG_BLOCK, {number})


def exit_like(code: int) -> NoReturn:
    """End this process at once, with the same exit code or by the same signal as the agent (`StdioAgent.poll`).

    No core is dumped: it would be ours, in the place of the agent's.
    """
    if code >= 0:
        os._exit(code)
    number = -code
    libc = _load_libc()
    if libc is not None:
        libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os._exit(128 + number)  # the first process of a container is spared by its own signals


def exit_facts(code: int) -> ExitFacts:
    """What the journal says of an end as `StdioAgent.poll` gives it."""
    return ExitFacts(code=code) if code >= 0 else ExitFacts(signal=signal_name(-code))


def signal_name(number: int) -> str:
    """`SIGTERM`, `SIGRTMIN+3`."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIGRTMIN+{number - signal.SIGRTMIN}"


def _agent_environment() -> dict[bytes, bytes]:
    """As this process was given it: an interpreter in the C locale has set LC_CTYPE (PEP 538)."""
    ours = dict(os.environb)
    try:
        given = Path("/proc/self/environ").read_bytes()
    except OSError:
        return ours
    if not any(entry.startswith(b"LC_CTYPE=") for entry in given.split(b"\0")):
        ours.pop(b"LC_CTYPE", None)
    return ours


def _is_output_joined() -> bool:
    """The client reads stdout and stderr from one pipe (`2>&1`): two of ours would mix up their order."""
    out, err = os.fstat(1), os.fstat(2)
    return not stat.S_ISCHR(out.st_mode) and (out.st_dev, out.st_ino) == (err.st_dev, err.st_ino)


def _fill_standard_descriptors() -> None:
    """Where stdin, stdout or stderr is closed: no pipe of the agent's may get its number."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free


def _inherited_descriptors() -> list[int]:
    """Descriptors beyond the standard ones that whoever started this process means for the agent."""
    found: list[int] = []
    try:
        names = os.listdir("/dev/fd")
    except OSError:
        return found
    for name in names:
        with suppress(OSError):  # the one with which they were listed
            if int(name) > 2 and os.get_inheritable(int(name)):
                found.append(int(name))
    return found


def _load_libc() -> ctypes.CDLL | None:
    """For prctl, which only Linux has."""
    return ctypes.CDLL(None) if sys.platform == "linux" else None
