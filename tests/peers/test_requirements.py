"""A test whose peer is missing fails with the command that installs the peer, if the machine can
have it."""

from __future__ import annotations

from pathlib import Path

import pytest

import support_debian
import support_peers
from support_debian import (
    BROWSER,
    FetchError,
    NoPackageError,
    fetch_debian,
    require_program,
    unavailable_note,
)
from support_peers import require_peers


@pytest.fixture(autouse=True)
def nothing_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(support_peers, "ENVIRONMENTS", tmp_path)
    monkeypatch.setattr(support_debian, "DEBIAN", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))


def test_peers_of_the_set_up_step_are_required(tmp_path: Path) -> None:
    with pytest.raises(
        pytest.fail.Exception,
        match=r"the sdk1 environment is missing: run `python tests/peers/setup",
    ):
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
def test_programs_are_required_where_they_can_be_fetched(name: str, tmp_path: Path) -> None:
    with pytest.raises(
        pytest.fail.Exception, match=f"{name} is missing: run `python tests/peers/setup.py`"
    ):
        require_program(name)
    unavailable_note(name).write_text("this system has no such package")
    with pytest.raises(pytest.skip.Exception, match="this system has no such package"):
        require_program(name)
    (tmp_path / name).touch(0o755)
    assert require_program(name) == str(tmp_path / name)


@pytest.mark.parametrize(
    ("output", "error"),
    [
        ("E: Unable to locate package nginx", NoPackageError),
        ("E: Package 'nginx' has no installation candidate", NoPackageError),
        ("Err: could not resolve the host", FetchError),
        (None, NoPackageError),
    ],
)
def test_a_package_that_a_system_does_not_have_is_told_from_a_failure(
    output: str | None, error: type[FetchError], tmp_path: Path
) -> None:
    if output is not None:
        script = tmp_path / "apt-get"
        script.write_text(f'#!/bin/sh\necho "{output}"\n[ "$1" = update ]\n')
        script.chmod(0o755)
    with pytest.raises(FetchError) as raised:
        fetch_debian(["nginx"])
    assert type(raised.value) is error
