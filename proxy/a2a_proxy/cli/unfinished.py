"""Readers of a recording wait for the recorder of a proxy that has ended: `a2a-proxy stdio` ends
before its recorder.
"""

import time
from collections.abc import Callable
from pathlib import Path

from a2a_proxy.capture import file_layout
from a2a_proxy.capture.file_layout import Unfinished
from a2a_proxy.capture.record_format import bytes_after
from a2a_proxy.model.errors import UserError
from a2a_proxy.present import text
from a2a_proxy.present.output import print_note

_LOOK_EVERY = 0.05
_UNNOTICED = 0.3
"""Seconds of waiting without a message."""
_SAY_EVERY = 5.0
_STILL = 60.0
"""Seconds without progress after which the recording is read incomplete."""
_RECOVER = "finish with: a2a-inspect recover"


def await_recorders(
    path: Path,
    sleep: Callable[[float], None] = time.sleep,
    now: Callable[[], float] = time.monotonic,
    program: str = "a2a-inspect",
) -> None:
    """Wait until every session of this recording whose proxy has ended is recorded, with progress
    on stderr.

    A running session is waited for only until its recording exists. The wait ends if a recorder has
    ended, which is reported with a hint, or makes no progress.

    Raises:
        UserError: the recorder has ended, and there is no recording.
    """
    began = moved = now()
    reported, before = began + _UNNOTICED - _SAY_EVERY, -1
    while waiting := [
        each
        for each in file_layout.find_unfinished(path)
        if not (each.proxy_lives and path.exists())
    ]:
        if not all(each.is_at_work for each in waiting):
            message = f"not all of {path} is recorded: its proxy and its recorder have ended"
            if not path.exists():
                raise UserError(message, _RECOVER)
            _print_line(program, message)
            _print_line(program, f"hint: {_RECOVER}")
            return
        left, at = sum(map(_count_missing_bytes, waiting)), now()
        if left != before:
            moved, before = at, left
        elif at - moved >= _STILL:
            _print_line(
                program,
                f"the recorder of {path} makes no progress: reading an incomplete recording "
                f"(--no-wait does not wait)",
            )
            return
        if at - reported >= _SAY_EVERY:
            _print_line(
                program,
                f"waiting for the recorder of {path}: {text.format_size(left)} left to record "
                f"(--no-wait skips this)",
            )
            reported = at
        sleep(_LOOK_EVERY)


def _count_missing_bytes(session: Unfinished) -> int:
    """Return the bytes of its journal that are not in the recording."""
    from a2a_proxy.recording.errors import RecordingError
    from a2a_proxy.recording.read.reader import Recording

    position = None
    try:
        with Recording(session.session.recording) as recording:
            uuids = {row.facts.uuid: row.position for row in recording.read_sessions()}
            position = uuids.get(session.session.uuid)
    except RecordingError:  # it is being created
        position = None
    return bytes_after(session.path, position or (0, 0))


def _print_line(program: str, line: str) -> None:
    print_note(f"{program}: {line}")
