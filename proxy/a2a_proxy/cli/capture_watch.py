"""Watches the capture while the proxy runs and warns the user of problems.

Checks once a second, on the event loop, for lost bytes, a recorder that lags and a deleted journal.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

import msgspec

from a2a_proxy.capture.journal import JournalStats
from a2a_proxy.capture.record_format import SEGMENT_HEADER, Position
from a2a_proxy.cli.console import Console
from a2a_proxy.present import text
from a2a_proxy.system_errors import hint_for_reason

_SLOW = "the disk is too slow"
_CHECK_INTERVAL_SECONDS = 1.0
"""Seconds between two checks."""
_MIN_REPORTED_LAG = 5.0
"""Seconds that the recording may be behind without a message."""
_MAX_SAMPLES = 10_000


class CaptureState(msgspec.Struct, frozen=True):
    """The checked parts of a capture."""

    folder: Path
    """Folder of the journal."""
    journal: Callable[[], JournalStats]
    recorded: Callable[[], Position]
    """Returns the position up to which the journal is recorded."""
    repair_folder: Callable[[], bool]
    """Recreates deleted files of the journal's folder. Returns True if it had to. Raises OSError if
    it cannot."""


class CaptureWatch:
    """Reports each problem once, and its end."""

    def __init__(
        self, state: CaptureState, console: Console, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._state = state
        self._console = console
        self._clock = clock
        self._written: deque[tuple[float, Position]] = deque(maxlen=_MAX_SAMPLES)
        """Times and ends of the journal that are not recorded yet; times in seconds."""
        self._checked_at = clock()
        """Time of the last check."""
        self._reported_loss = 0
        """Lost bytes that were reported to the user."""
        self._is_losing = False
        self._reported_lag = _MIN_REPORTED_LAG
        self._folder_error = ""

    async def run(self) -> None:
        """Check until cancelled."""
        while True:
            await asyncio.sleep(_CHECK_INTERVAL_SECONDS)
            self.check_capture()

    def check_capture(self) -> None:
        """Check once."""
        self._check_folder()
        self._check_losses()
        self._check_lag()

    def _check_folder(self) -> None:
        try:
            mended, broken = self._state.repair_folder(), ""
        except OSError as wrong:
            mended, broken = False, f"{wrong.filename}: {(wrong.strerror or str(wrong)).lower()}"
        if broken and broken != self._folder_error:
            self._console.show_note(
                f"the journal's folder is gone and cannot be created again: {broken}",
                "restart the proxy to record again",
            )
        elif mended:
            self._console.show_note(
                "the journal's folder was deleted and has been created again; traffic not yet "
                "recorded may be missing",
                "do not change the state directory while a proxy runs",
            )
        self._folder_error = broken

    def _check_losses(self) -> None:
        stats = self._state.journal()
        news, self._reported_loss = stats.lost > self._reported_loss, stats.lost
        if news and not self._is_losing:
            self._is_losing = True
            why = stats.lost_reason or stats.reason or _SLOW
            missing = f"{text.format_size(stats.lost)} are missing so far from {self._state.folder}"
            self._console.show_note(
                f"the capture is incomplete, traffic is still relayed: the journal cannot be "
                f"written: {why}; {missing}",
                _loss_hint(why),
            )
        elif self._is_losing and not news and not stats.reason and not stats.queued:
            self._is_losing = False
            self._console.show_note(
                f"new connections are captured again; {text.format_size(stats.lost)} are missing "
                f"so far",
                loud=False,
            )

    def _check_lag(self) -> None:
        now, recorded, written = (
            self._clock(),
            self._state.recorded(),
            self._state.journal().position,
        )
        if (
            written[1] > SEGMENT_HEADER.size
        ):  # a segment without records, at the start or after a pause, holds no news
            self._written.append(((self._checked_at + now) / 2, written))  # written in between
        self._checked_at = now
        while self._written and self._written[0][1] <= recorded:
            self._written.popleft()
        lag = now - self._written[0][0] if self._written else 0.0
        if lag >= self._reported_lag:
            self._reported_lag = lag * 2
            words = text.format_lag(int(lag * 1e9))
            self._console.show_note(
                f"the recording is {words} behind; the journal on disk keeps everything meanwhile",
                loud=False,
            )
        elif not self._written and self._reported_lag > _MIN_REPORTED_LAG:
            self._reported_lag = _MIN_REPORTED_LAG
            self._console.show_note("the recording has caught up", loud=False)


def _loss_hint(why: str) -> str:
    if "limit" in why:
        return "allow more: --journal-max SIZE"
    if why == _SLOW:
        return "keep the state on a faster disk: export A2A_PROXY_STATE=DIR"
    hint = "free some space there, or keep the state elsewhere: export A2A_PROXY_STATE=DIR"
    return hint if "space" in why else hint_for_reason(why, hint)
