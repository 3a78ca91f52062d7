"""What Linux tells of a process in proc(5)."""

from __future__ import annotations

from pathlib import Path


def stat(pid: int) -> list[str]:
    """What its `stat` has after its name, its state first. Raises OSError where there is no such process."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()


def state_of(pid: int) -> str:
    """Its letter: R where it runs, S where it waits, T where it is stopped, Z where it has ended. Raises as `stat`."""
    return stat(pid)[0]
