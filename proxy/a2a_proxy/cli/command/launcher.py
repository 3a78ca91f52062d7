"""Start of the command, and the signals that this process passes on to it.

The command must start when the proxy listens, which takes threads, but a process with threads cannot fork safely. So a
child is forked first, and waits to become the command.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NoReturn

import msgspec

from a2a_proxy.cli.errors import UserError
from a2a_proxy.present.output import print_note
from a2a_proxy.protocol.text import shell_line
from a2a_proxy.relay.stdio_agent import hold_signals, load_libc

EXIT_NOT_FOUND, EXIT_NOT_RUN = 127, 126
"""Exit codes, as a shell uses them."""
_PR_SET_CHILD_SUBREAPER = 36
_DEFAULT_SIGNALS = ("SIGPIPE", "SIGXFSZ")
"""Signals that the Python interpreter ignores, and a program that it starts must not."""
_READ_BYTES = 65536


def command_error(name: str, error: OSError) -> UserError:
    """Return the error of a command that cannot be started, with the exit code of a shell."""
    if isinstance(error, FileNotFoundError) and shutil.which(name) is None:
        hint = "check the spelling and the PATH, or name it with its folder; no shell reads the command"
        return UserError(f"command not found: {name}", hint, EXIT_NOT_FOUND)
    if isinstance(error, FileNotFoundError):
        hint = "check its first line: " + shell_line("head", "-1", shutil.which(name) or name)
        return UserError(f"cannot run {name}: its interpreter is missing", hint, EXIT_NOT_RUN)
    hint = "is it a program? try: " + shell_line("chmod", "+x", name)
    return UserError(f"cannot run {name}: {(error.strerror or str(error)).lower()}", hint, EXIT_NOT_RUN)


class Launcher:
    """A child of this process that becomes the command.

    Standard streams, folder, group and signal dispositions are those that this process was started with. The child is
    killed if this process dies.
    """

    def __init__(self, command: Sequence[str]) -> None:
        """Fork the child, and block the signals that `next_signal` returns in this process, which has a single thread.

        Raises UserError: the command does not exist.
        """
        self._command = tuple(command)
        self._path = shutil.which(command[0])
        if self._path is None:
            error: OSError = PermissionError("permission denied") if _is_file_name(command[0]) else FileNotFoundError()
            raise command_error(command[0], error)
        orders, self._orders = os.pipe()
        self._errors, errors = os.pipe()
        with hold_signals() as prepare:
            self.pid = os.fork()
            """Process id of the child, and later of the command."""
            if not self.pid:
                prepare()
                os.close(self._orders)
                _become_command(orders, errors)
        os.close(orders)
        os.close(errors)
        self._code: int | None = None

    def start(self, environment: Mapping[str, str]) -> None:
        """Let the child become the command, with these environment variables.

        Raises UserError: the system cannot run the program.
        """
        entries = [f"{name}={value}".encode("utf-8", "surrogateescape") for name, value in environment.items()]
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
        """Return None while the child runs; afterwards its exit code, or minus the number of the signal that killed
        it."""
        if self._code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self._code = os.waitstatus_to_exitcode(status) if pid else None
        return self._code

    def send_signal(self, number: int) -> None:
        """Send the child a signal if it still runs."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def cancel(self) -> None:
        """End a child that has not become the command."""
        if self._orders >= 0:
            os.close(self._orders)
            self._orders = -1


def adopt_orphans() -> None:
    """Make this process the parent of descendants whose parents end, so that they stay its descendants (Linux)."""
    libc = load_libc()
    if libc is not None:
        libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _become_command(orders: int, errors: int) -> NoReturn:
    """Wait for the program and its environment, and run it in this process; end if the other side has ended."""
    try:
        data = b""
        while piece := os.read(orders, _READ_BYTES):
            data += piece
        if not data:
            os._exit(0)
        for name in _DEFAULT_SIGNALS:
            signal.signal(getattr(signal, name), signal.SIG_DFL)
        (path, *command), entries = msgspec.msgpack.decode(data, type=tuple[list[bytes], list[bytes]])
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
    """Return whether a command names an existing file or folder; without a folder it is searched in the PATH only."""
    return os.sep in name and os.path.exists(name)
