"""Replayed JSON escapes the characters that the recorded JSON escapes."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_proxy.replay.convert.json_escapes import escape_as_recorded, escape_line_separators

VALUE = {"t": 'a/b <b> \u00e9 \u2028 \U0001f600 "\\ \n', "é": [1.5, "x"]}
FORMS = {
    "ascii": json.dumps(VALUE, separators=(",", ":")),
    "raw": json.dumps(VALUE, separators=(",", ":"), ensure_ascii=False),
    "line separators": json.dumps(VALUE, separators=(",", ":"), ensure_ascii=False).replace(
        "\u2028", "\\u2028"
    ),
    "markup": json.dumps(VALUE, separators=(",", ":"), ensure_ascii=False)
    .replace("<", "\\u003c")
    .replace(">", "\\u003e"),
    "slashes": json.dumps(VALUE, separators=(",", ":"), ensure_ascii=False).replace("/", "\\/"),
    "pairs": json.dumps(VALUE, separators=(",", ":"), ensure_ascii=False).replace(
        "\U0001f600", "\\ud83d\\ude00"
    ),
    "upper case": json.dumps(VALUE, separators=(",", ":"))
    .replace("\\u00e9", "\\u00E9")
    .replace("ud83d", "uD83D")
    .replace("ude00", "uDE00"),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_escapes_are_as_recorded(form: str) -> None:
    assert escape_as_recorded(msgspec.json.encode(VALUE), form.encode()).decode() == form


def test_a_live_text_takes_the_escapes_of_the_recorded_one() -> None:
    written = escape_as_recorded(
        msgspec.json.encode({"t": "now\u2028"}), b'{"t":"then\\u2028 \xc3\xa9"}'
    )
    assert written == b'{"t":"now\\u2028"}'


def test_line_separators_are_escaped_without_a_recorded_form() -> None:
    assert (
        escape_line_separators('{"t":"\u2028\u2029\x85é"}'.encode())
        == '{"t":"\\u2028\\u2029\\u0085é"}'.encode()
    )


@given(st.text(), st.text(), st.booleans())
def test_the_value_never_changes(text: str, other: str, ascii_only: bool) -> None:
    data = msgspec.json.encode({"t": text})
    recorded = json.dumps({"t": other}, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    assert msgspec.json.decode(escape_as_recorded(data, recorded)) == {"t": text}
    assert msgspec.json.decode(escape_line_separators(data)) == {"t": text}
