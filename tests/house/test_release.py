"""`.github/release`, with stand-ins for Python and its programs: its refusals, its order and its
files."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_CHANGELOG = (
    "# Changelog\n\n## Unreleased\n\n- More.\n\n## 1.2.3\n\nNotes of it.\n\n## 1.2.30\n\nOthers.\n"
)
_PYTHON = """#!/bin/bash
set -eu
echo "${0##*/} $*" >> "$CALLS"
case "$*" in
    "-m venv "*)
        mkdir -p "$3/bin"
        for name in python pip twine check-wheel-contents a2a-proxy a2a-inspect pytest; do
            cp "$0" "$3/bin/$name"
        done ;;
    "-m build "*)
        mkdir -p "$4" a2a_proxy-1.2.3
        echo "wheel ${5##*/}" | cut -c "$WHEEL" > "$4/a2a_proxy-1.2.3-py3-none-any.whl"
        tar -cf - --mtime=@0 a2a_proxy-1.2.3 | gzip -n > "$4/a2a_proxy-1.2.3.tar.gz"
        rmdir a2a_proxy-1.2.3 ;;
    info) exit "$DOCKER" ;;
esac
"""
"""Stands in for Python, its programs and docker, which runs if `DOCKER` is 0. Two builds of the
wheel differ if `WHEEL` is more than 1-5."""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A repository of version 1.2.3."""
    folder = tmp_path / "clone"
    files = {
        "CHANGELOG.md": _CHANGELOG,
        "proxy/a2a_proxy/__init__.py": '__version__ = "1.2.3"\n',
        "pyproject.toml": (ROOT / "pyproject.toml").read_text("utf-8").replace("/OWNER", "/acme"),
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / ".github").mkdir()
    shutil.copy(ROOT / ".github/release", folder / ".github")
    for program in (tmp_path / "python3", tmp_path / "docker"):
        program.write_text(_PYTHON)
        program.chmod(0o755)
    author = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    for words in (["init", "-q"], ["add", "."], [*author, "commit", "-qm", "all"]):
        subprocess.run(["git", *words], cwd=folder, check=True)
    return folder


def release(clone: Path, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    calls = clone.parent / "calls"
    env = os.environ | {
        "PYTHON": str(clone.parent / "python3"),
        "CALLS": str(calls),
        "TMPDIR": str(clone.parent),
    }
    env |= {"PATH": f"{clone.parent}:{env['PATH']}", "WHEEL": "1-5", "DOCKER": "1", **environ}
    command = [str(clone / ".github/release"), *words]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)


def test_it_builds_checks_and_tries_the_package(clone: Path) -> None:
    out = clone.parent / "out"
    done = release(clone, str(out), "tests/house", "-x", TAG="v1.2.3", DOCKER="0")
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in out.iterdir()) == [
        "SHA256SUMS",
        "a2a_proxy-1.2.3-py3-none-any.whl",
        "a2a_proxy-1.2.3.tar.gz",
        "notes.md",
    ]
    assert (out / "notes.md").read_text() == "\nNotes of it.\n\n"
    for line in (out / "SHA256SUMS").read_text().splitlines():
        digest, name = line.split()
        assert hashlib.sha256((out / name).read_bytes()).hexdigest() == digest
    calls = [line.split(" ")[0] for line in (clone.parent / "calls").read_text().splitlines()]
    assert calls == [
        *("python3", "pip", "python", "python", "twine", "check-wheel-contents"),
        *("python3", "pip", "a2a-proxy", "a2a-inspect", "a2a-proxy", "a2a-inspect", "pip", "pip"),
        *("docker", "docker", "docker"),
        *("python3", "pip", "pytest"),
    ]
    assert "pytest tests/house -x\n" in (clone.parent / "calls").read_text()
    assert [path for path in clone.parent.iterdir() if path.name.startswith("tmp.")] == []


def test_all_extras_of_users_are_installed() -> None:
    """Those of the package except the ones for work on it, which `dev` is about."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"][
        "optional-dependencies"
    ]
    (line,) = [
        each
        for each in (ROOT / ".github/release").read_text().splitlines()
        if each.startswith("extras=")
    ]
    assert line.removeprefix("extras=").split(",") == sorted(
        set(extras) - {"dev", "docs", "fuzz", "mutants"}
    )


def test_a_machine_without_docker_makes_no_image(clone: Path) -> None:
    done = release(clone, str(clone.parent / "out"))
    assert done.returncode == 0, done.stderr
    assert "not built: docker is not running on this machine" in done.stdout


def test_builds_that_differ_are_refused(clone: Path) -> None:
    done = release(clone, str(clone.parent / "out"), WHEEL="1-30")
    assert done.returncode == 1
    assert "two builds of a2a_proxy-1.2.3-py3-none-any.whl differ" in done.stderr


@pytest.mark.parametrize(
    ("change", "environ", "message"),
    [
        ("", {"TAG": "v1.2.4"}, "the tag v1.2.4 is not v1.2.3"),
        (
            "sed -i s@//acme@//OWNER@ pyproject.toml; git commit -qam x",
            {"TAG": "v1.2.3"},
            "has the placeholder OWNER",
        ),
        ("echo > new", {}, "there are files that are not committed"),
        (
            "sed -i 's/## 1.2.3$/## 1.2.2/' CHANGELOG.md; git commit -qam x",
            {},
            "has no section ## 1.2.3",
        ),
        ("mkdir ../out; touch ../out/a2a_proxy-1.2.2.tar.gz", {}, "out is not empty"),
    ],
    ids=["tag", "owner", "files", "changelog", "folder"],
)
def test_nothing_is_built_of_a_wrong_state(
    clone: Path, change: str, environ: dict[str, str], message: str
) -> None:
    who = {
        f"GIT_{kind}_{what}": "a@b"
        for kind in ("AUTHOR", "COMMITTER")
        for what in ("NAME", "EMAIL")
    }
    subprocess.run(["bash", "-c", change], cwd=clone, env={**os.environ, **who}, check=True)
    done = release(clone, str(clone.parent / "out"), **environ)
    assert done.returncode == 1
    assert message in done.stderr
    assert "release: hint: " in done.stderr
    assert not (clone.parent / "calls").exists()
