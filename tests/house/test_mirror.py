"""The tests mirror the packages, so that the tests of a module are found where one looks for them.

| product | tests |
|---|---|
| `proto/a2a_proto/z.py` | `tests/a2a_proto/test_z.py` |
| `proxy/a2a_proxy/X/Y/z.py` | `tests/X/Y/test_z.py` |
| `tui/a2a_inspect/X/z.py` | `tests/inspect/X/test_z.py` |
| `proxy/a2a_proxy/rules/families/gen/` | `tests/rules/families/test_gen[_SUBJECT].py` |

A subject that several modules of a package share has a `test_SUBJECT.py` in the same folder. Tests
that run the whole program are in `tests/e2e` (processes and real peers) and `tests/mutations`
(broken traffic). `tests/house` tests the repository itself, `tests/peers` the peers; `tests/sample`
is the sample project of the pytest plug-in. Helpers that several test modules share are
`tests/support_*.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_TESTS = _ROOT / "tests"
_PACKAGES = {"proto/a2a_proto": "a2a_proto", "proxy/a2a_proxy": "", "tui/a2a_inspect": "inspect"}
"""The folder of a distribution's package -> its folder in `tests`."""
_FAMILIES = "rules/families"
_TESTED_BY = {
    "rules": "rules/define/test_catalogue.py",
    "rules/schema": "rules/families/test_sch.py",
}
"""Packages whose own modules are tested through the rules, in another folder."""
_NO_PACKAGE = {"benchmarks", "e2e", "house", "mutations", "peers", "sample"}


def _product_folders() -> dict[str, int]:
    """The folder in `tests` of each package -> the number of its modules, `__init__` included."""
    found = {}
    for package, tests in _PACKAGES.items():
        for path in (_ROOT / package).rglob("__init__.py"):
            folder = (Path(tests) / path.parent.relative_to(_ROOT / package)).as_posix()
            found[folder] = len(list(path.parent.glob("*.py")))
    return found


_FOLDERS = _product_folders()


@pytest.mark.parametrize(
    "folder", sorted(each for each, modules in _FOLDERS.items() if modules > 1 and each != ".")
)
def test_every_package_has_a_test_folder(folder: str) -> None:
    """A package with modules has test modules in the folder of the same path."""
    parent, _, name = folder.rpartition("/")
    if folder in _TESTED_BY:
        assert (_TESTS / _TESTED_BY[folder]).is_file()
    elif parent == _FAMILIES:
        assert list((_TESTS / parent).glob(f"test_{name}*.py")), (
            f"write tests/{parent}/test_{name}.py"
        )
    else:
        assert list((_TESTS / folder).glob("test_*.py")), f"write tests/{folder}/test_*.py"


def test_every_test_folder_has_a_package() -> None:
    """A folder with test modules has the path of a package, so that a package that is moved takes
    its tests along."""
    folders = {path.parent.relative_to(_TESTS).as_posix() for path in _TESTS.rglob("test_*.py")}
    strays = {
        each
        for each in folders
        if each.partition("/")[0] not in _NO_PACKAGE and each not in _FOLDERS
    }
    assert not strays, f"no package has the path of {sorted(strays)}"
