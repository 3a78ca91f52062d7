"""Queries: pages, windows, watching and interruption; values are bound, never put into the SQL."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from a2a_proxy.model.values import Binding, Changes, Connection, Exchange
from a2a_proxy.recording.errors import RecordingError
from a2a_proxy.recording.query import run
from a2a_proxy.recording.query.errors import QueryError, SearchStopped
from a2a_proxy.recording.query.fields import FIELDS
from a2a_proxy.recording.query.parser import parse_expression
from a2a_proxy.recording.query.sql import Rows, make_condition
from a2a_proxy.recording.query.tree import quote_text
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import make_key
from a2a_proxy.recording.write.writer import Writer
from support_query import rich
from support_recording import STARTED, event_frames, facts

COUNT = 30_000


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two sessions, one payload of which has a word of its own."""
    file = tmp_path_factory.mktemp("run") / "r.a2a.db"
    for session in (1, 2):
        writer = Writer(file, facts(session))
        exchanges = [
            Exchange(n, 1 + (n - 1) * 20 // 1000, 0, Binding.GRPC, STARTED + n)
            for n in range(1, 1 + COUNT // 2 // 20)
        ]
        connections = [Connection(n, "c", "l", "u", STARTED) for n in range(1, 16)]
        frames = event_frames(COUNT // 2, seed=session)
        hostile = msgspec.structs.replace(frames[100], payload=b"Needle " + b"a" * 5000 + b"!")
        frames[100] = msgspec.structs.replace(hostile, size=len(hostile.payload), message_id="m")
        writer.write(frames, [], Changes(connections, exchanges, []))
        writer.finish(STARTED + 1)
    return file


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recording]:
    with Recording(rich(tmp_path_factory.mktemp("small") / "r.a2a.db")) as opened:
        yield opened


def test_queries_may_be_limited_to_some_rows(path: Path, small: Recording) -> None:
    """The same answer as for all, for those alone; more of them than go into one query."""
    for expression in (
        "state:working",
        "needle",
        "-gap",
        "binding:grpc",
        "finding:*",
        "dur>1ms OR err",
    ):
        for rows in Rows:
            every = list(small.get_queryable().select_ids("", rows))
            found = list(small.get_queryable().select_ids(expression, rows))
            assert small.get_queryable().filter_ids(expression, rows, every) == found
            assert small.get_queryable().filter_ids(expression, rows, every[::2]) == [
                each for each in found if each in every[::2]
            ]
    with Recording(path) as recording:
        assert recording.get_queryable().filter_ids("needle", Rows.FRAMES, range(1, 1001)) == [101]


def test_pages_are_consecutive(path: Path) -> None:
    """By id, of all sessions or of one; a limit is a limit."""
    with Recording(path) as recording:
        select_ids = recording.get_queryable().select_ids
        first = list(select_ids("state:working", Rows.FRAMES, limit=100))
        assert first == list(range(1, 101))
        assert [row.id for row in recording.find_frames("needle")] == [101, COUNT // 2 + 101]
        assert [row.session for row in recording.find_frames("needle", 2)] == [2]
        assert [row.key for row in recording.find_exchanges("needle")] == [
            make_key(1, 6),
            make_key(2, 6),
        ]
        assert [row.key for row in recording.find_exchanges("needle", 2)] == [make_key(2, 6)]
        assert list(select_ids("a", Rows.FRAMES, limit=0)) == []
        (row,) = recording.find_frames("needle", 1, payloads=False)
        assert (row.frame.payload, row.frame.size) == (b"", 5008)
        tree = parse_expression("needle")
        assert len(list(recording.find_frames(tree))) == 2


def test_the_first_hit_does_not_wait_for_the_last_row(path: Path) -> None:
    """A search of payloads goes by windows; between them whoever watches is told, and may end
    it."""
    looked: list[tuple[int, int]] = []

    def watch(done: int, total: int) -> bool:
        looked.append((done, total))
        return len(looked) < 2

    with Recording(path) as recording:
        select_ids = recording.get_queryable().select_ids
        found = select_ids("needle", Rows.FRAMES, watch=watch)
        assert next(found) == 101
        assert looked == []
        with pytest.raises(SearchStopped):
            next(found)
        assert [total for _, total in looked] == [COUNT, COUNT]
        assert 0 < looked[0][0] < looked[1][0] < COUNT
        every: list[tuple[int, int]] = []
        found = select_ids("needle", Rows.FRAMES, watch=lambda *seen: not every.append(seen))
        assert len(list(found)) == 2
        assert every[-1] == (COUNT, COUNT)


def test_no_statement_stays_open_between_windows(path: Path) -> None:
    """No statement stays open while the caller works."""
    with Recording(path) as recording:
        found = recording.find_frames("needle")
        next(found)
        assert not recording.db.in_transaction
        with sqlite3.connect(path, timeout=0) as other:
            assert other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
        other.close()


def test_a_slow_pattern_is_a_clear_error(path: Path) -> None:
    """Hostile bytes do not block the search; the recording accepts further queries."""
    with Recording(path) as recording:
        with pytest.raises(
            QueryError, match=r"takes longer than 0.25 s on one text: \(a\+\)\+\$"
        ) as caught:
            list(recording.find_frames("text~(a+)+$"))
        assert "nested repetitions" in caught.value.hint
        assert len(list(recording.find_frames("text~Needle"))) == 2


def test_a_damaged_block_hides_only_its_own_payloads(path: Path, tmp_path: Path) -> None:
    """The rest is still found."""
    copy = tmp_path / "copy.a2a.db"
    copy.write_bytes(path.read_bytes())
    with sqlite3.connect(copy) as db:
        db.execute("UPDATE block SET data = x'00' WHERE session = 1")
    db.close()
    with Recording(copy) as recording:
        found = {row.session for row in recording.find_frames("agent", payloads=False)}
        assert found == {2}
        assert [row.id for row in recording.find_frames("needle", 1, payloads=False)] == [
            101
        ]  # stored by itself


EVIL = (
    "'; DROP TABLE frame; --",
    "x' OR '1'='1",
    "{}",
    ":after",
    "@a",
    "$1",
    "\0",
    "a%_",
    "') UNION SELECT 1 --",
)


@pytest.mark.parametrize("rows", Rows)
def test_the_first_window_is_read_row_by_row(
    rows: Rows, path: Path, small: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first window is small and asked row by row, the others are not: the answer is the
    same."""
    for expression in (
        "state:working",
        "-state:working",
        "binding:grpc OR kind:artifact",
        "dur>1ms dir:to-agent",
        "err",
    ):
        found = []
        for first in (0, 1, 3, run._FIRST_WINDOW):
            monkeypatch.setattr(run, "_FIRST_WINDOW", first)
            found.append(list(small.get_queryable().select_ids(expression, rows)))
        assert found == [found[0]] * 4, expression
    looked: list[int] = []
    with Recording(path) as recording:
        list(
            recording.get_queryable().select_ids(
                "state:failed OR binding:rest", rows, watch=lambda *seen: not looked.append(seen[0])
            )
        )
    assert looked[0] == run._FIRST_WINDOW < looked[-1]


@pytest.mark.parametrize("name", FIELDS)
def test_values_are_bound_parameters(name: str, small: Recording) -> None:
    """For every field and operator: the SQL is the same whatever the value, and has a mark for each
    parameter."""
    for op in FIELDS[name].kind.ops:
        made: dict[Rows, set[str]] = {rows: set() for rows in Rows}
        for evil in EVIL:
            try:
                node = parse_expression(f"{name}{op}{quote_text(evil)}")
            except QueryError:
                continue  # a number, or one of some words: nothing else is taken
            for rows in Rows:
                condition = make_condition(node, rows)
                made[rows].add(condition.text)
                assert condition.text.count("?") == len(condition.params)
                assert evil not in condition.text
                list(small.get_queryable().select_ids(node, rows))
        assert all(len(texts) <= 1 for texts in made.values()), made


def test_paths_are_bound_parameters(small: Recording) -> None:
    """As a value, whatever it says."""
    node = parse_expression("""$["'); DROP TABLE frame; --"].a:*""")
    assert "DROP" not in make_condition(node, Rows.FRAMES).text
    assert list(small.find_frames(node)) == []


def test_columns_are_queried_at_once_and_payloads_by_window(path: Path) -> None:
    """The output of `explain`: the normalized expression, the SQL with placeholders, the plan."""
    with Recording(path) as recording:
        explanation = recording.get_queryable().explain_expression(
            "(state:Working)  AND op:message/send", Rows.EXCHANGES
        )
        assert explanation.text == "state:working op:SendMessage"
        assert (explanation.sql.count("?"), "SendMessage" in explanation.sql) == (
            len(explanation.params),
            False,
        )
        assert (explanation.params[0], explanation.params[1]) == (
            2,
            "SendMessage",
        ) or explanation.params[:2] == (
            "SendMessage",
            2,
        )
        assert any("SEARCH e USING INTEGER PRIMARY KEY" in line for line in explanation.plan)
        assert explanation.params[-2:] == (run._WINDOWS[Rows.EXCHANGES][0], -1)
        assert recording.get_queryable().explain_expression("word", Rows.FRAMES).params[-2:] == (
            run._WINDOWS[Rows.FRAMES][1],
            -1,
        )


def test_a_closed_recording_is_a_recording_error(path: Path) -> None:
    """Errors of SQLite keep their translation."""
    recording = Recording(path)
    recording.close()
    with pytest.raises(RecordingError):
        list(recording.find_frames("err"))


@pytest.mark.parametrize(
    "text",
    [
        " OR ".join(["size<0"] * 200),
        " ".join(["state:working"] * 200),
        "-" * 50 + "err",
        "(" * 50 + "err" + ")" * 50,
    ],
)
def test_many_conditions_are_accepted(text: str, small: Recording) -> None:
    """As many as may be typed, and as deep."""
    for rows in Rows:
        list(small.get_queryable().select_ids(text, rows))
