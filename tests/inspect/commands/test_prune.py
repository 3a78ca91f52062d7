"""`prune`: what is deleted, what stays, and protection against mistakes."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from a2a_inspect.commands.prune import PruneLimits, _sessions_to_delete, _StoredSession
from a2a_proxy.capture.file_layout import SessionFile
from a2a_proxy.recording.read.reader import Recording
from support_cli import Ran, run_here
from support_inspect import changes, exchange, request, writer
from support_recording import STARTED, facts


def recorded(path: Path, sessions: int) -> Path:
    for number in range(1, sessions + 1):
        made = writer(path, number)
        made.write([request(1)], changes=changes(exchange(1)))
        made.finish(STARTED + number)
    return path


def prune(tmp_path: Path, *words: object) -> Ran:
    return run_here(tmp_path / "state", "prune", *words)


def sessions(path: Path) -> list[int]:
    with Recording(path) as recording:
        return [row.id for row in recording.read_sessions()]


def stored(number: int, size: int, *, busy: bool = False) -> _StoredSession:
    return _StoredSession(Path("x"), number, number, number, size, busy, "")


@pytest.mark.parametrize(
    ("limits", "gone"),
    [
        (PruneLimits(older_than=2), [1, 2]),
        (PruneLimits(keep=2), [1, 2]),
        (PruneLimits(keep=0), [1, 2, 4]),
        (PruneLimits(max_size=25), [1, 2]),
        (PruneLimits(max_size=40), []),
        (PruneLimits(max_size=0), [1, 2, 4]),
        (PruneLimits(keep=3, max_size=25), [1, 2]),
    ],
)
def test_the_oldest_sessions_are_selected(limits: PruneLimits, gone: list[int]) -> None:
    """The oldest first, until all limits are met; an open session is never deleted."""
    all_of_them = [stored(1, 10), stored(2, 10), stored(3, 10, busy=True), stored(4, 10)]

    assert [each.id for each in _sessions_to_delete(all_of_them, limits, now=5)] == gone


def test_dry_run_changes_nothing(tmp_path: Path) -> None:
    path = recorded(tmp_path / "a.db", 3)
    before = path.read_bytes()
    done = prune(tmp_path, path, "--keep", 1, "--dry-run")

    assert (done.code, path.read_bytes() == before) == (0, True)
    assert done.lines[-1].startswith("would delete 2 sessions of 3, about ")


def test_prune_prints_json(tmp_path: Path) -> None:
    """One session per line; a dry run names what is then deleted."""
    path = recorded(tmp_path / "a.db", 3)
    would = [
        json.loads(line) for line in prune(tmp_path, path, "--keep", 1, "--dry-run", "--json").lines
    ]
    done = [json.loads(line) for line in prune(tmp_path, path, "--keep", 1, "--json").lines]

    assert [(each["recording"], each["session"], each["deleted"]) for each in done] == [
        (str(path), 1, True),
        (str(path), 2, True),
    ]
    assert [{**each, "deleted": True} for each in would] == done
    assert all(each["size"] > 0 and each["started"].endswith("Z") for each in done)


def test_sessions_and_files_are_pruned(tmp_path: Path) -> None:
    """Without a file's name all of the state directory's; a file goes with its last session."""
    folder = tmp_path / "state" / "recordings"
    folder.mkdir(parents=True)
    old, mixed = recorded(folder / "old.a2a.db", 1), recorded(folder / "mixed.a2a.db", 1)
    made = writer(mixed, 2)
    made.write([request(1)], changes=changes(exchange(1)))
    made.finish(STARTED + 60_000_000_000)  # the newest
    done = prune(tmp_path, "--keep", 1)

    assert (done.code, old.exists(), sessions(mixed)) == (0, False, [2])
    assert sorted(folder.iterdir()) == [mixed]


def test_a_file_named_twice_counts_once(tmp_path: Path) -> None:
    """Its sessions are counted once, so none goes that may stay."""
    path = recorded(tmp_path / "a.db", 2)
    done = prune(tmp_path, path, path.parent / "." / path.name, path, "--keep", 2)

    assert (done.code, sessions(path)) == (0, [1, 2])
    assert done.lines == ["deleted 0 sessions of 2, about 0 B"]


def test_open_sessions_are_kept(tmp_path: Path) -> None:
    """The journal shows it, also one waiting for `recover`."""
    path = recorded(tmp_path / "a.db", 1)
    busy = writer(path, 2)
    busy.write([request(1)], changes=changes(exchange(1)))
    busy.close()
    journal = tmp_path / "state" / "journals" / "1"
    journal.mkdir(parents=True)
    known = SessionFile(recording=str(path), pid=1, started=1, uuid=facts(2).uuid)
    (journal / "session.json").write_bytes(msgspec.json.encode(known))
    done = prune(tmp_path, path, "--keep", 0)

    assert (done.code, sessions(path)) == (0, [2])


def test_bad_input(tmp_path: Path) -> None:
    path = recorded(tmp_path / "a.db", 1)
    for words, part in (
        ([path], "no limit given for the sessions to keep"),
        ([path, "--older-than", "soon"], "'soon' is not a duration"),
        ([path, "--max-size", "much"], "'much' is not a size"),
        ([tmp_path / "none.db", "--keep", 1], "there is no recording"),
    ):
        done = prune(tmp_path, *words)
        assert (done.code, part in done.err, "hint: " in done.err) == (2, True, True), done.err
    assert sessions(path) == [1]
