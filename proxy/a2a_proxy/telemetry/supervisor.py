"""Starts the process of a live export and keeps its checkpoint file.

The file outlives the process, and the proxy if not everything was sent, so the rest can be sent
later.
"""

import fcntl
import os
from pathlib import Path

from a2a_proxy.capture import file_layout
from a2a_proxy.follower.supervisor import (
    FollowerProgram,
    FollowerSupervisor,
    HookReport,
    NoticeCallback,
    SupervisorTiming,
)
from a2a_proxy.telemetry.settings import OtlpSettings, encode

_STUCK_SECONDS = 60.0
"""Seconds that a request may take: longer than any usual timeout."""


class OtlpSupervisor(FollowerSupervisor):
    """Keeps the process of one export alive."""

    def __init__(
        self, settings: OtlpSettings, recording: str, notify: NoticeCallback, session: str
    ) -> None:
        """Raises OSError if the state directory cannot be used."""
        self._path = checkpoint_path(session)
        file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(file, fcntl.LOCK_SH)
        program = FollowerProgram(
            module="a2a_proxy.telemetry",
            arguments=("--otlp", encode(settings).decode()),
            label="OTLP export",
            checkpoint=file,
        )
        timing = SupervisorTiming(stuck_seconds=_STUCK_SECONDS)
        super().__init__(
            "otlp", recording, notify, session=session, follow=True, timing=timing, program=program
        )

    def finish(self) -> HookReport:
        """Finish, and delete the checkpoint if everything has been sent."""
        report = super().finish()
        if report.outcome == "done":
            self._path.unlink(missing_ok=True)
        return report


def checkpoint_path(session: str) -> Path:
    """Return the path of the checkpoint of the session with this uuid. Raises OSError."""
    return file_layout.otlp_dir() / f"{session}.ledger"
