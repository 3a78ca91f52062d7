"""The columns of the list, chosen on the screen."""

from __future__ import annotations

from pathlib import Path

import pytest

from a2a_inspect.data import source
from a2a_proxy.rules.examples.conversation import CLEAN_SEND, rpc
from a2a_proxy.rules.examples.objects import send
from support_inspect import changes, exchange, live, request, sample, status, writer
from support_rules import record
from support_screen import LARGE, SMALL, looking


@pytest.fixture
def views(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of views of a user without one."""
    monkeypatch.setenv("A2A_PROXY_CONFIG", str(tmp_path / "config"))
    return tmp_path / "config" / "views.toml"


@pytest.mark.parametrize("size", [SMALL, (120, 40), (200, 50)])
async def test_columns_are_chosen_and_kept(
    tmp_path: Path, views: Path, size: tuple[int, int]
) -> None:
    """The list shows them at once and the next time; a slip is named; without a name the standard
    ones are back."""
    path = sample(tmp_path / "r.db")
    async with looking(path, size) as person:
        await person.sees("3 exchanges", "STATES, ENDING")
        await person.types("c")
        await person.sees("Columns", "header:content-type", "$.params.message.role")
        await person.writes("outcome, ttfee")
        await person.sees('ttfee is not a column: unknown field "ttfee"; did you mean')
        await person.types("enter")
        await person.sees("Columns")
        await person.writes(
            "outcome, ttfe, req.header:content-type, $.params.message.parts[0].text"
        )
        await person.types("enter")
        await person.sees(
            "OUTCOME", "TTFE", "2.0 ms", "req.content-type", "application/json", "Question 3"
        )
        assert person.misses("OPERATION", "STATES")
    kept = (
        'columns = ["outcome", "ttfe", "req.header:content-type", "$.params.message.parts[0].text"]'
    )
    assert views.read_text() == f"{kept}\n"
    async with looking(path, size) as person:
        await person.sees("TTFE", "2.0 ms", "Question 3")
        await person.types("slash", *"err", "enter")
        await person.lists(2)
        await person.sees("Question 2")
        await person.types("c", "escape")
        await person.sees("TTFE")
        await person.types("c")
        await person.writes("")
        await person.types("enter")
        await person.sees("STATES, ENDING")
    assert views.read_text() == ""


async def test_standard_columns_in_another_order(tmp_path: Path, views: Path) -> None:
    """With their styles and widths; all of them as they are is no choice."""
    async with looking(sample(tmp_path / "r.db"), LARGE) as person:
        await person.sees("3 exchanges")
        await person.types("c")
        await person.writes("states, operation, ending, found")
        await person.types("enter")
        await person.sees("STATES")
        (head,) = (line for line in person.lines if "OPERATION" in line)
        assert head.split() == ["#", "STATES", "OPERATION", "ENDING", "FOUND"]
        await person.sees("submitted > working > completed", "stream-error: an error ends")
        assert views.exists()
        await person.types("c")
        await person.writes(
            "time, outcome, operation, binding, task, found, events, took, states, ending"
        )
        await person.types("enter")
        await person.sees("STATES, ENDING")
        assert views.read_text() == ""


async def test_endings_are_shown(tmp_path: Path, views: Path) -> None:
    """In the list, also a filtered one, and at the top of the frames and of the swimlane."""
    chunks = (rpc("SendMessage", send(id="m5"), finish="cut") + CLEAN_SEND).make_chunks()
    record(tmp_path / "r.db", chunks)
    words = "no-answer: the agent's side"
    async with looking(tmp_path / "r.db", (240, 50)) as person:
        await person.sees("STATES, ENDING", words)
        await person.types("g", "g")
        await person.sees(f"#1 SendMessage  jsonrpc 1.0  cut  {words}")
        await person.types("slash", *"err", "enter")
        await person.lists(1)
        await person.sees(words)
        await person.types("s")
        await person.sees("Swimlane › ", words)
    assert not views.exists()


async def test_endings_of_many_calls_come_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The calls are indexed a few at a time, and the list shows the endings when all are."""
    monkeypatch.setattr(source, "_INDEXED_AT_ONCE", 1)
    chunks = (CLEAN_SEND + CLEAN_SEND + rpc("SendMessage", send(), finish="cut")).make_chunks()
    record(tmp_path / "r.db", chunks)
    reader = source.RecordingSource(tmp_path / "r.db")
    assert (await reader.poll()) is not None
    assert not any(each.ending for each in await reader.read_exchanges(0))
    reader.close()
    async with looking(tmp_path / "r.db", (240, 50)) as person:
        await person.sees("STATES, ENDING", "no-answer: the agent's side")


async def test_cells_follow_a_growing_recording(tmp_path: Path, views: Path) -> None:
    """Those of a live exchange change, and new exchanges have theirs."""
    views.parent.mkdir()
    views.write_text('columns = ["state", "text"]\n')
    recorded = writer(tmp_path / "r.db")
    recorded.write([request(1)], changes=changes(live(1)))
    async with looking(tmp_path / "r.db", SMALL) as person:
        await person.sees("Plan a day")
        recorded.write(
            [status(1, 1, "a"), request(2, "Another")], changes=changes(exchange(1), live(2))
        )
        await person.sees("working", "Another")
    recorded.close()


async def test_a_wrong_file_is_reported(tmp_path: Path, views: Path) -> None:
    """The list has its standard columns."""
    views.parent.mkdir()
    views.write_text('columns = ["nosuch"]\n')
    async with looking(sample(tmp_path / "r.db"), SMALL) as person:
        await person.await_notice("nosuch is not a column")
        await person.sees("STATES, ENDING")
