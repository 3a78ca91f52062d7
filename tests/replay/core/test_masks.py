"""Which values are masked, and that the prefilter of masked requests drops none that match."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_proxy.replay.core.masks import coarse_text, iter_masked, mask_members, mask_text

UUIDS = "11111111-aaaa-4aaa-8aaa-111111111111", "7d444840-9dc0-11d1-b245-5ffdce74fad2"
EQUAL = {
    "uuid": (f"gather {UUIDS[0]} 8 10", f"gather {UUIDS[1]} 8 10"),
    "hex of a uuid": ("id 4bf92f3577b34da6a3ce929d0e0e4736", "id 0af7651916cd43dd8448eb211c80319c"),
    "date": ("Today is 2026-11-22.", "Today is 2026-11-23."),
    "week": ("in 2026-W47", "in 2026-W48-1"),
    "time": ("at 13:40", "at 09:05:59.125Z"),
    "date and time": ("2026-11-22T13:40:42.125+01:00", "2026-11-23 09:05"),
    "basic form": ("20261122T134042Z", "20261123T090500.5Z"),
    "seconds": ("now: 1732368042", "now: 1763900000.25"),
    "milliseconds": ("now: 1732368042123", "now: 1763900000250"),
    "named request": ("request id: abc-1, go", "request id: 7f3, go"),
    "header": ("X-Request-ID=77", "X-Request-ID=91"),
    "camel": ('{"requestId": "a1"}', '{"requestId": "b22"}'),
    "prefix": ("see req_8f3a9c.", "see req_00b1f2."),
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
    "kinds": ("at 13:40", "at 2026-11-23"),
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
    value = {"now": 1732368042.5, "requestId": "x", "x-request-id": 7, "n": [10, True, 1732368042123], "text": "at 1"}
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
    st.from_regex(r"req_[a-z]{0,4}[0-9][a-z0-9]{0,8}", fullmatch=True),
)
_FIXED = st.text(alphabet="ab :-_.,#\n", max_size=12)


@given(st.lists(st.tuples(_FIXED, _VALUES, _VALUES), max_size=4))
def test_the_prefilter_keeps_all_texts_that_are_equal_after_masking(pieces: list[tuple[str, str, str]]) -> None:
    one = " ".join(fixed + " " + value for fixed, value, _ in pieces)
    other = " ".join(fixed + " " + value for fixed, _, value in pieces)
    if mask_text(one) == mask_text(other):
        assert coarse_text(one) == coarse_text(other)
