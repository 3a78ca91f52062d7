"""`a2a-inspect keys`."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from a2a_inspect.cli.main import cli
from a2a_inspect.keys.actions import list_actions
from a2a_inspect.keys.keymap import read_keymap
from a2a_inspect.keys.places import KEY_SCOPES


def test_keys_lists_bindings_as_table_json_and_toml(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table with the file's path; JSON with the defaults beside; TOML that can be used as it
    is."""
    monkeypatch.setenv("A2A_PROXY_CONFIG", str(tmp_path))
    result = CliRunner().invoke(cli, ["keys"])
    assert f"{tmp_path / 'keys.toml'}, which does not exist" in result.stderr
    assert [line for line in result.stdout.splitlines() if line.split()[:2] == ["view.pause", "p"]]
    printed = CliRunner().invoke(cli, ["keys", "--print"]).stdout
    path = tmp_path / "keys.toml"
    path.write_text(printed)
    assert tomllib.loads(printed)["list"]["down"] == ["j", "down"]
    assert {name: keys.split(",") for name, keys in read_keymap(path, KEY_SCOPES).items()} == {
        each.id: list(each.keys) for each in list_actions(KEY_SCOPES)
    }
    path.write_text('view.pause = "&"')
    lines = [
        json.loads(line) for line in CliRunner().invoke(cli, ["keys", "--json"]).stdout.splitlines()
    ]
    assert lines[0].keys() == {"id", "keys", "default", "label", "help", "place"}
    assert [(each["keys"], each["default"]) for each in lines if each["id"] == "view.pause"] == [
        (["&"], ["p"])
    ]
