"""Path of a test's cassette: `{testdir}/cassettes/{module}/{test}.a2a.jsonl`, as in
pytest-recording."""

import hashlib
import os
import re
from collections.abc import Iterable
from pathlib import Path

from a2a_proxy.protocol.text import make_visible

FOLDER, SUFFIX = "cassettes", ".a2a.jsonl"
_UNSAFE_CHARS = re.compile(r"[^A-Za-z0-9_.\[\],=+-]")
_MAX_NAME_LENGTH = 160
"""Maximum number of characters of a name; file systems allow 255 bytes, and a temporary file has a
longer name."""
_HASH_LENGTH = 8
"""Number of hexadecimal digits that distinguish names which would otherwise be equal."""


def default_cassette(test_file: Path, names: Iterable[str]) -> Path:
    """Return the cassette of a test without a named one. `names`: its class, if any, and its own
    name with its parameters."""
    return folder_of(test_file) / f"{file_name('.'.join(names))}{SUFFIX}"


def folder_of(test_file: Path) -> Path:
    """Return the folder of the cassettes of a module's tests."""
    return test_file.parent / FOLDER / test_file.stem


def named_cassette(test_file: Path, name: str) -> Path:
    """Return a cassette named by a marker: relative to the test file's folder, unless the path is
    absolute."""
    return test_file.parent / name


def display_path(path: Path) -> str:
    """Return a path for display: relative to the current folder if it is inside, and without
    control characters."""
    return make_visible(
        os.path.relpath(path) if path.is_relative_to(Path.cwd()) else os.fspath(path)
    )


def file_name(name: str) -> str:
    """Return the file name for the name of a test; two names never have the same one."""
    plain = _UNSAFE_CHARS.sub("-", name)
    if plain == name and len(plain) <= _MAX_NAME_LENGTH:
        return plain
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{plain[:_MAX_NAME_LENGTH]}-{digest[:_HASH_LENGTH]}"
