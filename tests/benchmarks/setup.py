"""Fetch the programs with which the benchmark compares into `.peers/`: Debian's proxies and load
generators, mitmproxy from PyPI.

Debian packages are downloaded and unpacked, not installed: no root is needed, and no service
starts. A program on PATH is used instead. The script can be run any number of times: existing files
are left alone.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support_debian import FetchError, debian_environment, debian_program, fetch_debian

MITMPROXY = Path(__file__).resolve().parents[2] / ".peers" / "mitmproxy"
PACKAGES = {
    "nginx": "nginx",
    "haproxy": "haproxy",
    "nghttpx": "nghttp2-proxy",
    "nghttpd": "nghttp2-server",
    "h2load": "nghttp2-client",
    "wrk": "wrk",
}
"""Program -> the Debian package that contains it."""


def program(name: str) -> str | None:
    """Return the path of a program, or None if it is not installed."""
    if name == "mitmdump":
        path = MITMPROXY / "bin" / name
        return str(path) if path.exists() else shutil.which(name)
    return debian_program(name)


def environment(base: dict[str, str]) -> dict[str, str]:
    """Return the environment in which programs unpacked from Debian packages find their
    libraries."""
    return debian_environment(base)


def run(command: list[str]) -> None:
    """Run one step without output; a failing step prints its output and ends the script."""
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"{done.stdout}\nfailed: {' '.join(command)}")


def main() -> None:
    """Fetch the missing programs."""
    missing = [package for name, package in PACKAGES.items() if program(name) is None]
    if missing:
        print(f"fetching {', '.join(missing)}")
        try:
            fetch_debian(missing)
        except FetchError as error:
            sys.exit(str(error))
    if program("mitmdump") is None:
        print("fetching mitmproxy")
        run([sys.executable, "-m", "venv", str(MITMPROXY)])
        run([str(MITMPROXY / "bin" / "python"), "-m", "pip", "install", "--quiet", "mitmproxy"])
    absent = [name for name in (*PACKAGES, "mitmdump") if program(name) is None]
    if absent:
        sys.exit(f"still missing: {', '.join(absent)}")


if __name__ == "__main__":
    main()
