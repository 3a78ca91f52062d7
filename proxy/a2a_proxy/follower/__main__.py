"""Entry of the process that calls a hook: `python -m a2a_proxy.follower RECORDING --hook NAME --ledger FD ...`.

Only the keeper calls it.
"""

from __future__ import annotations

import functools
import signal
import sys

from a2a_proxy.follower.entry import Job, run
from a2a_proxy.follower.hook_consumer import CallTally, Faults, HookConsumer, describe
from a2a_proxy.follower.process import Follower
from a2a_proxy.follower.status import FollowerFailed
from a2a_proxy.hooks.find import HookError, load_hook
from a2a_proxy.recorder.priority import restore_priority
from a2a_proxy.recording.errors import RecordingError


def main() -> int:
    """Follow the recording until there is nothing more."""
    return run("a2a_proxy.follower", "--hook", follow)


def follow(job: Job) -> FollowerFailed | None:
    """Load the hook and call it to the end; what keeps it from that."""
    name = job.given
    tally = CallTally()
    faults = Faults(name, job.log, job.tell)
    try:
        make = load_hook(name)
    except HookError as wrong:
        return FollowerFailed(wrong.message, wrong.hint)
    except BaseException as wrong:
        faults.log(wrong)
        return FollowerFailed(f"hook {name} cannot be loaded: {describe(wrong)}")
    try:
        hurry = functools.cache(restore_priority)
        follower = Follower(
            job.aim, lambda: HookConsumer(name, make, tally, faults), job.ledger, tally, job.tell, hurry
        )
        signal.signal(signal.SIGTERM, lambda *_: setattr(follower, "stopping", True))
        follower.run()
    except HookError as wrong:
        return FollowerFailed(wrong.message, wrong.hint)
    except RecordingError as wrong:
        return FollowerFailed(wrong.message, wrong.hint)
    return None


if __name__ == "__main__":
    sys.exit(main())
