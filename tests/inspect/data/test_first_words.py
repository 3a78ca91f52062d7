"""The first words of a conversation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from a2a_inspect.data.first_words import MAX_WORDS, first_words
from a2a_proxy.model.values import Frame, FrameKind
from a2a_proxy.model.wire import Direction
from a2a_proxy.recording.cassette.file import open_recording_or_cassette
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.read.rows import make_key
from support_inspect import changes, exchange, frame, request, status, writer

SAMPLES = Path(__file__).resolve().parents[3] / "recordings"


def sent(parts: list[dict[str, Any]]) -> Frame:
    payload = json.dumps({"params": {"message": {"parts": parts}}}).encode()
    return frame(1, 0, payload, kind=FrameKind.REQUEST, direction=Direction.TO_AGENT)


@pytest.mark.parametrize(
    ("frames", "words"),
    [
        ([request(1, "Plan\n a  day")], "Plan a day"),
        ([request(1, "x\x1b[2J")], "x␛[2J"),
        ([request(1, "word " * 40)], ("word " * 40)[:MAX_WORDS]),
        ([sent([{"data": {"text": "no"}}, {"text": " "}, {"text": "yes"}])], "yes"),
        ([sent([{"text": 7}])], ""),
        ([request(1, "long" * 20_000)], ""),
        ([status(1, 0, "the agent's")], ""),
        ([frame(1, 0, b"{", kind=FrameKind.REQUEST, direction=Direction.TO_AGENT)], ""),
        ([], ""),
    ],
)
def test_the_first_text_of_the_client(tmp_path: Path, frames: list[Frame], words: str) -> None:
    """On one line, without control characters; nothing of a large, broken or missing message."""
    made = writer(tmp_path / "r.db")
    made.write(frames, changes=changes(exchange(1)))
    made.close()
    with Recording(tmp_path / "r.db") as recording:
        assert first_words(recording, make_key(1, 1)) == words


@pytest.mark.parametrize("name", ["sdk-1.x-grpc", "sdk-1.x-rest", "sdk-0.3-jsonrpc", "stdio"])
def test_in_each_binding(name: str) -> None:
    """The samples have words in protobuf and in both dialects of JSON."""
    with open_recording_or_cassette(SAMPLES / f"{name}.a2a.jsonl") as recording:
        assert any(first_words(recording, row.key) for row in recording.read_exchanges())
