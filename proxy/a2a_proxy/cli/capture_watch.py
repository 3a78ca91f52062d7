"""Looks after the capture while the proxy runs and tells the user what is wrong with it.

Octets that are lost, a recorder that falls behind, a journal that was deleted. Runs on the event loop, a look a second.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import msgspec

from a2a_proxy.capture.journal import JournalStats
from a2a_proxy.cli.console import Console
from a2a_proxy.present import text

_SLOW = "the disk is too slow"
_EVERY = 1.0
"""Seconds between two looks."""
_BEHIND = 64 * 1024 * 1024
"""Octets of journal that the recorder may be behind without being talked about: one segment."""


class CaptureState(msgspec.Struct, frozen=True):
    """What is looked at."""

    folder: Path
    """Of the journal."""
    journal: Callable[[], JournalStats]
    behind: Callable[[], int]
    """Octets that wait for the recorder."""
    mend: Callable[[], bool]
    """Makes again what was deleted of the journal's folder; True where it had to. Raises OSError."""


class CaptureWatch:
    """Says each trouble once, and that it is over."""

    def __init__(self, watched: CaptureState, console: Console) -> None:
        self._watched = watched
        self._console = console
        self._lost = 0
        """What the user knows to be lost, octets."""
        self._losing = False
        self._told_behind = _BEHIND
        self._broken = ""

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await asyncio.sleep(_EVERY)
            self.look()

    def look(self) -> None:
        """Look once."""
        self._look_at_folder()
        self._look_at_losses()
        self._look_at_lag()

    def _look_at_folder(self) -> None:
        try:
            mended, broken = self._watched.mend(), ""
        except OSError as wrong:
            mended, broken = False, f"{wrong.filename}: {(wrong.strerror or str(wrong)).lower()}"
        if broken and broken != self._broken:
            self._console.note(
                f"the journal's folder is gone and cannot be made again: {broken}", "restart the proxy to record again"
            )
        elif mended:
            self._console.note(
                "the journal's folder was deleted and is made again; what was not recorded yet may be missing",
                "leave the state directory alone while a proxy runs",
            )
        self._broken = broken

    def _look_at_losses(self) -> None:
        stats = self._watched.journal()
        news, self._lost = stats.lost > self._lost, stats.lost
        if news and not self._losing:
            self._losing = True
            why = stats.lost_reason or stats.reason or _SLOW
            missing = f"{text.size(stats.lost)} are missing so far from {self._watched.folder}"
            self._console.note(
                f"the capture is incomplete, traffic goes on: the journal takes nothing: {why}; {missing}", _hint(why)
            )
        elif self._losing and not news and not stats.reason and not stats.queued:
            self._losing = False
            self._console.note(
                f"new connections are captured again; {text.size(stats.lost)} are missing so far", loud=False
            )

    def _look_at_lag(self) -> None:
        behind = self._watched.behind()
        if behind >= self._told_behind:
            self._told_behind = behind * 2
            self._console.note(
                f"the recorder is {text.size(behind)} behind; the journal on disk keeps everything meanwhile",
                loud=False,
            )
        elif behind < _BEHIND // 2:
            self._told_behind = _BEHIND


def _hint(why: str) -> str:
    if "limit" in why:
        return "allow more: --journal-max SIZE"
    if why == _SLOW:
        return "keep the state on a faster disk: export A2A_PROXY_STATE=DIR"
    return "free some space there, or keep the state elsewhere: export A2A_PROXY_STATE=DIR"
