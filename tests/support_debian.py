"""Programs of Debian packages for tests and benchmarks: downloaded and unpacked under `.peers/debian`, never installed.

No root is needed and no service starts. A program that is on PATH already is used as it is. Standard library only: the
scripts that make the environments of the peers run before anything is installed.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

DEBIAN = Path(__file__).resolve().parents[1] / ".peers" / "debian"
SECONDS = 300.0
"""For one step of apt."""


class FetchError(Exception):
    """A package could not be had; what apt said."""


def debian_program(name: str) -> str | None:
    """Where a program is; None where it is not."""
    places = [DEBIAN / "usr" / "sbin" / name, DEBIAN / "usr" / "bin" / name]
    return next((str(path) for path in places if path.exists()), shutil.which(name))


def headless_browser() -> str | None:
    """Chromium without a window: the program itself, for the script in front of it looks for files in /usr."""
    unpacked = DEBIAN / "usr" / "lib" / "chromium" / "chromium-headless-shell"
    return str(unpacked) if unpacked.exists() else debian_program("chromium-headless-shell")


def debian_environment(base: dict[str, str]) -> dict[str, str]:
    """What programs unpacked from Debian packages need to find their libraries."""
    libraries = sorted(str(folder) for folder in (DEBIAN / "usr" / "lib").glob("*-linux-gnu*"))
    old = base.get("LD_LIBRARY_PATH")
    return {**base, "LD_LIBRARY_PATH": ":".join([*libraries, old] if old else libraries)} if libraries else base


def fetch_debian(packages: list[str]) -> None:
    """Download packages with what they depend on, and unpack them. Raises FetchError."""
    if shutil.which("apt-get") is None:
        raise FetchError(f"this is no Debian: install {', '.join(packages)} yourself, so that the programs are on PATH")
    DEBIAN.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="a2a-debian-") as folder:
        for name in ("partial", "lists/partial"):
            (Path(folder) / name).mkdir(parents=True)
        Path(folder).chmod(0o755)  # apt fetches as a user of its own
        options = ["-o", "Debug::NoLocking=1", "-o", f"Dir::Cache::archives={folder}"]
        try:
            _download(options, packages)
        except FetchError:  # a fresh machine has no package lists, and the user may not be allowed to fetch them there
            options += ["-o", f"Dir::State::lists={folder}/lists"]
            _run(["apt-get", "update", *options])
            _download(options, packages)
        for package in sorted(Path(folder).glob("*.deb")):
            _run(["dpkg", "-x", str(package), str(DEBIAN)])


def _download(options: list[str], packages: list[str]) -> None:
    _run(["apt-get", "install", "--download-only", "--yes", "--no-install-recommends", *options, *packages])


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=SECONDS
        )
    except subprocess.TimeoutExpired:
        raise FetchError(f"{command[0]} did not end within {SECONDS:.0f} s") from None
    if done.returncode:
        raise FetchError(f"{done.stdout}\nfailed: {' '.join(command)}")
