"""Processing of a recording when its test is over: findings, comparison, cassette. Reads files and
returns texts."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from a2a_proxy.model.values import Finding, Severity
from a2a_proxy.protocol.completeness import CHOICE_PREFIX
from a2a_proxy.protocol.text import make_visible
from a2a_proxy.recording.cassette.exporter import Selection
from a2a_proxy.recording.cassette.file import open_recording_or_cassette, write_cassette
from a2a_proxy.recording.difference.runs import CallPair, RunDifference, compare_runs, take_run
from a2a_proxy.recording.difference.values import DifferenceRow, ValueChange, format_path
from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.read.multi_reader import MultiReader
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import make_key
from a2a_proxy.recording.tools.merge import merge_sessions
from a2a_proxy.testing.settings import KeepExchange


def list_violations(path: Path, fail_on: str, ignore: Iterable[str]) -> list[str]:
    """Return the findings of at least the severity `fail_on`, each as a line:
    `A2A-GEN-001 #3 SendMessage: 4 is missing`."""
    least, left_out = Severity[fail_on.upper()], tuple(ignore)
    with Recording(path) as recording:
        operations = {row.exchange.id: row.exchange.operation for row in recording.read_exchanges()}
        found = [row.finding for row in recording.read_findings()]
    grave = [each for each in found if each.severity >= least and not _is_ignored(each, left_out)]
    return [
        make_visible(_violation_text(each, operations.get(each.exchange, ""))) for each in grave
    ]


def _is_ignored(finding: Finding, ignored_rules: tuple[str, ...]) -> bool:
    return any(
        finding.rule == each or finding.rule.startswith(f"{each.rstrip('-')}-")
        for each in ignored_rules
    )


def _violation_text(finding: Finding, operation: str) -> str:
    where = (
        f" #{finding.exchange}{f'.{finding.seq}' if finding.seq >= 0 else ''}"
        if finding.exchange
        else ""
    )
    said = f" {operation}" if operation else ""
    return f"{finding.severity.name.lower()} {finding.rule}{where}{said}: {finding.summary}"


def list_differences(cassette: Path, recording: Path) -> list[str]:
    """Return the differences between a cassette and a recording, each as a line."""
    with open_recording_or_cassette(cassette) as left, Recording(recording) as right:
        found = compare_runs(
            take_run(left, left.read_exchanges()), take_run(right, right.read_exchanges())
        )
    return [make_visible(line) for line in _difference_texts(found)]


def _difference_texts(found: RunDifference) -> Iterator[str]:
    for match in found.matches:
        if match.count:
            yield _match_title(match)
            rows = match.difference.rows if match.difference is not None else ()
            for row in (each for each in rows if each.counts):
                place = format_path(row.right or row.left or ())
                yield f"  {row.part} {place}: {_change_text(row)}"
    for row in found.tasks:
        if row.counts:
            yield f"a task's {(row.left or ('',))[-1]}: recorded {row.before!r}, now {row.after!r}"


def _change_text(row: DifferenceRow) -> str:
    if row.change is ValueChange.LEFT:
        return f"recorded {row.before!r}, now missing"
    if row.change is ValueChange.RIGHT:
        return f"now {row.after!r}, not recorded"
    moved = ", at another position" if row.change is ValueChange.MOVED else ""
    return f"recorded {row.before!r}, now {row.after!r}{moved}"


def _match_title(match: CallPair) -> str:
    if match.left is None or match.right is None:
        row, said = (
            (match.right, "was not recorded")
            if match.left is None
            else (match.left, "was not made")
        )
        assert row is not None
        return f"#{row.exchange.id} {row.exchange.operation or row.exchange.method} {said}"
    left, right = match.left.exchange, match.right.exchange
    return f"#{left.id} {left.operation or left.method} (now #{right.id}) differs"


def count_calls(path: Path, keep: KeepExchange | None = None) -> int:
    """Return the number of calls of a recording for which `keep` is true."""
    with open_recording_or_cassette(filter_calls(path, keep)) as recording:
        return recording.count_rows().exchanges


def filter_calls(recording: Path, keep: KeepExchange | None) -> Path:
    """Return the recording, or a cassette next to it of the calls for which `keep` is true. Raises
    RecordingError."""
    if keep is None:
        return recording
    from a2a_proxy.api import Recording as Told

    with Told(recording) as told:
        wanted = {make_key(each.session, each.number) for each in told.exchanges() if keep(each)}
    part = recording.with_name("chosen.a2a.jsonl")
    with Recording(recording) as stored:
        selection = Selection(stored, wanted, f"{CHOICE_PREFIX}what before_record keeps")
        write_cassette(stored, part, selection=selection, overwrite=True)
    return part


def commit_cassette(recording: Path, cassette: Path) -> None:
    """Write the recording as the cassette, completely or not at all. Raises RecordingError."""
    cassette.parent.mkdir(parents=True, exist_ok=True)
    with open_recording_or_cassette(recording) as stored:
        write_cassette(stored, cassette, overwrite=True)


def replace_cassette(
    recording: Path, cassette: Path, keep: KeepExchange | None = None
) -> list[str]:
    """Replace the cassette by the recording and keep its notes; return the notes without a place.
    Raises RecordingError."""
    lost: list[str] = []
    if cassette.exists():
        from a2a_proxy.testing.note_migration import migrate_notes  # and with it the replay's words

        with contextlib.suppress(RecordingError):  # an unreadable cassette has no notes to keep
            lost = migrate_notes(cassette, recording)
    commit_cassette(filter_calls(recording, keep), cassette)
    return lost


def append_session(recording: Path, cassette: Path, keep: KeepExchange | None = None) -> None:
    """Append the recording to the cassette as a session. `recording` must be in its own folder.
    Raises RecordingError."""
    together = recording.with_name("together.a2a.db")
    with MultiReader([os.fspath(cassette), os.fspath(filter_calls(recording, keep))]) as both:
        merge_sessions(both, together, overwrite=True)
    commit_cassette(together, cassette)
