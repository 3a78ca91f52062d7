"""The entry of a follower process, whatever its consumer is. Only the keeper starts one."""

from __future__ import annotations

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
from a2a_proxy.recorder.priority import set_idle_priority


class FollowerJob(msgspec.Struct, frozen=True):
    """What the process is for."""

    program_args: str
    """What its option says: the name of a hook, say."""
    target: FollowTarget
    checkpoint: CheckpointFile
    log: HookLog
    notify: Callable[[Status], None]


def run_follower(program: str, option: str, follow: Callable[[FollowerJob], FollowerFailed | None]) -> int:
    """Do the work until there is nothing more; the exit code. `option`: that which says what the work is."""
    parser = argparse.ArgumentParser(prog=program)
    parser.add_argument("recording")
    parser.add_argument(option, dest="given", required=True)
    parser.add_argument("--session", default="")
    parser.add_argument("--follow", action="store_true")
    parser.add_argument("--prints", action="store_true", help="what the hook prints goes to stdout, not to the log")
    parser.add_argument("--ledger", type=int, required=True)
    parser.add_argument("--say", type=int, required=True)
    parser.add_argument("--life", type=int, required=True)
    typed = parser.parse_args()
    die_with_pipe(typed.life)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever started this
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    if typed.follow:
        set_idle_priority()
    log = HookLog(2)
    sys.stderr = log
    if not typed.prints:
        sys.stdout = log
    elif isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)  # whoever reads it may wait for each line

    def tell(said: Status) -> None:
        os.write(typed.say, encode(said) + b"\n")

    aim = FollowTarget(typed.recording, typed.session, typed.follow)
    failed = follow(FollowerJob(typed.given, aim, CheckpointFile(typed.ledger), log, tell))
    sys.stdout.flush()
    tell(failed or FollowerDone())
    return int(failed is not None)


def die_with_pipe(life_pipe: int) -> None:
    """Have the kernel end this process when the other end of the pipe `life` is closed, also in mid-computation, and on
    Linux where it is stopped (`Brake`)."""
    signal.signal(signal.SIGIO, signal.SIG_DFL)
    fcntl.fcntl(life_pipe, fcntl.F_SETOWN, os.getpid())
    if sys.platform == "linux":
        fcntl.fcntl(life_pipe, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(life_pipe, fcntl.F_SETFL, fcntl.fcntl(life_pipe, fcntl.F_GETFL) | os.O_ASYNC)
    if select.select([life_pipe], [], [], 0)[0]:
        sys.exit(1)  # it was closed before
