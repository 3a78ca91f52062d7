"""Conversations read from recordings: `a2a-inspect lanes`, and that its rows agree with the
recording."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from a2a_inspect.data.positions import PAGE
from a2a_inspect.lanes.model import LaneRowKind
from a2a_inspect.lanes.read import LaneConversation
from a2a_proxy.model.values import (
    AGENT,
    CLIENT,
    Changes,
    Connection,
    Finding,
    Handoff,
    Interruption,
    MissedGenerations,
    Segment,
    Severity,
    Task,
)
from a2a_proxy.recording.cassette.file import open_recording_or_cassette
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import make_key
from support_cli import Ran, run_here
from support_inspect import MS, TASK, exchange, request, sample, status, writer
from support_recording import STARTED

SAMPLES = sorted((Path(__file__).resolve().parents[3] / "recordings").glob("*.a2a.jsonl"))
every = pytest.mark.parametrize(
    "cassette", SAMPLES, ids=lambda path: path.name.removesuffix(".a2a.jsonl")
)


def lanes(folder: Path, *words: object) -> Ran:
    return run_here(folder, "lanes", *words, TZ="UTC")


def named(stem: str) -> Path:
    return next(path for path in SAMPLES if path.name == f"{stem}.a2a.jsonl")


@every
def test_every_frame_of_a_conversation_has_a_row(cassette: Path) -> None:
    """Of each exchange of every sample: all its frames, in order of time, and all findings about
    it."""
    with open_recording_or_cassette(cassette) as recording:
        seen: set[int] = set()
        for row in recording.read_exchanges():
            if row.exchange.id in seen:
                continue
            conversation = LaneConversation(recording, row.key)
            seen |= conversation.exchanges
            rows = conversation.read_rows(0, len(conversation.order))
            frames = [each for each in rows if each.what is LaneRowKind.FRAME]
            there = [
                each
                for number in conversation.exchanges
                for each in recording.read_frames(make_key(row.session, number))
            ]
            assert [each.at for each in frames] == sorted(each.frame.at for each in there)
            assert {each.frame for each in frames} == {each.id for each in there}
            found = sum(
                1
                for n in conversation.exchanges
                for _ in recording.read_findings(exchange=make_key(row.session, n))
            )
            assert sum(each.what is LaneRowKind.FINDING for each in rows) == found
            assert all(
                0 <= each.source < len(conversation.lanes) > each.target >= 0 for each in rows
            )
        assert len(seen) == recording.count_rows().exchanges


def test_a_lost_event_is_drawn(tmp_path: Path) -> None:
    """What the client lost, where, and what made it good."""
    drawing = lanes(tmp_path, named("generations"), 1, "--width", 80)
    assert drawing.lines == [
        "session 1  task 3f7b1bdf…  2026-11-21 22:30:56",
        "  SECONDS    AFTER  client                                       127.0.0.1:44771",
        '   +0.000           ├─ message user "last=6 drop=4 read=5"  SendStreamingMe… ─▶│',
        "   +0.024   +24 ms  │◀─ task 3f7b1bdf submitted [generation 1] ────────────────┤",
        "   +0.046   +21 ms  │◀─ status working [generation 2] ─────────────────────────┤",
        '   +0.066   +20 ms  │◀─ artifact a3 (last) "change 3" [generation 3] ──────────┤',
        '   +0.107   +40 ms  │◀─ artifact a5 (last) "change 5" [generation 5] ──────────┤',
        "        !           │ error  A2A-GEN-001 generation 4 is missing: 3 is follow… !",
        "        ≠           │ generation 4 missed, healed by #2 GetTask at 5           ≠",
        "   +0.109  +2.0 ms  ├─ GetTask for task 3f7b1bdf ─────────────────────────────▶│",
        "   +0.111  +1.7 ms  │◀─ task 3f7b1bdf working 3 artifacts [generation 5] ──────┤",
        "   +0.132   +21 ms  │◀─ status completed [generation 6] ───────────────────────┤",
        "   +0.132    +0 us  │◀╌ end of agent's stream ╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌│",
    ]


def two_agents(path: Path) -> Path:
    """A desk that asks a clerk, and is interrupted by its client."""
    made = writer(path)
    second = {"connection": 2, "task_id": "clerk-task"}
    connections = [
        Connection(1, "127.0.0.1:5000", "127.0.0.1:9000", "desk:8000", STARTED, kind="http/1.1"),
        Connection(2, "127.0.0.1:5001", "127.0.0.1:9001", "clerk:8000", STARTED, kind="http/1.1"),
    ]
    exchanges = [exchange(1), exchange(2, **second), exchange(3)]
    late = request(3, "And?")
    tasks = [
        Task(
            "desk:8000",
            TASK,
            states=(),
            exchanges=(1, 3),
            missed=(MissedGenerations(4, 5, STARTED + 1100 * MS, 1),),
        ),
        Task("clerk:8000", "clerk-task", exchanges=(2,)),
    ]
    begun = STARTED + 1000 * MS
    segments = [
        Segment(1, "desk:8000", TASK, "", CLIENT, 1, 1, 0, 1, 0, begun, begun, begun),
        Segment(2, "desk:8000", TASK, "", AGENT, 1, 1, 1, 1, 2, begun, begun, begun),
        Segment(3, "desk:8000", TASK, "", CLIENT, 2, 3, 0, 3, 0, late.at, late.at, late.at),
    ]
    broken = Interruption(1, "desk:8000", TASK, "", "message", 2, 3, 0, late.at, outcome="yielded")
    handed = Handoff(
        1,
        "delegation",
        "context",
        "desk:8000",
        TASK,
        "",
        2,
        "clerk:8000",
        "clerk-task",
        2,
        2,
        0,
        STARTED + 2000 * MS,
    )
    frames = [
        request(1),
        status(1, 1, "Asking"),
        request(2),
        status(2, 1, "27 euros"),
        status(1, 2, "27 euros"),
        late,
    ]
    found = [Finding("A2A-X-001", Severity.WARNING, begun, "no\x1b[31m", 1, 1, 1)]
    made.write(frames, found, Changes(connections, exchanges, tasks, segments, [broken], [handed]))
    made.finish(STARTED + 9000 * MS)
    return path


def test_two_agents_are_drawn_in_one_diagram(tmp_path: Path) -> None:
    """From either end of a hand-off: three lanes, the hand-off, the interruption, the turn, the
    finding, the gap."""
    path = two_agents(tmp_path / "r.db")
    objects = [json.loads(line) for line in lanes(tmp_path, path, "clerk", "--json").lines]
    assert objects == [json.loads(line) for line in lanes(tmp_path, path, "#1", "--json").lines]
    head, *rows = objects
    assert [lane["name"] for lane in head["lanes"]] == ["client", "desk:8000", "clerk:8000"]
    of: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        of.setdefault(row["what"], []).append(row)
    once = ("finding", "missed", "handoff", "interruption", "turn")
    assert {what: len(each) for what, each in of.items() if what in once} == dict.fromkeys(once, 1)
    assert len(of["frame"]) == 6
    assert of["missed"][0]["text"] == "generation 4-5 missed"
    assert [(row["from"], row["to"]) for row in of["frame"] if row["exchange"] == 2] == [
        ("desk:8000", "clerk:8000"),
        ("clerk:8000", "desk:8000"),
    ]
    assert of["handoff"][0]["about"] == "clerk:8000"
    drawing = lanes(tmp_path, path, "clerk", "--width", 90).out
    assert "hand-off to clerk:8000" in drawing
    assert "interrupted by a message #3.0" in drawing
    assert "\x1b" not in drawing


def test_a_chain_of_three_agents(tmp_path: Path) -> None:
    """It is one conversation, so it needs no name; each agent asks the next, who is handed over
    to."""
    head, *rows = [
        json.loads(line) for line in lanes(tmp_path, named("three-agents"), "--json").lines
    ]
    client, concierge, planner, railway = [lane["name"] for lane in head["lanes"]]
    assert [(row["from"], row["to"]) for row in rows if row["text"].startswith("message user")] == [
        (client, concierge),
        (concierge, planner),
        (planner, railway),
    ]
    assert [
        (row["about"], f"hand-off to {row['about']} " in row["text"])
        for row in rows
        if row["what"] == "handoff"
    ] == [
        (planner, True),
        (railway, True),
    ]


def test_the_conversation_is_selected_by_reference(tmp_path: Path) -> None:
    """Without a reference the newest task is drawn; missing and ambiguous references are errors
    with a hint."""
    path = sample(tmp_path / "r.db")
    assert lanes(tmp_path, path, "2").code == 0
    assert lanes(tmp_path, path, "1:2").code == 0
    assert lanes(tmp_path, named("demo")).lines[0].startswith("session 1  task 32bcc13c")
    for words, error in (
        (("9",), "r.db has no exchange 9; it has #1 to "),
        (("1", "2"), "only one conversation can be drawn at a time"),
    ):
        done = lanes(tmp_path, path, *words)
        assert (done.code, error in done.err) == (2, True), done.err


def test_a_long_task_is_read_by_the_page(tmp_path: Path) -> None:
    """A page in the middle reads its own frames only."""
    made = writer(tmp_path / "r.db")
    made.write([request(1), *(status(1, n, f"step {n}") for n in range(1, 4 * PAGE))])
    made.finish(STARTED)
    with Recording(tmp_path / "r.db") as recording:
        conversation = LaneConversation(recording, make_key(1, 1))
        asked: list[int] = []
        whole = recording.read_payload
        recording.read_payload = lambda row: (asked.append(row.id), whole(row))[1]  # type: ignore[method-assign]
        rows = conversation.read_rows(2 * PAGE, PAGE)
        assert [row.seq for row in rows] == list(range(2 * PAGE, 3 * PAGE))
        assert len(asked) == PAGE
        assert (
            conversation.read_rows(len(conversation.order) - 1, PAGE)[0].text
            == f'status working "step {4 * PAGE - 1}"'
        )


def test_a_conversation_at_an_earlier_time(tmp_path: Path) -> None:
    """With a time, later frames and marks are left out."""
    with Recording(two_agents(tmp_path / "r.db")) as recording:
        then = LaneConversation(recording, make_key(1, 1), until=STARTED + 1100 * MS)
        rows = then.read_rows(0, len(then.order))
        assert [row.what for row in rows if row.what is not LaneRowKind.PAUSE] == [
            LaneRowKind.FRAME,
            LaneRowKind.FRAME,
            LaneRowKind.FINDING,
            LaneRowKind.MISSED,
        ]
