"""The entry of a follower process, whatever its consumer. Started only by a supervisor."""

import argparse
import fcntl
import io
import os
import select
import signal
import sys
from collections.abc import Callable

import msgspec

from a2a_proxy.follower.checkpoint import CheckpointFile
from a2a_proxy.follower.hook_log import HookLog
from a2a_proxy.follower.process import FollowTarget
from a2a_proxy.follower.status import FollowerDone, FollowerFailed, Status, encode
from a2a_proxy.model.errors import UserError
from a2a_proxy.recorder.priority import set_idle_priority


class FollowerJob(msgspec.Struct, frozen=True):
    """The work of a follower process."""

    program_args: str
    """Value of the program's own option, such as the name of a hook."""
    target: FollowTarget
    checkpoint: CheckpointFile
    log: HookLog
    notify: Callable[[Status], None]


def run_follower(program: str, option: str, follow: Callable[[FollowerJob], None]) -> int:
    """Do the work until there are no more rows and return the exit code. `option` is the program's
    own option."""
    parser = argparse.ArgumentParser(prog=program)
    parser.add_argument("recording")
    parser.add_argument(option, dest="given", required=True)
    parser.add_argument("--session", default="")
    parser.add_argument("--follow", action="store_true")
    parser.add_argument(
        "--prints", action="store_true", help="the hook's output goes to stdout instead of the log"
    )
    parser.add_argument("--checkpoint", type=int, required=True)
    parser.add_argument("--status", type=int, required=True)
    parser.add_argument("--life", type=int, required=True)
    typed = parser.parse_args()
    signal.pthread_sigmask(
        signal.SIG_SETMASK, ()
    )  # a proxy around a command or an agent blocks signals
    die_with_pipe(typed.life)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the program that started this one
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    if typed.follow:
        set_idle_priority()
    log = HookLog(2)
    sys.stderr = log
    if not typed.prints:
        sys.stdout = log
    elif isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)  # a reader may wait for each line

    def report(status: Status) -> None:
        os.write(typed.status, encode(status) + b"\n")

    aim = FollowTarget(typed.recording, typed.session, typed.follow)
    outcome: Status = FollowerDone()
    try:
        follow(FollowerJob(typed.given, aim, CheckpointFile(typed.checkpoint), log, report))
    except UserError as wrong:
        outcome = FollowerFailed(wrong.message, wrong.hint)
    sys.stdout.flush()
    report(outcome)
    return int(isinstance(outcome, FollowerFailed))


def die_with_pipe(life_pipe: int) -> None:
    """Make the kernel kill this process when the other end of `life_pipe` is closed.

    Works in the middle of a computation, and on Linux even while the process is stopped
    (`Throttle`).
    """
    signal.signal(signal.SIGIO, signal.SIG_DFL)
    fcntl.fcntl(life_pipe, fcntl.F_SETOWN, os.getpid())
    if sys.platform == "linux":
        fcntl.fcntl(life_pipe, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(life_pipe, fcntl.F_SETFL, fcntl.fcntl(life_pipe, fcntl.F_GETFL) | os.O_ASYNC)
    if select.select([life_pipe], [], [], 0)[0]:
        sys.exit(1)  # it was closed before
