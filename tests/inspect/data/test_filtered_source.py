"""Searches in a separate thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from a2a_inspect.data.filtered_source import ExchangeSearch, Finder
from a2a_inspect.data.source import RecordingSource
from a2a_proxy.model.values import EventKind
from a2a_proxy.recording.query import payload_tests
from a2a_proxy.recording.query.parser import parse_expression
from a2a_proxy.recording.query.tree import Node
from a2a_proxy.recording.read.rows import make_key
from support_inspect import changes, exchange, frame, live, request, sample, status, writer
from support_recording import STARTED

MANY = 3000
SECONDS = 120.0
"""For anything; the machine may be busy."""


async def until(true: Callable[[], bool]) -> None:
    """Wait for as long as SECONDS."""
    async with asyncio.timeout(SECONDS):
        while not true():
            await asyncio.sleep(0.01)


async def test_matches_arrive_by_windows_with_progress(tmp_path: Path) -> None:
    """The first of it long before the last; in the end all of it, in order."""
    made = writer(tmp_path / "r.db")
    made.write(
        [request(n, f"word{n % 3}") for n in range(1, MANY + 1)],
        changes=changes(*map(exchange, range(1, MANY + 1))),
    )
    made.close()
    progress: list[tuple[int, int, int, bool]] = []
    source = RecordingSource(tmp_path / "r.db")
    finder = Finder(
        source.reopen_recording,
        lambda s: progress.append((len(s.keys), s.examined, s.total, s.is_done)),
    )
    search = finder.start(parse_expression("word1"))
    await until(lambda: search.is_done)
    assert list(search.keys) == [make_key(1, n) for n in range(1, MANY + 1, 3)]
    assert progress[0][0] < len(search.keys)
    assert progress[0][1] < progress[0][2] == MANY
    assert progress == sorted(progress)
    assert (
        search.is_match(make_key(1, 4)),
        search.is_match(make_key(1, 5)),
        search.find_index(make_key(1, 5)),
    ) == (
        True,
        False,
        2,
    )
    finder.close()
    source.close()


async def test_exchange_columns_are_searched_before_frames(tmp_path: Path) -> None:
    """Ordered at any time, each once; the completed part is reported separately."""
    made = writer(tmp_path / "r.db")
    frames = [
        frame(n, 1, b"{}", event=EventKind.STATUS, state=2, task_id=f"t{n % 2}")
        for n in range(1, MANY + 1)
    ]
    made.write(
        frames,
        changes=changes(
            *(exchange(n, task_id="t1" if n > MANY - 2 else "") for n in range(1, MANY + 1))
        ),
    )
    made.close()
    progress: list[tuple[list[int], int]] = []
    source = RecordingSource(tmp_path / "r.db")
    finder = Finder(
        source.reopen_recording, lambda s: progress.append((list(s.keys), s.searched_until))
    )
    search = finder.start(parse_expression("task:t1"))
    await until(lambda: search.is_done)
    late = [make_key(1, n) for n in range(MANY - 1, MANY + 1)]
    assert progress[0] == (late, 0)
    assert all(keys == sorted(set(keys)) for keys, _ in progress)
    assert list(search.keys) == [
        make_key(1, n) for n in range(1, MANY + 1) if n % 2 or n > MANY - 2
    ]
    assert search.searched_until == search.keys[-1]
    finder.close()
    source.close()


async def test_a_cancelled_search_stops_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stops in the middle; the next search starts at once, and the first reports nothing
    more."""
    matches, begun, cancelled = payload_tests.matches_pattern, threading.Event(), threading.Event()

    def slow_to_match(pattern: str, text: str) -> bool:
        begun.set()
        return cancelled.wait(SECONDS) and matches(pattern, text)

    monkeypatch.setattr(payload_tests, "matches_pattern", slow_to_match)
    made = writer(tmp_path / "r.db")
    made.write(
        [request(n) for n in range(1, MANY + 1)],
        changes=changes(*map(exchange, range(1, MANY + 1))),
    )
    made.close()
    searches: list[ExchangeSearch] = []
    source = RecordingSource(tmp_path / "r.db")
    finder = Finder(source.reopen_recording, searches.append)
    slow = finder.start(parse_expression('text~"(P|p)lan a (d|D)ay$" OR plan'))
    assert await asyncio.to_thread(begun.wait, SECONDS)
    finder.cancel(slow)
    cancelled.set()
    fast = finder.start(parse_expression("op:SendStreamingMessage"))
    await until(lambda: fast.is_done)
    assert len(fast.keys) == MANY
    assert len(slow.keys) < MANY
    assert slow not in searches
    finder.close()
    source.close()


async def test_a_growing_recording_is_searched_on(tmp_path: Path) -> None:
    """What matches by now is added, what does so no more is taken away; what nothing was stored
    about is not read."""
    path = tmp_path / "r.db"
    source = RecordingSource(path)
    finder = Finder(source.reopen_recording, lambda _: None)
    by_text, not_ended = (
        finder.start(parse_expression("halfway")),
        finder.start(parse_expression("-state:completed dur<1h")),
    )
    await until(lambda: by_text.is_done and not_ended.is_done)
    assert not by_text.keys
    made = writer(path)
    made.write([request(1)], changes=changes(live(1, events=0), exchange(2)))

    async def grown(search: ExchangeSearch) -> list[int]:
        search.is_stale = True
        while search.is_stale:
            finder.continue_search(search)
            await asyncio.sleep(0.01)
        await until(lambda: not search._is_running)
        return list(search.keys)

    assert await grown(by_text) == []
    made.write([status(1, 1, "Halfway")], changes=changes(live(1, events=1)))
    assert await grown(by_text) == [make_key(1, 1)]
    made.write([request(3, "halfway"), request(4)], changes=changes(exchange(3), exchange(4)))
    assert await grown(by_text) == [make_key(1, 1), make_key(1, 3)]
    assert await grown(not_ended) == [make_key(1, n) for n in (1, 2, 3, 4)]
    made.finish(STARTED + 1)
    finder.close()
    source.close()


@pytest.mark.parametrize(("text", "words"), [('text~"(a+)+$"', "takes longer than")])
async def test_search_errors_are_reported(tmp_path: Path, text: str, words: str) -> None:
    """A regular expression that takes too long ends the search with a word about it."""
    made = writer(tmp_path / "r.db")
    made.write([request(1, "a" * 5000 + "!")], changes=changes(exchange(1)))
    made.close()
    source = RecordingSource(tmp_path / "r.db")
    finder = Finder(source.reopen_recording, lambda _: None)
    search = finder.start(parse_expression(text))
    await until(lambda: search.is_done)
    assert words in search.error
    finder.close()
    source.close()


def test_updating_matches_changes_only_touched_exchanges() -> None:
    """Into its place, or out of it."""
    search = ExchangeSearch(node())
    search.keys.extend([2, 4, 6])
    search.update_matches([1, 4, 5, 6, 9], {1, 5, 6, 9})
    assert list(search.keys) == [1, 2, 5, 6, 9]


def node() -> Node:
    return parse_expression("")


async def test_the_index_of_an_exchange_counts_all_sessions(tmp_path: Path) -> None:
    """In the list of all sessions."""
    sample(tmp_path / "r.db", 300)
    second = writer(tmp_path / "r.db", 2)
    second.write([], changes=changes(*map(exchange, range(1, 200))))
    second.close()
    source = RecordingSource(tmp_path / "r.db")
    await source.poll()
    places = [
        await source.exchange_index(make_key(*at))
        for at in ((1, 1), (1, 128), (1, 129), (1, 300), (2, 1), (2, 130))
    ]
    assert places == [0, 127, 128, 299, 300, 429]
    source.close()
