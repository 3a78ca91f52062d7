"""Process that archives a live session: `python -m a2a_proxy.archive RECORDING --archive WHERE
--session UUID ...`.

Only the proxy starts it, through its supervisor of followers.
"""

import sys

from a2a_proxy.archive.destination import decode_job
from a2a_proxy.archive.upload import LiveUpload
from a2a_proxy.follower.entry import FollowerJob, run_follower


def main() -> int:
    """Archive one session until it has ended."""
    return run_follower("a2a_proxy.archive", "--archive", archive_session)


def archive_session(job: FollowerJob) -> None:
    """Archive the session of `job`. Raises RecordingError."""
    LiveUpload(
        decode_job(job.target.path, job.target.session, job.program_args),
        job.checkpoint,
        job.notify,
    ).run()


if __name__ == "__main__":
    sys.exit(main())
