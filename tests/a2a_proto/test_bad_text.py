"""The field that makes a message unreadable is named."""

from __future__ import annotations

import pytest

from a2a_proto import find_bad_text, message_class

TEXT, BAD = b"plan-text", b"plan-\xc3\x28xt"


def task() -> bytes:
    """Return a task with a text in its id and deep inside."""
    made = message_class("1.0", "Task")(id="t1", context_id="c1")
    made.status.state = 2  # type: ignore[attr-defined]
    made.status.timestamp.seconds = 3  # type: ignore[attr-defined]
    made.artifacts.add(artifact_id="a1").parts.add(text=TEXT.decode())  # type: ignore[attr-defined]
    return made.SerializeToString()


@pytest.mark.parametrize(
    ("data", "path"),
    [
        (task(), ""),
        (task().replace(TEXT, BAD), "artifacts.parts.text"),
        (b"\x0a\x02\xc3\x28", "id"),
        (b"\x7a\x02\xc3\x28" + b"\x0a\x02\xc3\x28", "id"),
        (b"\x0a\x09\xc3", ""),
        (b"\x0b\x02\xc3\x28", ""),
        (b"\xff" * 12, ""),
    ],
    ids=("valid", "nested", "first", "unknown field before", "cut off", "group", "no field"),
)
def test_the_field_is_named(data: bytes, path: str) -> None:
    assert find_bad_text("1.0", "Task", data) == path
