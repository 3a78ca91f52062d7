"""The process of the followers of a stdio agent's recording, because `a2a-proxy stdio` ends as its
agent does.

It begins when the recording exists, ends some time after the recording's end, and writes its
results to a log: stdout and stderr of `a2a-proxy stdio` belong to the agent.
"""

import os
import signal
import sys
import time
from pathlib import Path

import msgspec

from a2a_proxy.capture import file_layout
from a2a_proxy.cli.console import TextConsole
from a2a_proxy.cli.follower_config import FollowerOptions
from a2a_proxy.cli.followers import PATIENCE_SECONDS, Followers, run_followers
from a2a_proxy.model import name_json
from a2a_proxy.model.errors import UserError
from a2a_proxy.protocol.text import make_visible
from a2a_proxy.recorder.priority import lower_priority
from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.read.reader import Recording

_POLL_SECONDS = 0.5
"""Seconds between two checks."""


class FollowersJob(msgspec.Struct, frozen=True):
    """The job of the process: its argument, as JSON."""

    recording: str
    session: str
    """Uuid of the session."""
    journal: str
    """Folder of the journal: while a process holds it, the recording is not complete."""
    followers: FollowerOptions


def main() -> int:
    """Follow until the session is recorded and all followers have seen it, or their time is up."""
    signal.pthread_sigmask(
        signal.SIG_SETMASK, ()
    )  # the relay blocks signals because it waits for them
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    lower_priority()
    work: FollowersJob = name_json.decode_json(os.fsencode(sys.argv[1]), FollowersJob)
    console = TextConsole(None, sys.stderr, quiet=True)  # noqa: TID251 - for its printer
    try:
        run_job(work, console)
    except UserError as wrong:
        console.show_note(make_visible(wrong.message), wrong.hint)
    finally:
        console.close()
    return 0


def run_job(
    job: FollowersJob, console: TextConsole, patience_seconds: float = PATIENCE_SECONDS
) -> None:
    """Do the job, with the lines of a run on `console`. Raises UserError."""
    console.show_note(f"{job.recording}: recorded from a stdio agent", loud=False)
    if not _wait_until_recorded(job, to_end=False):
        console.show_note(
            "nothing was recorded, so no follower ran", "finish with: a2a-inspect recover"
        )
        return
    followers = Followers(run_followers(job.followers, console), console)
    followers.start(job.recording, job.session)
    whole = _wait_until_recorded(job, to_end=True)
    followers.wait(lambda: not whole, patience_seconds)
    followers.stop_now()


def _wait_until_recorded(job: FollowersJob, *, to_end: bool) -> bool:
    """Wait until the session is in the recording, or is complete there (`to_end`). Return False if
    no recorder runs."""
    while True:
        goes_on = file_layout.is_in_use(
            Path(job.journal)
        )  # first, so that a session finished in between is seen
        ended = _is_session_ended(job)
        if ended or (ended is not None and not to_end):
            return True
        if not goes_on:
            return False
        time.sleep(_POLL_SECONDS)


def _is_session_ended(job: FollowersJob) -> bool | None:
    """Return whether the session is recorded to its end, or None if it is not in the recording."""
    try:
        with Recording(job.recording) as recording:
            return next(
                (
                    bool(row.how)
                    for row in recording.read_sessions()
                    if row.facts.uuid == job.session
                ),
                None,
            )
    except RecordingError:
        return None


if __name__ == "__main__":
    sys.exit(main())
