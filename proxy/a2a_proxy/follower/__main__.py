"""Entry of a follower process: `python -m a2a_proxy.follower RECORDING --hook NAME --ledger FD --say FD --life FD ...`.

Only the keeper calls it.
"""

from __future__ import annotations

import argparse
import fcntl
import functools
import io
import os
import select
import signal
import sys
from collections.abc import Callable

from a2a_proxy.follower.hook import Faults, HookConsumer, Tally, describe
from a2a_proxy.follower.ledger import Ledger
from a2a_proxy.follower.log import Log
from a2a_proxy.follower.process import Aim, Follower
from a2a_proxy.follower.status import Done, Failed, Status, encode
from a2a_proxy.hooks.find import HookError, load
from a2a_proxy.recorder.priority import give_way_no_more, give_way_to_all
from a2a_proxy.recording.errors import RecordingError


def main() -> int:
    """Follow the recording until there is nothing more."""
    parser = argparse.ArgumentParser(prog="a2a_proxy.follower")
    parser.add_argument("recording")
    parser.add_argument("--hook", required=True)
    parser.add_argument("--session", default="")
    parser.add_argument("--follow", action="store_true")
    parser.add_argument("--prints", action="store_true", help="what the hook prints goes to stdout, not to the log")
    parser.add_argument("--ledger", type=int, required=True)
    parser.add_argument("--say", type=int, required=True)
    parser.add_argument("--life", type=int, required=True)
    typed = parser.parse_args()
    end_with(typed.life)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever started this
    if typed.follow:
        give_way_to_all()
    log = Log(2)
    sys.stderr = log
    if not typed.prints:
        sys.stdout = log
    elif isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)  # whoever reads it may wait for each line

    def tell(said: Status) -> None:
        os.write(typed.say, encode(said) + b"\n")

    aim = Aim(typed.recording, typed.session, typed.follow)
    failed = follow(typed.hook, aim, Ledger(typed.ledger), log, tell)
    sys.stdout.flush()
    tell(failed or Done())
    return int(failed is not None)


def follow(name: str, aim: Aim, ledger: Ledger, log: Log, tell: Callable[[Status], None]) -> Failed | None:
    """Load the hook and call it to the end; what keeps it from that."""
    tally = Tally()
    faults = Faults(name, log, tell)
    try:
        make = load(name)
    except HookError as wrong:
        return Failed(wrong.message, wrong.hint)
    except BaseException as wrong:
        faults.log(wrong)
        return Failed(f"hook {name} cannot be loaded: {describe(wrong)}")
    try:
        hurry = functools.cache(give_way_no_more)
        follower = Follower(aim, lambda: HookConsumer(name, make, tally, faults), ledger, tally, tell, hurry)
        signal.signal(signal.SIGTERM, lambda *_: setattr(follower, "stopping", True))
        follower.run()
    except HookError as wrong:
        return Failed(wrong.message, wrong.hint)
    except RecordingError as wrong:
        return Failed(wrong.message, wrong.hint)
    return None


def end_with(life: int) -> None:
    """Have the kernel end this process when the other end of the pipe `life` is closed, also in mid-computation, and on
    Linux where it is stopped (`Brake`)."""
    signal.signal(signal.SIGIO, signal.SIG_DFL)
    fcntl.fcntl(life, fcntl.F_SETOWN, os.getpid())
    if sys.platform == "linux":
        fcntl.fcntl(life, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(life, fcntl.F_SETFL, fcntl.fcntl(life, fcntl.F_GETFL) | os.O_ASYNC)
    if select.select([life], [], [], 0)[0]:
        sys.exit(1)  # it was closed before


if __name__ == "__main__":
    sys.exit(main())
