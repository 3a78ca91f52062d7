"""Processing of a recording when its test is over: findings, comparison, cassette. Reads files and
returns texts.

Migration of the notes of a cassette, above all pinned gates, into the recording that replaces
it.
"""

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from a2a_proxy.model.values import Finding, Note, Severity
from a2a_proxy.protocol.completeness import CHOICE_PREFIX
from a2a_proxy.protocol.text import make_visible
from a2a_proxy.recording.cassette.exporter import Selection
from a2a_proxy.recording.cassette.file import open_recording_or_cassette, write_cassette
from a2a_proxy.recording.difference.fields import DifferenceRow, ValueChange, format_path
from a2a_proxy.recording.difference.runs import CallPair, RunDifference, compare_runs, take_run
from a2a_proxy.recording.difference.sequences import align_sequences
from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.read.multi_reader import MultiReader
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import ExchangeRow, NoteRow, label_place, make_key
from a2a_proxy.recording.tools.merge import merge_sessions
from a2a_proxy.recording.write.note_writer import NotePlace, write_note
from a2a_proxy.replay.core.faults import PINNED_GATE
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
    name = f" {operation}" if operation else ""
    return f"{finding.severity.name.lower()} {finding.rule}{where}{name}: {finding.summary}"


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
        row, reason = (
            (match.right, "was not recorded")
            if match.left is None
            else (match.left, "was not made")
        )
        assert row is not None
        return f"#{row.exchange.id} {row.exchange.operation or row.exchange.method} {reason}"
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
    from a2a_proxy.api import Recording as RecordedCalls

    with RecordedCalls(recording) as selected:
        wanted = {
            make_key(each.session, each.number) for each in selected.exchanges() if keep(each)
        }
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


_Path = str | os.PathLike[str]


def migrate_notes(old: _Path, new: _Path) -> list[str]:
    """Write the notes of `old`, a cassette, into `new`, a recording, each at the matching call and
    frame.

    Returns the notes that could not be placed, in words, because their call or frame does not exist
    in `new`. Raises RecordingError.
    """
    with open_recording_or_cassette(old) as before:
        notes = before.read_notes()
        if not notes:
            return []
        started = {row.id: row.facts.started for row in before.read_sessions()}
        with Recording(new) as after:
            first, now = (
                after.read_sessions()[0].id,
                {row.id: row.facts.started for row in after.read_sessions()},
            )
            places = _PlaceMap(before, after, first)
            found = [(note, places.place_of_note(note)) for note in notes]
    lost = []
    for note, (place, text) in found:
        if place is None:
            lost.append(f"{label_place(note.session, note.note.exchange, note.note.seq)}: {text}")
            continue
        at = note.note.at - started[note.session] + now[place.session]
        write_note(new, place, at, text=text, bookmark=note.note.bookmark)
    return lost


class _PlaceMap:
    """Map from the calls and frames of one run to those of another."""

    def __init__(self, before: Recording, after: Recording, first: int) -> None:
        self._before, self._after, self._first = before, after, first
        found = compare_runs(
            take_run(before, before.read_exchanges()), take_run(after, after.read_exchanges())
        )
        both = [(each.left, each.right) for each in found.matches if each.left and each.right]
        self._calls = {(left.session, left.exchange.id): (left, right) for left, right in both}
        self._frames: dict[int, dict[int, int]] = {}

    def place_of_note(self, row: NoteRow) -> tuple[NotePlace | None, str]:
        """Return the new place of a note, and its text, which may itself name a place."""
        note = row.note
        if not note.exchange:
            return NotePlace(self._first), note.text
        pair = self._calls.get((row.session, note.exchange))
        if pair is None:
            return None, note.text
        call = pair[1]
        frames = self._pair_frames(*pair)
        text = _migrate_pin(note, call, frames)
        seq = -1 if note.seq < 0 else frames.get(note.seq)
        if seq is None or text is None:
            return None, note.text
        return NotePlace(call.session, call.exchange.id, seq), text

    def _pair_frames(self, left: ExchangeRow, right: ExchangeRow) -> dict[int, int]:
        """Pair the frames of two calls in order, by direction and kind."""
        if left.key not in self._frames:
            sides = list(_frame_tokens(self._before, left)), list(_frame_tokens(self._after, right))
            pairs = align_sequences(
                [token for _, token in sides[0]], [token for _, token in sides[1]]
            ).pairs
            self._frames[left.key] = {sides[0][i][0]: sides[1][j][0] for i, j in pairs}
        return self._frames[left.key]


def _frame_tokens(recording: Recording, row: ExchangeRow) -> Iterator[tuple[int, tuple[int, ...]]]:
    for each in recording.read_frames(row.key, payloads=False):
        frame = each.frame
        yield frame.seq, (frame.direction, frame.kind, frame.event, frame.state)


def _migrate_pin(note: Note, call: ExchangeRow, frames: dict[int, int]) -> str | None:
    """Return the text of a note; in a pinned gate with the new place of the client's line, None if
    there is none."""
    pin = PINNED_GATE.fullmatch(note.text.strip())
    if pin is None or int(pin[1]) != note.exchange:
        return note.text
    seq = frames.get(int(pin[2]))
    return None if seq is None else f"gate: after #{call.exchange.id}.{seq}"
