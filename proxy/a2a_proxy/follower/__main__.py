"""Entry point of the process that calls a hook: `python -m a2a_proxy.follower RECORDING --hook NAME
--checkpoint FD ...`.

Called only by the supervisor.
"""

import functools
import signal
import sys

from a2a_proxy.follower.entry import FollowerJob, run_follower
from a2a_proxy.follower.hook_consumer import CallTally, HookConsumer, HookErrors, describe_error
from a2a_proxy.follower.process import Follower
from a2a_proxy.hooks.find import HookError, load_hook
from a2a_proxy.recorder.priority import restore_priority


def main() -> int:
    """Follow the recording until there are no more rows."""
    return run_follower("a2a_proxy.follower", "--hook", run_hook)


def run_hook(job: FollowerJob) -> None:
    """Load the hook and call it to the end. Raises HookError, RecordingError."""
    name = job.program_args
    tally = CallTally()
    faults = HookErrors(name, job.log, job.notify)
    try:
        make = load_hook(name)
    except HookError:
        raise
    except BaseException as wrong:
        faults.log_traceback(wrong)
        raise HookError(f"hook {name} cannot be loaded: {describe_error(wrong)}") from wrong
    hurry = functools.cache(restore_priority)
    follower = Follower(
        job.target,
        lambda: HookConsumer(name, make, tally, faults),
        job.checkpoint,
        tally,
        job.notify,
        hurry,
    )
    signal.signal(signal.SIGTERM, lambda *_: setattr(follower, "stopping", True))
    follower.run()


if __name__ == "__main__":
    sys.exit(main())
