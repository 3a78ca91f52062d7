"""The tree and the layouts, driven by keys."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from a2a_inspect.data import tree
from a2a_proxy.recording.read.rows import make_key
from support_inspect import changes, exchange, request, screen_lines, status, writer
from support_screen import SMALL, Person, looking

WIDE = (200, 50)


def made(path: Path) -> Path:
    """Two tasks in two contexts, three calls."""
    recorded = writer(path)
    frames = [request(n) for n in (1, 2, 3)] + [status(3, 1, "Halfway"), status(3, 2, "Done")]
    calls = [exchange(n, context_id=f"c{n // 2}", task_id=f"t{n // 2}") for n in (1, 2, 3)]
    recorded.write(frames, changes=changes(*calls))
    recorded.close()
    return path


async def listed(person: Person, *numbers: int) -> None:
    rows = person.exchanges

    def shown() -> list[int]:
        return [
            row.exchange.id
            for index in range(rows.total)
            if (row := rows._pages.get_row(index)) is not None
        ]

    await person.until(lambda: shown() == list(numbers), numbers)


async def test_a_branch_narrows_the_list(tmp_path: Path) -> None:
    """Beside the lists where there is room; down to a frame, which is then chosen; Esc in the list
    widens."""
    async with looking(made(tmp_path / "r.db"), WIDE) as person:
        await person.sees(
            "Tree", "session 1", "context c0  1  Plan a day", "context c1  2  Plan a day"
        )
        await person.types("t", "j", "j", "l")
        await person.sees("task t1  2")
        await person.types("enter")
        await listed(person, 2, 3)
        await person.sees("only ctx=c1", "context c1  2  Plan a day ◂")
        await person.types("l", "l")
        await person.sees("#3 SendStreamingMessage ok  3")
        await person.types("l", "j", "l")
        await person.sees("2 ← status working")
        await person.types("j", "j", "j", "enter")
        await person.sees("only ctx=c1 task=t1")

        def chosen() -> bool:
            line = person.frames.current_row
            return line is not None and (line.row.exchange_key, line.row.frame.seq) == (
                make_key(1, 3),
                2,
            )

        await person.until(chosen, "the frame")
        await person.types("h", "h")
        await person.until(lambda: person.misses("status working \n"), "closed")
        await person.types("t", "escape", "escape")
        await listed(person, 1, 2, 3)


async def test_the_first_words_are_beside_the_ids(tmp_path: Path) -> None:
    """Of contexts and tasks; cut to the width of the tree, so that the sign at the cursor stays
    visible."""
    path = tmp_path / "r.db"
    recorded = writer(path)
    words = ["Plan a day", "A question that is far too long for the tree"]
    frames = [request(n, text) for n, text in enumerate(words, 1)]
    recorded.write(
        frames, changes=changes(*(exchange(n, context_id=f"c{n}", task_id=f"t{n}") for n in (1, 2)))
    )
    recorded.close()
    async with looking(path, WIDE) as person:
        await person.sees("context c1  1  Plan a day", "context c2  1  A question that ")
        await person.types("t", "j", "j", "l")
        await person.sees("task t2  1  A question that ")
        (line,) = (text for text in person.lines if "▼ context c2" in text)
        assert re.search("  A question that .*… ◂ *▕", line), line


async def test_on_a_small_terminal_the_tree_is_a_pane(tmp_path: Path) -> None:
    """By its key or by Tab; what is chosen leads to the list."""
    async with looking(made(tmp_path / "r.db"), SMALL) as person:
        await person.sees("OPERATION")
        assert person.misses("context c0")
        await person.types("t")
        await person.sees("context c0  1")
        assert person.misses("OPERATION", "+SECONDS")
        await person.types("j", "enter")
        await person.sees("OPERATION", "only ctx=c0")
        await listed(person, 1)
        await person.types("shift+tab")
        await person.sees("context c0  1")
        await person.types("q")
        await person.sees("OPERATION")
        await person.types("minus")
        await person.await_notice("only one pane fits")


async def test_layouts_and_zoom(tmp_path: Path) -> None:
    """With the tree, without it, in columns; one pane alone and back."""
    async with looking(made(tmp_path / "r.db"), WIDE) as person:
        await person.sees("Tree", "OPERATION", "+SECONDS")
        await person.types("minus")
        await person.until(lambda: person.misses("Tree"))
        await person.types("minus")
        await person.until(
            lambda: any(
                "OPERATION" in line and "+SECONDS" in line for line in screen_lines(person.app)
            )
        )
        await person.types("z")
        await person.until(lambda: person.misses("+SECONDS"))
        await person.sees("OPERATION")
        await person.types("enter")
        await person.sees("+SECONDS")
        assert person.misses("OPERATION")
        await person.pilot.resize_terminal(190, 45)
        await person.until(lambda: len(screen_lines(person.app)) == 45)
        assert person.misses("OPERATION")
        await person.types("z", "minus")
        await person.sees("Tree", "OPERATION", "+SECONDS")


async def test_the_tree_grows_with_the_recording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """New branches appear and numbers change, open branches stay open; a long branch is extended on
    request."""
    monkeypatch.setattr(tree, "CHILDREN_PER_PAGE", 3)
    recorded = writer(tmp_path / "r.db")
    recorded.write([], changes=changes(exchange(1, context_id="c1", task_id="t")))
    async with looking(tmp_path / "r.db", WIDE) as person:
        await person.sees("context c1  1")
        await person.types("t", "j", "l")
        await person.sees("task t  1")
        recorded.write(
            [],
            changes=changes(
                exchange(2, context_id="c1", task_id="t"), exchange(3, context_id="c2")
            ),
        )
        await person.sees("context c1  2", "task t  2", "context c2  1", "session 1")
        recorded.write([], changes=changes(*(exchange(n, context_id=f"c{n}") for n in range(4, 9))))
        await person.sees("… more", "8 exchanges")
        await person.types("G", "enter")
        await person.sees("context c5  1")
        await person.types("G", "l")
        await person.sees("context c8  1")
        assert person.misses("… more")
    recorded.close()


async def test_from_frame_to_frame_of_a_task(tmp_path: Path) -> None:
    """Across the calls in between."""
    recorded = writer(tmp_path / "r.db")
    calls = [exchange(n, task_id=f"t{n % 2}") for n in (1, 2, 3)]
    recorded.write([request(1), request(2), request(3)], changes=changes(*calls))
    recorded.close()
    async with looking(tmp_path / "r.db", WIDE) as person:
        await person.sees("3 exchanges")
        await person.until(lambda: person.frames.current_row is not None)
        await person.types("tab", "left_curly_bracket")
        await person.until(lambda: person.exchanges.cursor == 0, "the first call")
        await person.until(
            lambda: (
                person.frames.current_row is not None
                and person.frames.current_row.row.frame.exchange == 1
            )
        )
        await person.types("right_curly_bracket")
        await person.until(lambda: person.exchanges.cursor == 2, "the third call")
        await person.until(
            lambda: (
                person.frames.current_row is not None
                and person.frames.current_row.row.frame.exchange == 3
            )
        )
        await person.types("right_curly_bracket")
        await person.await_notice("no more frames of this task")
