"""Scripts as chunks with times, and as text."""

from __future__ import annotations

import pytest

from a2a_proxy.model.wire import ChunkKind, Direction
from a2a_proxy.rules.examples.script import (
    MS,
    START,
    STEP,
    PeerStep,
    Script,
    ScriptConnection,
    run_together,
)

UP, DOWN = Direction.TO_AGENT, Direction.TO_CLIENT


def talk(
    *steps: tuple[int, str], length: int = 40 * MS, closes: bool = True, transport: str = "tcp"
) -> Script:
    """A client and an agent in turn, each text at its time."""
    made = tuple(
        PeerStep(at, DOWN if index % 2 else UP, text.encode(), text=text)
        for index, (at, text) in enumerate(steps)
    )
    return Script.of(lambda: ScriptConnection(made, length, closes=closes, transport=transport))


def times(script: Script) -> list[tuple[int, ChunkKind, int]]:
    """Connection, kind, and time in ms after the start."""
    return [(each.connection, each.kind, (each.at - START) // MS) for each in script.make_chunks()]


def test_a_connection_opens_dials_transfers_and_closes_and_the_session_ends_one_step_later() -> (
    None
):
    assert times(talk((5 * MS, "a"), (20 * MS, "b"))) == [
        (1, ChunkKind.OPEN, 0),
        (1, ChunkKind.DIALED, 0),
        (1, ChunkKind.DATA, 5),
        (1, ChunkKind.DATA, 20),
        (1, ChunkKind.CLOSED, 40),
        (0, ChunkKind.END, 40 + STEP // MS),
    ]


def test_a_connection_closes_unless_the_script_says_otherwise() -> None:
    script = Script.of(lambda: ScriptConnection((), 3 * MS))
    assert [kind for _, kind, _ in times(script)][-2:] == [ChunkKind.CLOSED, ChunkKind.END]


def test_a_connection_that_stays_open_has_no_end_of_its_own() -> None:
    assert [kind for _, kind, _ in times(talk((5 * MS, "a"), closes=False))][-2:] == [
        ChunkKind.DATA,
        ChunkKind.END,
    ]


def test_a_script_follows_another_after_a_pause() -> None:
    first, second = talk((1 * MS, "a")), talk((2 * MS, "b"), length=3 * MS)
    opened = [(number, at) for number, kind, at in times(first + second) if kind is ChunkKind.OPEN]
    assert opened == [(1, 0), (2, 40 + STEP // MS)]
    late = first.then(second, 100 * MS)
    assert [(number, at) for number, kind, at in times(late) if kind is ChunkKind.DATA] == [
        (1, 1),
        (2, 142),
    ]
    assert times(late)[-1] == (0, ChunkKind.END, 143 + STEP // MS)
    third = late + second
    assert [at for _, kind, at in times(third) if kind is ChunkKind.OPEN] == [
        0,
        140,
        143 + STEP // MS,
    ]


@pytest.mark.parametrize(("length", "end"), [(10 * MS, 40), (100 * MS, 107)])
def test_two_scripts_run_at_the_same_time_until_the_later_end(length: int, end: int) -> None:
    script = run_together(talk((1 * MS, "a")), talk((2 * MS, "b"), length=length), after=7 * MS)
    assert next((kind, at) for number, kind, at in times(script) if number == 2) == (
        ChunkKind.OPEN,
        7,
    )
    assert [at for _, kind, at in times(script) if kind is ChunkKind.DATA] == [1, 9]
    following = [at for number, kind, at in times(script + talk()) if number == 3]
    assert following[0] == end + STEP // MS


def test_connections_are_numbered_by_their_start_and_have_ports_of_their_own() -> None:
    script = run_together(talk((30 * MS, "a")), talk((1 * MS, "b")))
    facts = {
        each.connection: each.data for each in script.make_chunks() if each.kind is ChunkKind.OPEN
    }
    assert b"127.0.0.1:5001" in facts[1]
    assert b"127.0.0.1:5002" in facts[2]


def test_a_command_has_the_numbers_of_two_processes() -> None:
    opened, dialed, *_ = talk(transport="stdio").make_chunks()
    assert b"pid 401" in opened.data
    assert b"pid 501" in dialed.data


def test_lines_show_who_writes_and_pauses_from_300_ms() -> None:
    script = talk(
        (0, "hello\nmore"), (299 * MS, "at once"), (599 * MS, "later"), (11_600 * MS, "much later")
    )
    assert script.format_lines() == [
        "client -> hello",
        "          more",
        "agent  <- at once",
        "       ... 0.3 s later",
        "client -> later",
        "       ... 11 s later",
        "agent  <- much later",
    ]
    assert talk((0, "a"), (2000 * MS, "b")).format_lines()[1] == "       ... 2 s later"
    assert talk((0, "a"), (9900 * MS, "b")).format_lines()[1] == "       ... 9.9 s later"
    assert talk((0, "a"), (10_400 * MS, "b")).format_lines()[1] == "       ... 10 s later"


def test_lines_of_concurrent_connections_are_in_order_and_steps_without_text_are_hidden() -> None:
    script = run_together(talk((0, "a"), (20 * MS, "c"), (25 * MS, "")), talk((1 * MS, "b")))
    assert [line[10:] for line in script.format_lines()] == ["a", "b", "c"]


def test_a_line_of_more_than_2000_characters_is_cut() -> None:
    assert talk((0, "x" * 2000)).format_lines() == ["client -> " + "x" * 2000]
    assert talk((0, "x" * 2001)).format_lines() == [
        "client -> " + "x" * 2000 + "... (2001 characters)"
    ]
