"""Entry point of the recorder process: `python -m a2a_proxy.recorder FOLDER --wake FD --say FD --patience SECONDS`.

Called only by the keeper, with `--awaited` if it waits until the recording is open.
"""

from __future__ import annotations

import argparse
import gc
import signal
from pathlib import Path

from a2a_proxy.recorder.priority import lower_priority, restore_priority
from a2a_proxy.recorder.process import record_session
from a2a_proxy.recorder.status_writer import SendStatus, StatusWriter, call_before_ready

_COLLECT_AFTER = 50_000
"""Allocations between two collections. Decoding creates no cycles, so the default of 700 costs 3-6 % of the time."""


def main() -> None:
    """Record until the session ends."""
    parser = argparse.ArgumentParser(prog="a2a_proxy.recorder")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--wake", type=int, required=True)
    parser.add_argument("--say", type=int, required=True)
    parser.add_argument("--patience", type=float, required=True)
    parser.add_argument("--awaited", action="store_true")
    arguments = parser.parse_args()
    signal.pthread_sigmask(signal.SIG_SETMASK, ())  # a stdio relay blocks signals because it waits for them
    # Ctrl-C and a closed terminal are for the relay: it writes END, and the recorder finishes the rest of the journal.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    say: SendStatus = StatusWriter(arguments.say)
    if arguments.awaited:  # there is no traffic yet, and a low-priority process may wait for minutes on a busy machine
        say = call_before_ready(say, lower_priority)
    else:
        lower_priority()
    reduce_collections()
    record_session(arguments.folder, arguments.wake, say, arguments.patience, restore_priority)


def reduce_collections() -> None:
    """Exempt all loaded objects from collection and collect the rest seldom, for the whole process."""
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER, 20, 50)


if __name__ == "__main__":
    main()
