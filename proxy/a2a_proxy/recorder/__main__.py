"""Entry of the recorder process: `python -m a2a_proxy.recorder FOLDER --wake FD --say FD --patience SECONDS`.

Only the keeper calls it.
"""

from __future__ import annotations

import argparse
import gc
import os
import signal
from pathlib import Path

from a2a_proxy.recorder.process import record_session
from a2a_proxy.recorder.say import Speaker

_NICE = 15
"""The relay comes first: with the recorder at equal priority HTTP/1.1 throughput fell by a third."""

_COLLECT_AFTER = 50_000
"""Allocations between two looks for cycles. Decoding makes none, so the default of 700 costs 3-6 % of the time."""


def main() -> None:
    """Record until the session ends."""
    parser = argparse.ArgumentParser(prog="a2a_proxy.recorder")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--wake", type=int, required=True)
    parser.add_argument("--say", type=int, required=True)
    parser.add_argument("--patience", type=float, required=True)
    arguments = parser.parse_args()
    # Ctrl-C is for the relay: it says END, and the recorder finishes what is in the journal.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.nice(_NICE)
    gc.freeze()
    gc.set_threshold(_COLLECT_AFTER, 20, 50)
    record_session(arguments.folder, arguments.wake, Speaker(arguments.say), arguments.patience)


if __name__ == "__main__":
    main()
