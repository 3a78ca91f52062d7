"""Named filters and the columns of the list, as the user chose them: a TOML file next to the key
file."""

import json
import os
import tempfile
import tomllib
from pathlib import Path

from a2a_inspect.keys.keymap import CONFIG_VARIABLE, config_file
from a2a_proxy.model.errors import UserError
from a2a_proxy.private_files import make_private_folder

_COLUMNS = "columns"
"""The entry with the names of the columns: a list, where a view is a text."""


def views_file() -> Path | None:
    """Return the path of the user's views file, as `config_file` does."""
    return config_file("views.toml")


def read_views(path: Path | None) -> dict[str, str]:
    """Return the expressions by name, in the order of the file; empty if the file does not exist.

    Raises:
        UserError: the file cannot be read, or an entry is neither a string nor the list of columns.
    """
    return _read_file(path)[0]


def read_columns(path: Path | None) -> list[str]:
    """Return the names of the columns of the list; empty for the standard columns. Raises UserError
    as `read_views`."""
    return _read_file(path)[1]


def write_views(path: Path | None, views: dict[str, str]) -> None:
    """Replace the views, and keep the columns.

    Raises:
        UserError: a view has the name of the columns, or the file cannot be read or written.
    """
    _write_file(path, views, read_columns(path))


def write_columns(path: Path | None, columns: list[str]) -> None:
    """Replace the names of the columns, and keep the views. Raises UserError as `write_views`."""
    _write_file(path, read_views(path), columns)


def _read_file(path: Path | None) -> tuple[dict[str, str], list[str]]:
    if path is None:
        return {}, []
    try:
        values = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}, []
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as wrong:
        raise UserError(
            f"{path} cannot be read: {wrong}", 'a line looks like: "slow ones" = "slow:>2s"'
        ) from wrong
    columns = values.pop(_COLUMNS, []) if isinstance(values.get(_COLUMNS), list) else []
    if not all(isinstance(each, str) for each in columns):
        raise UserError(
            f"{path}: a column is not a text", f'write: {_COLUMNS} = ["time", "operation", "ttfe"]'
        )
    for name, value in values.items():
        if not isinstance(value, str):
            raise UserError(
                f"{path}: {name} is not a filter", f'write it as text: "{name}" = "err"'
            )
    return values, columns


def _write_file(path: Path | None, views: dict[str, str], columns: list[str]) -> None:
    """Replace the file as a whole."""
    if path is None:
        raise UserError(
            "this user has no home directory to save it in",
            f"name a folder: export {CONFIG_VARIABLE}=DIR",
        )
    if _COLUMNS in views:
        raise UserError(
            f'a view cannot be named "{_COLUMNS}"',
            "the file of views keeps the columns of the list there",
        )
    lines = [f"{_toml_string(name)} = {_toml_string(value)}\n" for name, value in views.items()]
    if columns:
        lines.insert(0, f"{_COLUMNS} = [{', '.join(map(_toml_string, columns))}]\n")
    try:
        make_private_folder(path.parent)
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.writelines(lines)
        os.replace(temporary, path)
    except OSError as wrong:
        raise UserError(
            f"{path} cannot be written: {(wrong.strerror or str(wrong)).lower()}", ""
        ) from wrong


def _toml_string(value: str) -> str:
    """Return a TOML basic string: a JSON string, with the character 127 escaped."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
