"""The side of whoever starts a live export: its process, and the file that says how far it is.

The file outlives the process, and the proxy where not everything went out: what is left can be sent later.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from a2a_proxy.capture import file_layout
from a2a_proxy.follower.keeper import FollowerProgram, HookKeeper, HookReport, NoticeCallback
from a2a_proxy.telemetry.settings import OtlpSettings, encode

_STUCK_SECONDS = 60.0
"""Seconds for which a request may take: longer than any timeout that people set."""


class OtlpKeeper(HookKeeper):
    """Keeps the process of one export alive."""

    def __init__(self, settings: OtlpSettings, recording: str, notify: NoticeCallback, session: str) -> None:
        """Raises OSError: the state directory cannot be used."""
        self._path = checkpoint_path(session)
        file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(file, fcntl.LOCK_SH)
        program = FollowerProgram(
            module="a2a_proxy.telemetry",
            arguments=("--otlp", encode(settings).decode()),
            label="OTLP export",
            checkpoint=file,
            stuck_seconds=_STUCK_SECONDS,
        )
        super().__init__("otlp", recording, notify, session=session, follow=True, program=program)

    def finish(self) -> HookReport:
        """`HookKeeper.finish`; the file goes where all of it has been sent."""
        report = super().finish()
        if report.outcome == "done":
            self._path.unlink(missing_ok=True)
        return report


def checkpoint_path(session: str) -> Path:
    """Where it is kept how far the export of the session of this uuid is. Raises OSError."""
    return file_layout.otlp_dir() / f"{session}.ledger"
