"""Texts, numbers, enums, timestamps and bytes: which values are faults, of which kind, with which
severity."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_proto.shapes.json_0_3 import json_0_1, json_0_3
from a2a_proto.shapes.protobuf_shapes import json_1_0, make_grammar
from a2a_proto.shapes.shape import Grammar, JsonKind, ShapeMember
from a2a_proxy.model.values import Severity
from a2a_proxy.rules.schema import leaf
from a2a_proxy.rules.schema.fault import FaultKind, SchemaFault
from a2a_proxy.rules.schema.leaf import LARGE

NEW, OLD, OLDEST, OLD_PROTO = json_1_0(), json_0_3(), json_0_1(), make_grammar("0.3", False)
BINARY = make_grammar("1.0", True)
INFO, WARNING = Severity.INFO, Severity.WARNING
K = FaultKind


def fault(
    shapes: Grammar, shape: str, name: str, value: Any, kind: JsonKind | None = None
) -> SchemaFault | None:
    member = shapes.shapes[shape].members[name] if kind is None else ShapeMember(kind)
    found = leaf.check_value(shapes, shapes.shapes[shape], name, member, value, "a.b")
    assert found is None or (found.path, "`a.b`" in found.told) == ("a.b", True)
    return found


def verdict(*arguments: Any) -> tuple[FaultKind, Severity | None] | None:
    found = fault(*arguments)
    return None if found is None else (found.wrong, found.severity)


@pytest.mark.parametrize(
    ("shapes", "value", "expected"),
    [
        (NEW, "TASK_STATE_WORKING", None),
        (NEW, "TASK_STATE_UNSPECIFIED", (K.ENUM, None)),
        (NEW, "TASK_STATE_OTHER", (K.ENUM, None)),
        (NEW, "TASK_STATE_CANCELLED", (K.OTHER_ENUM, None)),
        (NEW, "working", (K.OTHER_ENUM, None)),
        (NEW, "input-required", (K.OTHER_ENUM, None)),
        (NEW, "agent", (K.OTHER_ENUM, None)),
        (NEW, 1, (K.OTHER_ENUM, WARNING)),
        (NEW, 8, (K.OTHER_ENUM, WARNING)),
        (NEW, 0, (K.ENUM, None)),
        (NEW, -1, (K.ENUM, None)),
        (NEW, 99, (K.ENUM, None)),
        (NEW, True, (K.ENUM, None)),
        (NEW, 1.5, (K.ENUM, None)),
        (NEW, [], (K.ENUM, None)),
        (BINARY, 2, (K.ENUM, None)),
        (OLD_PROTO, "TASK_STATE_CANCELLED", None),
        (OLD_PROTO, "TASK_STATE_CANCELED", (K.OTHER_ENUM, None)),
        (OLD, "working", None),
        (OLD, "unknown", (K.ENUM, INFO)),
        (OLD, "TASK_STATE_WORKING", (K.OTHER_ENUM, None)),
        (OLD, "other", (K.ENUM, None)),
        (OLDEST, "ROLE_USER", (K.OTHER_ENUM, None)),
    ],
)
def test_states(shapes: Grammar, value: Any, expected: Any) -> None:
    assert verdict(shapes, "TaskStatus", "state", value) == expected


def test_a_list_may_ask_for_any_state() -> None:
    assert verdict(NEW, "ListTasksRequest", "status", "TASK_STATE_UNSPECIFIED") is None
    assert verdict(NEW, "ListTasksRequest", "status", "TASK_STATE_X") == (K.ENUM, None)


@pytest.mark.parametrize(
    ("shape", "name", "right", "wrong"),
    [
        ("ListTasksRequest", "pageSize", [1, 100, "50", 2.0], [0, 101, -1]),
        ("ListTasksResponse", "pageSize", [0, 1, 101, 2**31 - 1], [-1, 2**31]),
        ("ListTasksResponse", "totalSize", [0, 2**31 - 1], [-1, 2**31]),
        ("GetTaskRequest", "historyLength", [0, 2**31 - 1, "7", "-0"], [-1, 2**31, "9" * 50]),
        (
            "GetTaskRequest",
            "historyLength",
            [0.0, 3e2],
            [1.5, "x", "", " 1", "1.0", True, None, [], {}],
        ),
    ],
)
def test_numbers(shape: str, name: str, right: list[Any], wrong: list[Any]) -> None:
    for value in right:
        assert verdict(NEW, shape, name, value) is None, value
    for value in wrong:
        assert verdict(NEW, shape, name, value) == (K.RANGE, None), value


def test_other_numbers_have_32_bits() -> None:
    for value in (-(2**31), 2**31 - 1, -5):
        assert verdict(NEW, "Message", "other", value, JsonKind.INT32) is None
    for value in (2**31 + 1, -(2**31) - 1):
        assert verdict(NEW, "Message", "other", value, JsonKind.INT32) == (K.RANGE, None)


def test_json_schema_of_0_x_has_no_numbers_in_texts() -> None:
    for shapes in (OLD, OLDEST):
        assert verdict(shapes, "Message", "historyLength", 3, JsonKind.INT32) is None
        for value in ("3", 3.0):
            assert verdict(shapes, "Message", "historyLength", value, JsonKind.INT32) == (
                K.RANGE,
                None,
            )


@pytest.mark.parametrize(
    ("value", "new", "old"),
    [
        ("2026-01-01T00:00:00.000Z", None, None),
        ("2026-01-01T00:00:00.123456789Z", None, None),
        ("2026-01-01T00:00:00Z", (K.TIMESTAMP, INFO), None),
        ("2026-01-01T00:00:00.000+01:00", (K.TIMESTAMP, None), None),
        ("2026-01-01T00:00:00.000+0100", (K.TIMESTAMP, None), None),
        ("2026-01-01t00:00:00.000z", (K.TIMESTAMP, None), None),
        ("2026-01-01T00:00:00.000", (K.TIMESTAMP, None), (K.TIMESTAMP, INFO)),
        ("2026-02-30T00:00:00.000Z", (K.TIMESTAMP, None), (K.TIMESTAMP, None)),
        ("2026-01-01T25:00:00.000Z", (K.TIMESTAMP, None), (K.TIMESTAMP, None)),
        ("2026-01-01 00:00:00.000Z", (K.TIMESTAMP, None), (K.TIMESTAMP, None)),
        ("2026-01-01T00:00:00.1234567890Z", (K.TIMESTAMP, None), (K.TIMESTAMP, None)),
        ("now", (K.TIMESTAMP, None), (K.TIMESTAMP, None)),
        (1767225600, (K.TIMESTAMP, None), (K.TIMESTAMP, None)),
    ],
)
def test_timestamps(value: Any, new: Any, old: Any) -> None:
    assert verdict(NEW, "TaskStatus", "timestamp", value) == new
    assert verdict(OLD_PROTO, "TaskStatus", "timestamp", value) == new
    assert verdict(OLD, "TaskStatus", "timestamp", value) == old
    assert verdict(OLDEST, "TaskStatus", "timestamp", value) == old


@pytest.mark.parametrize(
    ("kind", "right", "wrong", "expected"),
    [
        (JsonKind.TEXT, ["", "x"], [1, None, True, [], {}], K.RANGE),
        (JsonKind.BOOL, [True, False], [0, 1, "true", None, []], K.RANGE),
        (JsonKind.OBJECT, [{}, {"a": 1}], ["", [], 1, None], K.NOT_OBJECT),
        (
            JsonKind.BYTES,
            ["", "eA==", "eA", "_-8=", "/+8"],
            ["e", "?", "e!==", 1, [], "\u00e9"],
            K.BASE64,
        ),
        (JsonKind.ANY, [None, 1, "x", [], {}], [], None),
        (JsonKind.INT64, ["1", 1, None], [], None),
    ],
)
def test_types(kind: JsonKind, right: list[Any], wrong: list[Any], expected: FaultKind) -> None:
    for value in right:
        assert verdict(NEW, "Message", "x", value, kind) is None, value
    for value in wrong:
        assert verdict(NEW, "Message", "x", value, kind) == (expected, None), value
        if kind is not JsonKind.OBJECT and isinstance(value, str):
            assert verdict(BINARY, "Message", "x", value, kind) is None, (
                "the parser ensures the type"
            )


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        (
            "url",
            ["https://a/b", "data:,x", "a+b-c.d:e"],
            ["", "a/b", "//a", "1a:b", "http:", "http://a b"],
        ),
        (
            "mediaType",
            ["", "text/plain", "text/plain; charset=utf-8", "a/b ;x"],
            ["text", "/x", "a/", "a b/c", "a/b c"],
        ),
    ],
)
def test_addresses_and_media_types_of_parts(name: str, right: list[str], wrong: list[str]) -> None:
    for shapes in (NEW, BINARY):
        for value in right:
            assert verdict(shapes, "Part", name, value) is None, value
        for value in wrong:
            assert verdict(shapes, "Part", name, value) == (K.MEDIA, None), value
    assert verdict(NEW, "AgentProvider", "url", "a/b") is None, "only parts are checked"


def test_content_of_more_than_a_mebibyte_should_be_a_url() -> None:
    assert fault(NEW, "Part", "text", "x" * LARGE) is None
    found = fault(NEW, "Part", "text", "x" * (LARGE + 1))
    assert found is not None
    assert (found.wrong, found.value) == (K.LARGE, str(LARGE + 1))
    assert fault(NEW, "Part", "raw", "x" * (LARGE // 3 * 4)) is None
    found = fault(NEW, "Part", "raw", "x" * (LARGE // 3 * 4 + 8))
    assert found is not None
    assert (found.wrong, found.value) == (K.LARGE, str((LARGE // 3 * 4 + 8) // 4 * 3))
    assert fault(NEW, "Part", "filename", "x" * (LARGE + 1)) is None
    assert fault(NEW, "Message", "messageId", "x" * (LARGE + 1)) is None
