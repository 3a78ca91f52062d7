"""The README's example runs unchanged: its test, its commands and the files that they create."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from a2a_proxy.testing.settings import MODES, SETTING_NAMES

pytest_plugins = ["pytester"]

_ROOT = Path(__file__).parents[2]
_SECTION = (
    (_ROOT / "README.md")
    .read_text()
    .partition("## A recording is a test\n")[2]
    .partition("\n## ")[0]
)
_SAMPLE = _ROOT / "tests" / "sample"


def test_the_example_of_the_readme(pytester: pytest.Pytester) -> None:
    """Against the agent system of the sample, whose agent stands in for the one at
    localhost:8000."""
    [code] = re.findall(r"```python\n(.*?)```", _SECTION, re.DOTALL)
    record, replay = (
        shlex.split(line)[1:] for line in re.findall(r"^    \$ (pytest.*)$", _SECTION, re.MULTILINE)
    )
    [cassette] = re.findall(r"`(cassettes/.*?)`", _SECTION)
    module = Path(cassette).parent.name
    quick = "addopts = -p no:hypothesispytest -p no:anyio -p no:xdist -p no:cacheprovider"
    pytester.makeini(
        f"[pytest]\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = function\n{quick}\n"
    )
    pytester.makepyfile(**{module: code})
    for name in ("conftest.py", "concierge.py", "innkeeper.py"):
        shutil.copy(_SAMPLE / name, pytester.path / name)

    pytester.runpytest_subprocess(*record).assert_outcomes(passed=1)
    assert [path.relative_to(pytester.path) for path in pytester.path.rglob("*.a2a.jsonl")] == [
        Path(cassette)
    ]
    for name in ("conftest.py", "innkeeper.py"):  # there is no agent any more
        (pytester.path / name).unlink()
    pytester.runpytest_subprocess(*replay, "--a2a-block-network").assert_outcomes(passed=1)


def test_the_readme_example_is_in_the_sample() -> None:
    """Who looks for the whole finds it in the tests."""
    [code] = re.findall(r"```python\n(.*?)```", _SECTION, re.DOTALL)
    body = code.rpartition(":\n")[2]
    assert body in (_SAMPLE / "test_concierge.py").read_text()


_MANUAL = (_ROOT / "proxy/a2a_proxy/manual/pytest.md").read_text()


def test_the_manual_has_every_setting_mode_and_fixture() -> None:
    for name in (
        *SETTING_NAMES,
        *MODES,
        "a2a_agent",
        "a2a_live",
        "a2a_recording",
        "a2a_upstream",
        "a2a_config",
    ):
        assert re.search(rf"^\|[^|]*`{name}`", _MANUAL, re.MULTILINE), (
            f"put `{name}` into a table of manual/pytest.md"
        )
    for name in ("record-mode", "upstream", "block-network", "allowed-hosts", "fail-unused"):
        assert f"--a2a-{name}" in _MANUAL
