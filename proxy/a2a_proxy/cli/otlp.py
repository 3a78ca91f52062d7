"""`--otlp`: what was typed as settings of the export, and how it did in a line."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec

from a2a_proxy.cli.console import Console
from a2a_proxy.cli.errors import UserError
from a2a_proxy.cli.followed_run import FollowedSession
from a2a_proxy.cli.span_options import shape_words
from a2a_proxy.present import text
from a2a_proxy.protocol.text import shell_line, make_visible

if TYPE_CHECKING:
    from a2a_proxy.follower.keeper import HookKeeper, HookReport, Tell
    from a2a_proxy.telemetry.settings import OtlpSettings
    from a2a_proxy.telemetry.span_options import SpanOptions


def otlp_settings(endpoint: str, protocol: str, shape: SpanOptions, *, frames: bool) -> OtlpSettings:
    """The settings of these words. Nothing is sent yet.

    Raises:
        UserError: it is no endpoint, or the packages are not installed.
    """
    from a2a_proxy.telemetry.errors import TelemetryError
    from a2a_proxy.telemetry.sdk import check_installed
    from a2a_proxy.telemetry.settings import OtlpSettings
    from a2a_proxy.telemetry.target import target

    try:
        where = target(endpoint, protocol, os.environ)
        check_installed()
    except TelemetryError as wrong:
        raise UserError(make_visible(wrong.message), wrong.hint) from wrong
    metrics, logs = (os.environ.get(f"OTEL_{each}_EXPORTER") != "none" for each in ("METRICS", "LOGS"))
    return OtlpSettings(where, shape, frames, metrics, logs)


class OtlpFollowed(msgspec.Struct, frozen=True):
    """The export of a run: `Followed`."""

    settings: OtlpSettings

    def keeper(self, session: FollowedSession, tell: Tell) -> HookKeeper:
        """`Followed.keeper`."""
        from a2a_proxy.telemetry.keeper import OtlpKeeper

        return OtlpKeeper(self.settings, session.recording, tell, session.uuid)

    def sum_up(self, session: FollowedSession, report: HookReport, console: Console) -> None:
        """`Followed.sum_up`."""
        told, hint, loud = summed_up(self.settings, report, session.recording, session.uuid)
        console.note(told, hint, loud=loud)


def summed_up(settings: OtlpSettings, report: HookReport, recording: str, session: str) -> tuple[str, str, bool]:
    """How the export did: a line, a hint, and whether it is a warning."""
    left = _left(recording, session) - report.calls - report.errors
    parts = [f"{text.plural(report.calls, 'call')} sent to {make_visible(settings.target.shown)}"]
    if report.errors:
        parts.append(f"{report.errors:,} given up")
    if left > 0:
        parts.append(f"{left:,} not sent")
    again = ["a2a-inspect", "export", "otlp", recording]
    endpoint = settings.target.endpoint
    if endpoint:
        typed = "URL" if "@" in endpoint else endpoint  # there may be a password in it
        again += ["--endpoint", typed, "--protocol", settings.target.protocol]
    again += shape_words(settings.shape)
    if left > 0 and not report.errors:
        again.append("--unsent")
    wrong = bool(report.errors) or left > 0
    return f"OTLP: {', '.join(parts)}", f"send them with: {shell_line(*again)}" if wrong else "", wrong


def _left(recording: str, session: str) -> int:
    """Calls of the session of this uuid that are over."""
    from a2a_proxy.recording.errors import RecordingError
    from a2a_proxy.recording.read.reader import Recording
    from a2a_proxy.recording.read.rows import make_key

    query = "SELECT count(*) FROM exchange WHERE id >= ? AND id < ? AND closed IS NOT NULL"
    try:
        with Recording(recording) as opened:
            for row in opened.sessions():
                if row.facts.uuid == session:
                    found = opened.db.execute(query, (make_key(row.id, 0), make_key(row.id + 1, 0))).fetchone()
                    return int(found[0])
    except RecordingError:
        return 0
    return 0
