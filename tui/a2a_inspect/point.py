"""The words by which commands and screens name a session, an exchange or a frame: `1:`, `2`, `1:2`, `1:2.5`."""

from __future__ import annotations

import re
import shlex

from a2a_proxy.cli.errors import UserError
from a2a_proxy.recording.note_writer import Place
from a2a_proxy.recording.reader import Recording
from a2a_proxy.recording.rows import key

_POINT = re.compile(r"#?(?:(\d{1,9}):)?(?:(\d{1,12})(?:\.(\d{1,12}))?)?")


def is_point(word: str) -> bool:
    """The word is written like a place, whether or not a recording has it."""
    return word not in ("", "#") and _POINT.fullmatch(word) is not None


def point(recording: Recording, word: str) -> Place:
    """The place that a word names, as `ls` and `show` print it; the session may be left out where one alone fits.

    Raises:
        UserError: it is no place, or the recording has none such, or in several sessions.
    """
    found = _POINT.fullmatch(word)
    if found is None or not is_point(word):
        raise UserError(
            f"{word} names no place", "write 2 for an exchange, 2.5 for its frame 5, 1:2 for that of session 1"
        )
    session, exchange, seq = (int(group) if group else None for group in found.groups())
    numbers = [row.id for row in recording.sessions() if session in (None, row.id)]
    fitting = [Place(each, exchange or 0, -1 if seq is None else seq) for each in numbers]
    fitting = [place for place in fitting if _exists(recording, place)]
    if len(fitting) > 1:
        raise UserError(f"{word} is in several sessions", f"say which: {' or '.join(map(named, fitting))}")
    if not fitting:
        listing = shlex.join(("a2a-inspect", "ls", recording.path))
        raise UserError(f"nothing in it is called {word}", f"see what there is with: {listing}")
    return fitting[0]


def _exists(recording: Recording, place: Place) -> bool:
    if not place.exchange:
        return True
    number = key(place.session, place.exchange)
    if place.seq < 0:
        return recording.exchange(number) is not None
    frame = next(recording.frames(number, after=place.seq - 1, limit=1, payloads=False), None)
    return frame is not None and frame.frame.seq == place.seq


def named(place: Place) -> str:
    """The word for a place, with its session: `1:2.5`."""
    seq = f".{place.seq}" if place.seq >= 0 else ""
    return f"{place.session}:{place.exchange or ''}{seq}"
