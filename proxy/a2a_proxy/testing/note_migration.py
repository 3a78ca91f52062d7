"""Migration of the notes of a cassette, above all pinned gates, into the recording that replaces
it."""

from __future__ import annotations

import os
from collections.abc import Iterator

from a2a_proxy.model.values import Note
from a2a_proxy.recording.cassette.file import open_recording_or_cassette
from a2a_proxy.recording.difference.runs import compare_runs, take_run
from a2a_proxy.recording.difference.sequences import align_sequences
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import ExchangeRow, NoteRow, label_place
from a2a_proxy.recording.write.note_writer import NotePlace, write_note
from a2a_proxy.replay.core.faults import PINNED_GATE

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
            lost.append(f"{_note_place(note)}: {text}")
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


def _note_place(row: NoteRow) -> str:
    return label_place(row.session, row.note.exchange, row.note.seq)
