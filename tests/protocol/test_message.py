"""A chunk of which only the text was read is judged as one that was read whole."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import msgspec
from hypothesis import example, given, settings
from hypothesis import strategies as st

from a2a_proxy.model.values import Binding, Dialect, EventKind, Exchange, Frame, FrameKind
from a2a_proxy.model.wire import Direction
from a2a_proxy.protocol.artifact_chunks import ArtifactChunk, chunks_of_frame
from a2a_proxy.protocol.json_shapes import decode_envelope
from a2a_proxy.protocol.json_summary import summarise_result
from a2a_proxy.protocol.message import JsonReader, check_payload, checks_for
from a2a_proxy.protocol.summary import Summary

EXCHANGE = Exchange(
    id=1,
    connection=1,
    stream=0,
    started=0,
    binding=Binding.JSONRPC,
    dialect=Dialect.V1_0,
    operation="SendStreamingMessage",
    method="SendStreamingMessage",
    rpc_id="1",
)
TEXTS = st.one_of(
    st.text(max_size=12),
    st.sampled_from(["", '"', "\\", '","', '","text":"', "t", "a1", "\u00e9\u4e16\n", "\x00", "1"]),
)
CHANGES = st.sampled_from(
    [
        lambda _: None,
        lambda _: None,
        lambda update: update.update(lastChunk=True),
        lambda update: update.update(append="yes"),
        lambda update: update["artifact"].update(artifactId="t"),
        lambda update: update["artifact"].update(name="t", description="a1"),
        lambda update: update["artifact"]["parts"].append({"text": "t"}),
        lambda update: update["artifact"]["parts"][0].update(data={"text": "t"}),
        lambda update: update["artifact"]["parts"][0].update(metadata={"text": "t"}),
        lambda update: update["artifact"]["parts"][0].update(mediaType="text/plain"),
    ]
)


def _payload(text: str, change: Any, *, ascii_only: bool, spaces: bool) -> bytes:
    update: dict[str, Any] = {
        "taskId": "t",
        "contextId": "c",
        "artifact": {"artifactId": "a1", "parts": [{"text": text}]},
        "append": True,
    }
    change(update)
    envelope = {"jsonrpc": "2.0", "id": 1, "result": {"artifactUpdate": update}}
    separators = None if spaces else (",", ":")
    return json.dumps(envelope, ensure_ascii=ascii_only, separators=separators).encode()


def _frame(payload: bytes, seq: int) -> Frame:
    return Frame(
        1,
        1,
        seq,
        Direction.TO_CLIENT,
        FrameKind.EVENT,
        0,
        seq,
        0,
        0,
        payload=payload,
        size=len(payload),
        schema="json",
        event=EventKind.ARTIFACT,
        task_id="t",
        context_id="c",
        rpc_id="1",
        artifact_id="a1",
    )


def _summarise(payload: bytes) -> Summary:
    result = decode_envelope(payload).result
    assert result is not None
    return summarise_result(result, streaming=True)


def _assert_alike(payloads: list[bytes]) -> int:
    """Compare each chunk with one that is read whole; return how many were read in part."""
    reader, checks, places = JsonReader(), checks_for(EXCHANGE), []
    for seq, payload in enumerate(payloads):
        frame = _frame(payload, seq)
        read = reader.read(payload, EXCHANGE, FrameKind.EVENT)
        found = read.content
        assert not found or read.summary == _summarise(payload)
        expected = check_payload(frame, EXCHANGE, checks)
        if not isinstance(expected, ArtifactChunk):
            assert found == expected
            continue
        assert isinstance(found, ArtifactChunk)
        places.append(found.place)
        found = msgspec.structs.replace(found, pieces=list(found.pieces), place=None)
        assert found == expected
        assert [found] == chunks_of_frame(frame)
    return sum(one is not None and one is two for one, two in pairwise(places))


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(TEXTS, CHANGES), min_size=2, max_size=8), st.booleans(), st.booleans())
def test_a_chunk_read_in_part_is_judged_alike(
    chunks: list[tuple[str, Any]], ascii_only: bool, spaces: bool
) -> None:
    _assert_alike([_payload(*each, ascii_only=ascii_only, spaces=spaces) for each in chunks])


@given(st.sampled_from([b'"', b'x"', b'","text":"', b"\xff", b"\\", b"\n", b"\\u00", b'" "']))
@example(b'"}]},"artifact":{"artifactId":"b","parts":[{"text":"')
def test_a_text_with_more_in_it_is_read_whole(more: bytes) -> None:
    plain = _payload("word", lambda _: None, ascii_only=False, spaces=False)
    _assert_alike([plain, plain.replace(b"word", b"wo" + more + b"rd"), plain])


def test_only_the_text_of_ordinary_chunks_is_read() -> None:
    payloads = [
        _payload(text, lambda _: None, ascii_only=False, spaces=True)
        for text in ("one ", "two\n", '"3" ', "\u00e9 ")
    ]
    assert _assert_alike(payloads) == 3


def test_a_text_in_metadata_is_not_taken_for_the_text_of_the_part() -> None:
    """Both are the same in the first chunk of 0.3; in the next one only that in the metadata is
    another."""
    exchange = msgspec.structs.replace(EXCHANGE, dialect=Dialect.V0_3, method="message/stream")
    reader = JsonReader()
    for word in ("one", "two"):
        part = {"kind": "text", "text": "one"}
        update = {
            "kind": "artifact-update",
            "taskId": "t",
            "contextId": "c",
            "metadata": {"text": word},
            "artifact": {"artifactId": "a1", "parts": [part]},
        }
        envelope = {"jsonrpc": "2.0", "id": 1, "result": update}
        body = json.dumps(envelope).encode()
        found = reader.read(body, exchange, FrameKind.EVENT).content
        assert isinstance(found, ArtifactChunk)
        assert found.text == b"one"
