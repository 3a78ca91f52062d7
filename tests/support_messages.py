"""Protobuf messages for tests, from plain dicts."""

from __future__ import annotations

from typing import Any

from a2a_proto import SchemaSet, from_dict


def message(line: SchemaSet, name: str, value: dict[str, Any]) -> bytes:
    """Return the bytes of a message given as ProtoJSON."""
    return from_dict(line, name, value).SerializeToString()


def v1(name: str, value: dict[str, Any]) -> bytes:
    return message("1.0", name, value)


def status(state: str = "WORKING", text: str = "", **members: Any) -> dict[str, Any]:
    """Return a 1.0 status update in its wrapper."""
    said: dict[str, Any] = {"state": f"TASK_STATE_{state}"}
    if text:
        said["message"] = {
            "messageId": f"m-{text}",
            "role": "ROLE_AGENT",
            "parts": [{"text": text}],
        }
    return {"statusUpdate": {"taskId": "t1", "contextId": "c1", "status": said, **members}}


def artifact(text: str, **members: Any) -> dict[str, Any]:
    """Return a 1.0 artifact update in its wrapper."""
    made = {"artifactId": "a1", "name": "report", "parts": [{"text": text}]}
    return {"artifactUpdate": {"taskId": "t1", "contextId": "c1", "artifact": made, **members}}


def task(state: str = "SUBMITTED", **members: Any) -> dict[str, Any]:
    """Return a 1.0 task without a wrapper."""
    return {"id": "t1", "contextId": "c1", "status": {"state": f"TASK_STATE_{state}"}, **members}


def ask(text: str = "hi", **members: Any) -> dict[str, Any]:
    """Return the parameters of a 1.0 send."""
    return {
        "message": {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": text}], **members}
    }


def old_ask(text: str = "hi", **members: Any) -> dict[str, Any]:
    """Return the parameters of a 0.2 or 0.3 send."""
    part = {"kind": "text", "text": text}
    return {
        "message": {
            "kind": "message",
            "messageId": "m1",
            "role": "user",
            "parts": [part],
            **members,
        }
    }
