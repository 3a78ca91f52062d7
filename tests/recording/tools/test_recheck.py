"""Rules over a recording find what they found while it was recorded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from a2a_proxy.cards.keys import parse_keys
from a2a_proxy.cards.verify import CardVerifier
from a2a_proxy.model.values import Finding
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.tools.recheck import CardRecheck, recheck_session
from a2a_proxy.rules.define.catalogue import all_rules
from a2a_proxy.rules.define.rule import Rule
from a2a_proxy.rules.examples.conversation import http, json_text, rpc, rpc_stream
from a2a_proxy.rules.examples.objects import CARD_KEYS, artifact, send, snapshot, status, task
from a2a_proxy.rules.examples.pipe import pipe_call, pipe_response, pipe_script
from a2a_proxy.rules.examples.script import Script
from support_mutations import SAMPLES, chunks, loaded
from support_rules import record
from support_thin import thin


def checked(recording: Recording) -> list[Finding]:
    return [
        finding
        for session in recording.read_sessions()
        for finding in recheck_session(recording, session)
    ]


def in_order(live: list[Finding]) -> list[Finding]:
    """What decoders said comes first."""
    return sorted(live, key=lambda each: each.rule.startswith("A2A-"))


@pytest.mark.parametrize("rule", thin(all_rules().values(), 3), ids=lambda rule: rule.id)
def test_rechecking_a_rule_example_finds_the_same(rule: Rule, tmp_path: Path) -> None:
    """What was found live is found again, in the same order, with the same evidence."""
    live = record(tmp_path / "r.db", rule.flagged.make_chunks())
    with Recording(tmp_path / "r.db") as recording:
        assert checked(recording) == in_order(live)
        assert [row.finding for row in recording.read_findings()] == live


@pytest.mark.parametrize(
    "sample", sorted(path.name.removesuffix(".a2a.jsonl") for path in SAMPLES.glob("*.jsonl"))
)
def test_rechecking_a_sample_finds_the_same(sample: str, tmp_path: Path) -> None:
    """The bytes of real conversations: what their rules say as they pass, they say over the
    recording."""
    live = record(tmp_path / "r.db", chunks(loaded(sample)))
    with Recording(tmp_path / "r.db") as recording:
        assert checked(recording) == in_order(live)


GET = {"id": "t1"}
DONE = status("COMPLETED", second=1)
STREAM = rpc_stream("SendStreamingMessage", send(), snapshot(), DONE)
LISTED = {"tasks": [task("WORKING", second=5)], "nextPageToken": "", "pageSize": 50, "totalSize": 1}
PIPE = (
    pipe_call("SendStreamingMessage", send(), id=7),
    pipe_response(snapshot(), id=7),
    pipe_response(DONE, id=7),
)
PAGE = http(
    "POST",
    "/",
    json_text({"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": GET}),
    headers={"Content-Type": "application/json"},
    answer="<html></html>",
    media="text/html",
)


def get(generation: str, second: int) -> Script:
    return rpc("GetTask", GET, task(second=second, generation=generation), version="1.1")


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (PAGE, "A2A-HTTP-002 #1"),
        (
            rpc_stream("SendStreamingMessage", send(), json_text(snapshot()), json_text(DONE)),
            "A2A-SSE-004 #1",
        ),
        (
            STREAM + rpc("GetTask", GET, task("COMPLETED", second=1, artifacts=[artifact()])),
            "A2A-ART-006 #2",
        ),
        (get("7", 1) + get("5", 9), "A2A-STATE-009 #2"),
        (rpc("tasks/foo", GET, {"done": True}) + rpc("GetTask", GET, task()), "A2A-RPC-011 #1"),
        (rpc("tasks/foo", GET, task()), "A2A-RPC-011 #1"),
        (STREAM + rpc("ListTasks", {}, LISTED), "A2A-STATE-001 #2"),
        (pipe_script(*PIPE, pipe_response(status("FAILED", second=2), id=7)), "A2A-STATE-001 #1"),
        (pipe_script(*PIPE, pipe_response(status("WORKING", second=2), id=7)), "A2A-STDIO-010 #1"),
        (
            pipe_script(pipe_call("GetTask", GET), pipe_response(task()), pipe_response(task())),
            "A2A-STDIO-011 #1",
        ),
    ],
)
def test_a_fault_beyond_one_frame_is_found_again(
    script: Script, expected: str, tmp_path: Path
) -> None:
    """Live and in the recording, in the exchange that it breaks."""
    live = record(tmp_path / "r.db", script.make_chunks())
    assert expected in [f"{each.rule} #{each.exchange}" for each in live]
    with Recording(tmp_path / "r.db") as recording:
        assert checked(recording) == in_order(live)


def test_signatures_are_verified_again_with_other_keys(tmp_path: Path) -> None:
    """A recording without keys gets verdicts, one with a verdict gets another; a card with a label
    keeps its own."""
    flagged, clean = all_rules()["A2A-CARD-013"].flagged, all_rules()["A2A-CARD-013"].clean
    record(tmp_path / "r.db", (flagged + clean).make_chunks())
    other = json.loads(CARD_KEYS) | {"k": "b3RoZXI"}
    unsuited = json.loads(CARD_KEYS) | {"kid": "another"}
    lines = {}
    with Recording(tmp_path / "r.db") as recording:
        (session,) = recording.read_sessions()
        for name, keys in (
            ("same", json.loads(CARD_KEYS)),
            ("other", other),
            ("unsuited", unsuited),
        ):
            cards = CardRecheck(CardVerifier(parse_keys(json.dumps(keys).encode()).keys))
            found = [
                each
                for each in recheck_session(recording, session, cards=cards)
                if each.rule == "A2A-CARD-013"
            ]
            lines[name] = [each.exchange for each in found], list(cards.lines)
    failed = "signed by key-1 (HS256), does not verify: key-1 tried with every form"
    assert lines == {
        "same": ([1], [failed, "signed by key-1 (HS256), verified"]),
        "other": ([1, 2], [failed]),
        "unsuited": ([], ["signed by key-1 (HS256), not verified: --card-keys has no key key-1"]),
    }
