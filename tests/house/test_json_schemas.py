"""The JSON schemas of cassettes, `views.toml` and `keys.toml` equal the code, and agree with the
readers."""

from __future__ import annotations

import copy
import json
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import support_json_schemas
from a2a_inspect.data.saved_views import read_columns, read_views, write_columns, write_views
from a2a_inspect.keys.actions import default_keys
from a2a_inspect.keys.keymap import read_keymap
from a2a_inspect.keys.places import KEY_SCOPES
from a2a_proxy.model.errors import UserError
from a2a_proxy.recording.cassette.file import read_cassette
from a2a_proxy.recording.errors import RecordingError

ROOT = Path(__file__).parents[2]
SAMPLES = sorted((ROOT / "recordings").rglob("*.a2a.jsonl"))
_SCHEMAS = support_json_schemas.schemas()


@cache
def validator(name: str) -> Draft202012Validator:
    text = (support_json_schemas.FOLDER / f"{name}.schema.json").read_text("utf-8")
    return Draft202012Validator(json.loads(text))


@pytest.mark.parametrize("path", _SCHEMAS, ids=lambda path: str(path.name))
def test_schemas_equal_the_code(path: Path) -> None:
    """After a change: `python tests/support_json_schemas.py`."""
    assert path.read_text("utf-8") == _SCHEMAS[path]
    Draft202012Validator.check_schema(json.loads(_SCHEMAS[path]))


def lines_of(sample: Path) -> Iterator[dict[str, Any]]:
    with sample.open(encoding="utf-8") as file:
        yield from map(json.loads, file)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: str(path.stem))
def test_every_line_of_the_samples_is_valid(sample: Path) -> None:
    """Under the schema of its kind, which its first member names."""
    definitions = json.loads(
        (support_json_schemas.FOLDER / "cassette.schema.json").read_text("utf-8")
    )["$defs"]
    kinds = {"cassette": "header"}
    for number, line in enumerate(lines_of(sample), 1):
        kind = next(iter(line))
        chosen = {"$ref": f"#/$defs/{kinds.get(kind, kind)}", "$defs": definitions}
        wrong = [each.message for each in Draft202012Validator(chosen).iter_errors(line)]
        assert not wrong, (number, wrong[:3])
        if number <= 50:
            assert validator("cassette").is_valid(line)


_WRONG: dict[str, tuple[str, str, Any]] = {
    "an operation that is a number": ("exchange", "operation", 7),
    "a time that is a text": ("exchange", "started", "now"),
    "an unknown binding": ("exchange", "binding", "carrier"),
    "headers that are an object": ("exchange", "request_headers", {"Host": "x"}),
    "an unknown kind of frame": ("frame", "frame", "picture"),
    "an unknown direction": ("frame", "direction", "up"),
    "a task state that is unknown": ("frame", "state", "asleep"),
    "a number of bytes that is a text": ("connection", "bytes_to_agent", "many"),
    "an unknown severity": ("finding", "severity", "fatal"),
}


def changed(kind: str, name: str, value: Any) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the lines of a sample with one member changed in the first line of a kind, and this
    line."""
    lines = [copy.deepcopy(line) for line in lines_of(ROOT / "recordings/lossy.a2a.jsonl")]
    line = next(line for line in lines if next(iter(line)) == kind)
    line[name] = value
    return lines, line


@pytest.mark.parametrize("what", _WRONG)
def test_schema_and_reader_refuse_the_same(what: str, tmp_path: Path) -> None:
    lines, line = changed(*_WRONG[what])
    assert not validator("cassette").is_valid(line)
    path = tmp_path / "wrong.a2a.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in lines))
    with pytest.raises(RecordingError):
        read_cassette(path, tmp_path / "wrong.a2a.db", verify=False)


def test_schema_and_reader_accept_unknown_members(tmp_path: Path) -> None:
    lines, line = changed("exchange", "colour", "green")
    assert validator("cassette").is_valid(line)
    path = tmp_path / "more.a2a.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in lines))
    read_cassette(path, tmp_path / "more.a2a.db", verify=False)


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        ('"slow ones" = "slow:>2s"\ncolumns = ["time", "ttfe"]\n', True),
        ('columns = "err"\n', True),
        ("", True),
        ("columns = [1]\n", False),
        ('"slow ones" = 2\n', False),
        ('[slow]\nones = "err"\n', False),
    ],
)
def test_views_are_valid_where_the_reader_accepts_them(
    text: str, valid: bool, tmp_path: Path
) -> None:
    path = tmp_path / "views.toml"
    path.write_text(text)
    assert validator("views").is_valid(tomllib.loads(text)) is valid
    if valid:
        read_views(path), read_columns(path)
    else:
        with pytest.raises(UserError):
            read_views(path)


def test_views_that_the_screen_writes_are_valid(tmp_path: Path) -> None:
    path = tmp_path / "views.toml"
    write_views(path, {"slow ones": "slow:>2s", 'a "name"': "err"})
    write_columns(path, ["time", "header:content-type"])
    assert validator("views").is_valid(tomllib.loads(path.read_text()))


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        ('frame.next = "f2"\nlist.down = ["j", "down", "ctrl+n"]\n', True),
        ('"frame.next" = "f2"\n', True),
        ("", True),
        ('frame.nxet = "f2"\n', False),
        ("frame.next = 2\n", False),
        ("frame.next = []\n", False),
        ('frame.next = ""\n', False),
        ('frame = "f2"\n', False),
    ],
)
def test_keys_are_valid_where_the_reader_accepts_them(
    text: str, valid: bool, tmp_path: Path
) -> None:
    path = tmp_path / "keys.toml"
    path.write_text(text)
    assert validator("keys").is_valid(tomllib.loads(text)) is valid
    if valid:
        read_keymap(path, KEY_SCOPES)
    else:
        with pytest.raises(UserError):
            read_keymap(path, KEY_SCOPES)


def test_every_action_is_valid() -> None:
    for scope in KEY_SCOPES:
        for name, keys in default_keys(scope).items():
            assert validator("keys").is_valid(
                tomllib.loads(f"{name} = {json.dumps(list(keys))}")
            ), name
