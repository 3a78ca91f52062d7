"""`--otlp`: the settings of the export from its options, and the line that summarizes it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec

from a2a_proxy.cli.console import Console
from a2a_proxy.cli.followed_run import FollowedSession
from a2a_proxy.cli.span_options import span_option_words
from a2a_proxy.present import text
from a2a_proxy.protocol.text import make_visible, shell_line

if TYPE_CHECKING:
    from a2a_proxy.follower.supervisor import FollowerSupervisor, HookReport, NoticeCallback
    from a2a_proxy.telemetry.settings import OtlpSettings
    from a2a_proxy.telemetry.span_options import SpanOptions


def otlp_settings(
    endpoint: str, protocol: str, shape: SpanOptions, *, frames: bool
) -> OtlpSettings:
    """Return the settings of these options. Sends nothing.

    Raises:
        UserError: the endpoint is invalid, or a required package is not installed.
    """
    from a2a_proxy.telemetry.sdk import check_installed
    from a2a_proxy.telemetry.settings import OtlpSettings
    from a2a_proxy.telemetry.target import otlp_target

    where = otlp_target(endpoint, protocol, os.environ)
    check_installed()
    metrics, logs = (
        os.environ.get(f"OTEL_{each}_EXPORTER") != "none" for each in ("METRICS", "LOGS")
    )
    return OtlpSettings(where, shape, frames, metrics, logs)


class OtlpRunFollower(msgspec.Struct, frozen=True):
    """The export of a run, as a `RunFollower`."""

    settings: OtlpSettings

    def make_supervisor(
        self, session: FollowedSession, notify: NoticeCallback
    ) -> FollowerSupervisor:
        """Return the supervisor of the export process (`RunFollower.make_supervisor`)."""
        from a2a_proxy.telemetry.supervisor import OtlpSupervisor

        return OtlpSupervisor(self.settings, session.recording, notify, session.uuid)

    def show_summary(self, session: FollowedSession, report: HookReport, console: Console) -> None:
        """Show the summary of the export (`RunFollower.show_summary`)."""
        message, hint, loud = summarize_export(
            self.settings, report, session.recording, session.uuid
        )
        console.show_note(message, hint, loud=loud)


def summarize_export(
    settings: OtlpSettings, report: HookReport, recording: str, session: str
) -> tuple[str, str, bool]:
    """Return a summary line of the export, a hint, and whether it is a warning."""
    left = _count_unsent_calls(recording, session) - report.calls - report.errors
    parts = [
        f"{text.format_count(report.calls, 'call')} sent to {make_visible(settings.target.shown)}"
    ]
    if report.errors:
        parts.append(f"{report.errors:,} given up")
    if left > 0:
        parts.append(f"{left:,} not sent")
    again = ["a2a-inspect", "export", "otlp", recording]
    endpoint = settings.target.endpoint
    if endpoint:
        typed = "URL" if "@" in endpoint else endpoint  # it may contain a password
        again += ["--endpoint", typed, "--protocol", settings.target.protocol]
    again += span_option_words(settings.shape)
    if left > 0 and not report.errors:
        again.append("--unsent")
    wrong = bool(report.errors) or left > 0
    return (
        f"OTLP: {', '.join(parts)}",
        f"send them with: {shell_line(*again)}" if wrong else "",
        wrong,
    )


def _count_unsent_calls(recording: str, session: str) -> int:
    """Return the number of finished calls in the session of this uuid."""
    from a2a_proxy.recording.errors import RecordingError
    from a2a_proxy.recording.read.reader import Recording
    from a2a_proxy.recording.read.rows import key_bounds

    query = "SELECT count(*) FROM exchange WHERE id >= ? AND id < ? AND closed IS NOT NULL"
    try:
        with Recording(recording) as opened:
            for row in opened.read_sessions():
                if row.facts.uuid == session:
                    found = opened.db.execute(query, key_bounds(row.id)).fetchone()
                    return int(found[0])
    except RecordingError:
        return 0
    return 0
