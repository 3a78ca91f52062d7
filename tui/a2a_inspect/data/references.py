"""Words by which commands and screens name a session, an exchange, a frame or a task: `1:`, `2`, `1:2`, `1:2.5`,
`b2a4c1`.
"""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from a2a_proxy.cli.errors import UserError
from a2a_proxy.protocol.text import shell_line
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import label_place, make_key, split_key
from a2a_proxy.recording.write.note_writer import NotePlace

_REFERENCE = re.compile(r"#?(?:(\d{1,9}):)?(?:(\d{1,12})(?:\.(\d{1,12}))?)?", re.ASCII)
_MIN_TASK_PREFIX = 4
"""Minimum characters of a task id prefix."""


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
    return prefix == task_id != "" or (len(prefix) >= _MIN_TASK_PREFIX and task_id.startswith(prefix))


def is_recording_word(text: str) -> bool:
    """Return whether the word is the path of a recording, or looks like a path and not like a frame (`2.5`)."""
    return Path(text).is_file() or (("/" in text or "." in text) and parse_reference(text) is None)


def resolve_place(recording: Recording, text: str) -> NotePlace:
    """Return the place that a word names, as `ls` and `show` print it; the session may be omitted if the rest is
    unique.

    Raises:
        UserError: the word is not a place, or the recording has no such place, or several.
    """
    if parse_reference(text) is None:
        raise UserError(
            f"{text} is not a place", "write 2 for an exchange, 2.5 for its frame 5, 1:2 for that of session 1"
        )
    fitting = resolve_places(recording, text)
    if len(fitting) > 1:
        choices = (label_place(each.session, each.exchange, each.seq, with_session=True) for each in fitting)
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


def no_such_place(recording: Recording, *text: str) -> UserError:
    """Return the error for words that name nothing in the recording."""
    listing = shell_line("a2a-inspect", "ls", recording.path)
    point = parse_reference(text[0])
    sessions = recording.read_sessions()
    if len(text) == len(sessions) == 1 and point is not None and point.exchange and point.seq < 0:
        (last,) = recording.db.execute("SELECT max(id) FROM exchange").fetchone()
        numbers = f"exchanges 1 to {split_key(last)[1]}" if last else "no exchanges"
        return UserError(f"there is no exchange {text[0]}; this recording has {numbers}", f"list them: {listing}")
    return UserError(f"this recording has no {' or '.join(text)}", f"list the exchanges: {listing}")


def _place_exists(recording: Recording, place: NotePlace) -> bool:
    if not place.exchange:
        return True
    number = make_key(place.session, place.exchange)
    if place.seq < 0:
        return recording.read_exchange(number) is not None
    frame = next(recording.read_frames(number, after=place.seq - 1, limit=1, payloads=False), None)
    return frame is not None and frame.frame.seq == place.seq


def format_place(place: NotePlace) -> str:
    """Return a place for programs, always with its session: `1:2.5`. `label_place` returns it for people."""
    seq = f".{place.seq}" if place.seq >= 0 else ""
    return f"{place.session}:{place.exchange or ''}{seq}"
