"""The log of a hook."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from a2a_proxy.capture.file_layout import STATE_VARIABLE
from a2a_proxy.follower.hook_log import HookLog, log_path, open_log


def test_the_log_size_is_bounded(tmp_path: Path) -> None:
    """The log says where it ends; further output is discarded silently."""
    path = tmp_path / "a.log"
    descriptor = open_log(path)
    log = HookLog(descriptor, room=10)
    for _ in range(100):
        assert print("hello", file=log) is None
    os.close(descriptor)
    assert path.read_text().startswith("hello\nhell\n--- the log has reached its limit")
    assert len(path.read_text()) < 100
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_large_log_is_rotated(tmp_path: Path) -> None:
    """One old one is kept."""
    path = tmp_path / "a.log"
    path.write_bytes(b"x" * ((1 << 20) + 1))
    os.close(open_log(path))
    assert (path.stat().st_size, path.with_suffix(".log.1").stat().st_size) == (0, (1 << 20) + 1)


def test_a_full_disk_does_not_stop_the_hook() -> None:
    """Writing fails, printing does not."""
    with open("/dev/null") as nowhere:  # which is open for reading only
        log = HookLog(nowhere.fileno())
        assert log.write("lost") == 4


def test_any_name_is_a_file_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the state directory."""
    monkeypatch.setenv(STATE_VARIABLE, str(tmp_path))
    assert log_path("../a b:C").parent == tmp_path / "hooks"
    assert log_path("my.hooks:Tally").name == "my.hooks-Tally.log"
