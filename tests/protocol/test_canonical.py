"""Objects inside objects are converted wherever the shapes of 1.0 have them, and everything else is
kept."""

from __future__ import annotations

from collections.abc import Iterator

from a2a_proto.shapes.protobuf_shapes import nested_members
from a2a_proxy.protocol.canonical import CanonicalForm, Json, convert_nested

OLD = {"role": "user", "parts": [{"kind": "text", "text": "hi"}]}
NEW = {"role": "ROLE_USER", "parts": [{"text": "hi"}]}


def holders(shape: str, message: Json) -> Iterator[Json]:
    """Objects of a shape that hold the message, each in another place."""
    if shape == "Message":
        yield message
    for name, inner, is_repeated in nested_members(shape):
        for each in holders(inner, message):
            yield {name: [each] if is_repeated else each}


def test_a_message_is_converted_in_every_place() -> None:
    """The places of a StreamResponse, which are more than the shapes that this test could list."""
    form = CanonicalForm(wraps_data=False)
    before, after = list(holders("StreamResponse", OLD)), list(holders("StreamResponse", NEW))
    assert {"task": {"status": {"message": OLD}}} in before
    assert {"task": {"timeline": [{"message": OLD}]}} in before
    assert [form.convert("StreamResponse", each) for each in before] == after


def test_a_member_of_another_type_is_kept() -> None:
    value = {"id": "t1", "status": "ok", "history": {}, "artifacts": [1, {"x": 2}], "own": [OLD]}
    assert convert_nested(value, "Task", lambda _shape, each: {**each, "seen": True}) == {
        "id": "t1",
        "status": "ok",
        "history": {},
        "artifacts": [{"x": 2, "seen": True}],
        "own": [OLD],
    }


def test_the_order_of_members_is_kept() -> None:
    value = {"status": {"state": "working"}, "history": [OLD], "id": "t1", "metadata": {}}
    assert list(CanonicalForm(wraps_data=False).convert("Task", value)) == list(value)


def test_an_int64_is_a_string() -> None:
    """In every object that has one (Q-31)."""
    value = {
        "generation": 3,
        "artifacts": [{"artifactId": "a", "startGeneration": 1, "endGeneration": "2"}],
    }
    assert CanonicalForm(wraps_data=False).convert("Task", value) == {
        "generation": "3",
        "artifacts": [{"artifactId": "a", "startGeneration": "1", "endGeneration": "2"}],
    }
