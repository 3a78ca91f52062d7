"""The tabs of a frame, without a screen: bytes with their framing, findings, artifacts, times."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_inspect.data.conversation import artifact_lines, process_lines, timing_lines
from a2a_inspect.data.finding_counts import find_findings
from a2a_inspect.data.frame_bytes import byte_range_words, wire_bytes
from a2a_inspect.data.hexdump import hex_row
from a2a_inspect.data.payload_lines import indent_json
from a2a_inspect.data.source import ExchangeStream
from a2a_inspect.widgets.detail import FIRST_BYTES, _decode_payload_lines
from a2a_inspect.widgets.facts import fact_lines
from a2a_inspect.widgets.finding_lines import finding_lines, paint_findings
from a2a_inspect.widgets.hex_view import mark_payload_bounds
from a2a_inspect.widgets.tab_line import TABS, TabLine, tab_titles
from a2a_inspect.widgets.trace_lines import trace_lines
from a2a_proxy.recording.cassette.file import open_recording_or_cassette
from a2a_proxy.recording.read.rows import ExchangeRow, make_key
from support_inspect import MS, exchange, frame, live, request, sample
from support_recording import STARTED
from support_screen import looking

RECORDINGS = Path(__file__).parents[3] / "recordings"
SSE = "data: \0\r\ndata: \0\r\n\r\n"
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda each: st.lists(each, max_size=4) | st.dictionaries(st.text(), each, max_size=4),
    max_leaves=20,
)


def test_a_payload_is_shown_within_its_framing() -> None:
    """Each line of it where it stood; the bytes around it are what the recording says they were."""
    one = frame(1, 1, b'{"a":\n1}', framing=SSE)
    raw = wire_bytes(one, FIRST_BYTES)
    assert raw.data == b'data: {"a":\r\ndata: 1}\r\n\r\n'
    assert [raw.data[first:last] for first, last in raw.payload_ranges] == [b'{"a":', b"1}"]
    assert byte_range_words(one, raw) == "bytes 0 to 8 to the client, its payload between [ ]"


def test_a_payload_without_framing() -> None:
    """Nothing is marked where all of it is payload."""
    one = request(1, "hello")
    raw = wire_bytes(one, FIRST_BYTES)
    assert raw.data == one.payload
    assert raw.find_bounds() == (frozenset(), frozenset())
    assert byte_range_words(one, raw) == f"bytes 0 to {one.size} to the agent"
    assert (
        byte_range_words(frame(1, 1, b""), wire_bytes(frame(1, 1, b""), FIRST_BYTES))
        == "bytes 0 to 0 to the client; no payload"
    )


@given(st.binary(max_size=80), st.integers(0, 90))
def test_only_the_beginning_of_a_large_payload_is_shown(payload: bytes, limit: int) -> None:
    """What is shown is the beginning of all of it, and no more of the payload than was asked
    for."""
    one = frame(1, 1, payload, framing="data: \0\n\n")
    whole, part = wire_bytes(one, 1000), wire_bytes(one, limit)
    assert whole.data == b"data: " + payload + b"\n\n"
    assert whole.data.startswith(part.data)
    assert sum(last - first for first, last in part.payload_ranges) == min(limit, len(payload))


def test_a_truncated_payload_has_no_end_bracket() -> None:
    """Neither has one whose lines do not fit what is said of its framing."""
    cut = frame(1, 1, b"half", framing="data: \0\n\n", truncated=True, size=70_000)
    assert wire_bytes(cut, FIRST_BYTES).data == b"half"
    assert (
        byte_range_words(cut, wire_bytes(cut, FIRST_BYTES))
        == "bytes 0 to 4 to the client, 4 B of 68.4 KiB"
    )
    assert wire_bytes(frame(1, 1, b"a", framing=SSE), FIRST_BYTES).data == b"a"


@pytest.mark.parametrize(("offset", "width"), [(0, 8), (0, 16), (16, 16)])
def test_brackets_are_between_bytes(offset: int, width: int) -> None:
    """Before its first byte and after its last, and nothing else changes."""
    raw = wire_bytes(frame(1, 1, b"0123456789abcdefg", framing="data: \0\n\n"), FIRST_BYTES)
    row = raw.data[offset : offset + width]
    plain = f"  {hex_row(row, width)[0]} "
    marked = mark_payload_bounds(plain, raw, offset, len(row))
    assert marked.replace("[", " ").replace("]", " ") == plain
    if not offset:
        assert "20[30" in marked.replace("  ", " ")
    else:
        assert "67]0a" in marked


@pytest.mark.parametrize(
    "name", ["stdio", "sdk-0.3-rest", "live-2153", "generations", "dialect-vendor"]
)
def test_every_frame_of_a_sample(name: str) -> None:
    """All tabs have something to say, in text that acts on no terminal."""
    with open_recording_or_cassette(RECORDINGS / f"{name}.a2a.jsonl") as recording:
        for row in recording.read_exchanges():
            stream = ExchangeStream(row, 0)
            lines = [*timing_lines(recording, row.key, 1), *process_lines(recording, row.key)]
            lines += [
                *artifact_lines(recording, row.key, 1),
                *finding_lines(find_findings(recording, row, 1)[0], 1),
            ]
            for each in recording.read_frames(row.key):
                raw = wire_bytes(each.frame, FIRST_BYTES)
                assert b"".join(raw.data[a:b] for a, b in raw.payload_ranges).replace(
                    b"\n", b""
                ) == (each.frame.payload.replace(b"\n", b""))
                lines += trace_lines(stream, each.frame, [])
            assert lines
            assert all(line.isprintable() for line in lines)


def test_an_artifact_at_an_earlier_time() -> None:
    """A replay shows no later chunk or frame."""
    with open_recording_or_cassette(RECORDINGS / "demo.a2a.jsonl") as recording:
        frames = [each.frame for each in recording.read_frames(make_key(1, 2))]
        second = [each for each in frames if each.artifact_id == "plan"][1]
        lines = artifact_lines(recording, make_key(1, 2), None, second.at)
        assert len([line for line in lines if "  1 part  " in line]) == 2
        assert lines[2].endswith(", not complete")
        assert not [line for line in lines if "Evening" in line]
        passed = [each for each in frames if each.at <= second.at]
        assert (
            len(timing_lines(recording, make_key(1, 2), None, second.at))
            == 1 + len(passed)
            < 1 + len(frames)
        )
        assert artifact_lines(recording, make_key(1, 2), None, frames[0].at) == [
            "(its task has no artifacts)"
        ]


def test_an_artifact_lists_its_chunks() -> None:
    """Which frame brought which part, the chosen frame marked; then the content."""
    with open_recording_or_cassette(RECORDINGS / "demo.a2a.jsonl") as recording:
        lines = artifact_lines(recording, make_key(1, 2), 4)
        chunks = [line for line in lines if "chunk " in line and "  1 part  " in line]
        frames = [
            each.frame
            for each in recording.read_frames(make_key(1, 2))
            if each.frame.artifact_id == "plan"
        ]
        assert artifact_lines(recording, make_key(1, 1), None) == ["(this exchange has no task)"]
    assert lines[:2] == ["ARTIFACT", "name              plan"]
    assert lines[2].endswith(", complete")
    assert [f"#2.{each.seq} " in line for each, line in zip(frames, chunks, strict=True)] == [
        True
    ] * 3
    assert [line.startswith("▸ chunk") for line in chunks] == [each.seq == 4 for each in frames]
    content = [line.strip().split(":")[0] for line in lines if line.startswith("  ")]
    assert content == ["Morning", "Afternoon", "Evening"]


def test_trace_and_latencies() -> None:
    """Counted from the end of the request; unknown times are left out."""
    ids = {
        "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "task_id": "t-1",
    }
    headers = ((b"TraceState", b"vendor=1"),)
    call = exchange(1, request_ended=STARTED + 1000 * MS + 30 * MS, request_headers=headers, **ids)
    lines = trace_lines(
        ExchangeStream(ExchangeRow(1, 1, call), 2), frame(1, 1, b"{}", task_id="t-2"), ["FRAMES"]
    )
    for line in (
        "trace id          4bf92f3577b34da6a3ce929d0e0e4736",
        "parent span       00f067aa0ba902b7",
        "sampled           yes",
        "filter            ~~4bf92f35",
        "tracestate        vendor=1",
        "task              t-1",
        "this frame's task t-2",
        "request           30 ms from its first to its last byte",
        "closed            870 ms after the request",
        "FRAMES",
    ):
        assert line in lines, lines
    still = trace_lines(ExchangeStream(ExchangeRow(1, 1, live(1, request_ended=0)), 2), None, [])
    assert "closed            still open" in still
    assert not [line for line in still if line.startswith("request ")]


def test_an_early_answer_has_no_latency() -> None:
    """It began before the end of its request: in the Trace tab and in the Facts tab."""
    call = exchange(1)
    call = exchange(1, request_ended=call.closed)
    stream = ExchangeStream(ExchangeRow(1, 1, call), 2)
    assert "first event       before the request body had arrived" in trace_lines(stream, None, [])
    facts = fact_lines(stream, frame(1, 1, b"{}"))
    assert "after the request no: answered before the request body had arrived" in facts


def test_a_forwarded_trace_is_shown() -> None:
    """What the client sent, what the agent got, and the trace that both are in, or the one that
    began here."""
    sent = f"00-{'a' * 32}-{'b' * 16}-01"
    for came in ("", f"00-{'a' * 32}-{'c' * 16}-01"):
        call = exchange(1, traceparent=came, sent_traceparent=sent)
        lines = trace_lines(ExchangeStream(ExchangeRow(1, 1, call), 2), None, [])
        assert f"traceparent       {came or 'none sent'}" in lines
        assert f"forwarded as      {sent}" in lines
        assert f"trace id          {'a' * 32}" in lines
        assert (f"parent span       {'c' * 16}" in lines) == bool(came)


def test_times_of_frames() -> None:
    """Each from the exchange's first byte and from the one before it on its way."""
    with open_recording_or_cassette(RECORDINGS / "demo.a2a.jsonl") as recording:
        lines = timing_lines(recording, make_key(1, 2), 0)
        assert timing_lines(recording, make_key(9, 9), None) == []
    assert lines[0] == "FRAMES"
    assert lines[1].startswith("▸ 0 → request")
    assert "after the previous frame" in lines[-2]


def test_process_records_are_shown_with_their_calls() -> None:
    """Log lines and stray output of a stdio agent, and its end; nothing for a call over HTTP."""
    with open_recording_or_cassette(RECORDINGS / "stdio.a2a.jsonl") as recording:
        lines = process_lines(recording, make_key(1, 2))
    assert lines[0] == "PROCESS"
    assert lines[1] == "command           python3 story.py"
    assert next(line for line in lines if line.startswith("end ")).split(None, 1)[1]
    assert len(lines) > 5
    with open_recording_or_cassette(RECORDINGS / "demo.a2a.jsonl") as recording:
        assert process_lines(recording, make_key(1, 2)) == []


@given(values)
def test_indented_json_has_the_same_value(value: object) -> None:
    """Whole JSON comes out as the same JSON, and its lines are harmless."""
    lines = list(indent_json(json.dumps(value).encode()))
    assert json.loads("".join(lines)) == value
    assert all(line.isprintable() for line in lines)


@given(values, st.integers(0, 200))
def test_indenting_truncated_json_changes_only_white_space(value: object, size: int) -> None:
    """What is there of it loses nothing but white space."""
    text = json.dumps(value)[:size]
    assert "".join("".join(indent_json(text.encode())).split()) == "".join(text.split())


def test_a_large_payload_is_read_by_pages() -> None:
    """JSON in its own spelling, and how much of it is shown; then all of it, decoded."""
    payload = json.dumps({"result": {"text": ["word " * 20] * 1000}}).encode()
    large = frame(1, 1, payload)
    first = _decode_payload_lines(large, live(1), FIRST_BYTES)
    assert first[:3] == ["{", '  "result": {', '    "text": [']
    assert first[-1] == "(64.0 KiB of 101.6 KiB; + loads more)"
    assert _decode_payload_lines(large, live(1), FIRST_BYTES * 4)[-1] == "}"


def test_a_line_of_tabs_at_any_width() -> None:
    """All names where they fit 80 cells; then abbreviations, then numbers; the chosen name is
    always in full."""
    assert len("".join(tab_titles(0, 80))) <= 80
    assert all(name in "".join(tab_titles(3, 80)) for name in TABS)
    assert (
        "".join(tab_titles(3, 60)) == " 1 Dec  2 Raw  3 Head [4 Findings] 5 Art  6 Trace  7 Facts "
    )
    assert "".join(tab_titles(3, 58)) == " 1  2  3 [4 Findings] 5  6  7 "
    for width in range(30, 100):
        assert all(len("".join(tab_titles(tab, width))) <= width for tab in range(len(TABS)))


async def test_the_tabs_have_names_beside_the_lists(tmp_path: Path) -> None:
    """On a terminal of 120 columns, in each tab; a click on an abbreviation opens its tab."""
    async with looking(sample(tmp_path / "r.db"), (120, 40)) as person:
        await person.sees(
            "3 exchanges", "[1 Decoded] 2 Raw  3 Head  4 Find  5 Art  6 Trace  7 Facts"
        )
        for tab in range(len(TABS)):
            await person.types(str(tab + 1))
            await person.sees(f"[{tab + 1} {TABS[tab]}]", "1 Dec", "7 Facts")
        line = person.app.screen.query_one(TabLine)
        await person.pilot.click(
            line, offset=(len("".join(tab_titles(6, line.size.width)[:2])) + 2, 0)
        )
        await person.sees("[3 Headers]")


def test_findings_are_painted_by_severity_and_rule() -> None:
    """Severity and rule are painted differently from the summary."""
    line = "warning A2A-GEN-001 frame 3: generations 4 to 5 were left out"
    cuts = [at for at, _ in paint_findings(line)]
    assert [line[a:b].strip() for a, b in zip(cuts, [*cuts[1:], None], strict=True)][:2] == [
        "warning",
        "A2A-GEN-001",
    ]
