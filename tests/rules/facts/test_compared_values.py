from __future__ import annotations

import pytest

from a2a_proxy.rules.facts.compared_values import parse_timestamp, time_before


@pytest.mark.parametrize(
    ("stamp", "other", "ns"),
    [
        ("2026-01-01T00:00:01Z", "2026-01-01T00:00:03Z", 2_000_000_000),
        ("2026-01-01T00:00:01.5Z", "2026-01-01T00:00:03Z", 1_500_000_000),
        ("2026-01-01T00:00:01", "2026-01-01T00:00:03", 2_000_000_000),
        ("2026-01-01T00:00:01+01:00", "2026-01-01T00:00:01Z", 3_600_000_000_000),
        ("2026-01-01T00:00:03Z", "2026-01-01T00:00:01Z", 0),
        ("2026-01-01T00:00:01", "2026-01-01T00:00:03Z", 0),
        ("", "2026-01-01T00:00:03Z", 0),
        ("2026-01-01T00:00:01Z", "", 0),
        ("soon", "2026-01-01T00:00:03Z", 0),
    ],
)
def test_times_of_one_form_are_compared(stamp: str, other: str, ns: int) -> None:
    """Only both with a time zone, or both without."""
    assert time_before(stamp, other) == ns


def test_a_time_without_zone_is_negative() -> None:
    assert parse_timestamp("1970-01-01T00:00:02") == -2_000_000_000
    assert parse_timestamp("1970-01-01T00:00:02Z") == 2_000_000_000
    assert parse_timestamp("yesterday") == parse_timestamp("") == 0
