"""The process of a stdio agent: started as its client would have started it, and killed if the
relay dies."""

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

from a2a_proxy.model.wire import ExitFacts
from a2a_proxy.relay.stdio_pump import close_descriptor

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE = 1, 4

_OWN_SIGNALS = {"SIGKILL", "SIGSTOP", "SIGTTIN", "SIGTTOU", "SIGPIPE", "SIGXFSZ", "SIGXCPU"}
"""Signals that cannot be relayed, or that concern this process itself."""
_FAULT_SIGNALS = {"SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGTRAP", "SIGSYS"}
_TERMINAL_SIGNALS = {signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGWINCH}
"""Signals that a terminal sends to its whole foreground group, and so to the agent as well. When
the terminal hangs up, only the leader of the session gets SIGHUP, and the group gets it when that
leader ends."""

SIGNALS = frozenset(
    number
    for number in signal.valid_signals()
    if getattr(number, "name", "") not in _OWN_SIGNALS | _FAULT_SIGNALS
)
"""Signals that are waited for: the end of the agent (SIGCHLD) and all signals that are relayed."""


class StdioAgent:
    """A running agent and the relay's ends of its three pipes."""

    def __init__(self, command: Sequence[str]) -> None:
        """Start the agent: no shell; environment, folder, group and descriptors are those that this
        process was started with.

        Raises OSError if the command does not exist or cannot be run.
        """
        inherited = _inherited_descriptors()
        with hold_signals() as prepare:
            stdin, self.stdin = os.pipe()
            self.stdout, stdout = os.pipe()
            self.stderr, stderr = (-1, stdout) if _is_output_joined() else os.pipe()
            """-1 if stderr is joined to stdout, in the order of the writes."""
            try:
                self._process = subprocess.Popen(
                    command,
                    stdin=stdin,
                    stdout=stdout,
                    stderr=stderr,
                    env=agent_environment(),
                    close_fds=False,
                    preexec_fn=prepare,  # this process still has a single thread
                )
            finally:
                for each in {stdin, stdout, stderr, *inherited}:
                    close_descriptor(
                        each
                    )  # this process must not keep a pipe open whose end other processes wait for

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    def poll(self) -> int | None:
        """Return None while the agent runs; afterwards its exit code, or minus the number of the
        signal that killed it.
        """
        return self._process.poll()

    def send_signal(self, number: int) -> None:
        """Send the agent a signal if it still runs."""
        self._process.send_signal(number)


@contextmanager
def hold_signals() -> Iterator[Callable[..., None]]:
    """Block signals until `next_signal` takes them; unblock them if the body fails.

    Yields the function that the new process must call before it becomes the agent: it ties the
    agent's life to that of its parent, whose process id is an argument if this process is not the
    parent, and restores the signal dispositions with which this process was started, which an
    interpreter changes.
    """
    of_children = signal.signal(
        signal.SIGCHLD, signal.SIG_DFL
    )  # if SIGCHLD is ignored, there are no exit codes
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    this = os.getpid()

    def prepare(parent: int = this) -> None:
        if not end_with_parent(signal.SIGKILL, parent):
            os.kill(os.getpid(), signal.SIGKILL)
        if of_children is signal.SIG_IGN:
            signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    try:
        yield prepare
    except BaseException:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        raise


def end_with_parent(number: int, parent: int) -> bool:
    """Let the system send this process a signal when its parent dies (Linux). Return False if it
    has died already."""
    libc = load_libc()
    if libc is not None:
        libc.prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)
    return libc is None or os.getppid() == parent


def next_signal() -> tuple[int, bool]:
    """Wait for one of `SIGNALS`. Return its number and whether the agent must be sent it."""
    if sys.platform == "darwin":
        return signal.sigwait(SIGNALS), True
    found = signal.sigwaitinfo(SIGNALS)
    number, by_kernel = found.si_signo, found.si_code > 0
    to_group = number in _TERMINAL_SIGNALS or (
        number == signal.SIGHUP and os.getsid(0) != os.getpid()
    )
    return number, not (by_kernel and to_group)


def release_signals() -> None:
    """Restore the default effect of signals, because no agent is left to receive them."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


def stop_on_signal(number: int) -> None:
    """Let a stop signal (Ctrl-Z) stop this process; return when it continues."""
    os.kill(os.getpid(), number)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    signal.pthread_sigmask(signal.SIG_BLOCK, {number})


def exit_like(code: int) -> NoReturn:
    """End this process at once, with the exit code or by the signal of the agent
    (`StdioAgent.poll`).

    No core is dumped, because it would replace the agent's.
    """
    if code >= 0:
        os._exit(code)
    number = -code
    libc = load_libc()
    if libc is not None:
        libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    if number != signal.SIGKILL:
        signal.signal(number, signal.SIG_DFL)
    signal.raise_signal(
        number
    )  # to this thread, because another one may wait for signals of the process
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os._exit(128 + number)  # the first process of a container is not killed by its own signals


def exit_facts(code: int) -> ExitFacts:
    """Return the journal facts of an end reported by `StdioAgent.poll`."""
    return ExitFacts(code=code) if code >= 0 else ExitFacts(signal=signal_name(-code))


def signal_name(number: int) -> str:
    """Return the name of a signal, such as `SIGTERM` or `SIGRTMIN+3`."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIGRTMIN+{number - signal.SIGRTMIN}"


def agent_environment() -> dict[bytes, bytes]:
    """Return the environment with which this process was started: an interpreter in the C locale
    sets LC_CTYPE (PEP 538)."""
    ours = dict(os.environb)
    try:
        given = Path("/proc/self/environ").read_bytes()
    except OSError:
        return ours
    if not any(entry.startswith(b"LC_CTYPE=") for entry in given.split(b"\0")):
        ours.pop(b"LC_CTYPE", None)
    return ours


def _is_output_joined() -> bool:
    """Return whether stdout and stderr are the same pipe (`2>&1`): two pipes of the relay would mix
    up their order."""
    out, err = os.fstat(1), os.fstat(2)
    return not stat.S_ISCHR(out.st_mode) and (out.st_dev, out.st_ino) == (err.st_dev, err.st_ino)


def _inherited_descriptors() -> list[int]:
    """Return the descriptors beyond the standard ones that the parent process passed for the
    agent."""
    found: list[int] = []
    try:
        names = os.listdir("/dev/fd")
    except OSError:
        return found
    for name in names:
        with suppress(OSError):  # the descriptor of the listing itself
            if int(name) > 2 and os.get_inheritable(int(name)):
                found.append(int(name))
    return found


def load_libc() -> ctypes.CDLL | None:
    """Return libc for `prctl`, which exists only on Linux, else None."""
    return ctypes.CDLL(None) if sys.platform == "linux" else None
