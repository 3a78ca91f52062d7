"""Values of a difference in one line: events as `show` prints them, other JSON compact."""

from __future__ import annotations

import json
from typing import Any

from a2a_proxy.protocol.text import to_one_line

_STATE_PREFIX, _ROLE_PREFIX = "TASK_STATE_", "ROLE_"
_MAX_TEXT = 4000
"""Characters of a value that are shown."""


def summarize_value(value: Any) -> str:
    """Return a value in one line, with control characters escaped."""
    if isinstance(value, dict) and len(value) == 1:
        ((name, inner),) = value.items()
        if name in _SUMMARIZERS and isinstance(inner, dict):
            return to_one_line(" ".join(word for word in _SUMMARIZERS[name](inner) if word), 300)
    return to_one_line(format_json(value), 300)


def format_json(value: Any) -> str:
    """Return JSON in one line, and a text unchanged."""
    if isinstance(value, str):
        return value[:_MAX_TEXT]
    try:
        return json.dumps(value, ensure_ascii=False)[:_MAX_TEXT]
    except (RecursionError, ValueError):
        return "nested too deeply to be shown"


def _summarize_task(value: dict[str, Any]) -> list[str]:
    return ["task", *_summarize_status(value.get("status"))]


def _summarize_update(value: dict[str, Any]) -> list[str]:
    return ["status", *_summarize_status(value.get("status"))]


def _summarize_status(value: Any) -> list[str]:
    if not isinstance(value, dict):
        return []
    message = value.get("message")
    said = _summarize_parts(message.get("parts")) if isinstance(message, dict) else ""
    return [str(value.get("state", "")).removeprefix(_STATE_PREFIX).lower().replace("_", "-"), said]


def _summarize_artifact(value: dict[str, Any]) -> list[str]:
    artifact = value.get("artifact")
    if not isinstance(artifact, dict):
        return ["artifact"]
    marks = ", ".join(
        mark for mark, name in (("append", "append"), ("last", "lastChunk")) if value.get(name)
    )
    name = str(artifact.get("name") or artifact.get("artifactId") or "")
    return [
        "artifact",
        name,
        f"({marks})" if marks else "",
        _summarize_parts(artifact.get("parts")),
    ]


def _summarize_message(value: dict[str, Any]) -> list[str]:
    return [
        "message",
        str(value.get("role", "")).removeprefix(_ROLE_PREFIX).lower(),
        _summarize_parts(value.get("parts")),
    ]


def _summarize_parts(parts: Any) -> str:
    first = parts[0] if isinstance(parts, list) and parts else None
    if not isinstance(first, dict):
        return ""
    text = first.get("text")
    return json.dumps(text, ensure_ascii=False) if isinstance(text, str) else format_json(first)


_SUMMARIZERS = {
    "task": _summarize_task,
    "statusUpdate": _summarize_update,
    "artifactUpdate": _summarize_artifact,
    "message": _summarize_message,
}
