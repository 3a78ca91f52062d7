"""Entry point: `python -m a2a_proxy.follower.metrics RECORDING --session UUID --journal DIR --life
FD FD...`.

Called only by the supervisor. The process ends when the other end of the pipe `life` is closed.
"""

import argparse
import signal
import socket
import sys
import time
from pathlib import Path

from prometheus_client import disable_created_metrics

from a2a_proxy.follower.entry import die_with_pipe
from a2a_proxy.follower.metrics.numbers import CONTENT_TYPE
from a2a_proxy.follower.metrics.server import MetricsPages, serve_pages
from a2a_proxy.follower.metrics.session_reader import MetricsSession, RecorderLag
from a2a_proxy.recorder.priority import lower_priority
from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.store.file_header import file_identity

_POLL_SECONDS = 0.25
"""Seconds between two reads of the recording."""


def main() -> int:
    """Count and serve until the proxy has exited."""
    parser = argparse.ArgumentParser(prog="a2a_proxy.follower.metrics")
    parser.add_argument("recording")
    parser.add_argument("--session", required=True)
    parser.add_argument("--journal", type=Path, required=True)
    parser.add_argument("--life", type=int, required=True)
    parser.add_argument("sockets", type=int, nargs="+")
    typed = parser.parse_args()
    die_with_pipe(typed.life)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the proxy
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    lower_priority()
    disable_created_metrics()  # type: ignore[no-untyped-call]  # a third of the page, useless in this format
    pages = MetricsPages()
    serve_pages([socket.socket(fileno=number) for number in typed.sockets], pages)
    while True:  # the recording may be deleted and created again
        try:
            _count_session(typed.recording, typed.session, typed.journal, pages)
        except RecordingError as wrong:
            pages.lacking = f"the recording cannot be read: {wrong.message}"
        except OSError as wrong:
            pages.lacking = (
                f"the recording cannot be read: {(wrong.strerror or str(wrong)).lower()}"
            )
        time.sleep(_POLL_SECONDS)


def _count_session(path: str, uuid: str, journal: Path, pages: MetricsPages) -> None:
    """Count until the path leads to another file. Raises RecordingError, OSError."""
    file = file_identity(path)
    with Recording(path) as recording:
        row = next((row for row in recording.read_sessions() if row.facts.uuid == uuid), None)
        if row is None:
            return
        session = MetricsSession(recording, row, journal)
        progress = RecorderLag(time.monotonic())
        while file_identity(path) == file:
            if session.read_new_rows():
                continue
            late = progress.describe_lag(
                session.measure_lag(), session.read_position(), time.monotonic()
            )
            pages.metrics, pages.kind = session.numbers.format_exposition(), CONTENT_TYPE
            pages.lacking = (
                session.capture_gaps() or late
            )  # last, so that a client that sees `ready` finds the numbers
            time.sleep(_POLL_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
