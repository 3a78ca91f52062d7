"""Entry of the process that archives live: `python -m a2a_proxy.archive RECORDING --archive WHERE --session UUID ...`.

Only the proxy calls it, by the keeper of followers.
"""

from __future__ import annotations

import sys

from a2a_proxy.archive.job import aim_of
from a2a_proxy.archive.live_upload import LiveUpload
from a2a_proxy.follower.entry import Job, run
from a2a_proxy.follower.status import FollowerFailed
from a2a_proxy.recording.errors import RecordingError


def main() -> int:
    """Archive one session until it has ended."""
    return run("a2a_proxy.archive", "--archive", archive)


def archive(job: Job) -> FollowerFailed | None:
    """Do so; what keeps it from that."""
    try:
        LiveUpload(aim_of(job.aim.path, job.aim.session, job.given), job.ledger, job.tell).run()
    except RecordingError as wrong:
        return FollowerFailed(wrong.message, wrong.hint)
    return None


if __name__ == "__main__":
    sys.exit(main())
