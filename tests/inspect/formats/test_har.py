"""HAR: valid for its schema and for an independent reader, and the entries of each kind of call."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from haralyzer import HarParser

from a2a_inspect.formats.chosen import ExportSelection
from a2a_inspect.formats.har import write_har
from a2a_inspect.formats.har_entry import har_entry
from a2a_proxy.model.values import Binding, Exchange, Frame, FrameKind
from a2a_proxy.model.wire import Direction
from a2a_proxy.recording.cassette.file import open_recording_or_cassette
from support_har import SCHEMA
from support_hostile import evil_texts
from support_thin import thin

SAMPLES = sorted((Path(__file__).parents[3] / "recordings").glob("*.a2a.jsonl"))


def sample(name: str) -> Path:
    return next(path for path in SAMPLES if path.name == f"{name}.a2a.jsonl")


def har(path: Path, keys: frozenset[int] | None = None) -> dict[str, Any]:
    stream = io.BytesIO()
    with open_recording_or_cassette(path) as recording:
        write_har(ExportSelection(recording, keys), stream)
    document: dict[str, Any] = json.loads(stream.getvalue())
    return document


def entries(path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = har(path)["log"]["entries"]
    return found


@pytest.mark.parametrize("path", thin(SAMPLES, 4), ids=lambda path: path.name)
def test_har_files_are_valid(path: Path) -> None:
    """An entry an exchange, each on the page of its session, by the schema and for a reader."""
    document = har(path)
    jsonschema.validate(document, SCHEMA)
    with open_recording_or_cassette(path) as recording:
        count = recording.count_rows().exchanges
        sessions = len(recording.read_sessions())
    reader = HarParser(document)
    assert [len(page.entries) for page in reader.pages if page.page_id != "unknown"] == [count]
    assert len(document["log"]["pages"]) == sessions == 1
    for each in document["log"]["entries"]:
        content = each["response"]["content"]
        text = content.get("text", "")
        data = base64.b64decode(text) if content.get("encoding") else text.encode()
        if b"redacted-" not in data:  # a label is as long as it is; the size is that of what passed
            assert content["size"] == len(data), "as readers count it: framing included"
        assert each["time"] == pytest.approx(
            sum(took for took in each["timings"].values() if took > 0)
        )


def test_the_schema_refuses_other_json() -> None:
    """It refuses what is no HAR."""
    document = har(sample("demo"))
    del document["log"]["entries"][0]["timings"]["wait"]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, SCHEMA)


def test_event_streams_are_text_as_on_the_wire() -> None:
    """With its lines; its times are those of the recording."""
    stream = next(
        each
        for each in entries(sample("demo"))
        if each["_a2a"]["operation"] == "SendStreamingMessage"
    )
    assert stream["response"]["content"]["mimeType"].startswith("text/event-stream")
    events = [
        line
        for line in stream["response"]["content"]["text"].splitlines()
        if line.startswith("data: ")
    ]
    assert len(events) == stream["_a2a"]["events"]
    assert json.loads(events[0].removeprefix("data: "))
    assert json.loads(stream["request"]["postData"]["text"])["method"] == stream["_a2a"]["method"]
    with open_recording_or_cassette(sample("demo")) as recording:
        exchange = next(
            row.exchange
            for row in recording.read_exchanges()
            if row.exchange.id == stream["_a2a"]["id"]
        )
    assert stream["time"] == pytest.approx((exchange.closed - exchange.started) / 1e6)
    assert stream["timings"]["receive"] == pytest.approx(
        (exchange.closed - exchange.response_started) / 1e6
    )
    assert not any("payload" in frame for frame in stream["_a2a"]["frames"])


def test_grpc_is_base64_with_decoded_messages() -> None:
    """Length-prefixed messages; the decoded ones are in `_a2a`."""
    call = next(
        each
        for each in entries(sample("sdk-1.x-grpc"))
        if each["_a2a"]["operation"] == "SendMessage"
    )
    posted, content = call["request"]["postData"], call["response"]["content"]
    assert (posted["_encoding"], content["encoding"]) == ("base64", "base64")
    data = base64.b64decode(posted["text"])
    assert data[:5] == b"\0" + (len(data) - 5).to_bytes(4, "big")
    assert call["_a2a"]["frames"][0]["payload"]["message"]["role"] == "ROLE_USER"
    assert {"name": "grpc-status", "value": "0"} in call["response"]["headers"]


def test_stdio_calls_have_a_stdio_url() -> None:
    first = entries(sample("stdio"))[0]
    assert first["request"]["url"] == "stdio://agent/GetExtendedAgentCard"
    assert first["response"]["status"] == 0


def test_control_characters_and_lone_surrogates_are_escaped(tmp_path: Path) -> None:
    """Control codes and halves of characters, everywhere: URLs are printable ASCII."""
    path = evil_texts(tmp_path)
    urls = [each["request"]["url"] for each in entries(path)]
    assert urls
    assert all(url.isascii() and url.isprintable() for url in urls)


def test_only_selected_exchanges_are_written() -> None:
    (only,) = har(sample("demo"), frozenset((1 << 40 | 2,)))["log"]["entries"]
    assert only["_a2a"]["id"] == 2


@pytest.mark.parametrize(("binding", "status"), [(Binding.WEBSOCKET, 0), (Binding.OTHER, 101)])
def test_websockets_are_named(binding: Binding, status: int) -> None:
    """A call on a socket, and a handshake with the other messages, which a call of HTTP is not."""
    call = Exchange(1, 1, 1, binding, 1, status=status)
    said = Frame(
        *(1, 1, 1, Direction.TO_CLIENT, FrameKind.OTHER, 2, 2, 0, 9),
        payload=b"hello",
        framing="permessage-deflate",
    )
    entry = har_entry(call, None, [said], [])
    assert entry["_resourceType"] == "websocket"
    assert entry["response"]["content"]["text"] == "hello"
