"""Every place that shows endings has the same ones: lists, trees, swimlanes, reports, spans, the
screen and the MCP server."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from a2a_inspect.commands.mcp import RecordingTools
from a2a_inspect.data.source import RecordingSource
from a2a_proxy.recording.cassette.file import open_recording_or_cassette
from a2a_proxy.recording.read.endings import EndingReader
from a2a_proxy.recording.read.rows import split_key
from a2a_proxy.rules.define.catalogue import all_rules
from a2a_proxy.rules.examples.conversation import CLEAN_SEND, rpc, rpc_stream
from a2a_proxy.rules.examples.objects import send, snapshot, status
from a2a_proxy.rules.examples.script import Script
from a2a_proxy.telemetry.span_options import DEFAULT_SPAN_OPTIONS
from a2a_proxy.telemetry.span_reader import SpanReader
from support_cli import run_here
from support_report import reported
from support_rules import record
from support_thin import thin

_ROOT = Path(__file__).resolve().parents[3]
_CASSETTES = sorted(
    [*(_ROOT / "recordings").rglob("*.a2a.jsonl"), *(_ROOT / "tests/data").rglob("*.a2a.jsonl")]
)
_OPEN = ("not-recorded", "question-open")
"""Causes of calls and tasks that have no end yet, which only `why` lists."""
_RETRIED = rpc("SendMessage", send(id="m5"), finish="cut") + rpc(
    "SendMessage", send(id="m5"), snapshot("COMPLETED"), id=2
)
_WAITING = rpc_stream("SendStreamingMessage", send(), snapshot(), status("WORKING"), finish="stop")
_Endings = dict[tuple[int, int], str]
"""The summaries of endings by session and exchange."""


def _objects(path: Path, *words: object) -> list[dict[str, Any]]:
    done = run_here(path.parent, words[0], path, *words[1:], "--json")
    return [json.loads(line) for line in done.lines]


def _summaries(objects: list[dict[str, Any]], number: str = "exchange") -> _Endings:
    return {
        (each["session"], each[number]): each["ending"]["summary"]
        for each in objects
        if each.get("ending") and each[number] is not None
    }


def _from_ls(path: Path) -> _Endings:
    return _summaries(_objects(path, "ls"), "id")


def _from_why(path: Path) -> _Endings:
    calls = [each for each in _objects(path, "why") if each["ending"]]
    return _summaries([each for each in calls if each["ending"]["cause"] not in _OPEN])


def _from_show(path: Path) -> _Endings:
    return _summaries([each for each in _objects(path, "show") if "id" in each], "id")


def _from_lanes(path: Path) -> _Endings:
    with open_recording_or_cassette(path) as recording:
        calls = {split_key(row.key): None for row in recording.read_exchanges(headers=False)}
    found: _Endings = {}
    while calls:
        (session, number), _ = calls.popitem()
        drawn = _objects(path, "lanes", f"{session}:{number}")
        found |= _summaries(drawn)
        for each in drawn:
            calls.pop((session, each.get("exchange", 0)), None)
        text = run_here(path.parent, "lanes", path, f"{session}:{number}").out
        assert text.count(" did not end well: ") == len(_summaries(drawn))
    return found


def _from_spans(path: Path) -> _Endings:
    """Return those of the spans, which calls without an end have none of."""
    found: _Endings = {}
    with open_recording_or_cassette(path) as recording:
        for session in recording.read_sessions():
            reader = SpanReader(recording, session, DEFAULT_SPAN_OPTIONS)
            for row in recording.read_exchanges(session.id):
                if not row.exchange.closed:
                    ending = EndingReader(recording).read(row)
                    found |= {split_key(row.key): ending.summary} if ending is not None else {}
                    continue
                made = reader.call_spans(row.exchange)
                assert made is not None
                for event in made.spans[0].events:
                    if event.name == "a2a_proxy.ending":
                        summary = event.attributes["a2a_proxy.ending.summary"]
                        found[session.id, row.exchange.id] = str(summary)
    return found


def _from_report(path: Path) -> set[tuple[int, int]]:
    facts = [each for each in reported(path).table("exchange") if each]
    places = [each["place"] for each in facts if "why it did not end well" in each["facts"]]
    return {(int(s), int(e)) for s, _, e in (p.lstrip("#").rpartition(":") for p in places)}


async def _from_screen(path: Path) -> _Endings:
    source = RecordingSource(path)
    await source.poll()
    lines = [each for page in range(3) for each in await source.read_exchanges(page)]
    source.close()
    return {
        (each.session, each.exchange.id): each.ending.summary
        for each in lines
        if each.ending is not None
    }


def _from_filter(path: Path) -> set[tuple[int, int]]:
    return {(each["session"], each["id"]) for each in _objects(path, "ls", "-f", "ending:*")}


_PLACES: tuple[Callable[[Path], _Endings], ...] = (_from_why, _from_show, _from_lanes, _from_spans)


async def _compare_places(path: Path) -> _Endings:
    expected = _from_ls(path)
    for read in _PLACES:
        assert read(path) == expected, read.__name__
    assert await _from_screen(path) == expected
    assert _from_report(path) == expected.keys()
    assert _from_filter(path) == expected.keys()
    return expected


@pytest.mark.parametrize("cassette", thin(_CASSETTES, 3))
async def test_cassettes(cassette: Path) -> None:
    await _compare_places(cassette)


@pytest.mark.parametrize("cause", thin([each for each in all_rules() if "-END-" in each], 3))
async def test_each_cause(tmp_path: Path, cause: str) -> None:
    """Its example, with a call that a retry explains, and one that is open."""
    script: Script = all_rules()[cause].flagged
    record(path := tmp_path / "r.db", (script + _RETRIED + CLEAN_SEND + _WAITING).make_chunks())
    await _compare_places(path)


def test_assistant_reads_the_same(tmp_path: Path) -> None:
    """The tools of the MCP server print what the commands do."""
    record(path := tmp_path / "r.db", (_RETRIED + _WAITING).make_chunks())
    tools = RecordingTools([path])
    for name in ("why", "ls", "show", "lanes"):
        words = ("--width", "110") if name == "lanes" else ()
        printed = getattr(tools, name)(path.name).partition("\n")[2]
        assert printed == run_here(tmp_path, name, path, *words).out
