"""Programs of Debian packages for tests and benchmarks: downloaded and unpacked under
`.peers/debian`, never installed.

No root is needed and no service starts. A program on PATH is used instead. Standard library only:
the scripts that create the environments of the peers run before any package is installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

DEBIAN = Path(__file__).resolve().parents[1] / ".peers" / "debian"
BROWSER = "chromium-headless-shell"
SECONDS = 300.0
"""Seconds for one step of apt."""
_NO_PACKAGE = ("Unable to locate package", "has no installation candidate")
"""Words of apt about an unknown package, and about one that only other packages name."""


class FetchError(Exception):
    """A package could not be fetched; the message is the output of apt."""


class NoPackageError(FetchError):
    """The system has no such package."""


def debian_program(name: str) -> str | None:
    """Return the path of a program, or None if it is not installed."""
    places = [DEBIAN / "usr" / "sbin" / name, DEBIAN / "usr" / "bin" / name]
    return next((str(path) for path in places if path.exists()), shutil.which(name))


def headless_browser() -> str | None:
    """Return the path of Chromium without a window: the program itself, because its wrapper script
    looks for files in /usr."""
    unpacked = DEBIAN / "usr" / "lib" / "chromium" / "chromium-headless-shell"
    return str(unpacked) if unpacked.exists() else debian_program(BROWSER)


def require_program(name: str) -> str:
    """Return the path of a program. Without it, end the test: it fails with the command that
    fetches the program, and is skipped if that command has found that this system has no such
    package.
    """
    import pytest

    path = headless_browser() if name == BROWSER else debian_program(name)
    if path is None and (note := unavailable_note(name)).is_file():
        pytest.skip(note.read_text())
    return path or pytest.fail(f"{name} is missing: run `python tests/peers/setup.py`")


def unavailable_note(name: str) -> Path:
    """Return the file that says why this system has no package for a program."""
    return DEBIAN / f"{name}.unavailable"


def debian_environment(base: dict[str, str]) -> dict[str, str]:
    """Return the environment in which programs unpacked from Debian packages find their
    libraries."""
    libraries = sorted(str(folder) for folder in (DEBIAN / "usr" / "lib").glob("*-linux-gnu*"))
    old = base.get("LD_LIBRARY_PATH")
    return (
        {**base, "LD_LIBRARY_PATH": ":".join([*libraries, old] if old else libraries)}
        if libraries
        else base
    )


def fetch_debian(packages: list[str]) -> None:
    """Download packages with their dependencies, and unpack them. Raises FetchError, and its
    NoPackageError if the system does not have one of them.
    """
    if shutil.which("apt-get") is None:
        raise NoPackageError(
            f"this system has no apt-get: install {', '.join(packages)}, so that it is on PATH"
        )
    DEBIAN.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="a2a-debian-") as folder:
        for name in ("partial", "lists/partial"):
            (Path(folder) / name).mkdir(parents=True)
        Path(folder).chmod(0o755)  # apt downloads as another user
        options = ["-o", "Debug::NoLocking=1", "-o", f"Dir::Cache::archives={folder}"]
        try:
            _download(options, packages)
        except FetchError:
            # A new machine has no package lists, and the user may not be allowed to fetch them
            # there.
            options += ["-o", f"Dir::State::lists={folder}/lists"]
            _run(["apt-get", "update", *options])
            _download(options, packages)
        for package in sorted(Path(folder).glob("*.deb")):
            _run(["dpkg", "-x", str(package), str(DEBIAN)])


def _download(options: list[str], packages: list[str]) -> None:
    _run(
        [
            "apt-get",
            "install",
            "--download-only",
            "--yes",
            "--no-install-recommends",
            *options,
            *packages,
        ]
    )


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=SECONDS,
            env={**os.environ, "LC_ALL": "C"},
        )
    except subprocess.TimeoutExpired:
        raise FetchError(f"{command[0]} did not end within {SECONDS:.0f} s") from None
    if any(words in done.stdout for words in _NO_PACKAGE) and done.returncode:
        raise NoPackageError(
            f"this system has no package {command[-1]}: install it, so that it is on PATH"
        )
    if done.returncode:
        raise FetchError(f"{done.stdout}\nfailed: {' '.join(command)}")
