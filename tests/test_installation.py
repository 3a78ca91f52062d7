"""The hints about extras and upgrades: the command that fits the installation, as uv, pipx and pip
have made it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from a2a_proxy.installation import install_command, install_hint, upgrade_hint

_RECEIPT = '[tool]\nrequirements = [{ name = "a2a-proxy", extras = ["tls"] }, { name = "lxml" }]\n'


@pytest.fixture
def prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The environment of a program `a2a-inspect` that the shell finds, without pip."""
    folder = tmp_path / "tools/a2a-proxy"
    (folder / "bin").mkdir(parents=True)
    monkeypatch.setattr(sys, "prefix", str(folder))
    monkeypatch.setattr(sys, "argv", [str(folder / "bin/a2a-inspect")])
    monkeypatch.setenv("PATH", str(folder / "bin"))
    return folder


def add_pip(folder: Path) -> Path:
    program = folder / "bin/pip"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.touch(0o755)
    return program


def test_pip_of_this_environment_needs_no_path(prefix: Path) -> None:
    add_pip(prefix)
    assert install_hint("otlp") == "install it: pip install 'a2a-proxy[otlp]'"
    assert upgrade_hint() == "upgrade: pip install -U a2a-proxy"


@pytest.mark.parametrize("other", [True, False], ids=["other", "none"])
def test_pip_of_another_environment_is_not_meant(
    prefix: Path, other: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after `.venv/bin/pip install .` in a folder: `pip` would install elsewhere, or is
    refused."""
    add_pip(prefix)
    if other:
        add_pip(prefix.parent / "other")
    monkeypatch.setenv("PATH", str(prefix.parent / "other/bin"))
    assert install_command("otlp") == f"{prefix}/bin/pip install 'a2a-proxy[otlp]'"
    monkeypatch.chdir(prefix.parent)
    assert install_command("otlp") == "a2a-proxy/bin/pip install 'a2a-proxy[otlp]'"


def test_pipx_installs_into_its_environment(prefix: Path) -> None:
    add_pip(prefix)
    (prefix / "pipx_metadata.json").write_text(json.dumps({"main_package": {}}))
    assert install_command("otlp") == "pipx runpip a2a-proxy install 'a2a-proxy[otlp]'"
    assert upgrade_hint() == "upgrade: pipx upgrade a2a-proxy"


@pytest.mark.parametrize(
    ("receipt", "extras"),
    [(_RECEIPT, "otlp,tls"), ("[tool]\n", "otlp"), ("no toml", "otlp"), ("tool = 1\n", "otlp")],
    ids=["extra", "nothing", "broken", "other"],
)
def test_uv_keeps_the_extras(receipt: str, extras: str, prefix: Path) -> None:
    """`uv tool install` makes the environment anew."""
    (prefix / "uv-receipt.toml").write_text(receipt)
    assert install_command("otlp") == f"uv tool install 'a2a-proxy[{extras}]'"
    assert upgrade_hint() == "upgrade: uv tool upgrade a2a-proxy"


def test_uvx_runs_with_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", "/home/me/.cache/uv/archive-v0/qV_p6s2x")
    monkeypatch.setattr(sys, "argv", ["/home/me/.cache/uv/archive-v0/qV_p6s2x/bin/a2a-inspect"])
    assert install_command("otlp") == "uvx --from 'a2a-proxy[otlp]' a2a-inspect ..."
    assert upgrade_hint() == "upgrade: uvx --from a2a-proxy@latest a2a-inspect ..."
