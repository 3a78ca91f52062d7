"""A2A-SSE beyond its examples: bindings, near misses, variants."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from a2a_proxy.model.values import Severity
from a2a_proxy.rules.examples.conversation import (
    Event,
    RawBytes,
    json_text,
    rest_error,
    rest_stream,
    rpc_error,
    rpc_stream,
)
from a2a_proxy.rules.examples.objects import agent_reply, chunk, message, send, snapshot, status
from a2a_proxy.rules.examples.script import Script
from support_rules import findings

WORKING, COMPLETED = snapshot("WORKING"), status("COMPLETED")
FAILED = rest_error(500, "INTERNAL", "INTERNAL_ERROR")
HALF = RawBytes(b"data: " + json_text(COMPLETED).encode()[:40])


def rest(*events: Event, **options: object) -> Script:
    """A REST stream of 1.0."""
    return rest_stream("POST", "/message:stream", send(), *events, **options)


def rpc(*events: Event, **options: object) -> Script:
    """A JSON-RPC stream of 1.0."""
    return rpc_stream("SendStreamingMessage", send(), *events, **options)


def told(script: Script) -> list[str]:
    """The family's rules that find something, by number."""
    return [each.rule[-3:] for each in findings(script) if each.rule.startswith("A2A-SSE-")]


def event(value: object, before: str = "", end: str = "\n\n") -> RawBytes:
    """One event, framed by hand."""
    return RawBytes(f"{before}data: {json_text(value)}{end}".encode())


def response(value: object) -> dict[str, object]:
    """The JSON-RPC response of these streams."""
    return {"jsonrpc": "2.0", "id": 1, "result": value}


@pytest.mark.parametrize(
    "block",
    [
        b": ping\n\n",
        b":\r\n\r\n",
        b"retry: 3000\n\n",
        b"id: 7\n\n",
        b"\n",
        b": SSE stream started\nid: 0\n\n",
    ],
)
def test_useful_blocks_without_data_are_not_flagged(block: bytes) -> None:
    """Comments, a retry time, an id."""
    assert told(rest(WORKING, RawBytes(block), COMPLETED)) == []


@pytest.mark.parametrize(
    "block", [b"event: ping\n\n", b"Data: {}\n\n", b"event: ping\r\nid: 1\r\n\r\n", b"ping\n\n"]
)
def test_dropped_blocks_without_data_are_flagged(block: bytes) -> None:
    """Event names and unknown fields."""
    assert told(rpc(WORKING, RawBytes(block), COMPLETED)) == ["001"]


def test_invalid_json_data_is_flagged() -> None:
    """On both bindings; bytes that are no UTF-8 are one rule's only."""
    assert told(rpc(WORKING, "hello", COMPLETED)) == ["002"]
    assert told(rest(WORKING, "{", COMPLETED)) == ["002"]
    assert told(rpc(WORKING, RawBytes(b"data:\n\n"), COMPLETED)) == ["002"]
    assert told(rest(WORKING, RawBytes(b"data:\n\n"), COMPLETED)) == ["002"]
    assert told(rest(WORKING, RawBytes(b"data: \xc3\x28\n\n"), COMPLETED)) == ["009"]


@pytest.mark.parametrize("end", ["\n\n", "\r\n\r\n", "\r\r", "\n\r\n", "\r\n\n", "\n\r", "\r\n\r"])
def test_every_line_end_ends_an_event(end: str) -> None:
    """CR, LF and CRLF in any mixture."""
    found = told(rest(WORKING, event(COMPLETED, end=end)))
    assert found == (["016"] if end == "\r\r" else [])


@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\r"])
def test_the_last_event_without_its_empty_line(end: str) -> None:
    """The finding is about that event, on either binding."""
    for script in (
        rest(WORKING, event(COMPLETED, end=end)),
        rpc(WORKING, event(response(COMPLETED), end=end)),
    ):
        (found,) = [each for each in findings(script) if each.rule == "A2A-SSE-003"]
        assert found.seq == 2


def test_a_partial_event_before_a_cut_is_not_flagged() -> None:
    """Neither unterminated nor invalid JSON is reported: the event is only the part before the
    cut."""
    assert told(rest(WORKING, HALF, finish="cut")) == []
    assert told(rpc(WORKING, HALF, finish="leave")) == []


def test_foreign_data_on_a_jsonrpc_stream_is_flagged() -> None:
    """No object, or an object of another form. A response with faults is the business of the
    envelope's rules."""
    assert told(rpc(WORKING, "[1]", COMPLETED)) == ["004"]
    assert told(rpc(WORKING, '{"type":"ping"}', COMPLETED)) == ["004"]
    assert told(rpc(WORKING, '{"jsonrpc":"2.0","id":1}', COMPLETED)) == []


def test_foreign_data_on_a_rest_stream_is_flagged() -> None:
    """None or several members; one that is unknown may be a later version's."""
    assert told(rest(WORKING, {}, COMPLETED)) == ["005"]
    assert told(rest(WORKING, chunk("x") | COMPLETED)) == ["005"]
    assert (
        told(
            rest(
                WORKING,
                {"messageUpdate": {"taskId": "t1", "contextId": "c1", "message": {}}},
                COMPLETED,
            )
        )
        == []
    )


def test_a_json_rpc_message_on_a_rest_stream_is_named_as_such() -> None:
    (found,) = [
        each
        for each in findings(rest(WORKING, response(WORKING), COMPLETED))
        if each.rule == "A2A-SSE-005"
    ]
    assert found.summary.startswith(
        "the data of this event is a JSON-RPC message, which REST does not use; expected"
    )


def test_a_0_3_stream_has_other_members() -> None:
    """A stream of 0.3 in the form of its prose: bare objects with `kind`."""
    params = {
        "message": {
            "messageId": "m1",
            "role": "user",
            "kind": "message",
            "parts": [{"kind": "text", "text": "x"}],
        }
    }
    bare = {
        "kind": "status-update",
        "taskId": "t1",
        "contextId": "c1",
        "status": {"state": "completed"},
        "final": True,
    }
    script = rest_stream("POST", "/v1/message:stream", params, bare, version="")
    assert told(script) == []


def test_unknown_fields_and_names_are_reported_once_per_stream() -> None:
    """And `message` and `error` are names that clients know."""
    named = [
        event(WORKING, "event: status\nx-seq: 1\n"),
        event(COMPLETED, "event: status\nx-seq: 2\n"),
    ]
    assert told(rest(*named)) == ["006", "006"]
    assert told(rest(event(WORKING, "event: message\n"), event(COMPLETED, "event:\n"))) == []


def test_events_after_an_error() -> None:
    """On JSON-RPC too; a comment is no event."""
    error = {"error": rpc_error(-32603)}
    assert told(rpc(error, COMPLETED)) == ["008"]
    assert told(rpc(WORKING, error, RawBytes(b": bye\n\n"))) == []


def test_another_charset() -> None:
    """UTF-8 by any of its names is fine."""
    for value in (
        "text/event-stream; charset=utf-8",
        'text/event-stream;charset="UTF-8"',
        "text/event-stream",
    ):
        assert told(rest(WORKING, COMPLETED, reply_headers={"Content-Type": value})) == []
    assert told(
        rest(
            WORKING, COMPLETED, reply_headers={"Content-Type": "text/event-stream; charset=latin-1"}
        )
    ) == ["009"]


def test_invalid_utf8_in_a_decodable_event_is_flagged() -> None:
    """The decoders skip what they do not need, so such an event has its ids and state all the
    same."""
    text = json_text(chunk("@@")).encode().replace(b"@@", b"\xff\xfe")
    assert told(rest(WORKING, RawBytes(b"data: " + text + b"\n\n"), COMPLETED)) == ["009"]


def test_byte_order_marks() -> None:
    """One at the beginning is legal, another makes a field that nobody knows."""
    mark = b"\xef\xbb\xbf"
    late = b"id: 7\n" + mark + b"retry: 1\ndata: " + json_text(COMPLETED).encode() + b"\n\n"
    found = [each for each in findings(rest(WORKING, RawBytes(late))) if each.rule == "A2A-SSE-009"]
    assert [each.severity for each in found] == [Severity.WARNING]


def test_event_ids() -> None:
    """Any id is fine but one with U+0000 and one that came before."""
    one, two = event(WORKING, "id: 1\n"), event(COMPLETED, "id: 2\n")
    assert told(rest(one, two)) == []
    assert told(rest(one, event(COMPLETED, "id: 1\n"))) == ["010"]
    assert told(rest(one, event(COMPLETED, "id: 1\0\n"))) == ["010"]


@pytest.mark.parametrize(
    "last",
    [status("COMPLETED"), status("INPUT_REQUIRED"), status("AUTH_REQUIRED"), FAILED],
    ids=["terminal", "input", "auth", "error"],
)
def test_a_cut_after_the_last_event_is_not_flagged(last: Event) -> None:
    """Then nothing was lost."""
    assert told(rest(WORKING, last, finish="cut")) == []


def test_a_cut_after_a_message() -> None:
    """A message is all there is to come."""
    assert told(rpc(agent_reply(), finish="cut")) == []


def test_disconnects_and_proxy_stops_are_not_flagged() -> None:
    """The agent cut nothing off."""
    assert told(rest(WORKING, finish="leave")) == []
    assert told(rest(WORKING, finish="open")) == []


def test_caching() -> None:
    """Either word will do, in any company."""
    for value in ("no-cache", "no-cache, no-transform", "private, No-Store"):
        assert told(rest(WORKING, COMPLETED, reply_headers={"Cache-Control": value})) == []
    assert told(rest(WORKING, COMPLETED, reply_headers={"Cache-Control": "max-age=5"})) == ["013"]


def test_client_messages_are_not_judged_as_streams() -> None:
    """Its text may look like anything."""
    assert (
        told(
            rest_stream(
                "POST", "/message:stream", {"message": message("data: \n\n")}, WORKING, COMPLETED
            )
        )
        == []
    )


def test_a_byte_order_mark_is_reported_once() -> None:
    """The block is not one without data as well."""
    assert told(rpc(WORKING, RawBytes(b"\xef\xbb\xbfdata: {}\n\n"), COMPLETED)) == ["009"]


def test_a_stream_of_bare_results_has_one_finding() -> None:
    """They are decoded as the events that they are, so all other rules judge them."""
    bare = [
        json_text(each)
        for each in (snapshot(), status("WORKING", second=1), status("COMPLETED", second=2))
    ]
    found = findings(
        rpc_stream("SendStreamingMessage", send(), *bare, headers={"Accept": "text/event-stream"})
    )
    assert [(each.rule, each.seq, each.task_id) for each in found] == [("A2A-SSE-004", 1, "t1")]


def test_faults_of_bare_results_are_found() -> None:
    bare = [
        json_text(each)
        for each in (snapshot(), status("FAILED", second=1), status("COMPLETED", second=2))
    ]
    found = findings(
        rpc_stream("SendStreamingMessage", send(), *bare, headers={"Accept": "text/event-stream"})
    )
    assert {each.rule for each in found} == {"A2A-SSE-004", "A2A-STATE-001", "A2A-STREAM-005"}


def test_an_event_that_is_no_result_has_one_finding() -> None:
    script = rpc_stream(
        "SendStreamingMessage",
        send(),
        snapshot(),
        '{"hello":1}',
        status("COMPLETED", second=1),
        headers={"Accept": "text/event-stream"},
    )
    assert [each.rule for each in findings(script)] == ["A2A-SSE-004"]


@pytest.mark.parametrize("stream", [rest, rpc])
def test_lines_that_end_with_cr(stream: Callable[..., Script]) -> None:
    """Once for a stream; CRLF and LF are read by every client."""
    wrap = response if stream is rpc else (lambda value: value)
    for end, found in (("\r\r", ["016"]), ("\r\n\r\n", []), ("\n\r", []), ("\n\n", [])):
        assert told(stream(event(wrap(WORKING), end=end), event(wrap(COMPLETED), end=end))) == found


def _unread(script: Script) -> list[tuple[str, Severity]]:
    """What A2A-SSE-016 says of a stream: the SDK that it names, and how grave it is."""
    return [
        (each.summary.partition("but the ")[2].partition(" SDK")[0], each.severity)
        for each in findings(script)
        if each.rule == "A2A-SSE-016"
    ]


JS, PYTHON = [("JavaScript", Severity.INFO)], [("Python", Severity.INFO)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a\u2028b", PYTHON),
        ("a\u2029b", PYTHON),
        ("a\u0085b", PYTHON),
        ("a\u00a0b ü", []),
        ("x" * (4 << 20), JS),
        ("x" * (4 << 20 >> 1), []),
    ],
    ids=["U+2028", "U+2029", "U+0085", "other characters", "large", "half as large"],
)
@pytest.mark.parametrize("stream", [rest, rpc])
def test_data_that_an_sdk_cannot_read(
    stream: Callable[..., Script], text: str, found: list[tuple[str, Severity]]
) -> None:
    """Once for a stream, also for the later chunks of an artifact."""
    chunks = chunk(text), chunk("first"), chunk(text, append=True), chunk(text, append=True)
    assert _unread(stream(WORKING, chunks[0], COMPLETED)) == found
    assert _unread(stream(WORKING, *chunks[1:], COMPLETED)) == found
    escaped = json_text(chunk(text)).encode("ascii", "backslashreplace")
    if stream is rest and len(text) < 10:
        assert not _unread(rest(WORKING, RawBytes(b"data: " + escaped + b"\n\n"), COMPLETED))


def test_a_byte_order_mark_in_front_of_a_stream_is_legal() -> None:
    body = event(WORKING).data
    assert _unread(rest(RawBytes(b"\xef\xbb\xbf" + body), COMPLETED)) == PYTHON
    assert not _unread(rest(WORKING, COMPLETED))


@pytest.mark.parametrize(("version", "found"), [("", JS), ("1.0", [])])
def test_data_on_several_lines(version: str, found: list[tuple[str, Severity]]) -> None:
    """The SDK that cannot join them speaks 0.3 only."""
    lines = RawBytes(b'data: {"task":{"id":"t1","contextId":"c1",\ndata: "status":{}}}\n\n')
    path = "/message:stream" if version else "/v1/message:stream"
    assert _unread(rest_stream("POST", path, send(), lines, version=version)) == found
