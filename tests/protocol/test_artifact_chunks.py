"""Sizes and ids of artifacts in frames."""

from __future__ import annotations

import json

import pytest

from a2a_proxy.model.values import Frame, FrameKind
from a2a_proxy.model.wire import Direction
from a2a_proxy.protocol.artifact_chunks import chunks_of_frame, texts_of_frame


def ids_of(artifact: dict[str, object]) -> list[str]:
    payload = json.dumps(
        {"result": {"artifact": {"parts": [{"type": "text", "text": "x"}], **artifact}}}
    ).encode()
    frame = Frame(
        1, 1, 1, Direction.TO_CLIENT, FrameKind.EVENT, 1, 1, 0, len(payload), payload, schema="json"
    )
    return [chunk.artifact_id for chunk in chunks_of_frame(frame)]


@pytest.mark.parametrize(
    ("artifact", "expected"),
    [({"artifactId": "a", "index": 2}, "a"), ({"index": 2}, "2"), ({}, "0")],
)
def test_an_artifact_without_id_is_known_by_its_index(
    artifact: dict[str, object], expected: str
) -> None:
    """Dialects 0.1 and 0.2 number artifacts; an omitted index is 0."""
    assert ids_of(artifact) == [expected]


@pytest.mark.parametrize("name", ["description", "parts"])
def test_a_member_of_a_wrong_type_does_not_hide_the_text(name: str) -> None:
    """Of the members that only describe a text, such as its media type."""
    part = {"text": "x", "kind": 5, "mediaType": [1], "metadata": 2}
    artifact = {"artifactId": "a", "parts": [part]} | ({name: 5} if name == "description" else {})
    payload = json.dumps({"artifactUpdate": {"artifact": artifact}}).encode()
    frame = Frame(
        1, 1, 1, Direction.TO_CLIENT, FrameKind.EVENT, 1, 1, 0, len(payload), payload, schema="json"
    )
    (chunk,) = chunks_of_frame(frame)
    assert chunk.text == b"x"
    assert texts_of_frame(frame) == [b"x"]
