"""Payloads as JSON, text or base64, and back."""

from __future__ import annotations

import json
from math import isfinite

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a_proto import from_dict
from a2a_proxy.recording.cassette import payload_text
from support_recording import payloads, schemas


@given(payloads | st.text().map(str.encode), schemas)
def test_any_payload_comes_back(payload: bytes, schema: str):
    """Also through the JSON of a line."""
    line = json.loads(json.dumps(payload_text.write_payload(payload, schema)))
    assert payload_text.read_payload(line, schema) == payload


def _finite(value: object) -> bool:
    return (
        all(map(_finite, value))
        if isinstance(value, list)
        else not isinstance(value, float) or isfinite(value)
    )


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists, max_leaves=8
    )
)
def test_compact_json_is_data(value: object):
    """What a common encoder writes is shown as what it says; NaN and infinity, which are no JSON,
    as text."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        payload = text.encode()
    except UnicodeEncodeError:
        return
    line = payload_text.write_payload(payload, "json")
    assert set(line) == ({"data"} if _finite(value) else {"text"})
    assert payload_text.read_payload(line, "json") == payload


@pytest.mark.parametrize(
    ("text", "style"),
    [
        ('{"a":"é","b":[1]}', None),
        ('{"a": "é", "b": [1, 2]}', "spaced"),
        ('{"a":"\\u00e9"}', "ascii"),
        ('{"a": "\\u00e9"}', "spaced-ascii"),
    ],
)
def test_the_ways_peers_write_json_are_data(text: str, style: str | None):
    """The style is named unless it is the compact one, and gives the same bytes again."""
    line = payload_text.write_payload(text.encode(), "json")
    assert (line["data"], line.get("json")) == (json.loads(text), style)
    assert payload_text.read_payload(line, "json") == text.encode()


def test_an_unknown_style_is_refused():
    """A newer program may know more styles than this one."""
    with pytest.raises(ValueError, match="unknown JSON style"):
        payload_text.read_payload({"data": 1, "json": "pretty"}, "json")


def test_protobuf_is_rendered_as_json_only_if_that_is_exact():
    """Fields out of order or unknown are kept as bytes, with a view for people."""
    message = from_dict(
        "1.0",
        "Message",
        {"messageId": "m", "role": "ROLE_USER", "parts": [{"data": {"b": 1, "a": [2.5]}}]},
    )
    exact = message.SerializeToString(deterministic=True)
    assert set(payload_text.write_payload(exact, "lf.a2a.v1.Message")) == {"data"}
    other = b"\x12\x01c\x0a\x01m"
    line = payload_text.write_payload(other, "lf.a2a.v1.Message")
    assert line["view"] == {"messageId": "m", "contextId": "c"}
    assert payload_text.read_payload(line, "lf.a2a.v1.Message") == other
    assert set(payload_text.write_payload(b"\xff\xff", "lf.a2a.v1.Message")) == {"raw_b64"}
    assert set(payload_text.write_payload(b"x", "no.such.Message")) == {"raw_b64"}
