"""`a2a-inspect diff`: the places compared, its summary, its JSON and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

from support_cli import Ran, run_here
from support_inspect import changes, exchange, request, sample, status, writer
from support_recording import STARTED

DEMO = Path(__file__).parents[3] / "recordings" / "demo.a2a.jsonl"


def diff(tmp_path: Path, *words: object) -> Ran:
    return run_here(tmp_path / "state", "diff", *words, TZ="UTC")


def test_two_places_of_one_recording_are_compared(tmp_path: Path) -> None:
    """The verdict comes first, then both calls, then what differs, by words."""
    done = diff(tmp_path, DEMO, "#2", "6")

    assert (done.code, done.err) == (1, "")
    assert done.lines[2] == "different: 1 difference"
    assert done.lines[-3:] == [
        "  ~ request $.message.parts[0].text",
        "    - Plan a day in [Lisbon] for me",
        "    + Plan a day in [Porto] for me",
    ]


def test_equal_recordings_exit_with_0(tmp_path: Path) -> None:
    assert diff(tmp_path, DEMO, DEMO).code == 0
    done = diff(tmp_path, DEMO, DEMO, "#2")
    assert (done.code, done.lines[2]) == (0, "same")


def test_a_single_exchange_is_compared_with_the_previous_one(tmp_path: Path) -> None:
    done = diff(tmp_path, DEMO, "#6")

    assert (done.code, done.lines[:2]) == (1, [f"left   {DEMO} #2", f"right  {DEMO} #6"])


def test_a_single_recording_compares_its_last_two_sessions(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    for session, text in ((1, "one"), (2, "two")):
        made = writer(path, session)
        made.write([request(1), status(1, 1, text)], changes=changes(exchange(1)))
        made.finish(STARTED + 10_000_000_000)

    done = diff(tmp_path, path)

    assert (done.code, done.lines[:2]) == (
        1,
        [f"left   {path} session 1", f"right  {path} session 2"],
    )
    assert done.lines[-2:] == ["    - one", "    + two"]
    assert diff(tmp_path, path, "1:", "1:").code == 0


def test_canonical_fields_on_request(tmp_path: Path) -> None:
    """They are listed with the reason why they are ignored by default."""
    done = diff(tmp_path, DEMO, "2", "6", "--all")

    assert any(line.endswith("$.message.messageId  (id)") for line in done.lines)
    assert len(done.lines) > 50


def test_json(tmp_path: Path) -> None:
    """The verdict, then each call in which something differs, with stable names."""
    done = diff(tmp_path, DEMO, "2", "6", "--json")
    verdict, call = map(json.loads, done.lines)

    assert (verdict["kind"], verdict["same"], verdict["differences"], verdict["calls"]) == (
        "summary",
        False,
        1,
        {"changed": 1},
    )
    assert (call["kind"], call["change"], call["left"]["id"], call["right"]["id"]) == (
        "call",
        "changed",
        2,
        6,
    )
    assert call["differences"] == [
        {
            "part": "request",
            "change": "changed",
            "left_path": "$.message.parts[0].text",
            "left_frame": 0,
            "right_path": "$.message.parts[0].text",
            "right_frame": 0,
            "left": "Plan a day in Lisbon for me",
            "right": "Plan a day in Porto for me",
        }
    ]


def test_a_filter_chooses_calls(tmp_path: Path) -> None:
    left, right = sample(tmp_path / "a.db", 2), sample(tmp_path / "b.db", 3)

    assert diff(tmp_path, left, right).lines[2] == "different: of 3 calls 1 only right, 2 the same"
    assert diff(tmp_path, left, right, "-f", "err").lines[2] == "same"


def test_a_mistake_exits_with_2(tmp_path: Path) -> None:
    done = diff(tmp_path, DEMO, "#99")

    assert (done.code, done.out) == (2, "")
    assert "error: " in done.err
    assert "hint: " in done.err


def test_payload_text_cannot_act_on_a_terminal(tmp_path: Path) -> None:
    for name, text in (("a.db", "x\x1b[31mred"), ("b.db", "x\x1b[2Jgone\u202e")):
        made = writer(tmp_path / name)
        made.write([request(1, text)], changes=changes(exchange(1, error=text, target="/\x9b")))
        made.finish(STARTED + 10_000_000_000)

    for more in ((), ("--all",), ("--json",)):
        done = diff(tmp_path, tmp_path / "a.db", tmp_path / "b.db", *more)
        assert done.code == 1
        assert not {"\x1b", "\x9b", "\u202e"} & set(done.out)
