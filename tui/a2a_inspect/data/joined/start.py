"""Creation of a joined recording in a folder of its own, and start of the process that fills it."""

import contextlib
import os
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

from a2a_inspect.data.source import RecordingSource
from a2a_proxy import __version__
from a2a_proxy.recording.names import missing_folder_error
from a2a_proxy.recording.read.multi_reader import MultiReader, short_names
from a2a_proxy.recording.read.rows import SessionFacts
from a2a_proxy.recording.write.writer import Writer

_MAX_NAME = 80


@contextlib.contextmanager
def joined_source(paths: Sequence[Path]) -> Iterator[RecordingSource]:
    """Yield a source of all recordings as one, filled in the background; some may not exist yet.

    It is removed at the end of the block.

    Raises:
        UserError: a recording cannot be opened, or there is no room for the joined one.
    """
    names = short_names(paths)
    facts = _joined_session_facts(paths)
    with tempfile.TemporaryDirectory(prefix="a2a-inspect-") as folder:
        target = Path(folder) / " + ".join(names).replace(os.sep, "-")[:_MAX_NAME]
        writer = Writer(target, facts)
        writer.open()
        writer.close()
        words = [
            sys.executable,
            "-m",
            "a2a_inspect.data.joined.fill",
            str(os.getpid()),
            str(target),
            facts.uuid,
        ]
        # In a session of its own: when the terminal closes, the process cleans up before it
        # ends.
        process = subprocess.Popen(
            [*words, *map(str, paths)], stdin=subprocess.DEVNULL, start_new_session=True
        )
        try:
            yield RecordingSource(target, files=tuple(names))
        finally:
            process.terminate()
            process.wait()


def _joined_session_facts(paths: Sequence[Path]) -> SessionFacts:
    """Return the facts of the one session that represents all; checks that each existing file can
    be opened."""
    for path in paths:
        if not path.exists() and not path.absolute().parent.is_dir():
            raise missing_folder_error(path)
    with MultiReader([path for path in paths if path.exists() and path.stat().st_size]) as several:
        facts = [row.facts for _, row in several.read_sessions()]
    return SessionFacts(
        uuid=str(uuid.uuid4()),
        tool=f"a2a-inspect {__version__}",
        started=min((each.started for each in facts), default=time.time_ns()),
        command=("a2a-inspect", *map(str, paths)),
        listens=tuple(way for each in facts for way in each.listens),
        upstreams=tuple(way for each in facts for way in each.upstreams),
        names=tuple(name for each in facts for name in each.names or ("",) * len(each.listens)),
    )
