from __future__ import annotations

import time

from a2a_proxy.model.eviction import keys_to_evict


def test_the_oldest_entries_above_the_limit_are_evicted() -> None:
    assert keys_to_evict(dict.fromkeys(range(5)), 5) == []
    assert keys_to_evict(dict.fromkeys(range(6)), 5) == [0]
    assert keys_to_evict(dict.fromkeys(range(33)), 32) == [0, 1, 2]


def test_a_full_dictionary_takes_new_entries_in_constant_time() -> None:
    """One by one, each of 50,000 evictions from 100,000 entries takes 30 us: 1.5 s."""
    entries, limit = dict.fromkeys(range(100_000)), 100_000
    began = time.process_time()
    for number in range(limit, limit + 50_000):
        entries[number] = None
        for oldest in keys_to_evict(entries, limit):
            del entries[oldest]
    assert time.process_time() - began < 0.5
    assert limit - limit // 16 <= len(entries) <= limit
    assert next(reversed(entries)) == limit + 49_999
