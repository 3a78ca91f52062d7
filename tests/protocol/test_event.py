from __future__ import annotations

import json
from typing import Any

import pytest

from a2a_proxy.model.event import Event
from a2a_proxy.model.values import Dialect, FrameKind
from a2a_proxy.protocol.event import event_from_json, normalise_event, to_event
from support_messages import artifact, ask, message, old_ask, status, task, v1

_0_1, _0_3, _1_0 = Dialect.V0_1, Dialect.V0_3, Dialect.V1_0


def rpc(result: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "result": result}).encode()


def event(
    result: Any,
    dialect: Dialect = _0_3,
    kind: FrameKind = FrameKind.EVENT,
    operation: str = "SendStreamingMessage",
) -> dict:
    return normalise_event(rpc(result), "json", dialect, operation, kind)


def asked(params: Any, operation: str, dialect: Dialect = _0_3) -> dict:
    call = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "m", "params": params}).encode()
    return normalise_event(call, "json", dialect, operation, FrameKind.REQUEST)


def test_an_event_is_equal_over_all_bindings() -> None:
    """The same status update by JSON-RPC, REST, gRPC and in 0.3 is the same value."""
    wanted = status("WORKING", "on it")
    old = {
        "kind": "status-update",
        "taskId": "t1",
        "contextId": "c1",
        "final": False,
        "status": {
            "state": "working",
            "message": {
                "kind": "message",
                "messageId": "m-on it",
                "role": "agent",
                "parts": [{"kind": "text", "text": "on it"}],
            },
        },
    }
    data = v1("StreamResponse", wanted)

    assert event(wanted, _1_0) == wanted
    assert (
        normalise_event(
            json.dumps(wanted).encode(), "json", _1_0, "SendStreamingMessage", FrameKind.EVENT
        )
        == wanted
    )
    assert (
        normalise_event(
            data, "lf.a2a.v1.StreamResponse", _1_0, "SendStreamingMessage", FrameKind.EVENT
        )
        == wanted
    )
    made = event(old)
    assert made["statusUpdate"].pop("final") is False
    assert made == wanted


@pytest.mark.parametrize(
    ("part", "wanted"),
    [
        ({"kind": "text", "text": "x", "metadata": {"a": 1}}, {"text": "x", "metadata": {"a": 1}}),
        ({"type": "text", "text": "x"}, {"text": "x"}),
        (
            {"kind": "file", "file": {"name": "n", "mimeType": "m", "bytes": "AA=="}},
            {"filename": "n", "mediaType": "m", "raw": "AA=="},
        ),
        ({"kind": "file", "file": {"uri": "u"}}, {"url": "u"}),
        ({"kind": "data", "data": {"data": {"a": 1}}}, {"data": {"data": {"a": 1}}}),
        ({"data": {"data": {"a": 1}}}, {"data": {"a": 1}}),
        ({"file": {"fileWithUri": "u", "mimeType": "m"}}, {"url": "u", "mediaType": "m"}),
        ({"kind": "text", "text": "x", "extra": 1}, {"text": "x", "extra": 1}),
    ],
)
def test_parts(part: dict, wanted: dict) -> None:
    """Parts of every dialect become those of 1.0; unknown members stay (manual/protocol.md
    "Canonical form")."""
    made = event({"kind": "message", "messageId": "m", "role": "agent", "parts": [part]})

    assert made == {"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [wanted]}}


def test_data_of_1_0_is_not_touched() -> None:
    """In 1.0 `data` is any JSON, also an object with a member `data`."""
    wanted = {
        "message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"data": {"data": {"a": 1}}}]}
    }

    assert event(wanted, _1_0) == wanted


def test_dialect_0_1() -> None:
    """0.1: `sessionId` is the context, the flags move out of the artifact, `index` is its id."""
    chunk = {
        "id": "t1",
        "artifact": {
            "name": "r",
            "parts": [{"type": "text", "text": "x"}],
            "append": True,
            "lastChunk": False,
        },
    }
    snapshot = {
        "id": "t1",
        "sessionId": "s",
        "status": {"state": "canceled"},
        "artifacts": [{"index": 1, "parts": []}],
        "history": [],
    }

    assert event(chunk, _0_1) == {
        "artifactUpdate": {
            "taskId": "t1",
            "artifact": {"artifactId": "0", "name": "r", "parts": [{"text": "x"}]},
            "append": True,
            "lastChunk": False,
        }
    }
    assert event(snapshot, _0_1, FrameKind.RESPONSE, "GetTask") == {
        "task": {
            "id": "t1",
            "contextId": "s",
            "status": {"state": "TASK_STATE_CANCELED"},
            "artifacts": [{"artifactId": "1", "parts": []}],
            "history": [],
        }
    }


def test_push_configuration_of_0_1() -> None:
    """0.1: the id beside a push configuration is the task's, not the configuration's."""
    config = {"id": "t1", "pushNotificationConfig": {"url": "u"}}

    assert event(config, _0_1, FrameKind.RESPONSE, "GetTaskPushNotificationConfig") == {
        "taskId": "t1",
        "url": "u",
    }


def test_vendor_dialect() -> None:
    """1.4: a status update with its progress, `final` kept, the task's id under its 1.0 name."""
    progress = {"current": 1, "total": 3, "message": "m"}
    made = event(
        {"id": "t1", "status": {"state": "working", "progress": progress}, "final": False},
        Dialect.VENDOR,
    )

    assert made == {
        "statusUpdate": {
            "taskId": "t1",
            "status": {"state": "TASK_STATE_WORKING", "progress": progress},
            "final": False,
        }
    }


def test_old_protobuf() -> None:
    """0.3 protobuf: `content`, nested data, CANCELLED, `final`."""
    said = {"messageId": "m", "role": "ROLE_AGENT", "content": [{"data": {"data": {"a": 1}}}]}
    update = {
        "taskId": "t1",
        "contextId": "c1",
        "status": {"state": "TASK_STATE_CANCELLED", "message": said},
        "final": True,
    }
    data = message("0.3", "StreamResponse", {"statusUpdate": update})
    made = normalise_event(
        data, "a2a.v1.StreamResponse", _0_3, "SendStreamingMessage", FrameKind.EVENT
    )["statusUpdate"]

    assert (made["final"], made["status"]["state"]) == (True, "TASK_STATE_CANCELED")
    assert made["status"]["message"] == {
        "messageId": "m",
        "role": "ROLE_AGENT",
        "parts": [{"data": {"a": 1}}],
    }


def test_snake_case() -> None:
    """ProtoJSON takes proto names too; metadata and data keep their names."""
    given = {
        "status_update": {
            "task_id": "t1",
            "metadata": {"task_id": 1},
            "status": {"state": "TASK_STATE_WORKING"},
        }
    }

    assert event(given) == {
        "statusUpdate": {
            "taskId": "t1",
            "metadata": {"task_id": 1},
            "status": {"state": "TASK_STATE_WORKING"},
        }
    }


@pytest.mark.parametrize("spelled", ["data", "d\\u0061ta"])
def test_members_may_be_written_with_escapes(spelled: str) -> None:
    """JSON lets any letter of a name be `\\u....`: it is the same name."""
    written = rpc(
        {
            "statusUpdate": {
                "taskId": "t1",
                "status": {"message": {"parts": [{"data": {"data": 1}}]}},
            }
        }
    )
    written = written.replace(b"taskId", rb"task\u005fid").replace(
        b'"data"', f'"{spelled}"'.encode()
    )
    made = normalise_event(written, "json", _0_3, "SendStreamingMessage", FrameKind.EVENT)[
        "statusUpdate"
    ]
    assert (made["taskId"], made["status"]["message"]["parts"]) == ("t1", [{"data": 1}])


def test_the_last_decoded_payload_is_cached_by_its_arguments() -> None:
    """Only the last result is cached, for identical arguments."""
    payload = rpc({"kind": "message", "parts": [{"data": {"data": 1}}]})
    for _ in range(2):
        assert normalise_event(payload, "json", _0_3, "", FrameKind.EVENT)["message"]["parts"] == [
            {"data": 1}
        ]
        assert normalise_event(payload, "json", _1_0, "", FrameKind.EVENT)["message"]["parts"] == [
            {"data": {"data": 1}}
        ]
        assert (
            normalise_event(payload, "json", _1_0, "ListTasks", FrameKind.RESPONSE)["tasks"] == []
        )
        assert "message" not in normalise_event(
            payload, "json", _1_0, "SendMessage", FrameKind.REQUEST
        )


def test_answers() -> None:
    """Lists of 0.3 become the objects of 1.0; cards and empty answers stay; push configurations are
    flat."""
    config = {
        "taskId": "t1",
        "pushNotificationConfig": {
            "id": "p",
            "url": "u",
            "authentication": {"schemes": ["Bearer"]},
        },
    }
    flat = {"taskId": "t1", "id": "p", "url": "u", "authentication": {"scheme": "Bearer"}}
    answer = FrameKind.RESPONSE

    assert event([config], kind=answer, operation="ListTaskPushNotificationConfigs") == {
        "configs": [flat]
    }
    assert event(config, kind=answer, operation="GetTaskPushNotificationConfig") == flat
    assert event(
        {"tasks": [{"kind": "task", "id": "t"}], "totalSize": 1}, kind=answer, operation="ListTasks"
    ) == {
        "tasks": [{"id": "t"}],
        "totalSize": 1,
    }
    assert event({"name": "a"}, kind=answer, operation="GetExtendedAgentCard") == {"name": "a"}
    assert event(None, kind=answer, operation="DeleteTaskPushNotificationConfig") == {}


def test_errors_and_foreign_payloads_have_no_event() -> None:
    """Errors are given as they are; an unknown wrapper stays; what cannot be read is empty."""
    error = {"code": -32001, "message": "m"}

    assert normalise_event(
        json.dumps({"jsonrpc": "2.0", "id": 1, "error": error}).encode(),
        "json",
        _1_0,
        "",
        FrameKind.ERROR,
    ) == {"error": error}
    assert event({"somethingNew": {"a": 1}}, _1_0) == {"somethingNew": {"a": 1}}
    assert event([1]) == {}
    assert normalise_event(b"nonsense", "json", _1_0, "", FrameKind.EVENT) == {}
    assert normalise_event(b"\xff", "lf.a2a.v1.Task", _1_0, "GetTask", FrameKind.RESPONSE) == {}
    assert normalise_event(b"x", "lf.a2a.v1.NoSuch", _1_0, "", FrameKind.EVENT) == {}
    assert normalise_event(b"x", "bytes", _1_0, "", FrameKind.EVENT) == {}


def test_send_requests() -> None:
    """The configuration of every line in 1.0 terms: `blocking` turns round, the push configuration
    is flat."""
    push = {"url": "u", "authentication": {"schemes": ["Bearer", "Basic"], "credentials": "c"}}
    old = asked(
        {
            **old_ask(),
            "configuration": {"blocking": True, "pushNotificationConfig": push, "historyLength": 3},
        },
        "SendMessage",
    )
    oldest = asked(
        {
            "id": "t",
            "sessionId": "s",
            "message": {"role": "user", "parts": []},
            "pushNotification": {"url": "u"},
        },
        "SendMessage",
        _0_1,
    )

    assert old["message"] == ask()["message"]
    assert old["configuration"] == {
        "historyLength": 3,
        "returnImmediately": False,
        "taskPushNotificationConfig": {
            "url": "u",
            "authentication": {
                "scheme": "Bearer",
                "credentials": "c",
                "schemes": ["Bearer", "Basic"],
            },
        },
    }
    assert oldest == {
        "message": {"role": "ROLE_USER", "parts": [], "taskId": "t", "contextId": "s"},
        "configuration": {"taskPushNotificationConfig": {"url": "u"}},
    }


@pytest.mark.parametrize(
    ("params", "operation", "wanted"),
    [
        ({"id": "t1", "historyLength": 1}, "GetTask", {"id": "t1", "historyLength": 1}),
        ({"name": "tasks/t1"}, "CancelTask", {"id": "t1"}),
        (
            {"id": "t1", "pushNotificationConfigId": "p"},
            "GetTaskPushNotificationConfig",
            {"taskId": "t1", "id": "p"},
        ),
        (
            {"name": "tasks/t1/pushNotificationConfigs/p"},
            "DeleteTaskPushNotificationConfig",
            {"taskId": "t1", "id": "p"},
        ),
        ({"taskId": "t1", "id": "p"}, "GetTaskPushNotificationConfig", {"taskId": "t1", "id": "p"}),
        ({"parent": "tasks/t1"}, "ListTaskPushNotificationConfigs", {"taskId": "t1"}),
        ({"id": "t1"}, "ListTaskPushNotificationConfigs", {"taskId": "t1"}),
        (
            {
                "parent": "tasks/t1",
                "configId": "p",
                "config": {"pushNotificationConfig": {"url": "u"}},
            },
            "CreateTaskPushNotificationConfig",
            {"taskId": "t1", "id": "p", "url": "u"},
        ),
        (
            {"message": {"message_id": "m", "role": "ROLE_USER", "content": []}},
            "SendMessage",
            {"message": {"messageId": "m", "role": "ROLE_USER", "parts": []}},
        ),
    ],
)
def test_other_requests(params: dict, operation: str, wanted: dict) -> None:
    """Ids of every line under their 1.0 names."""
    assert asked(params, operation) == wanted


def test_typed() -> None:
    """Typed events: int64 from its string, wrong members left out, null as absent."""
    made = to_event(
        rpc({"task": {**task("WORKING"), "generation": "7", "history": None}}),
        "json",
        _1_0,
        "GetTask",
        FrameKind.RESPONSE,
    )
    odd = to_event(
        rpc(
            {
                "statusUpdate": {
                    "taskId": 7,
                    "status": {"state": "TASK_STATE_WORKING", "timestamp": 5},
                    "metadata": [],
                }
            }
        ),
        "json",
        _1_0,
        "x",
        FrameKind.EVENT,
    )
    parts = to_event(
        rpc(
            {
                "artifactUpdate": {
                    "taskId": "t",
                    "artifact": {"artifactId": "a", "parts": [{"text": []}]},
                }
            }
        ),
        "json",
        _1_0,
        "x",
        FrameKind.EVENT,
    )

    assert made.task is not None
    assert (made.task.generation, made.task.history) == (7, [])
    assert odd.status_update is not None
    assert odd.status_update.status is not None
    assert odd.status_update.status.state == "TASK_STATE_WORKING"
    assert parts.artifact_update is not None
    assert to_event(b"", "json", _1_0, "x", FrameKind.EVENT) == Event()
    assert to_event(
        rpc(artifact("x", append=True)), "json", _1_0, "x", FrameKind.EVENT
    ).artifact_update.append  # type: ignore[union-attr]


def test_null_members_are_unset_except_in_data_and_metadata() -> None:
    parts = [
        {"text": "a", "filename": None},
        None,
        {"data": None},
        {"data": {"x": None}, "metadata": {"y": None}},
    ]
    found = event_from_json(
        {"message": {"messageId": None, "parts": parts, "metadata": None}}
    ).message
    assert found is not None
    assert (found.message_id, found.metadata) == ("", None)
    assert [(part.text, part.data, part.metadata) for part in found.parts] == [
        ("a", None, None),
        (None, None, None),
        (None, {"x": None}, {"y": None}),
    ]
    many = event_from_json({"message": {"parts": [{"text": "a", "filename": None}] * 100}}).message
    assert many is not None
    assert len(many.parts) == 100


def test_members_of_a_wrong_type_are_left_out_one_by_one() -> None:
    wrong = {
        "taskId": {},
        "contextId": "c1",
        "status": {"state": [], "message": {"parts": [{"text": "a"}, {"text": []}]}},
    }
    update = event_from_json({"statusUpdate": wrong, "task": "t1"}).status_update
    assert update is not None
    assert (update.task_id, update.context_id) == ("", "c1")
    assert update.status is not None
    assert update.status.message is not None
    assert update.status.message.parts == []
    assert event_from_json({"task": 1, "message": 2, "statusUpdate": 3}) == Event()
    assert event_from_json([]) == Event()  # type: ignore[arg-type]
