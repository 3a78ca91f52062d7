"""Import of HAR files: our own exports give the recording again, those of other programs what they
have."""

from __future__ import annotations

import base64
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from a2a_inspect.commands.import_file import open_import
from a2a_inspect.formats.chosen import ExportSelection
from a2a_inspect.formats.har import write_har
from a2a_inspect.imports.har_call import HarCall, parse_time
from a2a_inspect.imports.recording_writer import ImportOptions, write_import
from a2a_proxy.model.errors import UserError
from a2a_proxy.model.values import FrameKind
from a2a_proxy.model.wire import ChunkKind
from a2a_proxy.protocol.finding_totals import ENDING_RULES
from a2a_proxy.recording.cassette.file import open_recording_or_cassette
from a2a_proxy.recording.read.reader import Recording
from support_import import check_equal
from support_thin import thin

SAMPLES = sorted(
    each
    for each in (Path(__file__).parents[3] / "recordings").rglob("*.a2a.jsonl")
    if each.name != "stdio.a2a.jsonl"
)
MS = 1_000_000
START = "2026-05-04T10:00:00.000Z"


@pytest.fixture(autouse=True)
def _state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A2A_PROXY_STATE", str(tmp_path / "state"))


def field(name: str, value: str) -> dict[str, str]:
    return {"name": name, "value": value}


def entry(start: str = START, text: str | None = None, **response: Any) -> dict[str, Any]:
    """Return a call of GetTask by JSON-RPC, as a browser writes it."""
    asked = {"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "t-1"}}
    task = {"id": "t-1", "contextId": "c-1", "status": {"state": "TASK_STATE_WORKING"}}
    answer = json.dumps({"jsonrpc": "2.0", "id": 1, "result": task}) if text is None else text
    return {
        "startedDateTime": start,
        "time": 30,
        "request": {
            "method": "POST",
            "url": "http://agent.test:8000/rpc?x=1",
            "httpVersion": "http/1.1",
            "headers": [
                field("Host", "agent.test:8000"),
                field("Content-Type", "application/json"),
            ],
            "postData": {"mimeType": "application/json", "text": json.dumps(asked)},
        },
        "response": {
            "status": 200,
            "statusText": "OK",
            "headers": [field("Content-Type", "application/json"), field("Content-Length", "3")],
            "content": {"size": len(answer), "mimeType": "application/json", "text": answer},
            **response,
        },
        "timings": {"blocked": 5, "dns": -1, "connect": -1, "send": 5, "wait": 10, "receive": 10},
    }


def har(path: Path, *entries: dict[str, Any], creator: str = "WebInspector", **log: Any) -> Path:
    document = {
        "log": {
            "version": "1.2",
            "creator": {"name": creator},
            "pages": [],
            **log,
            "entries": list(entries),
        }
    }
    path.write_text(json.dumps(document))
    return path


def imported(path: Path, target: Path) -> list[Any]:
    """Return the exchanges of the recording that the import writes."""
    write_import(open_import(path), target, ImportOptions())
    with Recording(target) as recording:
        return [row.exchange for row in recording.read_exchanges()]


@pytest.mark.parametrize("sample", thin(SAMPLES, 4), ids=lambda path: path.name)
def test_our_own_export_gives_the_recording_again(sample: Path, tmp_path: Path) -> None:
    path, target = tmp_path / "story.har", tmp_path / "story.a2a.db"
    with open_recording_or_cassette(sample) as recording, path.open("wb") as stream:
        write_har(ExportSelection(recording), stream)
    write_import(open_import(path), target, ImportOptions())
    check_equal(target, sample)


def test_failures_are_stored_as_by_the_recorder(tmp_path: Path) -> None:
    """The page of a gateway."""
    page = field("Content-Type", "text/html")
    path = har(tmp_path / "a.har", entry(text="<p>", status=502, headers=[page]))
    done = write_import(open_import(path), target := tmp_path / "a.db", ImportOptions())
    with Recording(target) as recording:
        rules = [row.finding.rule for row in recording.read_findings()]
    assert [rule for rule in rules if rule.startswith(ENDING_RULES)] == ["A2A-END-007"]
    assert "A2A-END-007" in [each.total.rule for each in done.rules]


def test_calls_of_a_browser_have_their_times_and_bodies(tmp_path: Path) -> None:
    """The length of the decoded body replaces the recorded one; times are those of the entry's
    phases."""
    (call,) = imported(har(tmp_path / "a.har", entry()), tmp_path / "a.db")
    assert (call.operation, call.task_id, call.target, call.status) == (
        "GetTask",
        "t-1",
        "/rpc?x=1",
        200,
    )
    took = [at - call.started for at in (call.request_ended, call.response_started, call.closed)]
    assert took == [5_000_000, 15_000_000, 25_000_000]
    assert call.http_version == "1.1"


def test_overlapping_calls_are_in_order_of_time(tmp_path: Path) -> None:
    """Also if the file lists the later one first; the times of a journal never decrease."""
    later = entry("2026-05-04T12:00:00.010000+02:00")
    source = open_import(har(tmp_path / "a.har", later, entry()))
    chunks = list(source.read_chunks())
    assert [each.at for each in chunks] == sorted(each.at for each in chunks)
    assert [each.connection for each in chunks if each.kind is ChunkKind.OPEN] == [1, 2]
    assert [each.connection for each in chunks if each.kind is ChunkKind.CLOSED] == [1, 2]
    assert [each.connection for each in chunks].index(2) < len(chunks) // 2


def test_an_event_stream_is_split_into_events(tmp_path: Path) -> None:
    """Its times are estimated, which is said; `Content-Encoding` is gone, because the body is
    decoded."""
    event = {
        "jsonrpc": "2.0",
        "id": 1,
        "result": {"taskId": "t-1", "contextId": "c-1", "final": True},
    }
    text = "".join(f"data: {json.dumps(event)}\n\n" for _ in range(4))
    heads = [
        field("content-type", "text/event-stream"),
        field("content-encoding", "br"),
        field("vary", "x\r\ny: z"),
    ]
    stream = entry(text=text, headers=heads)
    stream["request"] |= {
        "httpVersion": "h2",
        "headers": [field(":authority", "x"), field("accept", "text/*")],
    }
    source = open_import(har(tmp_path / "a.har", stream))
    write_import(source, tmp_path / "a.db", ImportOptions())
    assert any(each.startswith("times of single events") for each in source.lacks)
    with Recording(tmp_path / "a.db") as recording:
        (row,) = recording.read_exchanges()
        frames = [each.frame for each in recording.read_frames(row.key)]
        (found,) = (
            each.finding for each in recording.read_findings() if each.finding.rule == "IMPORT"
        )
    assert row.exchange.http_version == "2"
    assert (row.exchange.events, row.exchange.authority) == (4, "agent.test:8000")
    assert len({frame.at for frame in frames}) >= 4
    assert "times of single events" in found.summary


def chromium_stream(*texts: str, body: str | None) -> dict[str, Any]:
    """Return a stream with the events that Chromium lists, 40 ms apart."""
    stream = entry(text=body, headers=[field("content-type", "text/event-stream")])
    if body is None:
        stream["response"]["content"] = {"size": 0, "mimeType": "text/event-stream"}
    begin = parse_time(START) / 1e9
    stream["_eventSourceMessages"] = [
        {"time": begin + 0.04 * number, "eventName": "message", "eventId": "", "data": text}
        for number, text in enumerate(texts, 1)
    ]
    return stream


EVENT = '{"jsonrpc": "2.0", "id": 1, "result": {"taskId": "t-1", "contextId": "c-1", "final": %s}}'


@pytest.mark.parametrize(
    "body", [f": hello\n\ndata: {EVENT % 'false'}\n\n: wait\n\ndata: {EVENT % 'true'}\n\n", None]
)
def test_chromium_lists_the_events_of_a_stream(body: str | None, tmp_path: Path) -> None:
    """With their times, and also where the file has no body: then they are its body, without an
    end."""
    path = har(tmp_path / "a.har", chromium_stream(EVENT % "false", EVENT % "true", body=body))
    source = open_import(path)
    write_import(source, tmp_path / "a.db", ImportOptions())
    with Recording(tmp_path / "a.db") as recording:
        (row,) = recording.read_exchanges()
        frames = [
            each.frame
            for each in recording.read_frames(row.key)
            if each.frame.kind is FrameKind.EVENT
        ]
    assert [frame.payload.decode() for frame in frames] == [EVENT % "false", EVENT % "true"]
    assert [round((frame.at - parse_time(START)) / 1e6) for frame in frames] == [40, 80]
    assert row.exchange.how == ("complete" if body else "connection lost")
    assert any("made of their events" in each for each in source.lacks) == (body is None)
    assert not any("times of single events" in each for each in source.lacks)


def test_events_of_chromium_that_do_not_fit_the_body(tmp_path: Path) -> None:
    """Their times are not used; names, ids and lines of an event without a body are kept."""
    one = chromium_stream("a", "b", body="data: a\n\n")
    assert "times of single events" not in str(HarCall(one, "WebInspector").lacks)
    made = chromium_stream("a\nb", body=None)
    made["_eventSourceMessages"][0] |= {"eventName": "end", "eventId": "7"}
    assert (
        HarCall(made, "WebInspector")._response_body == b"event: end\nid: 7\ndata: a\ndata: b\n\n"
    )


@pytest.mark.parametrize(
    ("response", "how", "lost"),
    [
        ({"_error": "net::ERR_ABORTED"}, "client gone", 0),
        ({"_error": "net::ERR_CONNECTION_RESET"}, "agent gone", 0),
        ({"status": 0, "headers": [], "content": {}}, "connection lost", 0),
        ({"content": {"size": 77, "mimeType": "application/json"}}, "connection lost", 77),
    ],
)
def test_what_a_file_lacks_is_not_a_fault_of_a_peer(
    response: dict[str, Any], how: str, lost: int, tmp_path: Path
) -> None:
    """A missing body or response is lost; a reset of a peer is one."""
    (call,) = imported(har(tmp_path / "a.har", entry(**response)), tmp_path / "a.db")
    assert call.how == how
    with Recording(tmp_path / "a.db") as recording:
        (session,) = recording.read_sessions()
    assert (session.lost, session.complete == "complete") == (lost, not lost)


def test_mitmproxy_reads_bodies_of_unknown_charset_as_latin_1(tmp_path: Path) -> None:
    """That is reversed: the payload has the letters of the agent."""
    event = {"jsonrpc": "2.0", "id": 1, "result": {"x": "Grüße"}}
    text = f"data: {json.dumps(event, ensure_ascii=False)}\n\n"
    call = entry(
        text=text.encode().decode("latin-1"), headers=[field("content-type", "text/event-stream")]
    )
    imported(har(tmp_path / "a.har", call, creator="mitmproxy"), tmp_path / "a.db")
    with Recording(tmp_path / "a.db") as recording:
        payloads = [
            each.frame.payload
            for row in recording.read_exchanges()
            for each in recording.read_frames(row.key)
        ]
    assert any("Grüße".encode() in each for each in payloads)


def test_mitmproxy_connects_before_a_request(tmp_path: Path) -> None:
    """The time of its connection to the server is no part of the call, which would end after the
    next one has begun."""
    first, second = entry(), entry("2026-05-04T10:00:00.026Z")
    (one, two) = imported(
        har(tmp_path / "a.har", first, second, creator="mitmproxy"), tmp_path / "a.db"
    )
    assert one.started == parse_time(START)
    assert one.closed == two.started - MS


def test_base64_bodies_and_secrets(tmp_path: Path) -> None:
    """A body in Base64 is decoded; a credential is replaced by a label, as in a live recording."""
    answer = base64.b64encode(
        b'{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"no"}}'
    ).decode()
    call = entry(
        content={"size": 9, "mimeType": "application/json", "text": answer, "encoding": "base64"}
    )
    call["request"]["headers"].append(field("Authorization", "Bearer topsecrettoken12345"))
    (found,) = imported(har(tmp_path / "a.har", call), tmp_path / "a.db")
    assert "TASK_NOT_FOUND" in found.error
    assert b"redacted-" in dict(found.request_headers)[b"Authorization"]
    assert b"topsecrettoken" not in (tmp_path / "a.db").read_bytes()


def test_other_entries_are_left_out_and_counted(tmp_path: Path) -> None:
    """Files that a browser loads by itself, and what is no HTTP."""
    picture, socket, switch = entry(), entry(), entry()
    switch["response"]["status"] = 101
    picture["_resourceType"] = "image"
    socket["request"]["url"] = "wss://agent.test/"
    source = open_import(har(tmp_path / "a.har", picture, entry(), socket, switch))
    assert "3 entries that are no HTTP calls" in source.lacks
    assert source.upstreams == ("agent.test:8000",)
    source = open_import(har(tmp_path / "a.har", picture, entry()))
    assert "1 entry that is no HTTP call" in source.lacks


def _without(member: str) -> dict[str, Any]:
    return {name: value for name, value in entry().items() if name != member}


def _posted(data: Any) -> dict[str, Any]:
    return {**entry(), "request": {**entry()["request"], "postData": data}}


NOT_VALID = {
    "no request": (_without("request"), "it has no member 'request'"),
    "no start": (_without("startedDateTime"), "it has no member 'startedDateTime'"),
    "another type": ({**entry(), "timings": 3}, "a member is of another type than in the format"),
    "status": (entry(status="abc"), "its status is no number: 'abc'"),
    "surrogate": (
        _posted({"params": [{"name": "a", "value": "\ud800"}]}),
        "a text has half of a character",
    ),
    "surrogate in an address": (
        {**entry(), "serverIPAddress": "\ud800"},
        "a text has half of a character",
    ),
    "URL": (
        {**entry(), "request": {**entry()["request"], "url": "http://["}},
        "its URL is not valid: 'http://['",
    ),
    "time of an event": (
        {**entry(), "_eventSourceMessages": [{"time": "7"}]},
        "a member is of another type than in the format",
    ),
    **{
        f"time of an event {each}": (
            {**entry(), "_eventSourceMessages": [{"time": float(each)}]},
            "the time of an event is not a finite number",
        )
        for each in ("nan", "inf")
    },
    **{
        each: (entry(each), f"'{each}' is not a time in ISO 8601")
        for each in (
            "2026-02-30T00:00:00Z",
            "2026-01-01T25:00:00Z",
            "2026-01-01T00:00:00+99:99",
        )
    },
    "base64": (
        entry(content={"encoding": "base64", "text": "abcde"}),
        "a body is not base64, as its `encoding` says",
    ),
}


@pytest.mark.parametrize("case", NOT_VALID)
def test_invalid_entries_are_left_out_and_counted(case: str, tmp_path: Path) -> None:
    """The others are imported; the words are those of the format."""
    odd, why = NOT_VALID[case]
    path = har(tmp_path / "a.har", entry(), odd, odd)
    assert len(imported(path, tmp_path / "a.db")) == 1
    (left_out,) = [each for each in open_import(path).lacks if "not valid" in each]
    at = json.dumps(entry())
    assert left_out.startswith(
        f"2 entries that are not valid; the first at byte {_place(path, at)}"
    )
    assert why in left_out


def test_entry_that_is_nested_too_deeply(tmp_path: Path) -> None:
    path = har(tmp_path / "a.har", entry(), {"x": None})
    deep = "[" * 100_000 + "]" * 100_000
    path.write_text(path.read_text().replace('"x": null', f'"x": {deep}'))
    (left_out,) = [each for each in open_import(path).lacks if "not valid" in each]
    assert left_out.endswith("it is nested too deeply")


def _place(path: Path, first: str) -> int:
    """Return the offset of the second entry."""
    return path.read_text().index(first) + len(first) + 2


def test_entry_without_a_response_is_no_fault_of_a_peer(tmp_path: Path) -> None:
    """Programs that mock write none, or null: neither side is judged for it."""
    path = har(tmp_path / "a.har", _without("response"), {**entry(), "response": None})
    calls = imported(path, tmp_path / "a.db")
    assert [(each.operation, each.how) for each in calls] == [("GetTask", "connection lost")] * 2
    with Recording(tmp_path / "a.db") as recording:
        rules = {row.finding.rule for row in recording.read_findings()}
    assert rules <= {"A2A-VER-001", "IMPORT"}


@pytest.mark.parametrize(
    "member", ["encoding", "_encoding", "_content", "lower", "name", "no headers"]
)
def test_requests_as_other_programs_write_them(member: str, tmp_path: Path) -> None:
    """The body as base64 or in `_content`, the method in lower case, a name that is no token, no
    header fields: what the file lacks is no fault of a peer."""
    call = entry()
    request = call["request"]
    posted = request["postData"]
    if member.endswith("encoding"):
        posted[member], posted["text"] = (
            "base64",
            base64.b64encode(posted["text"].encode()).decode(),
        )
    elif member == "_content":
        request["_content"] = request.pop("postData")
    elif member == "lower":
        request["method"] = "post"
    elif member == "no headers":
        del request["headers"], call["response"]["headers"]
    else:
        request["headers"].append(field("a b", "c"))
    (found,) = imported(har(tmp_path / "a.har", call), tmp_path / "a.db")
    with Recording(tmp_path / "a.db") as recording:
        assert {row.finding.rule for row in recording.read_findings()} <= {"A2A-VER-001", "IMPORT"}
    assert (found.operation, found.events, found.error) == ("GetTask", 1, "")


@pytest.mark.parametrize("coding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_codings_of_a_file(coding: str, tmp_path: Path) -> None:
    path = har(tmp_path / "a.har", entry())
    path.write_bytes(path.read_text().encode(coding))
    assert len(imported(path, tmp_path / "a.db")) == 1


def test_truncated_file(tmp_path: Path) -> None:
    """What is before its end is imported, and the place is named."""
    path = har(tmp_path / "a.har", entry(), entry())
    text = path.read_text()[:-20]
    path.write_text(text)
    assert len(imported(path, tmp_path / "a.db")) == 1
    assert f"its end: it is truncated after {len(text)} bytes" in open_import(path).lacks


def test_places_in_utf16_are_those_of_its_copy(tmp_path: Path) -> None:
    """The import reads it in UTF-8, which is said with the number."""
    odd = {**entry(), "timings": "Grüße"}
    path = har(tmp_path / "a.har", entry(), odd, entry())
    text, at = path.read_text()[:-20], _place(path, json.dumps(entry()))
    path.write_bytes(text.encode("utf-16"))
    lacks = open_import(path).lacks
    assert f"its end: it is truncated after {len(text)} bytes of its text in UTF-8" in lacks
    assert any(f"the first at byte {at} of its text in UTF-8: a member" in each for each in lacks)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("hello", "it is no JSON object"),
        ("", "a.har is empty"),
        ("{}", "not a HAR file"),
        ('{"log": {"entries": [', "truncated"),
        ('{"log": {"entries": []}}', "no HTTP call"),
        ('{"log": {"entries": [{"a" 1}]}}', "at byte 21: it is not JSON: Expecting ':'"),
        ('{"log": {"entries": [{"response": 1}]}}', "at byte 21: it has no member 'request'$"),
        (
            '{"log": {"entries": [{"request": 1, "response": 1, "startedDateTime": "x"}]}}',
            "at byte 21: 'x' is not a time in ISO 8601$",
        ),
        (
            (
                '{"log": {"entries": [{"request": [], "response": {}, '
                '"startedDateTime": "2026-01-01T00:00:00Z"}]}}'
            ),
            "a member is of another type than in the format HAR$",
        ),
    ],
)
def test_other_files_are_refused_with_a_hint(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "a.har"
    path.write_text(text)
    with pytest.raises(UserError, match=message) as refused:
        open_import(path)
    assert "mitmdump" in refused.value.hint


@pytest.mark.parametrize(
    "start", ["0001-01-01T00:00:00Z", "1969-12-31T23:59:59Z", "9999-12-31T23:59:59Z"]
)
def test_time_that_a_recording_cannot_hold(start: str, tmp_path: Path) -> None:
    """Of the call, of the sum of its phases, or of one event: the entry is left out."""
    late, stream = entry(), chromium_stream(EVENT % "true", body=None)
    late["timings"]["wait"] = 1e300
    stream["_eventSourceMessages"][0]["time"] = 1e300
    for each in (entry(start), late, stream):
        source = open_import(har(tmp_path / "a.har", entry(), each))
        (left_out,) = [each for each in source.lacks if "not valid" in each]
        assert left_out.startswith("1 entry that is not valid; the first at byte ")
        assert left_out.endswith(": a time is before 1970 or after 2262")


@pytest.mark.parametrize("start", ["1970-01-01T00:00:00Z", "2262-04-11T23:47:00Z"])
def test_the_first_and_the_last_time(start: str, tmp_path: Path) -> None:
    (call,) = imported(har(tmp_path / "a.har", entry(start)), tmp_path / "a.db")
    assert call.started == parse_time(start) + 5 * MS


def test_traffic_without_a2a_leaves_no_recording(tmp_path: Path) -> None:
    call = entry(text="hello")
    call["request"]["postData"]["text"] = "hello"
    with pytest.raises(UserError, match="no A2A call"):
        imported(har(tmp_path / "a.har", call), tmp_path / "a.db")
    assert not [each for each in tmp_path.iterdir() if ".db" in each.name]


def test_the_memory_does_not_depend_on_the_size_of_the_file(tmp_path: Path) -> None:
    """24 MB in entries of 100 kB need less than 12 MB; entries are found at every split of the
    file."""
    filler = {"comment": '\\"]}{[' * 15_000}
    count = 220
    path = har(
        tmp_path / "a.har",
        *({**entry(), **filler} for _ in range(count)),
        browser={"entries": [{"a": []}]},
    )
    assert path.stat().st_size > 24_000_000
    tracemalloc.start()
    try:
        opened = {
            each.connection
            for each in open_import(path).read_chunks()
            if each.kind is ChunkKind.OPEN
        }
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(opened) == count
    assert peak < 12_000_000


def test_findings_name_the_import() -> None:
    """`IMPORT` is explained, as every other finding that is not of a rule."""
    from a2a_proxy.rules.define.other_findings import finding_title

    assert finding_title("IMPORT") == "An imported file"
