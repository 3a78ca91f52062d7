from __future__ import annotations

import time

from a2a_proxy.model.eviction import keys_to_evict


def test_the_oldest_entries_above_the_limit_are_evicted() -> None:
    assert keys_to_evict(dict.fromkeys(range(5)), 5) == []
    assert keys_to_evict(dict.fromkeys(range(6)), 5) == [0]
    assert keys_to_evict(dict.fromkeys(range(33)), 32) == [0, 1, 2]


def replace_entries(limit: int) -> tuple[dict[int, None], float]:
    """Return a full dictionary after 50,000 new entries, and the time in s that they took."""
    entries = dict.fromkeys(range(limit))
    began = time.process_time()
    for number in range(limit, limit + 50_000):
        entries[number] = None
        for oldest in keys_to_evict(entries, limit):
            del entries[oldest]
    return entries, time.process_time() - began


def test_new_entries_of_a_large_dictionary_take_as_long_as_those_of_a_small_one() -> None:
    """Evicted one by one they take 40 times as long."""
    _, small = min((replace_entries(1000) for _ in range(3)), key=lambda each: each[1])
    entries, large = min((replace_entries(100_000) for _ in range(3)), key=lambda each: each[1])
    assert large < 10 * small
    assert 100_000 - 100_000 // 16 <= len(entries) <= 100_000
    assert next(reversed(entries)) == 149_999
