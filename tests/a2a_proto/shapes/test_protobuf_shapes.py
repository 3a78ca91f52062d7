"""The shapes of protobuf messages, and of JSON of 1.0 with the members of drafts."""

from __future__ import annotations

from a2a_proto.shapes.protobuf_shapes import json_1_0, make_grammar
from a2a_proto.shapes.required_members import REQUIRED_MEMBERS, REQUIRED_MEMBERS_0_3
from a2a_proto.shapes.shape import Family, JsonKind, ShapeMember


def test_json_of_1_0_has_the_shapes_and_members_of_all_drafts() -> None:
    base, drafts, merged = (
        make_grammar("1.0", False),
        [make_grammar(each, False) for each in ("live-1975", "live-2153")],
        json_1_0(),
    )
    assert (merged.family, merged.binary) == (Family.NEW, False)
    for source in (base, *drafts):
        assert merged.shapes.keys() >= source.shapes.keys()
        assert merged.enums.keys() >= source.enums.keys()
        for name, shape in source.shapes.items():
            assert merged.shapes[name].members.keys() >= shape.members.keys()
            assert merged.shapes[name].aliases.items() >= shape.aliases.items()
            assert set(merged.shapes[name].one_of) >= set(shape.one_of)
    for name, shape in base.shapes.items():
        found = merged.shapes[name]
        assert found.members.items() >= shape.members.items()
        assert found.one_of[: len(shape.one_of)] == shape.one_of
        assert len(set(found.one_of)) == len(found.one_of)
        assert (found.required, found.filled) == (shape.required, shape.filled)
    assert merged.enums.items() >= base.enums.items()
    assert {"LiveRequest", "MediaFrame"} <= merged.shapes.keys() - base.shapes.keys()
    assert "messageUpdate" in merged.shapes["StreamResponse"].one_of


def test_a_message_has_members_required_ones_lists_that_are_filled_and_groups() -> None:
    shapes = make_grammar("1.0", False).shapes
    message = shapes["Message"]
    assert message.required == {"messageId", "role", "parts"}
    assert message.filled == {"parts"}
    assert message.members["parts"] == ShapeMember(JsonKind.SHAPE, "Part", True)
    assert message.members["role"] == ShapeMember(JsonKind.ENUM, "Role")
    assert message.members["metadata"] == ShapeMember(JsonKind.OBJECT)
    assert message.members["extensions"] == ShapeMember(JsonKind.TEXT, is_repeated=True)
    assert message.aliases["message_id"] == "messageId"
    assert "role" not in message.aliases
    part = shapes["Part"]
    assert part.one_of == ("text", "raw", "url", "data")
    assert [part.members[name].kind for name in part.one_of] == [
        *(JsonKind.TEXT, JsonKind.BYTES, JsonKind.TEXT, JsonKind.ANY)
    ]
    assert message.one_of == ()
    assert shapes["TaskStatus"].members["timestamp"] == ShapeMember(JsonKind.STAMP)
    assert shapes["AgentCard"].members["securitySchemes"] == ShapeMember(
        JsonKind.MAP, "SecurityScheme"
    )
    assert shapes["ListTasksResponse"].members["pageSize"] == ShapeMember(JsonKind.INT32)
    assert shapes["TaskArtifactUpdateEvent"].members["append"] == ShapeMember(JsonKind.BOOL)
    assert "TASK_STATE_WORKING" in make_grammar("1.0", False).enums["TaskState"]


def test_what_is_required_depends_on_the_version() -> None:
    assert make_grammar("0.3", True).shapes["SendMessageRequest"].required == {"message"}
    assert make_grammar("0.3", True).shapes["Task"].required == frozenset()
    assert [make_grammar(line, False).family for line in ("1.0", "0.3", "live-1975")] == [
        *(Family.NEW, Family.OLD_PROTO, Family.NEW)
    ]
    assert make_grammar("1.0", True).binary


def test_the_required_members_exist() -> None:
    """Also those of messages that only a draft has."""
    shapes = json_1_0().shapes
    for name, members in REQUIRED_MEMBERS.items():
        assert set(members.split()) <= shapes[name].members.keys(), name
    old = make_grammar("0.3", False).shapes
    for name, members in REQUIRED_MEMBERS_0_3.items():
        assert set(members.split()) <= old[name].members.keys(), name
