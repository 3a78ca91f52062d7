"""The protocol reference: its tables are those of the code, and what the code cites is in it."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from a2a_proxy.protocol.rest_path import match_request_line
from support_protocol_page import PAGE, TABLES, rendered, tables_in

_ROOT = Path(__file__).parents[2]
_SOURCES = {".py", ".proto", ".sql", ".toml", ".yml", ".sh", ".md"}
_CITED = re.compile(r'manual/protocol\.md((?:(?:, | and | )"[^"]+")+)')
_QUESTION = re.compile(r"\bQ-\d\d\b")
_ELSEWHERE = re.compile(
    r"(?i)protocol sheet|\bsheet,? (?:part )?[1-9]|\bdesign [1-9]"
    r"|\b(?:design|house|style|features|ecosystem)\.md"
)
"""References to documents that are not in the repository."""


@cache
def _texts() -> dict[Path, str]:
    """Every source file, in one line each and without comment marks: a citation may go on in the
    next line."""
    files = [
        path
        for folder in ("proto", "proxy", "tui", "tests")
        for path in (_ROOT / folder).rglob("*")
    ]
    files += [
        _ROOT / "pyproject.toml",
        _ROOT / "README.md",
        _ROOT / "CHANGELOG.md",
        *(_ROOT / "recordings").glob("*.md"),
    ]
    known = [path for path in files if path.suffix in _SOURCES and path != Path(__file__)]
    return {path: re.sub(r"\n\s*(?:#|//)?\s*", " ", path.read_text("utf-8")) for path in known}


def _headings() -> set[str]:
    return set(re.findall(r"^#+ (.*)$", PAGE.read_text("utf-8"), re.MULTILINE))


@pytest.mark.parametrize("name", TABLES)
def test_generated_tables_equal_the_code(name: str) -> None:
    """After a change: `python tests/support_protocol_page.py`."""
    assert tables_in(PAGE.read_text("utf-8"))[name] == rendered(name)


def test_every_marked_table_is_generated() -> None:
    assert set(tables_in(PAGE.read_text("utf-8"))) == set(TABLES)


def test_each_path_of_the_operation_table_names_its_operation() -> None:
    rows = [row.split(" | ") for row in rendered("operations").splitlines()[2:]]
    for operation, _, _, paths, _ in rows:
        for each in re.findall(r"`(\w+) (/[^`]+)`", paths):
            found = match_request_line(each[0], each[1].format(id="t1", configId="c1").encode())
            assert found is not None, each
            assert f"`{found.operation.name}`" == operation.removeprefix("| ")


def test_each_cited_heading_is_in_the_page() -> None:
    cited = {
        heading: path
        for path, text in _texts().items()
        for found in _CITED.finditer(text)
        for heading in re.findall(r'"([^"]+)"', found[1])
    }
    assert len(cited) > 20
    assert {heading: path for heading, path in cited.items() if heading not in _headings()} == {}


def test_each_cited_question_is_in_the_page() -> None:
    known = set(re.findall(r"^\| (Q-\d\d) \|", PAGE.read_text("utf-8"), re.MULTILINE))
    cited = {each: path for path, text in _texts().items() for each in _QUESTION.findall(text)}
    assert len(cited) > 10
    assert {each: path for each, path in cited.items() if each not in known} == {}


def test_no_file_cites_a_missing_document() -> None:
    found = [
        (path, each[0]) for path, text in _texts().items() if (each := _ELSEWHERE.search(text))
    ]
    assert found == []
