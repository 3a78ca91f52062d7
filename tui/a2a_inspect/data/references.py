"""Words by which commands and screens name a session, an exchange, a frame or a task: `1:`, `2`,
`1:2`, `1:2.5`, `b2a4c1`.
"""

import functools
import re
from pathlib import Path

import msgspec

from a2a_proxy.model.errors import UserError
from a2a_proxy.present.text import format_count
from a2a_proxy.protocol.text import make_visible, shell_line
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import label_place, make_key, split_key
from a2a_proxy.recording.write.note_writer import NotePlace

_REFERENCE = re.compile(r"#?(?:(\d{1,9}):)?(?:(\d{1,12})(?:\.(\d{1,12}))?)?", re.ASCII)
_MIN_TASK_PREFIX = 4
"""Minimum characters of a task id prefix."""
_MAX_SPANS = 3
"""Maximum sessions of which an error lists the exchanges or frames."""


class Reference(msgspec.Struct, frozen=True):
    """A written place, whether or not a recording has it."""

    session: int | None
    """Number of the session; None: any session."""
    exchange: int
    """Number of the exchange; 0: the session."""
    seq: int = -1
    """Number of the frame; -1: the whole exchange."""

    def is_in_exchange(self, session: int, exchange: int) -> bool:
        """Return whether the place is this exchange or one of its frames."""
        return self.session in (None, session) and self.exchange in (0, exchange)


def parse_reference(text: str) -> Reference | None:
    """Parse a written place; return None for other words."""
    found = _REFERENCE.fullmatch(text)
    if found is None or text in ("", "#"):
        return None
    session, exchange, seq = (int(group) if group else None for group in found.groups())
    return None if exchange == 0 else Reference(session, exchange or 0, -1 if seq is None else seq)


def is_task_prefix(prefix: str, task_id: str) -> bool:
    """Return whether the word is this task's id or a long enough prefix of it."""
    return prefix == task_id != "" or (
        len(prefix) >= _MIN_TASK_PREFIX and task_id.startswith(prefix)
    )


def is_recording_word(text: str) -> bool:
    """Return whether the word is the path of a recording, or looks like a path and not like a frame
    (`2.5`)."""
    return Path(text).is_file() or (("/" in text or "." in text) and parse_reference(text) is None)


def resolve_place(recording: Recording, text: str) -> NotePlace:
    """Return the place that a word names, as `ls` and `show` print it; the session may be omitted
    if the rest is unique.

    Raises:
        UserError: the word is not a place, or the recording has no such place, or several.
    """
    if parse_reference(text) is None:
        raise UserError(
            f"{text} is not a place",
            "write 2 for an exchange, 2.5 for its frame 5, 1:2 for that of session 1",
        )
    fitting = resolve_places(recording, text)
    if len(fitting) > 1:
        choices = (
            label_place(each.session, each.exchange, each.seq, with_session=True)
            for each in fitting
        )
        raise UserError(f"{text} is in several sessions", f"choose one: {' or '.join(choices)}")
    if not fitting:
        raise no_such_place(recording, text)
    return fitting[0]


def resolve_places(recording: Recording, text: str) -> list[NotePlace]:
    """Return the places of a recording that a word names, at most one of each session."""
    point = parse_reference(text)
    if point is None:
        return []
    numbers = [row.id for row in recording.read_sessions() if point.session in (None, row.id)]
    fitting = [NotePlace(each, point.exchange, point.seq) for each in numbers]
    return [place for place in fitting if _place_exists(recording, place)]


def no_such_place(recording: Recording, word: str) -> UserError:
    """Return the error for a word that names nothing in the recording, with the places that it
    has."""
    name = make_visible(Path(recording.path).name)
    listing = shell_line("a2a-inspect", "ls", recording.path)
    point = parse_reference(word)
    if point is not None:
        place, spans = _list_alternatives(recording, word, point)
        return UserError(f"{name} has no {place}; it has {spans}", f"list the exchanges: {listing}")
    if Path(word).is_dir():
        return UserError(
            f"{word} is a folder, not a recording",
            f"name a recording, or an exchange of: {listing}",
        )
    task = (
        "a task id"
        if len(word) >= _MIN_TASK_PREFIX
        else f"a task id ({_MIN_TASK_PREFIX} characters or more)"
    )
    return UserError(
        f"{word} is neither an exchange of {name} nor the beginning of {task}",
        f"list exchanges and tasks: {listing}",
    )


def _list_alternatives(recording: Recording, word: str, point: Reference) -> tuple[str, str]:
    """Return the missing place with its kind, and the places of this kind that exist:
    `#2.0 to #2.6`."""
    sessions = [row.id for row in recording.read_sessions()]
    searched = [each for each in sessions if point.session in (None, each)]
    if not point.exchange or not searched:
        return f"session {point.session}", _format_span(
            str(sessions[0]), str(sessions[-1])
        ) if sessions else "none"
    label = functools.partial(label_place, with_session=len(sessions) > 1)
    frames = "SELECT min(seq), max(seq) FROM frame WHERE session = ? AND exchange = ?"
    exchanges = "SELECT min(id), max(id) FROM exchange WHERE id BETWEEN ? AND ?"
    spans: list[str] = []
    if point.seq >= 0:
        for each in searched:
            numbers = recording.db.execute(frames, (each, point.exchange)).fetchone()
            places = [
                label(each, point.exchange, number) for number in numbers if number is not None
            ]
            spans += [_format_span(*places)] if places else []
    if spans:
        return f"frame {word}", _format_spans(spans)
    for each in searched:
        keys = recording.db.execute(
            exchanges, (make_key(each, 0), make_key(each + 1, 0) - 1)
        ).fetchone()
        places = [label(*split_key(key)) for key in keys if key is not None]
        spans += [_format_span(*places)] if places else []
    return f"exchange {word}", _format_spans(spans)


def _format_span(first: str, last: str) -> str:
    """Return `#2.0 to #2.6`, or only the first place if it is the last one as well."""
    return " to ".join(dict.fromkeys((first, last)))


def _format_spans(spans: list[str]) -> str:
    """Return `#1:1 to #1:5, #2:1 to #2:7 and those of 3 more sessions`."""
    if len(spans) > _MAX_SPANS:
        spans = [
            *spans[:_MAX_SPANS],
            f"those of {format_count(len(spans) - _MAX_SPANS, 'more session')}",
        ]
    return " and ".join(filter(None, (", ".join(spans[:-1]), spans[-1]))) if spans else "none"


def _place_exists(recording: Recording, place: NotePlace) -> bool:
    if not place.exchange:
        return True
    number = make_key(place.session, place.exchange)
    if place.seq < 0:
        return recording.read_exchange(number) is not None
    frame = next(recording.read_frames(number, after=place.seq - 1, limit=1, payloads=False), None)
    return frame is not None and frame.frame.seq == place.seq


def format_place(place: NotePlace) -> str:
    """Return a place for programs, always with its session: `1:2.5`. `label_place` returns it for
    people."""
    seq = f".{place.seq}" if place.seq >= 0 else ""
    return f"{place.session}:{place.exchange or ''}{seq}"
