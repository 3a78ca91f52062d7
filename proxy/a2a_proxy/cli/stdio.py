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
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec

from a2a_proxy.capture import file_layout
from a2a_proxy.capture.file_layout import JournalFolder, SessionFile
from a2a_proxy.capture.journal import Journal
from a2a_proxy.capture.journal_files import JournalLimits
from a2a_proxy.cli.command.launcher import command_error
from a2a_proxy.cli.errors import state_directory_errors
from a2a_proxy.cli.follower_config import FollowerArguments, FollowerOptions, parse_follower_options
from a2a_proxy.cli.redaction_options import policy_words
from a2a_proxy.cli.sizes import parse_size
from a2a_proxy.model import name_json
from a2a_proxy.model.errors import UserError
from a2a_proxy.recording.names import recording_name
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
    record: Path | None
    """The recording, or None for a new file in the state directory."""
    redact: tuple[str, ...]
    """Data to redact, as words of a policy."""
    limits: JournalLimits
    """Limits of the journal."""
    fail_on: str
    """Lowest severity of a finding that makes the run fail: a name of `Severity` in lower case, or
    `never`."""
    followers: FollowerOptions = FollowerOptions()
    card_keys: Path | None = None
    """File of the keys that verify signatures of agent cards."""


def stdio_config(
    *,
    command: tuple[str, ...],
    record: Path | None,
    keep_secrets: bool,
    journal_max: str,
    fail_on: str,
    redact: tuple[str, ...] = (),
    redact_policy: Path | None = None,
    card_keys: Path | None = None,
    **followers: Any,
) -> StdioConfig:
    """Return the config of the options; `followers` are the members of `FollowerArguments`. Raises
    UserError."""
    words = policy_words(redact, redact_policy, keep_secrets=keep_secrets)
    limits = JournalLimits(max_bytes=parse_size("--journal-max", journal_max))
    if card_keys is not None:
        from a2a_proxy.cli.card_keys import load_card_verifier

        load_card_verifier(card_keys)  # only checked here: the recorder reads the keys
    parsed = parse_follower_options(FollowerArguments(**followers))
    return StdioConfig(command, record, words, limits, fail_on, parsed, card_keys)


def run_stdio(config: StdioConfig) -> NoReturn:
    """Relay the agent, and end as it did, or with 1 if `fail_on` requires it.

    Raises:
        UserError: the agent cannot be started or recorded; nothing has been created.
    """
    if not config.command:
        raise UserError(
            "the agent's command is missing", "for example: a2a-proxy stdio -- python my_agent.py"
        )
    if config.record is not None:
        check_writable(config.record)
    clock = session_clock()
    with state_directory_errors():
        session = _make_session_file(config, clock())
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
    if code == 0 and config.fail_on != "never" and recorder.wait_for_failure(config.fail_on):
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
        words = name_json.encode_json({**work, **msgspec.structs.asdict(self._followers)}).decode()
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


def _make_session_file(config: StdioConfig, started: int) -> SessionFile:
    path = config.record or file_layout.recordings_dir() / recording_name(started)
    if config.record is not None:
        file_layout.remember_recording(path)
    return SessionFile(
        recording=str(path.absolute()),
        pid=os.getpid(),
        started=started,
        uuid=str(uuid.uuid4()),
        command=("a2a-proxy", *sys.argv[1:]),
        listens=("stdio",),
        upstreams=(shlex.join(config.command),),
        redact=config.redact,
        card_keys=str(config.card_keys.absolute()) if config.card_keys is not None else "",
    )


def _start_agent(command: tuple[str, ...]) -> StdioRelay:
    try:
        return StdioRelay(command)
    except OSError as wrong:
        raise command_error(command[0], wrong) from wrong


def _ignore_timer(_seconds: float, _callback: object) -> None:
    """Ignore the timer: `JournalBuffer` flushes after each record, and bytes delayed by a slow disk
    follow with the next."""
