"""`a2a-inspect export otlp`: the calls of a recording as spans of OpenTelemetry."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from a2a_inspect.cleaned import Wish, cleaned
from a2a_inspect.place import STDOUT, opened
from a2a_proxy.cli import text
from a2a_proxy.cli.errors import UserError
from a2a_proxy.protocol.text import visible
from a2a_proxy.recording.query.sql import Rows
from a2a_proxy.telemetry.errors import TelemetryError
from a2a_proxy.telemetry.offline import Export, Exported, Lines, Sent, Sink
from a2a_proxy.telemetry.sdk import Backend
from a2a_proxy.telemetry.target import target
from a2a_proxy.telemetry.values import Kind

_VARIABLES = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What was typed."""

    recording: Path | None
    where: str
    redact: tuple[str, ...]
    redact_policy: Path | None
    endpoint: str
    protocol: str | None
    to: Path | None
    span_kind: str
    frames: bool


def export_otlp(options: Options) -> None:
    """Send it, or write it; what went out is told on standard error.

    Raises:
        UserError: it cannot be read, written or sent, the filter or a policy is wrong, or nothing matches it.
    """
    wish = Wish(options.redact, options.redact_policy)
    _ = wish.policy  # what is wrong with it is told before anything is read
    with opened(options.recording) as recording, _sink(options) as (sink, where):
        keys = set(recording.asked().ids(options.where, Rows.EXCHANGES)) if options.where else None
        if keys is not None and not keys:
            raise UserError(f"nothing matches {visible(options.where)}", "see what there is with: a2a-inspect ls")
        with cleaned(recording, keys, wish) as (clean, kept):
            export = Export(clean, sink, kind=Kind[options.span_kind.upper()], frames=options.frames)
            try:
                export.run(kept)
            except TelemetryError as wrong:
                sent = f" ({text.plural(export.done.spans, 'span')} went out before)" if export.done.spans else ""
                raise UserError(visible(wrong.message) + sent, wrong.hint) from wrong
    print(_summed_up(export.done, where), file=sys.stderr)


def _summed_up(done: Exported, where: str) -> str:
    logs = f" and {text.plural(done.logs, 'log record')}" if done.logs else ""
    still = f"; {text.plural(done.open, 'call')} not over, left out" if done.open else ""
    return f"{text.plural(done.spans, 'span')}{logs} {where}{still}"


@contextmanager
def _sink(options: Options) -> Iterator[tuple[Sink, str]]:
    """Where it goes, and the same in words. Raises UserError."""
    if options.to is not None:
        if options.endpoint:
            raise UserError("--endpoint and --to: one of them", "leave out --to to send, --endpoint to write a file")
        with _file(options.to) as sink:
            yield sink, f"written to {'standard output' if options.to == STDOUT else visible(str(options.to))}"
        return
    if not options.endpoint and not any(os.environ.get(name) for name in _VARIABLES):
        raise UserError("where to? --endpoint is missing", "a backend: --endpoint http://localhost:4318, a file: --to")
    try:
        backend = Backend(target(options.endpoint, options.protocol or "", os.environ))
    except TelemetryError as wrong:
        raise UserError(visible(wrong.message), wrong.hint) from wrong
    try:
        yield Sent(backend), f"sent to {visible(backend.target.shown)}"
    finally:
        backend.close()


@contextmanager
def _file(path: Path) -> Iterator[Lines]:
    """A new file, deleted again where it cannot be finished; an existing one is never replaced. Raises UserError."""
    if path == STDOUT:
        sys.stdout.flush()
        yield Lines(sys.stdout.buffer)
        return
    try:
        stream = path.open("xb")
    except FileExistsError:
        raise UserError(f"{visible(str(path))} exists", "name another file, or delete it first") from None
    except OSError as wrong:
        raise _unwritten(path, wrong) from wrong
    try:
        with stream:
            path.chmod(0o600)
            yield Lines(stream)
    except BaseException as wrong:
        path.unlink(missing_ok=True)
        if isinstance(wrong, OSError):
            raise _unwritten(path, wrong) from wrong
        raise


def _unwritten(path: Path, wrong: OSError) -> UserError:
    return UserError(f"cannot write {visible(str(path))}: {(wrong.strerror or '').lower()}", "name another file")
