"""`a2a-proxy ca` and its commands, and the variables that `ca env` prints."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from a2a_proxy.certificates.trust import ADDED_VARIABLE, BUNDLE_VARIABLES
from a2a_proxy.cli import authority
from a2a_proxy.cli.authority import proxy_variables, shell_lines
from a2a_proxy.cli.main import cli, run_cli
from a2a_proxy.installation import install_hint

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> Command:
    """Runs `a2a-proxy ca` in this process: exit code, stdout, stderr."""
    monkeypatch.setenv("A2A_PROXY_STATE", str(tmp_path / "state"))
    for name in (*BUNDLE_VARIABLES, ADDED_VARIABLE):
        monkeypatch.delenv(name, raising=False)

    def run(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["a2a-proxy", "ca", *map(str, words)])
        code = run_cli("a2a-proxy", cli)
        return (code, *capsys.readouterr())

    return run


def test_it_is_created_and_shown(command: Command, tmp_path: Path) -> None:
    """The same one each time, with the path of the certificate, its fingerprint and its
    lifetime."""
    code, shown, _ = command()
    assert code == 0
    path = tmp_path / "state" / "ca" / "ca.pem"
    assert shown.splitlines()[0] == f"certificate  {path}"
    printed = subprocess.run(
        ["openssl", "x509", "-in", str(path), "-noout", "-fingerprint", "-sha256"],
        capture_output=True,
        text=True,
    )
    assert printed.stdout.partition("=")[2].strip() in shown
    assert ", 728 days left" in shown
    assert command() == (0, shown, "")


def test_the_certificate_is_exported_without_the_key(command: Command, tmp_path: Path) -> None:
    code, printed, _ = command("export")
    assert code == 0
    assert printed.startswith("-----BEGIN CERTIFICATE-----\n")
    assert "PRIVATE KEY" not in printed
    file = tmp_path / "authority.pem"
    assert command("export", "-o", file) == (
        0,
        f"wrote the authority's certificate to {file}\n",
        "",
    )
    assert file.read_text() == printed
    code, _, error = command("export", "-o", tmp_path / "missing" / "file")
    assert code == 2
    assert "cannot write" in error


def test_renewing_replaces_it(command: Command) -> None:
    before = command("export")[1]
    code, shown, _ = command("renew")
    assert code == 0
    assert "until they trust this new authority" in shown
    assert command("export")[1] != before
    assert command()[1].splitlines()[:3] == shown.splitlines()[:3]


def test_the_environment_is_set_by_a_shell(command: Command, tmp_path: Path) -> None:
    """The lines work for any path, and add to what is trusted already."""
    code, lines, _ = command("env", "--forward", ":9000")
    assert code == 0
    script = lines + "env -0"
    done = subprocess.run(
        ["/bin/sh", "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": os.defpath},
    )
    found = dict(each.split("=", 1) for each in done.stdout.split("\0") if each)
    proxy = "http://127.0.0.1:9000"
    assert [
        found[name] for name in ("HTTP_PROXY", "https_proxy", "grpc_proxy", "NODE_USE_ENV_PROXY")
    ] == [
        *(proxy, proxy, proxy),
        "1",
    ]
    assert [found[name] for name in ("NO_PROXY", "no_proxy", "no_grpc_proxy")] == ["", "", ""]
    ours = command("export")[1]
    for name in (*BUNDLE_VARIABLES, ADDED_VARIABLE):
        assert ours in Path(found[name]).read_text()
    assert Path(found[ADDED_VARIABLE]).read_text() == ours
    assert "PROXY" not in command("env")[1]


def test_shell_lines_quote_their_values() -> None:
    assert shell_lines({"A": "it's /a b", "B": ""}) == "export A='it'\"'\"'s /a b'\nexport B=''\n"
    assert set(proxy_variables("[::1]:1").values()) == {"http://[::1]:1", "", "1"}


def two_lines(error: str) -> tuple[str, str]:
    first, second = error.splitlines()
    return first.removeprefix("a2a-proxy: error: "), second.removeprefix("a2a-proxy: hint: ")


def test_mistakes(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An address without a port, a variable with a wrong path, a key that others can read, no
    extra."""
    code, _, error = command("env", "--forward", "9000")
    assert (code, two_lines(error)) == (
        2,
        ("--forward 9000: cannot listen on '9000': no port", "for example: --forward :9000"),
    )
    monkeypatch.setenv("CURL_CA_BUNDLE", str(tmp_path / "missing.pem"))
    code, _, error = command("env")
    assert code == 2
    assert two_lines(error)[0].startswith(
        f"CURL_CA_BUNDLE names {tmp_path / 'missing.pem'}, which cannot be read: no such"
    )
    assert two_lines(error)[1] == "correct it: unset CURL_CA_BUNDLE"
    (tmp_path / "state" / "ca" / "authority.pem").chmod(0o644)
    code, _, error = command()
    assert code == 2
    assert "other users can read the key" in two_lines(error)[0]
    monkeypatch.setattr(authority.importlib.util, "find_spec", lambda _: None)
    for words in ((), ("env",), ("export",), ("renew",)):
        code, _, error = command(*words)
        assert (code, two_lines(error)) == (
            2,
            ("a2a-proxy ca needs the extra tls", install_hint("tls")),
        )


def test_a_state_directory_that_cannot_be_used(command: Command, tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file")
    code, _, error = command()
    assert code == 2
    assert two_lines(error)[1] == "choose another folder: export A2A_PROXY_STATE=DIR"
