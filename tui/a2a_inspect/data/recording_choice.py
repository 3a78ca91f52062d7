"""Selection and opening of the recording that a command uses: errors become a message and a
hint."""

import contextlib
import itertools
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from a2a_inspect.data.observed import open_observed, present_end
from a2a_inspect.data.references import is_recording_word, parse_reference
from a2a_proxy.capture import file_layout
from a2a_proxy.cli.errors import print_error, state_directory_errors
from a2a_proxy.cli.unfinished import await_recorders
from a2a_proxy.model.errors import UserError
from a2a_proxy.present.output import print_note
from a2a_proxy.recording.names import newest_recording
from a2a_proxy.recording.read.multi_reader import MultiReader
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.store.corruption_guard import guard_corruption

NO_WAIT = "a2a_inspect.no_wait"
"""Key in the click context that is set if the user typed `--no-wait`."""
EXIT_INCOMPLETE = 3
"""Exit code of an incomplete capture, and of a recording without a session."""
STDOUT = Path("-")
"""Path that stands for standard output."""


def resolve_recording(path: Path | None) -> Path:
    """Return the named recording, else the newest one: of the state directory, including one that
    its recorder is about to create, or the last one made with `--record`.

    Raises:
        UserError: there is no recording.
    """
    if path is not None:
        return path
    with state_directory_errors():
        folder = file_layout.recordings_dir()
        remembered = file_layout.remembered_recording()
        newest = _find_announced(folder) or newest_recording(folder, *filter(None, (remembered,)))
    if newest is None:
        raise UserError("no recording found", "create one: a2a-proxy demo")
    return newest


def _find_announced(folder: Path) -> Path | None:
    """Return the newest recording in this folder that a recorder is about to create."""
    paths = (
        Path(each.session.recording) for each in file_layout.find_unfinished() if each.is_at_work
    )
    return max(
        (path for path in paths if path.parent == folder and not path.exists()), default=None
    )


def _wait_until_recorded(path: Path | None) -> Path:
    """Return the path once its recorder has finished, unless the user does not want to wait. Prints
    a chosen name to a terminal. Raises UserError."""
    name = resolve_recording(path)
    if path is None and sys.stderr.isatty():  # noqa: TID251 - prints nothing
        print_note(f"recording: {name}")
    context = click.get_current_context(silent=True)
    if context is None or not context.meta.get(NO_WAIT):
        await_recorders(name)
    return name


@contextlib.contextmanager
def open_recording(path: Path | None) -> Iterator[Recording]:
    """Open a recording or cassette for reading.

    Raises:
        UserError: it cannot be opened or read, or a query expression is not valid.
    """
    with (
        open_observed(_wait_until_recorded(path)) as recording,
        guard_corruption(recording),
    ):
        _check_end(recording)
        yield recording


@contextlib.contextmanager
def open_recordings(paths: Sequence[Path], *, settled: bool = True) -> Iterator[MultiReader]:
    """Open several recordings for reading as one; without paths the newest one. Raises as
    `open_recording`.

    With `settled`, a recording whose proxy has ended is opened only after its recorder has
    finished.
    """
    find = _wait_until_recorded if settled else resolve_recording
    with (
        MultiReader([find(path) for path in paths or (None,)]) as several,
        contextlib.ExitStack() as all_of_them,
    ):
        for member in several.members:
            all_of_them.enter_context(guard_corruption(member.recording))
            member.recording.find_end = present_end
            _check_end(member.recording)
        yield several


def _check_end(recording: Recording) -> None:
    """Report a recording that lacks its end, and what to copy with it: the rest was in a
    write-ahead log.

    Raises:
        UserError: it has no session at all.
    """
    name = Path(recording.path).name
    sessions = recording.read_sessions()
    if not recording.lacks_log or (sessions and all(row.complete for row in sessions)):
        return
    if file_layout.find_unfinished(Path(recording.path)):
        return
    hint = (
        f"if it was copied while it was being recorded: copy {name}, {name}-wal and {name}-shm "
        "together, or end the proxy before you copy it"
    )
    if not sessions:
        raise UserError(
            f"{recording.path} is not a whole recording: it has no session", hint, EXIT_INCOMPLETE
        )
    print_error(
        "a2a-inspect", f"{recording.path} is not a whole recording: a session has no end", hint
    )


def split_words(
    words: tuple[str, ...], *, anywhere: bool = False
) -> tuple[Path | None, tuple[str, ...]]:
    """Split words into the recording and the rest: the first word is a recording if it looks like a
    path; with `anywhere` the first word that does.
    """
    for at, word in enumerate(words if anywhere else words[:1]):
        if is_recording_word(word):
            return Path(word), (*words[:at], *words[at + 1 :])
    return None, words


def split_recordings(words: tuple[str, ...]) -> list[tuple[Path | None, tuple[str, ...]]]:
    """Split words into several recordings, each with its words: `split_words` at every word that
    cannot be a place."""
    starts = [
        0,
        *(
            at
            for at, word in enumerate(words)
            if at and parse_reference(word) is None and is_recording_word(word)
        ),
        len(words),
    ]
    return [split_words(words[start:end]) for start, end in itertools.pairwise(starts)]
