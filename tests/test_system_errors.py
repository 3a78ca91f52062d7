"""The next step after an error of the operating system."""

from __future__ import annotations

import errno
import os

import pytest

from a2a_proxy.model.errors import UserError
from a2a_proxy.system_errors import LIMIT_HINTS, hint_for, hint_for_reason


def make_error(number: int) -> UserError:
    """Return the error of a user that another error with this number caused."""
    error, middle = UserError("m", "name another folder"), ValueError("v")
    error.__cause__, middle.__cause__ = middle, OSError(number, os.strerror(number))
    return error


@pytest.mark.parametrize("number", LIMIT_HINTS)
def test_a_limit_has_one_next_step_wherever_it_was_met(number: int) -> None:
    """From the error, from one that it caused, and from its text."""
    assert hint_for(OSError(number, ""), "name another folder") == LIMIT_HINTS[number]
    assert hint_for(make_error(number), "name another folder") == LIMIT_HINTS[number]
    assert (
        hint_for_reason(os.strerror(number).lower(), "name another folder") == LIMIT_HINTS[number]
    )


def test_other_errors_keep_their_own_next_step() -> None:
    assert hint_for(make_error(errno.EACCES), "name another folder") == "name another folder"
    assert hint_for_reason("read-only file system", "name another folder") == "name another folder"
