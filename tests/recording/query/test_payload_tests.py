"""Tests of payloads: any bytes, any pattern."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_proxy.recording.query import payload_tests as tests
from support_recording import payloads


@pytest.mark.parametrize(
    ("wanted", "payload", "found"),
    [
        ("HELLO", b'{"text":"Hello"}', True),
        ("hello", b"hell", False),
        ("äpfel", '{"text":"\u00c4pfel"}'.encode(), True),
        ("äpfel", b'{"text":"\\u00C4pfel"}', True),
        ('say "no"', b'{"text":"say \\"no\\""}', True),
        ("a/b", b'{"text":"a\\/b"}', True),
        ("x < y", b'{"text":"x \\u003c y"}', True),
        ("two\nlines", b'{"text":"two\\nlines"}', True),
        ("\U0001f600", b'{"text":"\\ud83d\\ude00"}', True),
        ("a", b"\\ud800 \xff", False),
        ("\ufffd", b"\xff", True),
    ],
)
def test_text(wanted: str, payload: bytes, found: bool) -> None:
    """Found in any case, as it is or as JSON escapes it."""
    assert tests.matches_text(":", wanted, payload) is found


@given(st.text(max_size=5), st.sampled_from([":", "=", "*"]), payloads)
def test_any_bytes_are_searched_without_an_exception(wanted: str, op: str, payload: bytes) -> None:
    """A verdict for each."""
    assert tests.matches_text(op, wanted, payload) in (True, False)


@given(st.text(min_size=1))
def test_a_text_is_found_however_json_writes_it(text: str) -> None:
    """With and without escapes for characters outside ASCII."""
    for ascii_only in (True, False):
        payload = json.dumps({"text": text}, ensure_ascii=ascii_only).encode(
            "utf-8", "surrogatepass"
        )
        if text.isprintable():
            assert tests.matches_text(":", text, payload)


@pytest.mark.parametrize(
    ("path", "op", "wanted", "found"),
    [
        ("$.a", ":", "X", True),
        ("$.a", "=", "X", False),
        ("$.a", "=", "x", True),
        ("$.a", "~", "^x$", True),
        ("$.n", ":", "5", True),
        ("$.n", ":", "5.0", True),
        ("$.n", ":", "55", False),
        ("$.n", ">", "4.5", True),
        ("$.n", "<", "5", False),
        ("$.big", ">=", "12345678901234567890", True),
        ("$.t", ":", "true", True),
        ("$.t", ">", "0", False),
        ("$.z", ":", "null", True),
        ("$.z", "*", "", True),
        ("$.o", "*", "", True),
        ("$.o", ":", "x", False),
        ("$.none", "*", "", False),
        ("$.list[1]", ":", "two", True),
        ("$.list[9]", "*", "", False),
        ("$.list[*]", ":", "two", True),
        ("$.*[0]", ":", "one", True),
        ('$["a b"]', ":", "y", True),
        ('$["\\u00e4"]', ":", "ae", True),
        ("$.contextId", ":", "c", True),
        ("$.context_id", ":", "c", True),
        ("$.taskId", ":", "k", True),
        ("$", "*", "", True),
    ],
)
def test_paths(path: str, op: str, wanted: str, found: bool) -> None:
    """Steps by name in both spellings, position and `*`; values by their type."""
    value = {
        "a": "x",
        "n": 5,
        "t": True,
        "z": None,
        "o": {},
        "list": ["one", "two"],
        "a b": "y",
        "ä": "ae",
    }
    value |= {"contextId": "c", "task_id": "k", "big": "12345678901234567890"}
    places = tests.values_at_path(value, tests.path_steps(path))
    assert any(tests.matches_leaf(op, wanted, each) for each in places) is found


@pytest.mark.parametrize(
    "pattern", ["(a+)+$", "(a|aa)+$", "(.*a){20}b", "^(([a-z])+.)+[A-Z]([a-z])+$"]
)
def test_a_hostile_pattern_is_stopped(pattern: str) -> None:
    """Each takes longer than the age of the world on this text; here a short while."""
    begun = time.process_time()
    with pytest.raises(tests.TooSlow):
        tests.matches_pattern(pattern, "a" * 5000 + "!")
    assert time.process_time() - begun < 20 * tests.MAX_PATTERN_SECONDS


def test_a_deep_payload_has_no_parts() -> None:
    """Deeper than anybody means it: nothing is found there, nothing breaks."""
    value: object = {"parts": [{"text": "x"}]}
    for _ in range(5000):
        value = {"a": value}
    assert (
        list(tests.find_parts(value))
        == list(tests.find_facets("meta", value))
        == list(tests.find_facets("ext", value))
        == []
    )


@pytest.mark.parametrize(
    ("part", "kind"),
    [
        ({"text": ""}, "text"),
        ({"kind": "text", "text": "x"}, "text"),
        ({"data": {}}, "data"),
        ({"raw": "QQ==", "mediaType": "a/b"}, "raw"),
        ({"url": "u"}, "url"),
        ({"kind": "file", "file": {"bytes": "QQ=="}}, "raw"),
        ({"file": {"fileWithUri": "u"}}, "url"),
        ({"file": {"file_with_bytes": "u"}}, "raw"),
        ({"file": None}, ""),
        ({}, ""),
    ],
)
def test_parts_of_every_dialect(part: dict[str, object], kind: str) -> None:
    """Their kind, where they stand, and that their payload is never passed over unread."""
    value = {
        "result": {"artifact": {"parts": [part]}, "data": {"parts": [{"text": "the peer's own"}]}}
    }
    assert [tests.part_kind(each) for each in tests.find_parts(value)] == [kind]
    data = json.dumps(value).encode()
    assert not kind or tests.has_any_name(kind, data)
    assert tests.has_any_name("data", data.replace(b'"data"', b'"d\\u0061ta"'))
    assert not tests.has_any_name("ext", data)


def test_facets() -> None:
    """Media types, metadata and extensions wherever they are, but not in the peer's own data."""
    part = {"file": {"mimeType": "image/png"}, "metadata": {"a": 1, "b": "x"}}
    other = {"data": {"metadata": {"no": 1}, "extensions": ["no"]}, "mediaType": "application/json"}
    value = {
        "message": {"content": [part, other], "extensions": ["urn:e", 5]},
        "capabilities": {"extensions": [{"uri": "urn:c"}]},
    }
    assert list(tests.find_facets("mime", value)) == ["image/png", "application/json"]
    assert list(tests.find_facets("meta", value)) == ["a: 1", "b: x"]
    assert list(tests.find_facets("ext", value)) == ["urn:e", "urn:c"]
