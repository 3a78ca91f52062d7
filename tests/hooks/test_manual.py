"""The example of the manual runs unchanged; its table lists every method."""

from __future__ import annotations

import re
from pathlib import Path

from a2a_proxy.hooks import METHODS
from support_cli import run

_ROOT = Path(__file__).parents[2]
_PAGE = (_ROOT / "proxy/a2a_proxy/manual/hooks.md").read_text()


def test_the_manual_example_prints_its_output(tmp_path: Path) -> None:
    """The first block of Python is the hook, the first command calls it for a recording of this
    repository."""
    code = re.search(r"```python\n# (\S+\.py)\n(.*?)```", _PAGE, re.DOTALL)
    shown = re.search(r"    \$ a2a-inspect plugins (\S+) --hook (\S+)\n((?:    .*\n)+)", _PAGE)
    assert code is not None
    assert shown is not None
    (tmp_path / code[1]).write_text(code[2])
    done = run(
        tmp_path,
        "a2a-inspect",
        "plugins",
        _ROOT / shown[1],
        "--hook",
        shown[2],
        PYTHONPATH=str(tmp_path),
    )
    assert done.lines == [line[4:] for line in shown[3].splitlines()]
    assert done.code == 0


def test_the_entry_point_of_the_example_is_found() -> None:
    """The group is the one that the proxy reads."""
    from a2a_proxy.hooks.hook import ENTRY_POINT_GROUP

    assert f'[project.entry-points."{ENTRY_POINT_GROUP}"]' in _PAGE


def test_every_method_is_in_the_table() -> None:
    """In the order of the class."""
    documented = re.findall(r"^\| `(\w+)\(", _PAGE, re.MULTILINE)
    assert documented == list(METHODS)
