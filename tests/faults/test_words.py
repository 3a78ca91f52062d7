"""The grammar that faults on recordings and on live traffic share."""

from __future__ import annotations

import pytest

from a2a_proxy.faults.words import FaultError, FaultWords, WordScanner, read_fault


def read(text: str) -> FaultWords[list[str]] | None:
    return read_fault(WordScanner(text), lambda words, count: [words.take_word() for _ in range(count)])


@pytest.mark.parametrize(
    ("text", "verb", "place", "amount"),
    [
        ("drop A", "drop", ["A"], 0.0),
        (" swap  A B ", "swap", ["A", "B"], 0.0),
        ("cut A @ 50%", "cut", ["A"], 50.0),
        ("cut A@300%", "cut", ["A"], 100.0),
        ("stall 1.5s before A", "stall", ["A"], 1.5e9),
        ("gen-3 at A", "gen", ["A"], -3.0),
    ],
)
def test_verbs_have_one_form(text: str, verb: str, place: list[str], amount: float) -> None:
    assert read(text) == FaultWords(" ".join(text.split()), verb, place, amount)


def test_other_verbs_are_left_to_the_caller() -> None:
    assert read("fail 503 at A") is None


def test_words_after_the_end_are_refused() -> None:
    with pytest.raises(FaultError, match=r"the fault should end here\n    drop A B\n           \^$"):
        read("drop A B")
