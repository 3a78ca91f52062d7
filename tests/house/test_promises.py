"""The promises of the manual: what the programs of 0.1.0 offered is still there, and each promise
names its tests."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest

from support_promises import PROMISES, missing, surface

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "proxy/a2a_proxy/manual/promises.md").read_text("utf-8")
_STAYS = PAGE.partition("## What stays")[2].partition("\n## ")[0]
_ROWS = re.findall(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", _STAYS, re.MULTILINE)[2:]


def test_what_was_promised_is_still_there() -> None:
    """New names may be added. A name that is missing here breaks programs of users."""
    assert list(missing(json.loads(PROMISES.read_text("utf-8")), surface())) == []


def test_what_is_missing_is_found() -> None:
    promised = {"options": {"a2a-proxy": ["--listen", "--upstream"], "a2a-proxy demo": ["--lossy"]}}
    found = {"options": {"a2a-proxy": ["--listen", "--new"]}}
    assert list(missing(promised, found)) == [
        "/options/a2a-proxy/--upstream",
        "/options/a2a-proxy demo",
    ]


@pytest.mark.parametrize("kind", json.loads(PROMISES.read_text("utf-8")))
def test_no_kind_of_promise_is_empty(kind: str) -> None:
    promised = json.loads(PROMISES.read_text("utf-8"))[kind]
    assert promised
    assert all(names for names in promised.values() if kind in ("json", "views", "plugin", "rules"))


@pytest.mark.parametrize(("name", "tests"), [(name, tests) for name, _, tests in _ROWS])
def test_the_tests_of_a_promise_exist(name: str, tests: str) -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", tests)
    assert named, f"name the test of: {name}"
    for path, test in named:
        tree = ast.parse((ROOT / path).read_text("utf-8"))
        functions = {
            each.name
            for each in tree.body
            if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef))
        }
        assert test in functions, f"{path} has no {test}"


def test_every_kind_has_a_promise() -> None:
    assert len(_ROWS) == _STAYS.count("\n| ") - 2 >= 9
