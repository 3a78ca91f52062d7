from __future__ import annotations

import pytest

from a2a_proxy.protocol.rest_path import match_request_line, parse_query

_CID = "GetTaskPushNotificationConfig"


@pytest.mark.parametrize(
    ("line", "name", "prefix", "task", "config"),
    [
        ("POST /message:send", "SendMessage", "", "", ""),
        ("POST /message:stream", "SendStreamingMessage", "", "", ""),
        ("POST /v1/message:send", "SendMessage", "/v1", "", ""),
        ("POST /a2a/rest/acme/message:send", "SendMessage", "/a2a/rest/acme", "", ""),
        ("POST /message%3Asend", "SendMessage", "", "", ""),
        ("GET /tasks", "ListTasks", "", "", ""),
        ("GET /tasks?status=TASK_STATE_WORKING", "ListTasks", "", "", ""),
        ("GET /tasks/t1", "GetTask", "", "t1", ""),
        ("GET /v1/tasks/t%201%2Fb", "GetTask", "/v1", "t 1/b", ""),
        ("GET /tasks/a:b", "GetTask", "", "a:b", ""),
        ("GET /tasks/a%3Acancel", "GetTask", "", "a:cancel", ""),
        ("POST /tasks/a:b:cancel", "CancelTask", "", "a:b", ""),
        ("GET /tasks/t1:subscribe", "SubscribeToTask", "", "t1", ""),
        ("POST /tasks/t1:subscribe", "SubscribeToTask", "", "t1", ""),
        ("POST /tasks/t1:reconnect", "ReconnectToTask", "", "t1", ""),
        ("GET /tasks/t1/pushNotificationConfigs", "ListTaskPushNotificationConfigs", "", "t1", ""),
        (
            "POST /tasks/t1/pushNotificationConfigs",
            "CreateTaskPushNotificationConfig",
            "",
            "t1",
            "",
        ),
        ("GET /x/tasks/t1/pushNotificationConfigs/c%2B1", _CID, "/x", "t1", "c+1"),
        (
            "DELETE /tasks/t1/pushNotificationConfigs/c1",
            "DeleteTaskPushNotificationConfig",
            "",
            "t1",
            "c1",
        ),
        ("GET /extendedAgentCard", "GetExtendedAgentCard", "", "", ""),
        ("GET /v1/card", "GetExtendedAgentCard", "/v1", "", ""),
        ("POST /live", "SendLiveMessage", "", "", ""),
        ("GET http://agent:8000/tasks/t1", "GetTask", "http://agent:8000", "t1", ""),
        (
            "GET /tasks/tasks/pushNotificationConfigs",
            "ListTaskPushNotificationConfigs",
            "",
            "tasks",
            "",
        ),
    ],
)
def test_suffixes(line: str, name: str, prefix: str, task: str, config: str) -> None:
    """The end of the path names the operation, whatever precedes it (A2A 1.0 section 11.3)."""
    method, target = line.split(" ", 1)
    found = match_request_line(method, target.encode())

    assert found is not None
    assert (found.operation.name, found.prefix, found.task_id, found.config_id) == (
        name,
        prefix,
        task,
        config,
    )


@pytest.mark.parametrize(
    "line",
    [
        "GET /",
        "POST /",
        "GET /message:send",
        "POST /tasks/t1",
        "PUT /tasks/t1",
        "GET /tasks/",
        "POST /tasks/t1:delete",
        "GET /card",
        "GET /authenticatedExtendedCard",
        "POST /mytasks/t1:cancel",
        "GET /tasks/t1/other",
    ],
)
def test_other_paths_and_methods_do_not_match(line: str) -> None:
    """Paths and methods outside A2A match nothing."""
    method, target = line.split(" ", 1)

    assert match_request_line(method, target.encode()) is None


def test_query() -> None:
    """Query values are unescaped; names compare without case, A2A-Version may be among them (A2A
    1.0 section 3.6.1)."""
    found = match_request_line("GET", b"/tasks?pageToken=a%2Bb+c&a2a-version=1.0&flag")

    assert found is not None
    assert found.get_parameter("pageToken") == "a+b c"
    assert found.get_parameter("A2A-Version") == "1.0"
    assert found.get_parameter("missing") == ""
    assert ("flag", "") in found.query
    assert parse_query(b"x=%ff") == (("x", "�"),)
