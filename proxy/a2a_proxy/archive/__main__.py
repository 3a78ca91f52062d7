"""Entry of the process that archives live: `python -m a2a_proxy.archive RECORDING --session UUID --url URL ...`.

Only the proxy calls it, by the keeper of followers.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys

from a2a_proxy.archive.live import Aim, Live
from a2a_proxy.follower.entry import end_with
from a2a_proxy.follower.ledger import Ledger
from a2a_proxy.follower.status import Done, Failed, Status, encode
from a2a_proxy.recorder.priority import give_way_to_all
from a2a_proxy.recording.errors import RecordingError


def main() -> int:
    """Archive one session until it has ended."""
    parser = argparse.ArgumentParser(prog="a2a_proxy.archive")
    parser.add_argument("recording")
    for name in ("--session", "--url", "--id"):
        parser.add_argument(name, required=True)
    parser.add_argument("--every", type=float, required=True)
    for name in ("--ledger", "--say", "--life"):
        parser.add_argument(name, type=int, required=True)
    parser.add_argument("--follow", action="store_true")
    typed = parser.parse_args()
    end_with(typed.life)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever started this
    give_way_to_all()

    def tell(said: Status) -> None:
        os.write(typed.say, encode(said) + b"\n")

    try:
        aim = Aim(typed.recording, typed.session, typed.url, typed.id, typed.every)
        Live(aim, Ledger(typed.ledger), tell).run()
    except RecordingError as wrong:
        tell(Failed(wrong.message, wrong.hint))
        return 1
    tell(Done())
    return 0


if __name__ == "__main__":
    sys.exit(main())
