"""State of a follower that survives its process."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator

import pytest

from a2a_proxy.follower.checkpoint import (
    CallMark,
    CheckpointFile,
    FollowerState,
    PendingBatch,
    SessionCursor,
)


@pytest.fixture
def file() -> Iterator[int]:
    """A file without a name."""
    with tempfile.TemporaryFile() as one:
        yield one.fileno()


def test_an_empty_file_is_an_initial_state(file: int) -> None:
    """Nothing followed, nothing called."""
    assert CheckpointFile(file).load() == FollowerState()
    assert CheckpointFile(file).read_mark() == CallMark()


def test_state_and_call_mark_are_restored(file: int) -> None:
    """In another process: only the file is shared. The mark moves alone between two states."""
    one, other = CheckpointFile(file), CheckpointFile(file)
    state = FollowerState(
        (1, 2),
        {1: SessionCursor(frame=5, open=[7, 8]), 2: SessionCursor(over=True)},
        PendingBatch(1, [(0, 6)], SessionCursor(frame=6)),
    )
    one.store_state(state, CallMark(done=0, calls=5))
    assert (other.load(), other.read_mark()) == (state, CallMark(done=0, calls=5))
    one.store_mark(CallMark(done=1, calls=6, errors=1, frame=6, since=9))
    assert (other.load(), other.read_mark()) == (state, CallMark(1, 6, 1, 6, 9))
    one.store_state(FollowerState(), CallMark(calls=6))
    assert (other.load(), other.read_mark()) == (FollowerState(), CallMark(calls=6))


def test_a_write_cut_short_keeps_the_previous_state(
    file: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever write is the last, the next process finds the old state or the new one."""
    old = FollowerState(None, {1: SessionCursor(frame=1)})
    new = FollowerState(None, {1: SessionCursor(frame=2, open=list(range(500)))})
    for writes in range(3):
        CheckpointFile(file).store_state(old, CallMark(calls=1))
        left = iter(range(writes))
        real = os.pwrite

        def some(descriptor: int, data: bytes, at: int, real=real, left=left) -> int:  # type: ignore[no-untyped-def]
            if next(left, None) is None:
                raise KeyboardInterrupt
            return int(real(descriptor, data, at))

        with monkeypatch.context() as patched:
            patched.setattr(os, "pwrite", some)
            with contextlib.suppress(KeyboardInterrupt):
                CheckpointFile(file).store_state(new, CallMark(calls=2))
        found = (CheckpointFile(file).load(), CheckpointFile(file).read_mark())
        assert found == ((new, CallMark(calls=2)) if writes == 2 else (old, CallMark(calls=1)))
