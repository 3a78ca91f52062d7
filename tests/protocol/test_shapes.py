"""The typed readers, the public types, and the names that redaction and differences know agree with
the shapes of A2A objects.

A reader is written by hand, because it has only the members that it needs, of all dialects at once.
Each of them is a member of some object, with a type of that member.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any, get_args

import msgspec
import pytest

from a2a_proto.shapes.json_0_3 import json_0_1, json_0_3, json_names
from a2a_proto.shapes.protobuf_shapes import json_1_0, make_grammar
from a2a_proto.shapes.shape import JsonKind, camel_case, snake_case
from a2a_proxy.model import event
from a2a_proxy.model.event import TaskState
from a2a_proxy.model.values import EVENT_WRAPPERS
from a2a_proxy.protocol import artifact_chunks, dialect, json_shapes, status_summary
from a2a_proxy.recording.difference import fields
from a2a_proxy.redaction import scope
from a2a_proxy.redaction.secret_names import fold_name
from a2a_proxy.rules.facts import request_summary
from a2a_proxy.rules.families.state import sends

GRAMMARS = (
    json_1_0(),
    make_grammar("0.3", False),
    json_0_3(),
    json_0_1(),
)
_TEXTS = {JsonKind.TEXT, JsonKind.ENUM, JsonKind.STAMP, JsonKind.BYTES}
KINDS: dict[type, set[JsonKind]] = {
    str: _TEXTS,
    bool: {JsonKind.BOOL},
    int: {JsonKind.INT32, JsonKind.INT64},
}
BESIDE = {"result", "params", "progress"}
"""Members of JSON-RPC around an object, and of the vendor dialect alone."""
PUBLIC = {
    event.Part: "Part",
    event.Message: "Message",
    event.Artifact: "Artifact",
    event.TaskStatus: "TaskStatus",
    event.TimelineEntry: "TimelineEntry",
    event.TaskSnapshot: "Task",
    event.StatusUpdate: "TaskStatusUpdateEvent",
    event.ArtifactUpdate: "TaskArtifactUpdateEvent",
    event.Event: "StreamResponse",
}


def kinds_by_name() -> dict[str, set[JsonKind]]:
    found: dict[str, set[JsonKind]] = {"kind": {JsonKind.TEXT}}
    for grammar in GRAMMARS:
        for shape in grammar.shapes.values():
            for name, member in shape.members.items():
                found.setdefault(name, set()).add(member.kind)
            for spelling, name in shape.aliases.items():
                found.setdefault(spelling, set()).add(shape.members[name].kind)
    return found


def readers(module: ModuleType) -> Iterator[type[msgspec.Struct]]:
    """The structs of a module that JSON is read into; the frozen ones are results."""
    found = [
        each
        for each in vars(module).values()
        if isinstance(each, type) and issubclass(each, msgspec.Struct)
    ]
    for each in found:
        own = each.__module__ == module.__name__ and not each.__struct_config__.frozen
        if own and each not in (
            json_shapes.Envelope,
            json_shapes.ErrorShape,
            status_summary.A2AMessage,
        ):
            yield each


@pytest.mark.parametrize(
    "module", [json_shapes, artifact_chunks, dialect, status_summary, request_summary, sends]
)
def test_a_reader_reads_members_of_the_shapes(module: ModuleType) -> None:
    known, seen = kinds_by_name(), 0
    for reader in readers(module):
        for field in msgspec.structs.fields(reader):
            name = field.encode_name
            if name in BESIDE:
                continue
            assert name in known, (reader, name)
            types = {each for each in get_args(field.type) or (field.type,) if each in KINDS}
            allowed: set[Any] = set().union(*(KINDS[each] for each in types))
            assert not types or allowed & known[name], (reader, name, types, known[name])
            seen += 1
    assert seen


@pytest.mark.parametrize(("kind", "shape"), PUBLIC.items(), ids=PUBLIC.values())
def test_the_public_types_have_every_member_of_1_0(kind: type[msgspec.Struct], shape: str) -> None:
    """A member that A2A adds is missing here until `model.event` has it."""
    members = {field.encode_name for field in msgspec.structs.fields(kind)}
    assert (
        members - {"progress", "final"} == make_grammar("1.0", False).shapes[shape].members.keys()
    )


def test_states_and_wrappers_are_those_of_1_0() -> None:
    grammar = make_grammar("1.0", False)
    assert tuple(f"TASK_STATE_{state.name}" for state in TaskState) == grammar.enums["TaskState"]
    assert [int(state) for state in TaskState] == list(range(len(TaskState)))
    assert set(EVENT_WRAPPERS.values()) == set(grammar.shapes["StreamResponse"].one_of)


def test_names_in_snake_case() -> None:
    """Of objects of all dialects, but not of cards, where users choose names such as
    `client_credentials`."""
    names = json_names()
    assert names["status_timestamp_after"] == "statusTimestampAfter"
    assert names["session_id"] == "sessionId"
    assert names["push_notification_config_id"] == "pushNotificationConfigId"
    assert names["elicitation_id"] == "elicitationId"
    assert not {"client_credentials", "security_schemes", "metadata"} & names.keys()
    assert all(
        camel_case(snake) == name and snake_case(name) == snake for snake, name in names.items()
    )


def test_redaction_and_differences_name_members_that_exist() -> None:
    names = kinds_by_name().keys()
    folded = {fold_name(name) for name in names}
    assert folded >= scope._OWN
    assert scope._PROTOCOL_PARENTS - folded == {"result"}
    assert names >= fields.IDENTIFIERS


def test_differences_know_every_identifier() -> None:
    """Of 1.0 and the drafts. Identifiers of a proposal are compared, because nothing pairs them
    yet."""
    names = {name for shape in json_1_0().shapes.values() for name in shape.members}
    assert {each for each in names if each.endswith(("Id", "Ids"))} - fields.IDENTIFIERS == {
        "elicitationId",
        "elicitationIds",
    }
