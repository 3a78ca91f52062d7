"""`--archive`: validated before anything starts, run by the supervisor of followers, and summarized
at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from a2a_proxy.cli.errors import option_errors, state_directory_errors
from a2a_proxy.model.errors import UserError
from a2a_proxy.present import text
from a2a_proxy.protocol.text import make_visible, shell_line

if TYPE_CHECKING:
    from a2a_proxy.cli.console import Console
    from a2a_proxy.cli.followed_run import FollowedSession
    from a2a_proxy.follower.supervisor import FollowerSupervisor, HookReport, NoticeCallback


_STUCK_SECONDS = 3600.0
"""Seconds without progress before the archive process is restarted; it reports the reason of its
waits by itself."""


class ArchiveConfig(msgspec.Struct, frozen=True):
    """Settings of the archive of a run."""

    url: str
    every: float
    """Seconds after which unarchived traffic is uploaded, whatever its size."""
    name: str = ""
    """Id of the proxy in the archive; empty for the id of the state directory."""


def archive_config(url: str, every: float, name: str) -> ArchiveConfig | None:
    """Return the settings of these options, or None without a URL. Raises UserError if they cannot
    be used."""
    if not url:
        if name:
            raise UserError(
                "--archive-id has no effect without --archive",
                "for example: --archive s3://bucket/prefix",
            )
        return None
    from a2a_proxy.archive.destination import check_archive_url, check_id

    with option_errors("--archive"):
        check_archive_url(url)
        return ArchiveConfig(url, every, check_id(name) if name else "")


def make_archive_supervisor(
    archive: ArchiveConfig, recording: str, session: str, notify: NoticeCallback
) -> FollowerSupervisor:
    """Return the supervisor of the archive process. Raises UserError if it cannot be started."""
    from a2a_proxy.archive.destination import encode_job, proxy_id
    from a2a_proxy.capture import file_layout
    from a2a_proxy.follower.supervisor import (
        FollowerProgram,
        FollowerSupervisor,
        SupervisorTiming,
        open_unnamed_file,
    )

    with state_directory_errors():
        name = archive.name or proxy_id(file_layout.state_dir())
        words = ("--archive", encode_job(archive.url, name, archive.every))
        program = FollowerProgram(
            module="a2a_proxy.archive",
            arguments=words,
            label="the archive",
            checkpoint=open_unnamed_file(),
        )
        timing = SupervisorTiming(stuck_seconds=_STUCK_SECONDS)
        return FollowerSupervisor(
            "archive",
            recording,
            notify,
            session=session,
            follow=True,
            timing=timing,
            program=program,
        )


def summarize_archive(
    archive: ArchiveConfig, recording: str, report: HookReport, lag: int
) -> tuple[str, str]:
    """Return a summary line, and a hint if not everything is archived."""
    message = f"archive {make_visible(archive.url)}: {text.format_count(report.calls, 'segment')}"
    if report.outcome == "done" or not lag:
        return message, ""
    name = ("--archive-id", archive.name) if archive.name else ()
    again = shell_line("a2a-inspect", "archive", "put", recording, archive.url, *name)
    return f"{message}; {lag:,} frames are not archived yet", f"archive them with: {again}"


class ArchiveRunFollower(msgspec.Struct, frozen=True):
    """The archive of a run, as a `RunFollower`."""

    archive: ArchiveConfig

    def make_supervisor(
        self, session: FollowedSession, notify: NoticeCallback
    ) -> FollowerSupervisor:
        """Return the supervisor of the archive process (`RunFollower.make_supervisor`)."""
        return make_archive_supervisor(self.archive, session.recording, session.uuid, notify)

    def show_summary(self, session: FollowedSession, report: HookReport, console: Console) -> None:
        """Show the summary of the archive (`RunFollower.show_summary`)."""
        message, hint = summarize_archive(
            self.archive, session.recording, report, session.frames_after(report.frame)
        )
        console.show_note(message, hint, loud=bool(hint))
