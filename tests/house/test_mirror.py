"""Every module has its tests where one looks for them."""

from __future__ import annotations

from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_PACKAGES = ("proxy/a2a_proxy", "tui/a2a_inspect")


def _folders() -> list[str]:
    found = []
    for package in _PACKAGES:
        for path in sorted((_ROOT / package).rglob("__init__.py")):
            relative = path.parent.relative_to(_ROOT / package)
            if relative.parts and len(list(path.parent.glob("*.py"))) > 1:
                found.append("/".join(relative.parts) if package.startswith("proxy") else f"inspect/{relative}")
    return found


@pytest.mark.parametrize("folder", [folder for folder in _folders() if folder != "model"])
def test_every_package_has_a_test_folder(folder: str) -> None:
    """`proxy/a2a_proxy/X` is tested in `tests/X` (values without behaviour apart)."""
    tests = _ROOT / "tests" / folder.split("/")[0]
    assert list(tests.rglob("test_*.py")), f"write tests/{folder.split('/')[0]}/test_*.py"
