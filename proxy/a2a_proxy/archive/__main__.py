"""Entry of the process that archives live: `python -m a2a_proxy.archive RECORDING --archive WHERE --session UUID ...`.

Only the proxy calls it, by the keeper of followers.
"""

from __future__ import annotations

import sys

from a2a_proxy.archive.aim import aim_of
from a2a_proxy.archive.live import Live
from a2a_proxy.follower.entry import Job, run
from a2a_proxy.follower.status import Failed
from a2a_proxy.recording.errors import RecordingError


def main() -> int:
    """Archive one session until it has ended."""
    return run("a2a_proxy.archive", "--archive", archive)


def archive(job: Job) -> Failed | None:
    """Do so; what keeps it from that."""
    try:
        Live(aim_of(job.aim.path, job.aim.session, job.given), job.ledger, job.tell).run()
    except RecordingError as wrong:
        return Failed(wrong.message, wrong.hint)
    return None


if __name__ == "__main__":
    sys.exit(main())
