from __future__ import annotations

import sys

from a2a_proxy.protocol.text import one_line, visible


def test_no_character_can_act_on_a_terminal() -> None:
    """Whatever a peer sends, only printable characters come out."""
    everything = "".join(map(chr, range(sys.maxunicode + 1)))

    assert visible(everything).isprintable()
    assert visible("a\x1b[2J\r\n\x7f") == "a␛[2J␍␊␡"
    assert visible("\u202eabc") == "<U+202E>abc"
    assert visible("größe 🤖") == "größe 🤖"


def test_length_is_bounded() -> None:
    """A cut line ends in an ellipsis."""
    assert one_line("x" * 200, 10) == "x" * 9 + "…"
    assert one_line("x" * 10, 10) == "x" * 10
