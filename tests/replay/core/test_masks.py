"""Which values are masked, and that the prefilter of masked requests drops none that match."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_proxy.replay.core.masks import coarse_text, is_of_run, iter_masked, mask_members, mask_text

UUIDS = "11111111-aaaa-4aaa-8aaa-111111111111", "7d444840-9dc0-11d1-b245-5ffdce74fad2"
EQUAL = {
    "uuid": (f"gather {UUIDS[0]} 8 10", f"gather {UUIDS[1]} 8 10"),
    "hex of a uuid": ("id 4bf92f3577b34da6a3ce929d0e0e4736", "id 0af7651916cd43dd8448eb211c80319c"),
    "date": ("Today is 2026-11-22.", "Today is 2026-11-23."),
    "week": ("in 2026-W47", "in 2026-W48-1"),
    "date and time": ("2026-11-22T13:40:42.125+01:00", "2026-11-23 09:05"),
    "log form": ("Mon Nov 23 16:43:00 2026", "Fri, 20 Nov 2026 09:05:00 GMT"),
    "long": ("Today is Monday, 23 November 2026.", "Today is November 9th, 2026."),
    "without a year": ("Today is Nov 23", "Today is 2 December"),
    "dotted": ("23.11.2026", "9.1.2027"),
    "slashes": ("11/23/2026", "1/9/2027"),
    "basic form": ("20261122T134042Z", "20261123T090500.5Z"),
    "seconds": ("now: 1732368042", "now: 1763900000.25"),
    "milliseconds": ("now: 1732368042123", "now: 1763900000250"),
    "named request": ("request id: abc-1, go", "request id: 7f3, go"),
    "header": ("X-Request-ID=77", "X-Request-ID=91"),
    "camel": ('{"requestId": "a1"}', '{"requestId": "b22"}'),
    "prefix": ("see req_8f3a9c.", "see req_00b1f2."),
    "bare token": ("for 8, request 1a2b3c4d", "for 8, request 77e0aab1"),
    "bare reference": ("Ref: 8fc7e83d.", "Ref: ae11d5db."),
    "bare trace": ("(trace 00f067aa0ba902b7)", "(trace 53995c3f42cd8ad8)"),
    "number": ("request #12 of mine", "request #4711 of mine"),
}
DIFFERENT = {
    "amount": ("pay 10 EUR", "pay 1000 EUR"),
    "large amount": ("pay 1000000000 EUR", "pay 1000000001 EUR"),
    "arguments": (f"gather {UUIDS[0]} 8 10", f"gather {UUIDS[1]} 8 11"),
    "address": ("10.0.0.1:8080", "10.0.0.2:8080"),
    "version": ("1.2.3", "1.2.4"),
    "no date": ("2026-13-01", "2026-14-01"),
    "request without id": ("request 10 items", "request 11 items"),
    "number of digits": ("request 10000000", "request 10000001"),
    "short token": ("request 8a2b3", "request 8a2b4"),
    "letters only": ("request decade", "request facade"),
    "no hexadecimal token": ("request 1a2b3c4z", "request 1a2b3c5z"),
    "token with a unit": ("ref 1a2b3c4d-8", "ref 1a2b3c4d-9"),
    "token after another word": ("colour 1a2b3c", "colour 1a2b3d"),
    "word that ends so": ("xref 1a2b3c4d", "xref 1a2b3c4e"),
    "kinds": ("at 1763900000", "at 2026-11-23"),
    "time": ("at 13:40", "at 09:05:59.125Z"),
    "time beside a date": ("on 2026-11-22 at 19:30", "on 2026-11-22 at 22:15"),
    "weekday": ("on Monday", "on Tuesday"),
    "month": ("in November 2026", "in December 2026"),
    "dotted numbers": ("1.11.23.2026", "1.11.24.2026"),
    "phone": ("call 2125550123", "call 2125550124"),
}


@pytest.mark.parametrize(("one", "other"), EQUAL.values(), ids=EQUAL)
def test_values_of_one_run_are_masked(one: str, other: str) -> None:
    assert mask_text(one) == mask_text(other)
    assert coarse_text(one) == coarse_text(other)


@pytest.mark.parametrize(("one", "other"), DIFFERENT.values(), ids=DIFFERENT)
def test_other_values_count(one: str, other: str) -> None:
    assert mask_text(one) != mask_text(other)


def test_members_are_masked_by_name_or_value() -> None:
    value = {
        "now": 1732368042.5,
        "requestId": "x",
        "x-request-id": 7,
        "n": [10, True, 1732368042123],
        "text": "at 1",
    }
    assert mask_members(value) == {
        "now": "\0epoch time",
        "requestId": "\0request id",
        "x-request-id": "\0request id",
        "n": [10, True, "\0epoch time"],
        "text": "at 1",
    }


def test_masked_values_are_listed_with_their_kinds() -> None:
    found = list(iter_masked(f"request id: abc-1 at 2026-11-22 for {UUIDS[0]}"))
    assert found == [("request id", "abc-1"), ("date", "2026-11-22"), ("UUID", UUIDS[0])]


_VALUES = st.one_of(
    st.uuids().map(str),
    st.datetimes().map(lambda at: at.isoformat()),
    st.dates().map(str),
    st.integers(1_400_000_000, 1_999_999_999).map(str),
    st.integers(0, 10**6).map("request id: {}".format),
    st.from_regex(r"ref [0-9][a-f][0-9a-f]{4,8}", fullmatch=True),
    st.from_regex(r"req_[a-z]{0,4}[0-9][a-z0-9]{0,8}", fullmatch=True),
)
_FIXED = st.text(alphabet="ab :-_.,#\n", max_size=12)


NOON = int(datetime(2026, 11, 23, 12, tzinfo=UTC).timestamp())
OF_RUN = [
    "2026-11-23", "2026-11-22", "2026-11-24", "2026/11/23", "2026-W48-1", "23.11.2026",
    "11/23/2026", "23-11-2026", "Monday, 23 November 2026", "Mon Nov 23 16:43:00 2026",
    "November 23rd, 2026", "23 Nov", "Nov 23", "23-Nov-2026", "2026-11-23T19:30:00+01:00",
    "20261123T134042Z", f"{NOON + 80_000}.25", f"{NOON - 80_000}000",
]  # fmt: skip
NOT_OF_RUN = [
    "2026-12-24", "2026-11-25", "2025-11-23", "2026-W49", "24.12.2026", "11.12.2026",
    "Thursday, 24 December 2026", "Dec 24", "23 November 2025", "Nov 23 16:43:00 2025",
    "2026-12-24T19:30", f"{NOON + 90_000}", f"{NOON - 90_000}000",
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"), [(each, True) for each in OF_RUN] + [(each, False) for each in NOT_OF_RUN]
)
def test_only_dates_and_times_within_a_day_are_of_the_run(text: str, expected: bool) -> None:
    [(kind, value)] = iter_masked(f"at {text}, go")
    assert value == text
    assert is_of_run(kind, value, NOON * 10**9) is (text in OF_RUN)


@given(st.lists(st.tuples(_FIXED, _VALUES, _VALUES), max_size=4))
def test_the_prefilter_keeps_all_texts_that_are_equal_after_masking(
    pieces: list[tuple[str, str, str]],
) -> None:
    one = " ".join(fixed + " " + value for fixed, value, _ in pieces)
    other = " ".join(fixed + " " + value for fixed, _, value in pieces)
    if mask_text(one) == mask_text(other):
        assert coarse_text(one) == coarse_text(other)
