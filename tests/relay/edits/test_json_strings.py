"""Strings in JSON text, by their place."""

from __future__ import annotations

import pytest

from a2a_proxy.relay.edits.json_strings import ITEM, find_strings, replace_strings

PATHS = [["url"], [ITEM, "url"], ["a", ITEM, "url"]]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a": "x", "url": "y"}', ['"y"']),
        ('[{"url": "x"}, {"b": 1, "url": "y"}]', ['"x"', '"y"']),
        ('{"a": [{"url": "x"}, "url"], "b": {"url": "y"}}', ['"x"']),
        ('{"[": 1, "url": "y"}', ['"y"']),
        ('{"[": "x", "url": "y", "[": "url"}', ['"y"']),
        ('{"[": {"url": "x"}, "a": {"[": {"url": "x"}}}', []),
        (r'{"\u005b": {"url": "x"}, "u\u0072l": "y"}', ['"y"']),
    ],
)
def test_places(text: str, found: list[str]) -> None:
    payload = text.encode()
    assert [payload[start:end].decode() for start, end in find_strings(payload, PATHS)] == found


def test_other_bytes_stay() -> None:
    before = b' {"[" :\t1, "url":"\\u0078" }\n'
    assert replace_strings(before, PATHS, lambda url: url + "y") == b' {"[" :\t1, "url":"xy" }\n'
    assert replace_strings(before, PATHS, lambda _: None) is None
