"""Values of a difference in a line: events as `show` says them, other JSON compact."""

from __future__ import annotations

import json
from typing import Any

from a2a_proxy.protocol.text import to_one_line

_STATE, _ROLE = "TASK_STATE_", "ROLE_"
_LONG = 4000
"""Characters of a value that are shown."""


def brief(value: Any) -> str:
    """A value in one line, harmless."""
    if isinstance(value, dict) and len(value) == 1:
        ((name, inner),) = value.items()
        if name in _EVENTS and isinstance(inner, dict):
            return to_one_line(" ".join(word for word in _EVENTS[name](inner) if word), 300)
    return to_one_line(written(value), 300)


def written(value: Any) -> str:
    """JSON in one line, a text as it is."""
    if isinstance(value, str):
        return value[:_LONG]
    try:
        return json.dumps(value, ensure_ascii=False)[:_LONG]
    except (RecursionError, ValueError):
        return "nested too deeply to be shown"


def _task(value: dict[str, Any]) -> list[str]:
    return ["task", *_status(value.get("status"))]


def _update(value: dict[str, Any]) -> list[str]:
    return ["status", *_status(value.get("status"))]


def _status(value: Any) -> list[str]:
    if not isinstance(value, dict):
        return []
    message = value.get("message")
    said = _said(message.get("parts")) if isinstance(message, dict) else ""
    return [str(value.get("state", "")).removeprefix(_STATE).lower().replace("_", "-"), said]


def _artifact(value: dict[str, Any]) -> list[str]:
    artifact = value.get("artifact")
    if not isinstance(artifact, dict):
        return ["artifact"]
    marks = ", ".join(mark for mark, name in (("append", "append"), ("last", "lastChunk")) if value.get(name))
    name = str(artifact.get("name") or artifact.get("artifactId") or "")
    return ["artifact", name, f"({marks})" if marks else "", _said(artifact.get("parts"))]


def _message(value: dict[str, Any]) -> list[str]:
    return ["message", str(value.get("role", "")).removeprefix(_ROLE).lower(), _said(value.get("parts"))]


def _said(parts: Any) -> str:
    first = parts[0] if isinstance(parts, list) and parts else None
    if not isinstance(first, dict):
        return ""
    text = first.get("text")
    return json.dumps(text, ensure_ascii=False) if isinstance(text, str) else written(first)


_EVENTS = {"task": _task, "statusUpdate": _update, "artifactUpdate": _artifact, "message": _message}
