"""Entry point of the recorder process: `python -m a2a_proxy.recorder FOLDER --wake FD --status FD
--patience SECONDS`.

Called only by the supervisor, with `--urgent` if the recorder may not yield to the relay while it
starts.
"""

import argparse
import gc
import signal
from pathlib import Path

from a2a_proxy.recorder.priority import NICE, set_session_nice
from a2a_proxy.recorder.process import record_session
from a2a_proxy.recorder.status_writer import StatusWriter

_COLLECT_AFTER = 50_000
"""Allocations between two collections. Decoding creates no cycles, so the default of 700 costs 3-6
% of the time."""


def main() -> None:
    """Record until the session ends."""
    parser = argparse.ArgumentParser(prog="a2a_proxy.recorder")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--wake", type=int, required=True)
    parser.add_argument("--status", type=int, required=True)
    parser.add_argument("--patience", type=float, required=True)
    parser.add_argument("--urgent", action="store_true")
    arguments = parser.parse_args()
    signal.pthread_sigmask(
        signal.SIG_SETMASK, ()
    )  # a stdio relay blocks signals because it waits for them
    # Ctrl-C and a closed terminal are for the relay: it writes END, and the recorder finishes the
    # rest of the journal.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    if not arguments.urgent:
        set_session_nice(NICE)
    reduce_collections()
    record_session(
        arguments.folder, arguments.wake, StatusWriter(arguments.status), arguments.patience
    )


def reduce_collections() -> None:
    """Exempt all loaded objects from collection and collect the rest seldom, for the whole
    process."""
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER, 20, 50)


if __name__ == "__main__":
    main()
