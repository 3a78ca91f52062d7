"""Start of the command, and the signals that this process passes on to it.

The command must start when the proxy listens, which takes threads, but a process with threads
cannot fork safely. So a guard is forked first, and its child waits to become the command. The guard
adopts the descendants of the command, ends as the command does, and kills them if the proxy is
killed.
"""

import os
import shutil
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import msgspec

from a2a_proxy.model.errors import UserError
from a2a_proxy.present.output import print_note
from a2a_proxy.protocol.text import shell_line
from a2a_proxy.relay.stdio_agent import end_with_parent, exit_like, hold_signals, load_libc

EXIT_NOT_FOUND, EXIT_NOT_RUN = 127, 126
"""Exit codes, as a shell uses them."""
_PR_SET_CHILD_SUBREAPER = 36
_PROXY_DIED = signal.SIGTERM
"""What the guard gets when the proxy dies; it is blocked, and means nothing while the proxy
lives."""
_DEFAULT_SIGNALS = ("SIGPIPE", "SIGXFSZ")
"""Signals that the Python interpreter ignores, and a program that it starts must not."""
_READ_BYTES = 65536


def command_error(name: str, error: OSError) -> UserError:
    """Return the error of a command that cannot be started, with the exit code of a shell."""
    if isinstance(error, FileNotFoundError) and shutil.which(name) is None:
        hint = (
            "check the spelling and the PATH, or name it with its folder; no shell reads the "
            "command"
        )
        return UserError(f"command not found: {name}", hint, EXIT_NOT_FOUND)
    if isinstance(error, FileNotFoundError):
        hint = "check its first line: " + shell_line("head", "-1", shutil.which(name) or name)
        return UserError(f"cannot run {name}: its interpreter is missing", hint, EXIT_NOT_RUN)
    hint = "is it a program? try: " + shell_line("chmod", "+x", name)
    return UserError(
        f"cannot run {name}: {(error.strerror or str(error)).lower()}", hint, EXIT_NOT_RUN
    )


class Launcher:
    """A process that becomes the command, and its parent, the guard, which is a child of this
    process.

    Standard streams, folder, group and signal dispositions are those that this process was started
    with. The command and its descendants are killed if this process dies, and the command alone if
    the guard dies (Linux).
    """

    def __init__(self, command: Sequence[str]) -> None:
        """Fork the guard, and block the signals that `next_signal` returns in this process, which
        has a single thread.

        Raises UserError: the command does not exist.
        """
        self._command = tuple(command)
        self._path = shutil.which(command[0])
        if self._path is None:
            error: OSError = (
                PermissionError("permission denied")
                if _is_file_name(command[0])
                else FileNotFoundError()
            )
            raise command_error(command[0], error)
        orders, self._orders = os.pipe()
        self._errors, errors = os.pipe()
        with hold_signals() as prepare:
            this = os.getpid()
            self.guard = os.fork()
            """Process id of the guard."""
            if not self.guard:
                os.close(self._orders)
                _guard_command(this, prepare, orders, errors)
        os.close(orders)
        os.close(errors)
        self._pid = int(os.read(self._errors, 16))
        """Process id of the command."""
        self._code: int | None = None

    def start(self, environment: Mapping[str, str]) -> None:
        """Let the command begin, with these environment variables.

        Raises UserError: the system cannot run the program.
        """
        entries = [
            f"{name}={value}".encode("utf-8", "surrogateescape")
            for name, value in environment.items()
        ]
        words = [os.fsencode(word) for word in (self._path or "", *self._command)]
        _write_all(self._orders, msgspec.msgpack.encode((words, entries)))
        os.close(self._orders)
        self._orders = -1
        number = os.read(self._errors, 16)
        os.close(self._errors)
        if number:
            error = int(number)
            name = self._command[0]
            raise command_error(name, OSError(error, os.strerror(error)))

    def poll(self) -> int | None:
        """Return None while the command runs; afterwards its exit code, or minus the number of the
        signal that killed it."""
        if self._code is None:
            pid, status = os.waitpid(self.guard, os.WNOHANG)
            self._code = os.waitstatus_to_exitcode(status) if pid else None
        return self._code

    def send_signal(self, number: int) -> None:
        """Send the command a signal if it still runs."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self._pid, number)

    def cancel(self) -> None:
        """End the processes if the command has not begun."""
        if self._orders >= 0:
            os.close(self._orders)
            self._orders = -1


def adopt_orphans() -> None:
    """Make this process the parent of descendants whose parents end, so that they stay its
    descendants (Linux)."""
    libc = load_libc()
    if libc is not None:
        libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _guard_command(proxy: int, prepare: Callable[..., None], orders: int, errors: int) -> NoReturn:
    """Fork the process that becomes the command, and end as it does. All its descendants are killed
    if the process `proxy` ends before."""
    try:
        from a2a_proxy.cli.command.process_table import read_descendants  # not for a2a-proxy stdio

        adopt_orphans()
        with suppress(OSError):  # so that `pkill -9 a2a-proxy` spares it
            Path("/proc/self/comm").write_text("a2a-guard")
        this, pid = os.getpid(), os.fork()
        if not pid:
            prepare(this)
            _become_command(orders, errors)
        os.write(errors, str(pid).encode())
        os.close(orders)
        os.close(errors)
        is_alive = end_with_parent(_PROXY_DIED, proxy)
        while is_alive:
            ended, status = os.waitpid(-1, os.WNOHANG)
            if ended == pid:
                exit_like(os.waitstatus_to_exitcode(status))
            if not ended:
                signal.sigwait({signal.SIGCHLD, _PROXY_DIED})
                is_alive = os.getppid() == proxy
        while found := read_descendants(this)[1:]:
            for each in found:
                with suppress(OSError):  # it has ended, or has become a process of another user
                    os.kill(each.pid, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(-1, 0)
    finally:  # nothing of this process may run on in the guard
        os._exit(EXIT_NOT_RUN)


def _become_command(orders: int, errors: int) -> NoReturn:
    """Wait for the program and its environment, and run it in this process; end if the other side
    has ended."""
    try:
        data = b""
        while piece := os.read(orders, _READ_BYTES):
            data += piece
        if not data:
            os._exit(0)
        for name in _DEFAULT_SIGNALS:
            signal.signal(getattr(signal, name), signal.SIG_DFL)
        (path, *command), entries = msgspec.msgpack.decode(
            data, type=tuple[list[bytes], list[bytes]]
        )
        os.execve(path, command, dict(entry.split(b"=", 1) for entry in entries))
    except OSError as error:
        os.write(errors, str(error.errno).encode())
    except BaseException as error:  # nothing of this process may run on in the child
        print_note(str(error))
    os._exit(EXIT_NOT_RUN)


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _is_file_name(name: str) -> bool:
    """Return whether a command names an existing file or folder; without a folder it is searched in
    the PATH only."""
    return os.sep in name and os.path.exists(name)
