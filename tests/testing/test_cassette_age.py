from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from a2a_proxy.testing.cassette_age import excess_age, parse_age, recording_time

DAY = 86_400.0


def cassette(folder: Path, *started: int) -> Path:
    path = folder / "hello.a2a.jsonl"
    sessions = ",".join(f'{{"started":{each * 10**9}}}' for each in started)
    path.write_text(
        f'{{"cassette":"a2a","version":1,"sessions":[{sessions}]}}\n{{"connection":1}}\n'
    )
    return path


@pytest.mark.parametrize(
    ("age", "expected"),
    [
        ("90s", 90),
        ("2h", 7200),
        ("30d", 30 * DAY),
        ("1w", 7 * DAY),
        ("1.5d", 1.5 * DAY),
        (timedelta(days=2), 2 * DAY),
        (5, 5),
    ],
)
def test_ages_are_parsed(age: object, expected: float) -> None:
    assert parse_age(age) == expected


@pytest.mark.parametrize("age", ["", "30", "30 days", "-1d", 0, -5, True, None, "d"])
def test_invalid_ages_are_refused(age: object) -> None:
    with pytest.raises(ValueError, match="is not an age: write '30d'"):
        parse_age(age)


def test_the_oldest_session_counts(tmp_path: Path) -> None:
    path = cassette(tmp_path, 5000, 1000)
    assert recording_time(path) == 1000
    assert excess_age(path, "1d", now=1000 + DAY) == ""
    assert (
        excess_age(path, "1d", now=1001 + DAY)
        == "hello.a2a.jsonl was recorded 1 day ago, more than 1 day"
    )
    assert (
        excess_age(path, "90m", now=1000 + 30 * DAY)
        == "hello.a2a.jsonl was recorded 30 days ago, more than 1 hour"
    )


@pytest.mark.parametrize(
    "text", ["", "nothing", "[]", '{"sessions":[]}', '{"sessions":[{"started":"x"}]}']
)
def test_a_file_without_a_time_is_not_old(tmp_path: Path, text: str) -> None:
    """The replay reports what it is instead."""
    path = tmp_path / "odd.a2a.jsonl"
    path.write_text(text)
    assert recording_time(path) is None
    assert excess_age(path, "1s", now=1e12) == ""
