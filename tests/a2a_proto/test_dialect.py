"""0.3 and the release candidate share package a2a.v1; the method, then the bytes, decide between
them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_proto import choose_a2a_v1, message_class


def made(line: Any, message: str, /, **values: Any) -> bytes:
    return message_class(line, message)(**values).SerializeToString()


def sent(line: Any, part: Any) -> bytes:
    """A SendMessageRequest with one part, as a peer of that line writes it."""
    inner = {"message_id": "m", "role": 1, "content" if line == "0.3" else "parts": [part]}
    return made(line, "SendMessageRequest", **{"request" if line == "0.3" else "message": inner})


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("TaskSubscription", "0.3"),
        ("GetAgentCard", "0.3"),
        ("CreateTaskPushNotification", "0.3"),
        ("GetTaskPushNotification", "0.3"),
        ("ListTaskPushNotification", "0.3"),
        ("SubscribeToTask", "rc"),
        ("GetExtendedAgentCard", "rc"),
    ],
)
@pytest.mark.parametrize("otherwise", ["0.3", "rc"])
def test_method_decides(method: str, expected: str, otherwise: Any) -> None:
    """A method that one line alone has settles it, whatever the bytes are and whatever was thought
    before."""
    assert choose_a2a_v1(method, "AgentCard", b"\xff", otherwise) == expected


SENT_0_3 = {
    "file uri": {"file": {"file_with_uri": "https://x/y", "mime_type": "image/png"}},
    "file bytes": {"file": {"file_with_bytes": b"\x89PNG"}},
    "data": {"data": {"data": {"a": 1}}},
    "metadata": {"text": "t", "metadata": {"a": 1}},
}
SENT_RC = {
    "raw text": {"raw": b"hello"},
    "raw binary": {"raw": b"\x89PNG\r\n\x1a\n\x00"},
    "raw and name": {"raw": b"", "filename": "f"},
    "url": {"url": "https://x/y"},
    "file url": {"url": "file:///x"},
    "metadata": {"text": "t", "metadata": {"a": 1}},
    "media type": {"text": "t", "media_type": "text/plain"},
}


@pytest.mark.parametrize("otherwise", ["0.3", "rc"])
@pytest.mark.parametrize(
    ("line", "part"),
    [("0.3", part) for part in SENT_0_3.values()] + [("rc", part) for part in SENT_RC.values()],
    ids=[f"0.3 {name}" for name in SENT_0_3] + [f"rc {name}" for name in SENT_RC],
)
def test_parts_decide(line: str, part: dict[str, Any], otherwise: Any) -> None:
    """A part with more than text is read well by its own line only, in a request and deep in a
    task."""
    assert choose_a2a_v1("SendMessage", "SendMessageRequest", sent(line, part), otherwise) == line
    task = made(
        line,
        "StreamResponse",
        task={"id": "t", "artifacts": [{"artifact_id": "a", "parts": [part]}]},
    )
    assert choose_a2a_v1("SendStreamingMessage", "StreamResponse", task, otherwise) == line


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("struct_value", {"a": "b"}),
        ("string_value", "s"),
        ("number_value", 2.0),
        ("bool_value", True),
    ],
)
def test_data_of_the_candidate(kind: str, value: Any) -> None:
    """A Value in number 4 is not a Struct, which 0.3 has there."""
    part = message_class("rc", "Part")()
    inner: Any = part.data  # type: ignore[attr-defined]
    if kind == "struct_value":
        inner.struct_value.update(value)
    else:
        setattr(inner, kind, value)
    assert choose_a2a_v1("SendMessage", "SendMessageRequest", sent("rc", part)) == "rc"


@pytest.mark.parametrize("otherwise", ["0.3", "rc"])
def test_text_alone_decides_nothing(otherwise: Any) -> None:
    """A text message has the same bytes in both, so the previous assumption of the caller stays."""
    data = sent("rc", {"text": "hello"})
    assert data == sent("0.3", {"text": "hello"})
    assert choose_a2a_v1("SendMessage", "SendMessageRequest", data, otherwise) == otherwise
    assert choose_a2a_v1("SendMessage", "SendMessageRequest", b"", otherwise) == otherwise
    assert choose_a2a_v1("SendMessage", "SendMessageRequest", b"\xff", otherwise) == otherwise


PUSH = "CreateTaskPushNotificationConfig"
ONE_SIDED: list[tuple[str, str, str, dict[str, Any]]] = [
    ("rc", "SendMessage", "SendMessageRequest", {"tenant": "acme"}),
    ("0.3", "GetTask", "GetTaskRequest", {"name": "tasks/t"}),
    ("0.3", "GetTask", "GetTaskRequest", {"name": "tasks/" + "t" * 200}),
    ("rc", "GetTask", "GetTaskRequest", {"id": "t"}),
    ("rc", "GetTask", "GetTaskRequest", {"id": "t" * 200, "tenant": "a"}),
    ("0.3", "CancelTask", "CancelTaskRequest", {"name": "tasks/t"}),
    ("rc", "CancelTask", "CancelTaskRequest", {"id": "t"}),
    ("rc", "ListTasks", "ListTasksRequest", {"tenant": "acme"}),
    (
        "0.3",
        PUSH,
        f"{PUSH}Request",
        {"parent": "tasks/t", "config_id": "c", "config": {"name": "n"}},
    ),
    ("rc", PUSH, f"{PUSH}Request", {"task_id": "t", "config_id": "c", "config": {"id": "n"}}),
    ("0.3", PUSH, "TaskPushNotificationConfig", {"name": "tasks/t/pushNotificationConfigs/c"}),
    ("rc", PUSH, "TaskPushNotificationConfig", {"id": "c", "task_id": "t"}),
    (
        "0.3",
        "ListTaskPushNotificationConfig",
        "ListTaskPushNotificationConfigRequest",
        {"parent": "tasks/t"},
    ),
    (
        "rc",
        "ListTaskPushNotificationConfig",
        "ListTaskPushNotificationConfigRequest",
        {"task_id": "t"},
    ),
    (
        "0.3",
        "SendStreamingMessage",
        "StreamResponse",
        {"status_update": {"task_id": "t", "final": True}},
    ),
    (
        "0.3",
        "",
        "AgentCard",
        {
            "name": "n",
            "url": "http://x",
            "security_schemes": {"k": message_class("0.3", "SecurityScheme")()},
        },
    ),
    (
        "rc",
        "",
        "AgentCard",
        {
            "name": "n",
            "supported_interfaces": [{"url": "http://x"}],
            "security_schemes": {"k": message_class("rc", "SecurityScheme")()},
        },
    ),
    ("rc", "", "GetExtendedAgentCardRequest", {"tenant": "t"}),
    ("0.3", "", "GetAgentCardRequest", {}),
]


@pytest.mark.parametrize("otherwise", ["0.3", "rc"])
@pytest.mark.parametrize(("line", "method", "name", "values"), ONE_SIDED)
def test_field_decides(
    line: str, method: str, name: str, values: dict[str, Any], otherwise: Any
) -> None:
    """A field of one line only, a resource name or a bare id settles it against what was thought
    before."""
    assert choose_a2a_v1(method, name, made(line, name, **values), otherwise) == line


@given(
    st.binary(), st.sampled_from(["StreamResponse", "AgentCard", "GetTaskRequest", "NothingSuch"])
)
def test_never_raises(data: bytes, name: str) -> None:
    """Any bytes under any name give one of the two lines."""
    assert choose_a2a_v1("SendMessage", name, data) in ("0.3", "rc")
