"""What a run can have follow its recording: one interface for hooks, the export and the archive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import msgspec

from a2a_proxy.cli.console import Console

if TYPE_CHECKING:
    from a2a_proxy.follower.keeper import HookKeeper, HookReport, NoticeCallback


class FollowedSession(msgspec.Struct, frozen=True):
    """What is followed."""

    recording: str
    uuid: str

    def frames_after(self, frame: int) -> int:
        """Frames that were stored after this one; 0 where nobody can tell."""
        from a2a_proxy.follower.lag import count_frames_after  # which knows SQLite: the relay starts without it
        from a2a_proxy.recording.errors import RecordingError

        try:
            return count_frames_after(self.recording, self.uuid, frame)
        except RecordingError:
            return 0


class RunFollower(Protocol):
    """A hook, the export, or the archive, as the user asked for it."""

    def make_keeper(self, session: FollowedSession, notify: NoticeCallback) -> HookKeeper:
        """What keeps its process. Raises UserError, OSError: the state directory cannot be used."""

    def show_summary(self, session: FollowedSession, report: HookReport, console: Console) -> None:
        """Say how it did."""
