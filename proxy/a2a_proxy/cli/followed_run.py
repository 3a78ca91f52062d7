"""The interface common to everything that follows the recording of a run: hooks, the export and the
archive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

from a2a_proxy.cli.console import Console

if TYPE_CHECKING:
    from a2a_proxy.follower.supervisor import FollowerSupervisor, HookReport, NoticeCallback


class FollowedSession(msgspec.Struct, frozen=True):
    """The session that is followed."""

    recording: str
    uuid: str

    def frames_after(self, frame: int) -> int:
        """Return the number of frames stored after this one, or 0 if it cannot be determined."""
        from a2a_proxy.follower.lag import (
            count_frames_after,
        )  # imports SQLite: the relay starts without it
        from a2a_proxy.recording.errors import RecordingError

        try:
            return count_frames_after(self.recording, self.uuid, frame)
        except RecordingError:
            return 0


class RunFollower(Protocol):
    """A hook, the export or the archive, as configured by the user."""

    def make_supervisor(
        self, session: FollowedSession, notify: NoticeCallback
    ) -> FollowerSupervisor:
        """Return the supervisor of its process. Raises UserError, or OSError if the state directory
        cannot be used."""

    def show_summary(self, session: FollowedSession, report: HookReport, console: Console) -> None:
        """Show its result on the console."""
