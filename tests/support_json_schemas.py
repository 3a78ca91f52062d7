"""The JSON schemas in `manual/schemas`, for editors and programs: a line of a cassette,
`views.toml`, `keys.toml`.

`python tests/support_json_schemas.py` writes them; `tests/house` compares them with the code, and
with the readers.
"""

from __future__ import annotations

import json
import re
from enum import IntEnum
from inspect import cleandoc
from pathlib import Path
from typing import Any

import msgspec

from a2a_inspect.keys.actions import default_keys
from a2a_inspect.keys.places import KEY_SCOPES
from a2a_proxy.model.event import TaskState
from a2a_proxy.model.values import (
    ArtifactState,
    Connection,
    EventKind,
    Exchange,
    Finding,
    Frame,
    FrameKind,
    MissedGenerations,
    MissedReason,
    Note,
    Severity,
    Support,
    Task,
)
from a2a_proxy.model.wire import Direction
from a2a_proxy.recording.cassette.exporter import COUNTED_KINDS, FORMAT_VERSION, STATE_FIELDS
from a2a_proxy.recording.read.rows import SessionFacts

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "proxy/a2a_proxy/manual/schemas"
_PAGE = ROOT / "proxy/a2a_proxy/manual/cassette.md"

Schema = dict[str, Any]

_TIME: Schema = {"type": "integer"}
_SHA256: Schema = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
_HEADERS: Schema = {
    "type": "array",
    "items": {"type": "array", "items": {"type": "string"}, "minItems": 2, "maxItems": 2},
}
_STATE: Schema = {"anyOf": [{"enum": [state.label for state in TaskState]}, {"type": "integer"}]}
_STATES: Schema = {
    "type": "array",
    "items": {"type": "array", "prefixItems": [_TIME, _STATE], "minItems": 2, "maxItems": 2},
}
_RANGES: Schema = {
    "type": "array",
    "items": {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2},
}
_PAYLOAD: dict[str, Schema] = {
    "size": {"type": "integer"},
    "data": {},
    "json": {"enum": ["spaced", "ascii", "spaced-ascii"]},
    "text": {"type": "string"},
    "raw_b64": {"type": "string", "contentEncoding": "base64"},
    "view": {},
    "blob": _SHA256,
}


def _names(kind: type[IntEnum]) -> Schema:
    return {"enum": [each.name.lower() for each in kind]}


def _descriptions(title: str) -> dict[str, str]:
    """Return the meaning of each member, from its table in the manual."""
    table = _PAGE.read_text("utf-8").partition(f"\n{title}\n")[2].lstrip("\n").partition("\n\n")[0]
    return dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", table, re.MULTILINE))


def _line(struct: type, first: str, title: str, definitions: Schema, **changed: Schema) -> Schema:
    """Return the schema of a kind of line: the types of the model, except those that a cassette
    writes otherwise."""
    (_, components) = msgspec.json.schema_components([struct], ref_template="#/$defs/{name}")
    own = components.pop(struct.__name__)
    definitions |= components
    members = {
        name: changed.get(name) or _without_default(own["properties"][name])
        for name in own["properties"]
    }
    required = [name for name in own.get("required", ()) if name in members]
    if struct is Frame:
        for name in ("payload", "size"):
            del members[name]
        required = ["kind", "connection", "direction", "at"]  # the others have defaults for readers
        members |= _PAYLOAD
    if first:
        kind = struct.__name__.lower()
        members = {kind: members.pop(first), **members}
        required = [kind, *(name for name in required if name != first)]
        members["session"] = {
            "type": "integer",
            "minimum": 1,
            "description": "position in `sessions`, from 1",
        }
    words = _descriptions(title)
    described = {
        name: {"description": _plain(words[name]), **schema} if name in words else schema
        for name, schema in members.items()
    }
    return {"type": "object", "properties": described, "required": required}


def _without_default(schema: Schema) -> Schema:
    return {name: value for name, value in schema.items() if name not in ("default", "description")}


def _plain(text: str) -> str:
    return re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", text).replace(r"\|", "|")


def cassette_schema() -> Schema:
    """Return the schema of one line of a cassette."""
    made: Schema = {}
    times = dict.fromkeys(
        ("started", "request_ended", "response_started", "first_event", "last_event", "closed"),
        _TIME,
    )
    headers = dict.fromkeys(("request_headers", "response_headers", "trailers"), _HEADERS)
    artifact = _line(ArtifactState, "", "Of each of its `artifacts`:", made)
    missed = _line(
        MissedGenerations,
        "",
        "Of each run of generations that it `missed`:",
        made,
        reason=_names(MissedReason),
    )
    lines = {
        "connection": _line(Connection, "id", "### A connection", made),
        "exchange": _line(Exchange, "id", "### An exchange", made, **times, **headers),
        "frame": _line(
            Frame,
            "kind",
            "### A frame",
            made,
            kind=_names(FrameKind),
            direction=_names(Direction),
            event=_names(EventKind),
            state=_STATE,
            sha256={"type": "string", "pattern": "^[0-9a-f]*$"},
        ),
        "task": _line(
            Task,
            "task_id",
            "### A task",
            made,
            state=_STATE,
            states=_STATES,
            seen=_RANGES,
            support=_names(Support),
            artifacts={"type": "array", "items": artifact},
            missed={"type": "array", "items": {"anyOf": [missed, {"type": "integer"}]}},
        ),
        "finding": _line(Finding, "rule", "### A finding", made, severity=_names(Severity)),
        "note": _line(Note, "text", "### A note", made),
    }
    (_, components) = msgspec.json.schema_components([SessionFacts], ref_template="#/$defs/{name}")
    session = components["SessionFacts"]
    types = {"how": "string", "complete": "string", "lost": "integer", "edits": "integer"}
    session["properties"] |= {"ended": {"type": ["integer", "null"]}}
    session["properties"] |= {name: {"type": types[name]} for name in STATE_FIELDS if name in types}
    words = _descriptions("### A session")
    session["properties"] = {
        name: {**_without_default(schema), "description": _plain(words[name])}
        for name, schema in session["properties"].items()
    }
    lines["header"] = {
        "type": "object",
        "properties": {
            "cassette": {"const": "a2a"},
            "version": {"const": FORMAT_VERSION},
            "tool": {"type": "string"},
            "sessions": {"type": "array", "items": {"$ref": "#/$defs/session"}},
        },
        "required": ["cassette", "version", "sessions"],
    }
    counts = {f"{kind}s": {"type": "integer", "minimum": 0} for kind in (*COUNTED_KINDS, "note")}
    lines["end"] = {
        "type": "object",
        "properties": {
            "end": {
                "type": "object",
                "properties": counts,
                "required": [f"{kind}s" for kind in COUNTED_KINDS],
            },
            "payloads": _SHA256,
            "sha256": _SHA256,
        },
        "required": ["end", "payloads", "sha256"],
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A line of a cassette (*.a2a.jsonl)",
        "description": "Readers ignore unknown members. The first member of a line names its kind.",
        "anyOf": [
            {"$ref": f"#/$defs/{kind}"} for kind in ("header", *COUNTED_KINDS, "note", "end")
        ],
        "$defs": {**lines, "session": session, **_dedented(made)},
    }


def _dedented(definitions: Schema) -> Schema:
    """Return the definitions with the same descriptions under every Python: 3.13 removes the
    indentation of docstrings, 3.12 keeps it."""
    return {
        name: {
            **schema,
            **({"description": cleandoc(schema["description"])} if "description" in schema else {}),
        }
        for name, schema in definitions.items()
    }


def views_schema() -> Schema:
    """Return the schema of `views.toml`."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Saved views of a2a-inspect (views.toml)",
        "description": (
            "The name of a view and its filter. `a2a-inspect help filters` describes filters."
        ),
        "type": "object",
        "properties": {
            "columns": {
                "description": "Names of the columns of the list; a text is a view of this name.",
                "anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "string"}],
            }
        },
        "additionalProperties": {"type": "string"},
    }


def keys_schema() -> Schema:
    """Return the schema of `keys.toml`: an action id is a name in quotes, or nested tables."""
    names = sorted({name for scope in KEY_SCOPES for name in default_keys(scope)})
    schema: Schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Keys of a2a-inspect (keys.toml)",
        "description": (
            "An action and its keys. Names of keys and "
            "clashes are checked by `a2a-inspect keys` only."
        ),
        **_table(names),
        "$defs": {
            "keys": {
                "description": 'A key or a list of keys: "x", "f2", "ctrl+n".',
                "anyOf": [
                    {"type": "string", "minLength": 1},
                    {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1},
                ],
            }
        },
    }
    schema["properties"] |= {name: {"$ref": "#/$defs/keys"} for name in names}
    return schema


def _table(names: list[str]) -> Schema:
    """Return the schema of a table with these dotted names."""
    members: Schema = {}
    for head in sorted({name.partition(".")[0] for name in names}):
        rest = [name.partition(".")[2] for name in names if name.partition(".")[0] == head]
        leaf = {"$ref": "#/$defs/keys"}
        below = [name for name in rest if name]
        if below and "" in rest:
            members[head] = {"anyOf": [leaf, _table(below)]}
        else:
            members[head] = _table(below) if below else leaf
    return {"type": "object", "properties": members, "additionalProperties": False}


def schemas() -> dict[Path, str]:
    """Return the text of every schema by its file."""
    made = {"cassette": cassette_schema(), "views": views_schema(), "keys": keys_schema()}
    return {
        FOLDER / f"{name}.schema.json": json.dumps(schema, indent=1) + "\n"
        for name, schema in made.items()
    }


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for path, text in schemas().items():
        path.write_text(text, "utf-8")
