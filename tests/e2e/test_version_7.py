"""Recordings, a journal and an export of the version that wrote schema 7 are read and finished by the current version.

`tests/data/version_7.tar.xz` holds three recordings of that version with the output of its `check` and `ls`, and the
files that remained when its proxy, recorder and OTLP export were killed after 70 s: a journal with a decoder snapshot,
a recording with its WAL, and the file with the state of the export.
"""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from support_cli import run
from support_mock import replaying
from support_otlp import http_backend

ARCHIVE = Path(__file__).parents[1] / "data" / "version_7.tar.xz"
RECORDINGS = ("lossy", "generations", "stdio")
TEXTS_DIFFER = "..."
REMOVED_RULES = {"A2A-GEN-023"}
"""The draft of A2A 1.1 allows since then what this rule reported."""
TEXTS = {"summary", "title", "why", "what", "advice", "hint", "rules"}
"""Members with sentences, whose wording may change, and the names of the rules, which are compared by themselves."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Unpack the files."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path, filter="data")
    (session,) = (tmp_path / "state" / "journals").glob("*/session.json")
    facts = json.loads(session.read_text())
    session.write_text(json.dumps(facts | {"recording": str(tmp_path / facts["recording"])}))
    return tmp_path


def read_lines(lines: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines.splitlines()]


def take_members(expected: object, value: object) -> object:
    """Return `value` with only the members that `expected` has: later versions add members, and none may be lost."""
    if isinstance(expected, dict) and isinstance(value, dict):
        return {
            name: TEXTS_DIFFER if name in TEXTS else take_members(member, value.get(name))
            for name, member in expected.items()
        }
    if isinstance(expected, list) and isinstance(value, list) and len(expected) == len(value):
        return [take_members(*pair) for pair in zip(expected, value, strict=True)]
    return value


def assert_rules_kept(printed: str, expected: str) -> None:
    """Later versions judge with more rules."""
    before, after = (set(read_lines(lines)[-1].get("rules", ())) for lines in (expected, printed))
    assert before - REMOVED_RULES <= after


def assert_lines_equal(printed: str, expected: str) -> None:
    assert take_members(read_lines(expected), read_lines(printed)) == take_members(
        read_lines(expected), read_lines(expected)
    )


@pytest.mark.parametrize("name", RECORDINGS)
def test_version_7_recordings_read_the_same(folder: Path, name: str) -> None:
    """`ls` prints the same exchanges, `check` the same findings at the same places."""
    path = folder / f"{name}.db"
    listed = run(folder / "state", "a2a-inspect", "ls", path, "--json")
    assert_lines_equal(listed.out, (folder / f"{name}.ls.jsonl").read_text())
    checked = run(folder / "state", "a2a-inspect", "check", path, "--format", "json")
    expected = (folder / f"{name}.check.jsonl").read_text().replace(f'"{name}.db"', json.dumps(str(path)))
    assert_lines_equal(checked.out, expected)
    assert_rules_kept(checked.out, expected)


@pytest.mark.parametrize("name", ["lossy", "generations"])
def test_version_7_recordings_are_replayed(folder: Path, name: str) -> None:
    """Each recorded call gets the recorded answers."""
    with replaying(folder, folder / f"{name}.db") as mock:
        driven = run(folder / "state", "a2a-proxy", "drive", folder / f"{name}.db", "--upstream", mock.address)
    assert driven.code == 0, driven.out + driven.err


def test_a_version_7_journal_is_finished(folder: Path) -> None:
    """`recover` continues from the decoder snapshot and stores every call once."""
    done = run(folder / "state", "a2a-inspect", "recover")
    assert done.code == 0, done.err
    assert "8 exchanges, 57 frames" in done.out
    listed = run(folder / "state", "a2a-inspect", "ls", folder / "left.db", "--json")
    assert_lines_equal(listed.out, (folder / "left.ls.jsonl").read_text())
    assert not list((folder / "state" / "journals").iterdir())


def test_a_version_7_export_continues(folder: Path) -> None:
    """`--unsent` reads the position of the killed export, and sends each call once."""
    assert run(folder / "state", "a2a-inspect", "recover").code == 0
    with http_backend() as received:
        words = ("export", "otlp", folder / "left.db", "--endpoint", received.endpoint, "--unsent")
        sent = run(folder / "state", "a2a-inspect", *words)
    assert sent.code == 0, sent.err
    spans = received.spans()
    assert len(spans) == len({span.span_id for span in spans}) == 8
    assert not list((folder / "state" / "otlp").iterdir())
