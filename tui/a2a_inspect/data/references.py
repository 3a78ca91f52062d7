"""The words by which commands and screens name a session, an exchange, a frame or a task: `1:`, `2`, `1:2`, `1:2.5`,
`b2a4c1`."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from a2a_proxy.cli.errors import UserError
from a2a_proxy.protocol.text import shell_line
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import make_key
from a2a_proxy.recording.write.note_writer import NotePlace

_POINT = re.compile(r"#?(?:(\d{1,9}):)?(?:(\d{1,12})(?:\.(\d{1,12}))?)?", re.ASCII)
_PREFIX = 4
"""Characters of a task's id, at least."""


class Reference(msgspec.Struct, frozen=True):
    """A place as it is written, whether or not a recording has it."""

    session: int | None
    """None: that of every session."""
    exchange: int
    """0: the session."""
    seq: int = -1
    """-1: all of it."""

    def has(self, session: int, exchange: int) -> bool:
        """The exchange is here, or a frame of it."""
        return self.session in (None, session) and self.exchange in (0, exchange)


def written(word: str) -> Reference | None:
    """The place that a word is written like; None for another word."""
    found = _POINT.fullmatch(word)
    if found is None or word in ("", "#"):
        return None
    session, exchange, seq = (int(group) if group else None for group in found.groups())
    return None if exchange == 0 else Reference(session, exchange or 0, -1 if seq is None else seq)


def is_task(word: str, task_id: str) -> bool:
    """The word is this task's id, or enough of its beginning."""
    return word == task_id != "" or (len(word) >= _PREFIX and task_id.startswith(word))


def is_file(word: str) -> bool:
    """The word is the path of a recording, or looks like one and not like a frame (`2.5`)."""
    return Path(word).is_file() or (("/" in word or "." in word) and written(word) is None)


def point(recording: Recording, word: str) -> NotePlace:
    """The place that a word names, as `ls` and `show` print it; the session may be left out where one alone fits.

    Raises:
        UserError: it is no place, or the recording has none such, or in several sessions.
    """
    if written(word) is None:
        raise UserError(
            f"{word} names no place", "write 2 for an exchange, 2.5 for its frame 5, 1:2 for that of session 1"
        )
    fitting = places(recording, word)
    if len(fitting) > 1:
        raise UserError(f"{word} is in several sessions", f"say which: {' or '.join(map(named, fitting))}")
    if not fitting:
        raise not_there(recording, word)
    return fitting[0]


def places(recording: Recording, word: str) -> list[NotePlace]:
    """The places of a recording that a word names, at most one of each session."""
    point = written(word)
    if point is None:
        return []
    numbers = [row.id for row in recording.sessions() if point.session in (None, row.id)]
    fitting = [NotePlace(each, point.exchange, point.seq) for each in numbers]
    return [place for place in fitting if _exists(recording, place)]


def not_there(recording: Recording, *words: str) -> UserError:
    """What to say of words that name nothing."""
    listing = shell_line("a2a-inspect", "ls", recording.path)
    return UserError(f"nothing in it is called {' or '.join(words)}", f"see what there is with: {listing}")


def _exists(recording: Recording, place: NotePlace) -> bool:
    if not place.exchange:
        return True
    number = make_key(place.session, place.exchange)
    if place.seq < 0:
        return recording.exchange(number) is not None
    frame = next(recording.frames(number, after=place.seq - 1, limit=1, payloads=False), None)
    return frame is not None and frame.frame.seq == place.seq


def named(place: NotePlace) -> str:
    """The word for a place, with its session: `1:2.5`."""
    seq = f".{place.seq}" if place.seq >= 0 else ""
    return f"{place.session}:{place.exchange or ''}{seq}"
