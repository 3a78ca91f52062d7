"""Several recordings opened as one on the screen: shown, waited for, refused, removed at the
end."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from a2a_inspect.app import InspectApp
from a2a_inspect.data.joined.start import joined_source
from a2a_proxy.model.errors import UserError
from a2a_proxy.recording.read.reader import Recording
from support_cli import until
from support_screen import LARGE, SMALL, Person
from support_several import begin, call, pair


@pytest.mark.parametrize("size", [SMALL, LARGE])
async def test_the_screen_shows_several_recordings_as_one(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    """The file of each call in a column; nothing is left when it is closed."""
    with joined_source(pair(tmp_path)) as source:
        folder = source.path.parent
        app = InspectApp(source, read_only=True)
        async with app.run_test(size=size) as pilot:
            person = Person(app, pilot)
            await person.sees("first + second", "FILE", "5 exchanges", "ended")
            await person.until(lambda: person.exchanges.current_row is not None)
            shown = [
                person.exchanges.row_segments(person.exchanges._pages.get_row(at), ())[
                    0
                ].text.strip()
                for at in range(5)
            ]
            assert shown == ["first", "second", "first", "second", "first"]
            await person.types("semicolon")
            await person.await_notice("open a single one for a note")
    assert not folder.exists()


async def test_the_screen_waits_for_recordings(tmp_path: Path) -> None:
    """It is open before there is any; calls come when a proxy has made one."""
    with joined_source([tmp_path / "a.a2a.db", tmp_path / "b.a2a.db"]) as source:
        app = InspectApp(source, read_only=True)
        async with app.run_test(size=SMALL) as pilot:
            person = Person(app, pilot)
            await person.sees("No exchanges yet in any of", "a", "b")
            call(begin(tmp_path / "b.a2a.db", 1), 1, 1, 1)
            await person.sees("FILE", "1 exchange", "recording")


def test_an_unreadable_file_is_refused_before_the_screen(tmp_path: Path) -> None:
    """And nothing is left."""
    (tmp_path / "letter.txt").write_text("no recording")
    files = [pair(tmp_path)[0], tmp_path / "letter.txt"]
    with pytest.raises(UserError, match="is not a recording"), joined_source(files):
        pass
    with (
        pytest.raises(UserError, match="is not a folder"),
        joined_source([tmp_path / "no" / "a.a2a.db"] * 2),
    ):
        pass


def test_a_killed_screen_leaves_no_file(tmp_path: Path) -> None:
    """What fills the joined recording clears it away."""
    code = (
        "import json, sys, time; from pathlib import Path; "
        "from a2a_inspect.data.joined.start import joined_source\n"
        "with joined_source([Path(each) for each in sys.argv[1:]]) as source:\n"
        "    print(json.dumps(str(source.path.parent)), flush=True); time.sleep(600)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, *map(str, pair(tmp_path))], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    folder = Path(json.loads(process.stdout.readline()))
    until(lambda: _filled(folder))
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    until(lambda: not folder.exists())


def _filled(folder: Path) -> bool:
    with Recording(
        next(path for path in folder.iterdir() if not path.name.endswith(("-wal", "-shm")))
    ) as recording:
        return recording.count_rows().exchanges == 5
