"""The recipes of CONTRIBUTING.md: every file and name in them exists, and the rule in them
works."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
RECIPES = {
    part.partition("\n")[0]: part for part in TEXT.split("## Recipes", 1)[1].split("### ")[1:]
}
_PATH = re.compile(
    r"`((?:proto|proxy|tui|tests)/[\w./]+|[A-Z]+\.md)`(?:: ((?:`[^`]+`(?:,? and |, )?)+))?"
)


@pytest.mark.parametrize("name", RECIPES)
def test_files_and_names_of_a_recipe_exist(name: str) -> None:
    """A name after a colon is in the file before the colon."""
    steps = re.sub(r"```.*?```", "", RECIPES[name], flags=re.S).partition("## ")[0]
    found = _PATH.findall(" ".join(steps.split()))
    assert len(found) > 3
    for path, names in found:
        assert (ROOT / path).exists(), path
        for each in re.findall(r"`([^`]+)`", names):
            assert each in (ROOT / path).read_text("utf-8"), f"{each} is not in {path}"


def test_the_table_of_tests_names_folders_that_exist() -> None:
    rows = [row for row in TEXT.splitlines() if row.startswith(("| `", "| a"))]
    for path in re.findall(r"`(?:[^`]*?)(tests/[\w/.]+)", "\n".join(rows)):
        assert path == "tests/PACKAGE" or (ROOT / path).exists(), path


def test_the_rule_of_the_recipe_works_on_a_copy(tmp_path: Path) -> None:
    """Appended to the module that the recipe names, it flags its example and keeps silent about the
    clean one."""
    recipe = RECIPES["Add a rule"]
    module = re.search(r"`proxy/(a2a_proxy/rules/[\w/]+\.py)`", recipe)
    code = re.search(r"```python\n(.*?)```", recipe, re.S)
    assert module is not None
    assert code is not None
    shutil.copytree(
        ROOT / "proxy/a2a_proxy",
        tmp_path / "a2a_proxy",
        ignore=shutil.ignore_patterns("__pycache__", "manual"),
    )
    target = tmp_path / module[1]
    target.write_text(f"{target.read_text('utf-8')}\n\n{code[1]}", "utf-8")
    check = (
        "from a2a_proxy.rules.define.catalogue import all_rules\n"
        "from support_rules import findings\n"
        "rule = all_rules()['A2A-ID-099']\n"
        "assert {each.rule for each in findings(rule.flagged)} "
        "== {'A2A-ID-099'}, findings(rule.flagged)\n"
        "assert not findings(rule.clean)\n"
    )
    paths = [str(tmp_path), str(ROOT / "proto"), str(ROOT / "tests")]
    code_line = f"import sys; sys.path[:0] = {paths!r}\n{check}"
    done = subprocess.run(
        [sys.executable, "-c", code_line], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
