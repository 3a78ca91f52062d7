"""`a2a-inspect export otlp`: the calls of a recording as spans of OpenTelemetry."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from a2a_inspect.cleaned import Wish
from a2a_inspect.commands.export import What, chosen
from a2a_inspect.export import new_file
from a2a_inspect.place import STDOUT, opened, reading
from a2a_inspect.place import chosen as chosen_path
from a2a_proxy.cli import text
from a2a_proxy.cli.errors import UserError, state_directory
from a2a_proxy.cli.shape import shape_of
from a2a_proxy.protocol.text import visible
from a2a_proxy.telemetry.errors import TelemetryError
from a2a_proxy.telemetry.offline import Export, Exported, Lines, Sent, Sink
from a2a_proxy.telemetry.sdk import Backend
from a2a_proxy.telemetry.settings import Settings
from a2a_proxy.telemetry.shape import Compat, Shape, SpanKind
from a2a_proxy.telemetry.target import Target, target
from a2a_proxy.telemetry.unsent import send_unsent

_VARIABLES = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What was typed."""

    recording: Path | None
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
    def shape(self) -> Shape:
        """What spans are to say. Raises UserError."""
        return shape_of(self.span_kind, content=self.content, compat=self.compat, segment=self.segment)


def export_otlp(options: Options) -> None:
    """Send it, or write it; what went out is told on standard error.

    Raises:
        UserError: it cannot be read, written or sent, the filter or a policy is wrong, or nothing matches it.
    """
    if options.unsent:
        _send_unsent(options)
        return
    shape = options.shape
    what = What(options.recording, options.where, Wish(options.redact, options.redact_policy))
    with chosen(what) as taken, _sink(options) as (sink, where):
        keys = None if taken.keys is None else set(taken.keys)
        export = Export(taken.recording, sink, shape=shape, frames=options.frames)
        try:
            export.run(keys)
        except TelemetryError as wrong:
            sent = f" ({text.plural(export.done.spans, 'span')} went out before)" if export.done.spans else ""
            raise UserError(visible(wrong.message) + sent, wrong.hint) from wrong
    print(_summed_up(export.done, where), file=sys.stderr)


def _send_unsent(options: Options) -> None:
    """Go on where a live export has stopped, session by session."""
    if options.output is not None or options.where or options.redact or options.redact_policy:
        raise UserError("--unsent goes with --endpoint and --protocol only", "leave out the rest")
    where = _target(options)
    settings = Settings(where, options.shape, options.frames, metrics=False)
    path = chosen_path(options.recording)
    sent = refused = 0
    with opened(path) as recording:
        sessions = [row.facts.uuid for row in recording.sessions()]
    try:
        with reading(), state_directory():
            for count in filter(None, (send_unsent(str(path.absolute()), each, settings) for each in sessions)):
                sent, refused = sent + count.calls, refused + count.errors
    except TelemetryError as wrong:
        raise UserError(visible(wrong.message), wrong.hint) from wrong
    told = f", {refused:,} refused" if refused else ""
    print(f"{text.plural(sent, 'call')} sent to {visible(where.shown)}{told}", file=sys.stderr)


def _summed_up(done: Exported, where: str) -> str:
    logs = f" and {text.plural(done.logs, 'log record')}" if done.logs else ""
    still = f"; {text.plural(done.open, 'call')} not over, left out" if done.open else ""
    return f"{text.plural(done.spans, 'span')}{logs} {where}{still}"


@contextmanager
def _sink(options: Options) -> Iterator[tuple[Sink, str]]:
    """Where it goes, and the same in words. Raises UserError, RecordingError."""
    if options.output is None:
        with _backend(options) as backend:
            yield Sent(backend), f"sent to {visible(backend.target.shown)}"
    elif options.endpoint:
        raise UserError("--endpoint and --to: one of them", "leave out --to to send, --endpoint to write a file")
    elif options.output == STDOUT:
        sys.stdout.flush()
        yield Lines(sys.stdout.buffer), "written to standard output"
    else:
        with new_file(options.output) as stream:
            yield Lines(stream), f"written to {visible(str(options.output))}"


@contextmanager
def _backend(options: Options) -> Iterator[Backend]:
    where = _target(options)
    try:
        backend = Backend(where)
    except TelemetryError as wrong:
        raise UserError(visible(wrong.message), wrong.hint) from wrong
    try:
        yield backend
    finally:
        backend.close()


def _target(options: Options) -> Target:
    """The backend that was named. Raises UserError."""
    if not options.endpoint and not any(os.environ.get(name) for name in _VARIABLES):
        raise UserError("where to? --endpoint is missing", "a backend: --endpoint http://localhost:4318, a file: --to")
    try:
        return target(options.endpoint, options.protocol or "", os.environ)
    except TelemetryError as wrong:
        raise UserError(visible(wrong.message), wrong.hint) from wrong
