"""Flags are kept together in one integer, so that each needs a bit of its own."""

from __future__ import annotations

from a2a_proxy.rules.define.conditions import FrameFlag


def test_each_flag_is_one_bit_of_its_own() -> None:
    values = [flag.value for flag in FrameFlag.__members__.values()]
    assert all(value.bit_count() == 1 for value in values)
    assert len(set(values)) == len(values)
