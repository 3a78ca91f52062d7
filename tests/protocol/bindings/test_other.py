from __future__ import annotations

import pytest

from a2a_proxy.model.values import FrameKind
from support_conversation import Http, play


def test_other_http_is_kept_up_to_a_limit() -> None:
    """HTTP that is not A2A is kept: text and JSON as they are, other bodies cut at 64 KiB, with
    size and hash."""
    script = Http().request("GET /health").answer({"ok": True})
    script.request("POST /upload", b"x" * 100_000, content_type="application/octet-stream").answer(
        b"", "500 Internal Server Error"
    )
    played = play(script)
    _, health, upload, failed = played.frames

    assert [each.kind for each in played.frames] == [FrameKind.OTHER] * 4
    assert (health.schema, health.payload) == ("json", b'{"ok": true}')
    assert (
        upload.schema,
        len(upload.payload),
        upload.size,
        upload.truncated,
        len(upload.sha256),
    ) == (
        "bytes",
        65536,
        100_000,
        True,
        32,
    )
    assert (failed.error_code, played.exchanges[1].error) == (0, "HTTP 500: Internal Server Error")
    assert played.exchanges[0].binding == "other"


def test_other_event_streams_are_kept_by_event() -> None:
    """An event stream that is not A2A's is kept event by event."""
    played = play(Http().request("GET /feed").stream().chunk(b"data: hello\n\nid: 1\n\n").done())

    assert [(each.kind.name, each.payload) for each in played.frames[1:]] == [
        ("OTHER", b"hello"),
        ("COMMENT", b""),
        ("END", b""),
    ]


def test_an_unrequested_response_is_kept() -> None:
    """An answer on an idle connection is an exchange without a request."""
    script = Http().request("GET /health").answer({"ok": True}).answer(b"", "408 Request Timeout")
    played = play(script)

    assert [each.status for each in played.exchanges] == [200, 408]
    assert played.frames[-1].kind is FrameKind.OTHER


def test_brotli_without_a_decoder_is_reported() -> None:
    """A body in an unknown coding is kept as bytes."""
    played = play(Http().request("GET /tasks/t1").answer(b"\x01\x02", content_encoding="exotic"))

    assert (played.frames[1].kind, played.frames[1].payload) == (FrameKind.UNDECODABLE, b"\x01\x02")


DELETE = "DELETE /tasks/t1/pushNotificationConfigs/p1"


def call_rpc(method: str, **fields: str) -> Http:
    body = b'{"jsonrpc":"2.0","id":1,"method":"' + method.encode() + b'","params":{"id":"t1"}}'
    return Http().request("POST /", body, **fields)


@pytest.mark.parametrize(
    ("script", "error"),
    [
        (call_rpc("GetTask"), "HTTP 200 instead of JSON-RPC"),
        (call_rpc("tasks/get", mcp_session_id="1"), ""),
        (call_rpc("tools/list"), ""),
        (
            Http().request(
                "POST /", b'{"jsonrpc":"2.0","method":"CancelTask","params":{"id":"t1"}}'
            ),
            "",
        ),
        (Http().request("POST /message:send", b"{}"), "HTTP 200 instead of JSON"),
        (Http().request("GET /tasks", a2a_version="1.0"), "HTTP 200 instead of JSON"),
        (
            Http().request("GET /tasks/t1", accept="application/a2a+json"),
            "HTTP 200 instead of JSON",
        ),
        (Http().request("GET /tasks"), ""),
        (Http().request(DELETE), ""),
        (Http().request("GET /.well-known/agent-card.json"), "HTTP 200 instead of JSON"),
        (Http().request("GET /about"), ""),
    ],
)
def test_a_page_in_place_of_an_answer_is_an_error(script: Http, error: str) -> None:
    """An A2A call that is answered with an HTML page is not ok, other traffic is."""
    (exchange,) = play(script.answer(b"<html></html>", content_type="text/html")).exchanges
    assert (exchange.error, exchange.error_code) == (error, 200 if error else 0)
