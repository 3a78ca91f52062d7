"""What outlives the process of a follower."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator

import pytest

from a2a_proxy.follower.ledger import Cursor, Ledger, Mark, Pending, State


@pytest.fixture
def file() -> Iterator[int]:
    """A file without a name."""
    with tempfile.TemporaryFile() as one:
        yield one.fileno()


def test_an_empty_file_is_the_beginning(file: int) -> None:
    """Nothing followed, nothing called."""
    assert Ledger(file).load() == State()
    assert Ledger(file).read_mark() == Mark()


def test_state_and_mark_come_back(file: int) -> None:
    """In another process: only the file is shared. The mark moves alone between two states."""
    one, other = Ledger(file), Ledger(file)
    state = State(
        (1, 2), {1: Cursor(frame=5, open=[7, 8]), 2: Cursor(over=True)}, Pending(1, [(0, 6)], Cursor(frame=6))
    )
    one.store(state, Mark(done=0, calls=5))
    assert (other.load(), other.read_mark()) == (state, Mark(done=0, calls=5))
    one.mark(Mark(done=1, calls=6, errors=1, frame=6, since=9))
    assert (other.load(), other.read_mark()) == (state, Mark(1, 6, 1, 6, 9))
    one.store(State(), Mark(calls=6))
    assert (other.load(), other.read_mark()) == (State(), Mark(calls=6))


def test_killed_in_mid_write(file: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever write is the last one that is made, the next process finds the old state or the new one."""
    old = State(None, {1: Cursor(frame=1)})
    new = State(None, {1: Cursor(frame=2, open=list(range(500)))})
    for writes in range(3):
        Ledger(file).store(old, Mark(calls=1))
        left = iter(range(writes))
        real = os.pwrite

        def some(descriptor: int, data: bytes, at: int, real=real, left=left) -> int:  # type: ignore[no-untyped-def]
            if next(left, None) is None:
                raise KeyboardInterrupt
            return int(real(descriptor, data, at))

        with monkeypatch.context() as patched:
            patched.setattr(os, "pwrite", some)
            with contextlib.suppress(KeyboardInterrupt):
                Ledger(file).store(new, Mark(calls=2))
        found = (Ledger(file).load(), Ledger(file).read_mark())
        assert found == ((new, Mark(calls=2)) if writes == 2 else (old, Mark(calls=1)))
