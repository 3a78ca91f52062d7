"""`a2a-inspect export otlp`: export the calls of a recording as OpenTelemetry spans."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec

from a2a_inspect.data.recording_choice import STDOUT, open_recording
from a2a_inspect.data.recording_choice import resolve_recording as chosen_path
from a2a_inspect.data.redacted_view import RedactionOptions, open_redacted_view
from a2a_inspect.formats.export import new_file
from a2a_inspect.signals import interrupt_on_signals
from a2a_proxy.cli.errors import state_directory_errors
from a2a_proxy.cli.span_options import parse_span_options
from a2a_proxy.model.errors import UserError
from a2a_proxy.model.option import Compat, SpanKind
from a2a_proxy.present import text
from a2a_proxy.present.output import print_note, raw_output
from a2a_proxy.protocol.text import make_visible, shell_line
from a2a_proxy.recording.query.sql import Rows
from a2a_proxy.recording.read.multi_reader import MultiReader
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.telemetry.errors import TelemetryError
from a2a_proxy.telemetry.offline import (
    BackendSink,
    ExportTotals,
    JsonLinesSink,
    RecordingExport,
    SpanSink,
    open_recording_links,
)
from a2a_proxy.telemetry.sdk import SdkBackend
from a2a_proxy.telemetry.settings import OtlpSettings
from a2a_proxy.telemetry.span_options import SpanOptions
from a2a_proxy.telemetry.span_reader import OtherRecordingLinks
from a2a_proxy.telemetry.target import OtlpTarget, otlp_target, sdk_disabled
from a2a_proxy.telemetry.unsent import send_unsent

_VARIABLES = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


class OtlpExportOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of the command."""

    recording: Path | None
    others: tuple[Path, ...] = ()
    """Recordings of other proxies that recorded the same conversation."""
    where: str = ""
    redact: tuple[str, ...] = ()
    redact_policy: Path | None = None
    endpoint: str = ""
    protocol: str | None = None
    output: Path | None = None
    span_kind: SpanKind = "internal"
    frames: bool = False
    content: bool = False
    compat: tuple[Compat, ...] = ()
    segment: str = ""
    unsent: bool = False

    @property
    def span_options(self) -> SpanOptions:
        """Content options of the spans. Raises UserError."""
        return parse_span_options(
            self.span_kind, content=self.content, compat=self.compat, segment=self.segment
        )


def export_otlp(options: OtlpExportOptions) -> None:
    """Send or write the spans and print a summary on standard error.

    Raises:
        UserError: a recording cannot be read, the spans cannot be written or sent, the filter or a
        policy is not valid,
            or nothing matches the filter.
    """
    if options.unsent:
        _send_unsent(options)
        return
    shape = options.span_options
    totals = ExportTotals()
    with (
        interrupt_on_signals(),
        _open_exports(options) as parts,
        _open_sink(options) as (sink, where),
    ):
        try:
            for part in parts:
                export = RecordingExport(
                    part.recording,
                    sink,
                    shape=shape,
                    frames=options.frames,
                    beyond=part.links_beyond,
                    done=totals,
                )
                export.run(part.keys, part.sessions)
        except TelemetryError as wrong:
            sent_words = (
                f" ({text.format_count(totals.spans, 'span')} sent before)" if totals.spans else ""
            )
            raise UserError(make_visible(wrong.message) + sent_words, wrong.hint) from wrong
    logs = f" and {text.format_count(totals.logs, 'log record')}" if totals.logs else ""
    still = (
        f"; {text.format_count(totals.open, 'call')} still open, left out" if totals.open else ""
    )
    print_note(f"{text.format_count(totals.spans, 'span')}{logs} {where}{still}")


class _RecordingExport(msgspec.Struct, frozen=True):
    """The selected exchanges of one recording."""

    recording: Recording
    keys: set[int] | None = None
    sessions: set[int] | None = None
    links_beyond: Callable[[int], OtherRecordingLinks] | None = None


@contextmanager
def _open_exports(options: OtlpExportOptions) -> Iterator[list[_RecordingExport]]:
    """Open the recordings redacted as the policy demands, with their matching exchanges, and link
    them if there are several.

    Raises:
        UserError: a recording cannot be read, the filter or a policy is not valid, or nothing
        matches in any recording.
    """
    wish = RedactionOptions(options.redact, options.redact_policy)
    _ = wish.policy  # reports an invalid policy before anything is read
    with ExitStack() as all_of_them:
        found, paths = [], []
        for path in (options.recording, *options.others):
            recording = all_of_them.enter_context(open_recording(path))
            paths.append(recording.path)
            keys = (
                set(recording.get_queryable().select_ids(options.where, Rows.EXCHANGES))
                if options.where
                else None
            )
            found.append(all_of_them.enter_context(open_redacted_view(recording, keys, wish)))
        if options.where and not any(keys for _, keys in found):
            listing = shell_line("a2a-inspect", "ls", *paths)
            raise UserError(
                f"nothing matches {make_visible(options.where)}", f"list the exchanges: {listing}"
            )
        if not options.others:
            yield [_RecordingExport(*found[0])]
            return
        several = MultiReader.of_recordings(recording for recording, _ in found)
        links = all_of_them.enter_context(open_recording_links(several))
        yield [
            _RecordingExport(member.recording, keys, sessions, links.session_links(member.number))
            for (_, keys), (member, sessions) in zip(found, several.own_sessions(), strict=True)
        ]


def _send_unsent(options: OtlpExportOptions) -> None:
    """Continue a live export from its last sent call, session by session."""
    if (
        options.output is not None
        or options.where
        or options.redact
        or options.redact_policy
        or options.others
    ):
        raise UserError(
            "--unsent can be combined only with one recording, --endpoint and --protocol",
            "leave out the other options",
        )
    where = _endpoint_target(options)
    settings = OtlpSettings(where, options.span_options, options.frames, metrics=False)
    path = chosen_path(options.recording)
    sent_calls = refused_calls = 0
    with open_recording(path) as recording:
        sessions = [row.facts.uuid for row in recording.read_sessions()]
    with state_directory_errors():
        for count in filter(
            None, (send_unsent(str(path.absolute()), each, settings) for each in sessions)
        ):
            sent_calls, refused_calls = sent_calls + count.calls, refused_calls + count.errors
    refused_words = f", {refused_calls:,} refused" if refused_calls else ""
    print_note(f"{text.format_count(sent_calls, 'call')} sent to {where.shown}{refused_words}")


@contextmanager
def _open_sink(options: OtlpExportOptions) -> Iterator[tuple[SpanSink, str]]:
    """Yield the destination of the spans and its description. Raises UserError, RecordingError."""
    if options.output is None:
        with _open_backend(options) as backend:
            yield BackendSink(backend), f"sent to {backend.target.shown}"
    elif options.endpoint:
        raise UserError(
            "--endpoint and --to cannot be combined",
            "leave out --to to send, --endpoint to write a file",
        )
    elif options.output == STDOUT:
        yield JsonLinesSink(raw_output()), "written to standard output"
    else:
        with new_file(options.output) as stream:
            yield JsonLinesSink(stream), f"written to {options.output}"


@contextmanager
def _open_backend(options: OtlpExportOptions) -> Iterator[SdkBackend]:
    where = _endpoint_target(options)
    backend = SdkBackend(where)
    try:
        yield backend
    finally:
        backend.close()


def _endpoint_target(options: OtlpExportOptions) -> OtlpTarget:
    """Return the backend that the options name. Raises UserError."""
    if sdk_disabled(os.environ):
        raise UserError(
            "OTEL_SDK_DISABLED is true: nothing would be sent",
            "unset it, or write a file: --to FILE",
        )
    if not options.endpoint and not any(os.environ.get(name) for name in _VARIABLES):
        raise UserError(
            "no destination: --endpoint is missing",
            "a backend: --endpoint http://localhost:4318, a file: --to",
        )
    return otlp_target(options.endpoint, options.protocol or "", os.environ)
