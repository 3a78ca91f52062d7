"""Which file is a test's cassette: `{testdir}/cassettes/{module}/{test}.a2a.jsonl`, as in pytest-recording."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable
from pathlib import Path

from a2a_proxy.protocol.text import make_visible

FOLDER, SUFFIX = "cassettes", ".a2a.jsonl"
_UNSAFE_CHARS = re.compile(r"[^A-Za-z0-9_.\[\],=+-]")
_MAX_NAME_LENGTH = 160
"""Characters of a name; file systems take 255 bytes, and a temporary name beside it is longer."""
_HASH_LENGTH = 8
"""Hexadecimal digits that tell names apart which would be the same."""


def default_cassette(test_file: Path, names: Iterable[str]) -> Path:
    """The cassette of a test that names none. `names`: its class, if any, and its own with its parameters."""
    return folder_of(test_file) / f"{file_name('.'.join(names))}{SUFFIX}"


def folder_of(test_file: Path) -> Path:
    """Where the cassettes of a module's tests are."""
    return test_file.parent / FOLDER / test_file.stem


def named_cassette(test_file: Path, name: str) -> Path:
    """A cassette that a marker names: beside the test file, unless the path is absolute."""
    return test_file.parent / name


def display_path(path: Path) -> str:
    """A path as a person types it: from the current folder where it lies in that. No character acts on a terminal."""
    return make_visible(os.path.relpath(path) if path.is_relative_to(Path.cwd()) else os.fspath(path))


def file_name(name: str) -> str:
    """The name of a test as one of a file; two names never give the same one."""
    plain = _UNSAFE_CHARS.sub("-", name)
    if plain == name and len(plain) <= _MAX_NAME_LENGTH:
        return plain
    return (
        f"{plain[:_MAX_NAME_LENGTH]}-{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:_HASH_LENGTH]}"
    )
