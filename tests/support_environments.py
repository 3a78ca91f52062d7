"""Machines on which programs seldom run: full disks, permissions that hold for root too, users
without an entry."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """Yield a new folder with a file system of 8 MiB. Skips the test if it may not be mounted."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=8m", "none", str(folder)]
    if os.geteuid() or subprocess.run(mount, check=False).returncode:
        pytest.skip("may not mount a file system")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(folder: Path) -> None:
    """Write until the disk is full: the free space may shrink meanwhile."""
    with contextlib.suppress(OSError), (folder / "filler").open("wb", 0) as filler:
        while True:
            filler.write(bytes(4096))


def obeying() -> list[str]:
    """Return a command under which file permissions apply to root too. Skips the test if there is
    none."""
    if os.geteuid():
        return []
    return _usable(
        ["setpriv", "--bounding-set=-dac_override,-dac_read_search"], "root obeys nobody here"
    )


def unknown_user() -> list[str]:
    """Return a command that runs another as a user without a passwd entry, who has this user's
    permissions. Skips the test if there is none."""
    return _usable(
        ["unshare", "--user", "--map-user=54321", "--map-group=54321"],
        "may not create a user namespace",
    )


def _usable(line: list[str], reason: str) -> list[str]:
    if shutil.which(line[0]) is None or subprocess.run([*line, "true"], check=False).returncode:
        pytest.skip(reason)
    return line
