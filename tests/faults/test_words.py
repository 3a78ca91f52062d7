"""The grammar that faults on recordings and on live traffic share."""

from __future__ import annotations

import pytest

from a2a_proxy.faults.words import FaultError, FaultWords, WordScanner, read_fault

EXAMPLES = {"drop": "drop A", "cut": "cut A @ 50%"}


def read(text: str) -> FaultWords[list[str]] | None:
    return read_fault(
        WordScanner(text, EXAMPLES), lambda words, count: [words.take_word() for _ in range(count)]
    )


@pytest.mark.parametrize(
    ("text", "verb", "place", "amount"),
    [
        ("drop A", "drop", ["A"], 0.0),
        (" swap  A B ", "swap", ["A", "B"], 0.0),
        ("cut A @ 50%", "cut", ["A"], 50.0),
        ("cut A@100%", "cut", ["A"], 100.0),
        ("stall 1.5s before A", "stall", ["A"], 1.5e9),
        ("gen-3 at A", "gen", ["A"], -3.0),
    ],
)
def test_verbs_have_one_form(text: str, verb: str, place: list[str], amount: float) -> None:
    assert read(text) == FaultWords(" ".join(text.split()), verb, place, amount)


def test_other_verbs_are_left_to_the_caller() -> None:
    assert read("fail 503 at A") is None


def test_words_after_the_end_are_refused() -> None:
    with pytest.raises(
        FaultError, match=r"the fault should end here\n    drop A B\n           \^$"
    ):
        read("drop A B")


def test_an_unknown_verb_is_shown_with_those_that_exist() -> None:
    for text, hint in (
        ("CUT A", "did you mean cut?"),
        ("explode A", "a fault begins with drop or cut"),
    ):
        assert WordScanner(text, EXAMPLES).make_verb_error().hint == hint


@pytest.mark.parametrize("text", ["", " "])
def test_an_empty_fault_has_no_caret(text: str) -> None:
    with pytest.raises(FaultError, match=r"^the fault is empty$") as failed:
        read(text)
    assert failed.value.hint == "for example: drop A"


@pytest.mark.parametrize(
    ("text", "under", "why", "hint"),
    [
        (
            "cut A @ 150%",
            "150%",
            "expected a whole percentage from 0% to 100%",
            "for example: cut A @ 50%",
        ),
        (
            "cut A @ 50",
            "50",
            "expected a whole percentage from 0% to 100%",
            "for example: cut A @ 50%",
        ),
        ("cut A 50%", "50%", 'expected "@" before the percentage', "for example: cut A @ 50%"),
        ("stall 5 before A", "5", "the duration has no unit", "in ms or s: 5ms or 5s"),
        ("stall 5 s before A", "5", "the duration has no unit", "without a space: 5s"),
        ("stall 5m before A", "5m", "expected a duration in ms or s", ""),
        ("stall 0.0s before A", "0.0s", "a duration must be more than 0", ""),
        (
            "gen+0 at A",
            "gen+0",
            "expected gen with a change of at least 1, such as gen+2 or gen-1",
            "",
        ),
        (
            "gen 2 at A",
            "gen",
            "expected gen with a change of at least 1, such as gen+2 or gen-1",
            "",
        ),
    ],
)
def test_amounts_out_of_range_are_refused(text: str, under: str, why: str, hint: str) -> None:
    with pytest.raises(FaultError) as failed:
        read(text)
    message, shown, caret = str(failed.value).split("\n")
    assert (message, shown.strip(), failed.value.hint) == (why, text, hint)
    assert (caret.index("^"), caret.strip()) == (shown.index(under), "^" * len(under))
