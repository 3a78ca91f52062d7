"""One run of `a2a-proxy stdio`: start the agent, relay it, start the recorder in parallel, end as
the agent ended.

Nothing is printed once the agent runs, because stdout and stderr belong to it.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, NoReturn

import msgspec

from a2a_proxy.capture import file_layout
from a2a_proxy.capture.file_layout import JournalFolder, SessionFile
from a2a_proxy.capture.journal import Journal
from a2a_proxy.capture.journal_files import JournalLimits
from a2a_proxy.capture.recorder_options import RecorderOptions
from a2a_proxy.cli.arguments import ProxyArguments
from a2a_proxy.cli.command.launcher import command_error
from a2a_proxy.cli.errors import state_directory_errors
from a2a_proxy.cli.follower_config import FollowerOptions, parse_follower_options
from a2a_proxy.cli.recorder_config import make_session_file, recorder_options
from a2a_proxy.cli.sizes import parse_size
from a2a_proxy.model import name_json
from a2a_proxy.model.errors import UserError
from a2a_proxy.recording.store.file_header import check_writable
from a2a_proxy.relay.clock import session_clock
from a2a_proxy.relay.journal_buffer import JournalBuffer
from a2a_proxy.relay.stdio import StdioRelay
from a2a_proxy.relay.stdio_agent import exit_like

if TYPE_CHECKING:
    from a2a_proxy.recorder.recorder_supervisor import RecorderSupervisor

_LOG_NAME = "stdio"
"""Name of the followers' log, as a hook's log has one."""
_DISK_SECONDS = 2.0
"""Seconds that a disk which writes nothing may delay the end."""
_LAUNCH_SECONDS = 5.0
"""Seconds that the end waits for the start of the recorder."""


class StdioConfig(msgspec.Struct, frozen=True):
    """The config of one run of a stdio agent behind the proxy."""

    command: tuple[str, ...]
    options: ProxyArguments
    recorder: RecorderOptions
    limits: JournalLimits
    """Limits of the journal."""
    followers: FollowerOptions


def stdio_config(command: tuple[str, ...], options: ProxyArguments) -> StdioConfig:
    """Return the config of the options. Raises UserError."""
    limits = JournalLimits(max_bytes=parse_size("--journal-max", options.journal_max))
    recorder, _ = recorder_options(options)
    return StdioConfig(command, options, recorder, limits, parse_follower_options(options))


def run_stdio(config: StdioConfig) -> NoReturn:
    """Relay the agent, and end as it did, or with 1 if `fail_on` requires it.

    Raises:
        UserError: the agent cannot be started or recorded; nothing has been created.
    """
    if not config.command:
        raise UserError(
            "the agent's command is missing", "for example: a2a-proxy stdio -- python my_agent.py"
        )
    record, fail_on = config.options.record, config.options.fail_on
    if record is not None:
        check_writable(record)
    clock = session_clock()
    with state_directory_errors():
        session = make_session_file(
            record,
            config.recorder,
            clock(),
            ("a2a-proxy", *sys.argv[1:]),
            listens=("stdio",),
            upstreams=(shlex.join(config.command),),
        )
        folder = file_layout.create_journal(session)
    try:
        relay = _start_agent(config.command)
        try:
            with state_directory_errors():
                journal = Journal(folder.path, _ignore_timer, config.limits)
        except BaseException:
            relay.kill()
            raise
    except BaseException:
        file_layout.delete_journal(folder.path)
        folder.release_locks()
        raise
    relay.start(JournalBuffer(journal, clock))
    recorder = _RecorderStarter(folder, journal, session, config.followers)
    recorder.start()
    code = relay.wait()
    recorder.join(_LAUNCH_SECONDS)
    journal.close(clock(), _DISK_SECONDS)
    if code == 0 and fail_on != "never" and recorder.wait_for_failure(fail_on):
        code = 1
    exit_like(code)


class _RecorderStarter(threading.Thread):
    """Starts the recorder process in the background. That process outlives this one, and finishes
    alone."""

    def __init__(
        self,
        folder: JournalFolder,
        journal: Journal,
        session: SessionFile,
        followers: FollowerOptions,
    ) -> None:
        super().__init__(name="recorder-start", daemon=True)
        self._session = session
        self._followers = followers
        self._folder = folder
        self._journal = journal
        self._supervisor: RecorderSupervisor | None = None

    def run(self) -> None:
        """Start the recorder process, if possible."""
        from a2a_proxy.recorder.recorder_supervisor import (
            RecorderSupervisor,  # imported while the agent starts
        )

        try:
            # It holds the folder too, so that the folder is not a left-over between the end of this
            # process and its first check.
            supervisor = RecorderSupervisor(
                self._folder.path, lambda _: None, kept_fds=(self._folder.lock,)
            )
        except OSError:  # too many open files: the journal is left to `a2a-inspect recover`
            return
        self._journal.set_wake_fd(supervisor.wake_write)
        supervisor.launch_process()
        self._supervisor = supervisor
        if self._followers != FollowerOptions():
            self._start_followers()

    def _start_followers(self) -> None:
        """Start the process of the followers (`stdio_followers.FollowersJob`, whose module is too
        large for this process)."""
        from a2a_proxy.follower.hook_log import log_path, open_log

        work = {
            "recording": self._session.recording,
            "session": self._session.uuid,
            "journal": str(self._folder.path),
        }
        words = name_json.encode_json({**work, "followers": self._followers}).decode()
        with contextlib.suppress(
            OSError
        ):  # there is no output for a message, and the recording is complete
            log = open_log(log_path(_LOG_NAME))
            try:
                subprocess.Popen(
                    [sys.executable, "-P", "-m", "a2a_proxy.cli.stdio_followers", words],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=log,
                    start_new_session=True,
                )
            finally:
                os.close(log)

    def wait_for_failure(self, severity: str) -> bool:
        """Wait for the end of the recording. Return True if a finding has this severity, or if the
        recorder failed."""
        from a2a_proxy.cli.fail_on import has_failing_finding
        from a2a_proxy.recorder.status import RecorderDone
        from a2a_proxy.relay.stdio_agent import release_signals

        release_signals()
        if self._supervisor is None:
            return True
        self._supervisor.close_wake_pipe()
        self._supervisor.drain_journal()
        outcome = self._supervisor.outcome
        return has_failing_finding(outcome, severity) if isinstance(outcome, RecorderDone) else True


def _start_agent(command: tuple[str, ...]) -> StdioRelay:
    try:
        return StdioRelay(command)
    except OSError as wrong:
        raise command_error(command[0], wrong) from wrong


def _ignore_timer(_seconds: float, _callback: object) -> None:
    """Ignore the timer: `JournalBuffer` flushes after each record, and bytes delayed by a slow disk
    follow with the next."""
