"""Named filters of the user: a TOML file next to the key file."""

from __future__ import annotations

import json
import os
import tempfile
import tomllib
from pathlib import Path

from a2a_inspect.keys.keymap import config_dir
from a2a_proxy.cli.errors import UserError


def views_file() -> Path:
    """Return the path of the user's views file, which may not exist."""
    return config_dir() / "views.toml"


def read_views(path: Path) -> dict[str, str]:
    """Return the expressions by name, in the order of the file; empty if the file does not exist.

    Raises:
        UserError: the file cannot be read, or an entry is not a string.
    """
    try:
        values = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as wrong:
        raise UserError(f"{path} cannot be read: {wrong}", 'a line looks like: "slow ones" = "slow:>2s"') from wrong
    for name, value in values.items():
        if not isinstance(value, str):
            raise UserError(f"{path}: {name} is not a filter", f'write it as text: "{name}" = "err"')
    return values


def write_views(path: Path, views: dict[str, str]) -> None:
    """Replace the file as a whole.

    Raises:
        UserError: the file cannot be written.
    """
    lines = [f"{_toml_string(name)} = {_toml_string(value)}\n" for name, value in views.items()]
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.writelines(lines)
        os.replace(temporary, path)
    except OSError as wrong:
        raise UserError(f"{path} cannot be written: {(wrong.strerror or str(wrong)).lower()}", "") from wrong


def _toml_string(value: str) -> str:
    """Return a TOML basic string: a JSON string, with the character 127 escaped."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
