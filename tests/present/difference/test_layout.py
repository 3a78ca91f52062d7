"""Difference blocks as rows: two columns if there is room, else one; marks without colours."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from a2a_proxy.present.difference.blocks import (
    BlockKind,
    DifferenceBlock,
    make_excerpts,
    summarize_value,
)
from a2a_proxy.present.difference.layout import layout_rows
from a2a_proxy.recording.difference.words import compare_texts

MADE = [
    DifferenceBlock(BlockKind.NOTE, "different: 2 differences"),
    DifferenceBlock(BlockKind.TITLE, "#2 SendMessage", "#6 SendMessage", "~"),
    DifferenceBlock(BlockKind.HEAD, "states", None, "~", anchor=True),
    DifferenceBlock(BlockKind.VALUE, "working", "completed", "~"),
    DifferenceBlock(BlockKind.HEAD, "", "frame 3  status failed", "+", anchor=True),
]


def rows(made: list[DifferenceBlock], width: int) -> list[str]:
    return [line.text for line in layout_rows(made, width)]


def test_one_column() -> None:
    assert rows(MADE, 80) == [
        "different: 2 differences",
        "~ #2 SendMessage",
        "| #6 SendMessage",
        "  ~ states",
        "    - working",
        "    + completed",
        "  + frame 3  status failed",
    ]


def test_two_columns() -> None:
    lines = rows(MADE, 125)

    assert lines[1] == f"{'#2 SendMessage':60}  ~  #6 SendMessage"
    assert lines[3] == f"{'    working':60}  ~      completed"
    assert lines[4] == f"{'':60}  +    frame 3  status failed"
    assert [line.middle for line in layout_rows(MADE, 125)] == [0, 65, 0, 65, 65]


@pytest.mark.parametrize("width", [20, 80, 119, 120, 161])
def test_rows_fit_the_width(width: int) -> None:
    """Also of wide characters, long words, and nothing at all; no word gets lost."""
    sentence = "ein sehr " + "l" * 300 + "anges Wort 日本語" + "語" * 200 + " end"
    made = [
        DifferenceBlock(kind, sentence, other, "~")
        for kind in BlockKind
        for other in (None, "", sentence)
    ]

    lines = rows(made, width)

    assert max(map(cell_len, lines)) <= width
    assert "".join("".join(lines).split()).count("anges") or width < 30
    assert "".join(
        "".join(
            row.strip(" -+~|") for row in rows([DifferenceBlock(BlockKind.NOTE, sentence)], width)
        ).split()
    ) == "".join(sentence.split())


def test_without_a_width_nothing_is_cut() -> None:
    assert rows([DifferenceBlock(BlockKind.NOTE, "word " * 500)], 0) == ["word " * 499 + "word"]


def test_long_texts_show_only_their_differences() -> None:
    before = "word " * 100 + "old" + " word" * 100
    left, right = make_excerpts(compare_texts(before, before.replace("old", "new")))

    assert left == "…" + "word " * 6 + "[old]" + " word" * 6 + "…"
    assert right == left.replace("old", "new")


def test_an_unrelated_text_has_no_brackets() -> None:
    assert make_excerpts(compare_texts("left", "right")) == ("left", "right")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (
            {"statusUpdate": {"status": {"state": "TASK_STATE_INPUT_REQUIRED"}}},
            "status input-required",
        ),
        ({"task": {"status": {"state": "TASK_STATE_WORKING"}}}, "task working"),
        (
            {
                "artifactUpdate": {
                    "artifact": {"name": "plan", "parts": [{"text": "a\n"}]},
                    "append": True,
                }
            },
            'artifact plan (append) "a\\n"',
        ),
        ({"message": {"role": "ROLE_AGENT", "parts": [{"data": 1}]}}, 'message agent {"data": 1}'),
        ({"statusUpdate": "odd"}, '{"statusUpdate": "odd"}'),
        ({"task": {"status": [1]}}, "task"),
        ("\x1b[31m", "␛[31m"),
    ],
)
def test_values_in_a_line(value: object, text: str) -> None:
    """Events as people say them, whatever a peer put there."""
    assert summarize_value(value) == text
