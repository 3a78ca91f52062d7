"""Matching by the tests' own rules: names, paths, expressions and functions, which run in the
process of the tests."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

_SAMPLE = Path(__file__).parents[1] / "sample"
_INI = """
[pytest]
asyncio_mode = auto
asyncio_default_fixture_loop_scope = function
addopts = --strict-markers -p no:cacheprovider -p no:hypothesispytest -p no:anyio -p no:xdist
"""
_TESTS = """
import os
import pytest
from concierge import Concierge

pytestmark = pytest.mark.a2a_cassette("table.a2a.jsonl")
PID = os.getpid()
SEEN = []

async def book_table(agent):
    assert await Concierge(agent.url).book_table(5) == "Table booked, 19:30, for 4"

def test_default(a2a_agent): pass

@pytest.mark.a2a_cassette(normalize=r"for \\d+")
async def test_normalized(a2a_agent):
    await book_table(a2a_agent)

@pytest.mark.a2a_cassette(ignore="$.message.parts")
async def test_ignored(a2a_agent):
    await book_table(a2a_agent)

@pytest.mark.a2a_cassette(match_on=["task", "configuration"])
async def test_named(a2a_agent):
    await book_table(a2a_agent)

def same_length(recorded, requested):
    assert os.getpid() == PID
    SEEN.append((recorded.operation, requested.value["message"]["parts"][0]["text"]))
    calls = recorded, requested
    first, second = (len(each.value["message"]["parts"][0]["text"]) for each in calls)
    assert first == second, f"{first} is not {second}"

@pytest.mark.a2a_cassette(match_on=[same_length, "task"])
async def test_function(a2a_agent):
    await book_table(a2a_agent)
    assert ("SendMessage", "for 5") in SEEN

@pytest.mark.a2a_cassette(match_on=same_length)
async def test_function_refuses(a2a_agent):
    await Concierge(a2a_agent.url).book_table(50)

@pytest.mark.a2a_cassette(match_on=lambda recorded, requested: 1 / 0)
async def test_function_fails(a2a_agent):
    await Concierge(a2a_agent.url).book_table(4)

@pytest.mark.a2a_cassette(match_on=["texts"])
def test_wrong_name(a2a_agent): pass

@pytest.mark.a2a_cassette(normalize="(")
def test_wrong_expression(a2a_agent): pass

@pytest.mark.a2a_cassette(ignore="$.")
def test_wrong_path(a2a_agent): pass
"""


@pytest.fixture
def result(pytester: pytest.Pytester) -> pytest.RunResult:
    """A run of the tests above."""
    pytester.makeini(_INI)
    for name in ("conftest.py", "concierge.py", "innkeeper.py"):
        shutil.copy(_SAMPLE / name, pytester.path / name)
    cassettes = _SAMPLE / "cassettes" / "test_concierge"
    shutil.copy(cassettes / "test_books_a_table.a2a.jsonl", pytester.path / "table.a2a.jsonl")
    pytester.makepyfile(test_rules=_TESTS)
    return pytester.runpytest_subprocess("-rA")


def test_rules_of_a_test(result: pytest.RunResult) -> None:
    """Each rule applies to its test alone, and a mismatch is reported with the reason that the
    function gives."""
    passed = ("default", "normalized", "ignored", "named", "function")
    result.stdout.fnmatch_lines(
        [f"PASSED test_rules.py::test_{name}" for name in passed], consecutive=True
    )
    text = result.stdout.str()
    for expected in (
        "matcher same_length: 5 is not 6",
        "ZeroDivisionError: division by zero",
        "match_on: 'texts' is not one of tenant, task, context,",
        "normalize: '(' is not a regular expression",
        "ignore: '$.' is not a path in a message",
    ):
        assert expected in text
