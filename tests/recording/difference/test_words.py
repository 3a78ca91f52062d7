"""Texts by words: the pieces make both texts, and what differs in little is told as little."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from a2a_proxy.recording.difference.fields import ValueChange
from a2a_proxy.recording.difference.words import MAX_CHARS, compare_texts

texts = st.lists(
    st.sampled_from(["a", "b", "word", " ", "  ", "\n", ".", "ä", "4b3a600d-8e08"]), max_size=20
).map("".join)


@given(texts, texts)
def test_pieces_make_both_texts(left: str, right: str) -> None:
    pieces = compare_texts(left, right)

    assert "".join(piece.text for piece in pieces if piece.change is not ValueChange.RIGHT) == left
    assert "".join(piece.text for piece in pieces if piece.change is not ValueChange.LEFT) == right
    for piece in pieces:
        if piece.change is not ValueChange.RIGHT:
            assert left.startswith(piece.text, piece.left)
        if piece.change is not ValueChange.LEFT:
            assert right.startswith(piece.text, piece.right)


@given(texts)
def test_a_text_is_one_piece_of_itself(text: str) -> None:
    assert [piece.change for piece in compare_texts(text, text)] == ([None] if text else [])


def test_adjacent_changed_words_are_one_difference() -> None:
    """Neighbouring words that differ are one difference; an identifier is one word."""
    pieces = compare_texts("see 4b3a-600d by the old town.", "see 4b3a-0000 by a new town.")

    assert [(piece.change, piece.text) for piece in pieces] == [
        (None, "see "),
        (ValueChange.LEFT, "4b3a-600d"),
        (ValueChange.RIGHT, "4b3a-0000"),
        (None, " by "),
        (ValueChange.LEFT, "the old"),
        (ValueChange.RIGHT, "a new"),
        (None, " town."),
    ]


def test_differences_beyond_the_word_limit_are_kept() -> None:
    """Further on than words are looked at: they differ all the same, and nothing of them is
    lost."""
    start = "word " * (MAX_CHARS // 5 + 1)

    pieces = compare_texts(start + "left", start + "right")

    assert {piece.change for piece in pieces} == {None, ValueChange.LEFT, ValueChange.RIGHT}
    assert (
        "".join(piece.text for piece in pieces if piece.change is not ValueChange.RIGHT)
        == start + "left"
    )
    assert [piece.change for piece in compare_texts(start + "same", start + "same")] == [None, None]
