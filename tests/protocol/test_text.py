from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest

from a2a_proxy.protocol.text import make_visible, shell_line, strict_json, to_one_line


def test_no_character_can_act_on_a_terminal() -> None:
    """Whatever a peer sends, only printable characters come out."""
    everything = "".join(map(chr, range(sys.maxunicode + 1)))

    assert make_visible(everything).isprintable()
    assert make_visible("a\x1b[2J\r\n\x7f") == "a␛[2J␍␊␡"
    assert make_visible("\u202eabc") == "<U+202E>abc"
    assert make_visible("größe 🤖") == "größe 🤖"


def test_length_is_bounded() -> None:
    """A cut line ends in an ellipsis."""
    assert to_one_line("x" * 200, 10) == "x" * 9 + "…"
    assert to_one_line("x" * 10, 10) == "x" * 10


def test_json_is_for_strict_readers_and_terminals() -> None:
    """All of Unicode is preserved except lone surrogates; no character acts on a terminal or
    hides."""
    everything = "".join(
        chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000
    )

    written = strict_json({everything: [everything, "\ud800a\udfff"]})

    assert json.loads(written) == {everything: [everything, "?a?"]}
    assert not set(written) & set("\x00\x1b\x7f\x9b\u200b\u202e\u2066\ufeff\U000e0041")
    assert strict_json("größe 🤖") == '"größe 🤖"'
    assert strict_json([1], indent=2) == "[\n  1\n]"


@pytest.mark.parametrize(
    ("word", "written"),
    [
        ("plain.db", "plain.db"),
        ("it's", "'it'\"'\"'s'"),
        ("a b", "'a b'"),
        ("", "''"),
        ("é\x1b[31m", r"$'é\033[31m'"),
        ("caf\udce9", r"$'caf\351'"),
        ("\x07'\\", r"$'\007\'\\'"),
        ("\u202e", r"$'\342\200\256'"),
    ],
)
def test_words_are_quoted_for_a_shell(word: str, written: str) -> None:
    """It is printable, and bash reads the word from it."""
    assert shell_line("x", word) == f"x {written}"
    if bash := shutil.which("bash"):
        done = subprocess.run(
            [bash, "-c", f"printf %s {written}"], capture_output=True, check=True, timeout=60
        )
        assert done.stdout == os.fsencode(word)
