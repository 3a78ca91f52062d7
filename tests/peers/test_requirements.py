"""A test whose peer is missing fails with the command that installs the peer, if the machine can have it."""

from __future__ import annotations

from pathlib import Path

import pytest

import support_debian
import support_peers
from support_debian import BROWSER, require_program
from support_peers import require_peers


@pytest.fixture(autouse=True)
def nothing_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(support_peers, "ENVIRONMENTS", tmp_path)
    monkeypatch.setattr(support_debian, "DEBIAN", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))


def test_peers_of_the_set_up_step_are_required(tmp_path: Path) -> None:
    with pytest.raises(pytest.fail.Exception, match=r"the sdk1 environment is missing: run `python tests/peers/setup"):
        require_peers("sdk1", "phoenix")
    (tmp_path / "js.stamp").touch()
    with pytest.raises(pytest.fail.Exception, match=r"node is not on PATH: install Node\.js 20"):
        require_peers("js")
    require_peers("0_1", "generations")


@pytest.mark.parametrize("kind", ["phoenix", "handler", "sdk1.0"])
def test_peers_that_are_installed_by_name_are_not(kind: str) -> None:
    with pytest.raises(pytest.skip.Exception, match=f"run `python tests/peers/setup.py {kind}`"):
        require_peers(kind)


@pytest.mark.parametrize("name", ["nginx", BROWSER])
def test_programs_are_required_where_debian_has_them(name: str, tmp_path: Path) -> None:
    with pytest.raises(
        pytest.skip.Exception, match=f"{name} is not on PATH, and this system has no packages of Debian"
    ):
        require_program(name)
    (tmp_path / "apt-get").touch(0o755)
    with pytest.raises(pytest.fail.Exception, match=f"{name} is missing: run `python tests/peers/setup.py`"):
        require_program(name)
    (tmp_path / name).touch(0o755)
    assert require_program(name) == str(tmp_path / name)
