"""Which recording a command means, and its opening: errors become a message and a hint."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from a2a_inspect.data.references import is_recording_word, parse_reference
from a2a_proxy.capture import file_layout
from a2a_proxy.cli.errors import UserError, state_directory_errors
from a2a_proxy.cli.unfinished import await_recorders
from a2a_proxy.recording.cassette.file import open_recording_or_cassette
from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.names import newest_recording
from a2a_proxy.recording.query.errors import QueryError
from a2a_proxy.recording.read.multi_reader import MultiReader
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.store.corruption_guard import guard_corruption

NO_WAIT = "a2a_inspect.no_wait"
"""Where a click context keeps that the user typed `--no-wait`."""
STDOUT = Path("-")
"""Where a report or an export goes that is not to be a file."""


def resolve_recording(path: Path | None) -> Path:
    """The recording that was named, else the newest one of the state directory, also one that its recorder is about to
    make.

    Raises:
        UserError: there is none.
    """
    if path is not None:
        return path
    with state_directory_errors():
        folder = file_layout.recordings_dir()
        newest = _coming(folder) or newest_recording(folder)
    if newest is None:
        raise UserError("there is no recording yet", "make one with: a2a-proxy demo")
    return newest


def _coming(folder: Path) -> Path | None:
    """The newest recording here that a recorder is about to make."""
    made = (Path(each.session.recording) for each in file_layout.unfinished() if each.is_at_work)
    return max((path for path in made if path.parent == folder and not path.exists()), default=None)


def _settled(path: Path | None) -> Path:
    """`chosen`, once its recorder is done with it, unless the user will not wait. Raises UserError."""
    name = resolve_recording(path)
    context = click.get_current_context(silent=True)
    if context is None or not context.meta.get(NO_WAIT):
        await_recorders(name)
    return name


@contextlib.contextmanager
def open_recording(path: Path | None) -> Iterator[Recording]:
    """The recording, open for reading; a cassette as well.

    Raises:
        UserError: it cannot be opened or read, or an expression that it is asked by is wrong.
    """
    with (
        convert_recording_errors(),
        open_recording_or_cassette(_settled(path)) as recording,
        guard_corruption(recording),
    ):
        yield recording


@contextlib.contextmanager
def open_recordings(paths: Sequence[Path], *, settled: bool = True) -> Iterator[MultiReader]:
    """Several recordings as one, open for reading; without any the newest one. Raises as `open_recording`.

    `settled`: a recording whose proxy has ended is opened when its recorder is done with it.
    """
    find = _settled if settled else resolve_recording
    with (
        convert_recording_errors(),
        MultiReader([find(path) for path in paths or (None,)]) as several,
        contextlib.ExitStack() as all_of_them,
    ):
        for member in several.members:
            all_of_them.enter_context(guard_corruption(member.recording))
        yield several


@contextlib.contextmanager
def convert_recording_errors() -> Iterator[None]:
    """What goes wrong with a recording, or with an expression that it is asked by, as a UserError."""
    try:
        yield
    except RecordingError as wrong:
        raise UserError(wrong.message, wrong.hint) from wrong
    except QueryError as wrong:
        raise filter_error(wrong) from wrong


def filter_error(wrong: QueryError) -> UserError:
    """What is wrong with an expression, with the place of it underneath."""
    hint = wrong.hint or "what can be written is in the manual, filters.md"
    return UserError("\n  ".join((wrong.message, *wrong.caret.split("\n"))), hint)


def split_words(words: tuple[str, ...]) -> tuple[Path | None, tuple[str, ...]]:
    """The recording and what is wanted of it: the first word is a recording if it looks like one."""
    if words and is_recording_word(words[0]):
        return Path(words[0]), words[1:]
    return None, words


def split_recordings(words: tuple[str, ...]) -> list[tuple[Path | None, tuple[str, ...]]]:
    """Several recordings, each with what is wanted of it: `split_words` again at every word that can be no place."""
    starts = [
        0,
        *(at for at, word in enumerate(words) if at and parse_reference(word) is None and is_recording_word(word)),
        len(words),
    ]
    return [split_words(words[start:end]) for start, end in itertools.pairwise(starts)]
