"""HAR 1.2 as a JSON schema, for checks of exported files."""

from __future__ import annotations

from typing import Any

_TEXT = {"type": "string"}
_COUNT = {"type": "integer", "minimum": -1}
_TIME = {"type": "number", "minimum": -1}
_PAIRS = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["name", "value"],
        "properties": {"name": _TEXT, "value": _TEXT},
    },
}
_MOMENT = {"type": "string", "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$"}


def _object(required: dict[str, Any], **optional: Any) -> dict[str, Any]:
    """Return the schema of an object with these members; others must be `comment` or begin with an
    underscore."""
    return {
        "type": "object",
        "required": list(required),
        "properties": {**required, **optional, "comment": _TEXT},
        "patternProperties": {"^_": {}},
        "additionalProperties": False,
    }


_SIDES = {
    "httpVersion": _TEXT,
    "cookies": _PAIRS,
    "headers": _PAIRS,
    "headersSize": _COUNT,
    "bodySize": _COUNT,
}
_REQUEST = _object(
    {
        "method": {"type": "string", "pattern": "^[A-Z]+$"},
        "url": {"type": "string", "format": "uri"},
    }
    | {"queryString": _PAIRS, **_SIDES},
    postData=_object({"mimeType": _TEXT, "text": _TEXT}),
)
_RESPONSE = _object(
    {
        "status": {"type": "integer", "minimum": 0},
        "statusText": _TEXT,
        "redirectURL": _TEXT,
        **_SIDES,
    }
    | {
        "content": _object(
            {"size": _COUNT, "mimeType": _TEXT}, text=_TEXT, encoding={"const": "base64"}
        )
    }
)
_TIMINGS = _object(
    {name: {"type": "number", "minimum": 0} for name in ("send", "wait", "receive")},
    **dict.fromkeys(("blocked", "dns", "connect", "ssl"), _TIME),
)
_ENTRY = _object(
    {
        "startedDateTime": _MOMENT,
        "time": {"type": "number", "minimum": 0},
        "request": _REQUEST,
        "response": _RESPONSE,
    }
    | {"cache": _object({}), "timings": _TIMINGS},
    pageref=_TEXT,
    serverIPAddress=_TEXT,
    connection=_TEXT,
)
_PAGE = _object(
    {"startedDateTime": _MOMENT, "id": _TEXT, "title": _TEXT}
    | {"pageTimings": _object({}, onContentLoad=_TIME, onLoad=_TIME)}
)
_LOG = _object(
    {"version": {"const": "1.2"}, "creator": _object({"name": _TEXT, "version": _TEXT})}
    | {"entries": {"type": "array", "items": _ENTRY}},
    pages={"type": "array", "items": _PAGE},
)
SCHEMA: dict[str, Any] = _object({"log": _LOG})
