"""The examples of the manual print the output that the page shows; its table lists every member."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

from a2a_proxy import api

_ROOT = Path(__file__).parents[2]
_PAGE = (_ROOT / "proxy/a2a_proxy/manual/python.md").read_text()
_EXAMPLES = re.findall(r"```python\n(.*?)```\n\n((?:    [^\n]*\n)+)", _PAGE, re.DOTALL)


@pytest.mark.parametrize(("code", "shown"), _EXAMPLES)
def test_manual_examples_print_their_output(
    monkeypatch: pytest.MonkeyPatch, code: str, shown: str
) -> None:
    """Against the samples of this repository."""
    monkeypatch.chdir(_ROOT)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "python.md", "exec"), {})
    assert printed.getvalue().splitlines() == [line[4:] for line in shown.splitlines()]


def test_no_example_is_left_out() -> None:
    """Every block of Python is followed by what it prints."""
    assert len(_EXAMPLES) == _PAGE.count("```python")


@pytest.mark.parametrize("name", ["Recording", "Session", "Exchange", "Frame", "Task", "Handover"])
def test_every_member_is_in_the_table(name: str) -> None:
    """In the order of the class."""
    row = re.search(rf"^\| `{name}(?:\(.*?\))?` \| (.*) \|$", _PAGE, re.MULTILINE)
    assert row is not None
    documented = [word.partition("(")[0] for word in re.findall(r"`(.*?)`", row[1])]
    ours = (each for each in getattr(api, name).__mro__ if each.__module__.startswith("a2a_proxy"))
    members = {member for each in ours for member in vars(each) if not member.startswith("_")}
    assert {"facts", *documented} - {"views"} >= members
    assert set(documented) - {"views"} <= members
