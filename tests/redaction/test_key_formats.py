"""Keys of known providers: every form is found, in any place, also truncated."""

from __future__ import annotations

import json
import re
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_proto import from_dict
from a2a_proxy.model.values import Frame, FrameKind
from a2a_proxy.model.wire import Direction
from a2a_proxy.redaction import Redactor
from a2a_proxy.redaction.key_formats import FORMATS, WEBHOOKS, KeyFormat
from a2a_proxy.redaction.secret_patterns import choose_searches
from support_planted import KEYS, Key

SECRET = b"k" * 32
FORMS = [(form, prefix) for form in (*FORMATS, *WEBHOOKS) for prefix in form.prefixes]


def frame(payload: bytes, schema: str = "json", **more: Any) -> Frame:
    place: dict[str, Any] = {
        "direction": Direction.TO_AGENT,
        "kind": FrameKind.EVENT,
        "size": len(payload),
    }
    return Frame(
        connection=1,
        exchange=1,
        seq=0,
        began=1,
        at=2,
        start=0,
        end=9,
        payload=payload,
        schema=schema,
        **place,
        **more,
    )


def drawn(data: st.DataObject, form: KeyFormat, prefix: str) -> tuple[str, str]:
    """Draw a key of this form: the part before its counted characters, and the counted
    characters."""
    alphabet = [
        each for each in map(chr, range(33, 127)) if re.fullmatch(f"[{form.alphabet}]", each)
    ]
    around = [
        data.draw(st.from_regex(re.compile(each, re.A), fullmatch=True))
        for each in (form.before, form.near, form.after)
    ]
    random = data.draw(st.randoms(use_true_random=False))
    return around[0] + around[1] + prefix + around[2], "".join(
        random.choices(alphabet, k=form.length)
    )


@pytest.mark.parametrize(
    ("form", "prefix"), FORMS, ids=[f"{form.maker} {prefix}" for form, prefix in FORMS]
)
@given(data=st.data())
@settings(max_examples=6, deadline=None)
def test_every_form_is_found(form: KeyFormat, prefix: str, data: st.DataObject) -> None:
    """In text, JSON and protobuf, after an escape and percent-encoded; the sieve finds the key
    alone."""
    head, tail = drawn(data, form, prefix)
    for text in (
        head + tail,
        f"x={head}{tail} y",
        json.dumps({"a": f"\n{head}{tail}"}),
        f"a%20{head}{tail}&b",
        f"\\n{head}{tail}",
    ):
        assert choose_searches(text.encode())
        assert tail not in Redactor(SECRET).redact_text(text)


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.what)
def test_a_protobuf_length_byte_does_not_hide_a_key(key: Key) -> None:
    """In protobuf the byte before a key is its length, often a letter or a digit."""
    made = key.made(Random(7))
    for more in (0, 1, *range(3, 60, 7)):
        text = made + " " * more
        value = {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": text}]}}
        payload = from_dict("1.0", "SendMessageRequest", value).SerializeToString()
        done = Redactor(SECRET).redact_frame(frame(payload, "lf.a2a.v1.SendMessageRequest"), None)
        assert made.encode() not in done.payload


@pytest.mark.parametrize(
    "key",
    [key for key in KEYS if not re.match("aB38Q|MTk4|AbCdEfGhIjKlMn|[0-9]", key.prefix)],
    ids=lambda k: k.what,
)
def test_a_truncated_key_is_found(key: Key) -> None:
    """A payload cut within a key shows at most its prefix. Keys that begin with random characters
    are exempt."""
    made = key.made(Random(7))
    for end in {len(key.prefix) + 3, (len(key.prefix) + len(made)) // 2, len(made) - 1}:
        payload = json.dumps({"text": f"use {made}"}).encode()
        cut = payload[: payload.index(made.encode()) + end]
        done = Redactor(SECRET).redact_frame(frame(cut, truncated=True), None)
        assert made[: len(key.prefix) + 3].encode() not in done.payload


@pytest.mark.parametrize(
    "unit",
    [
        "sk-",
        "hf_",
        "eyJ",
        "AKIA",
        "glpat-",
        "SG.",
        "xoxb-",
        "1//0",
        "pat.",
        ".",
        "%41",
        "\\n",
        "--token ",
    ],
)
@pytest.mark.parametrize("end", ["", " ", "!" * 20, "a" * 50])
def test_hostile_text_takes_linear_time(unit: str, end: str) -> None:
    """100,000 bytes of beginnings of keys take milliseconds; with quadratic time, this test would
    not end."""
    text = (unit * (100_000 // len(unit)) + end).encode()
    for schema in ("json", "text"):
        Redactor(SECRET).redact_frame(frame(text, schema), None)
        Redactor(SECRET).redact_frame(frame(text, schema, truncated=True), None)


@pytest.mark.parametrize(
    "unit",
    [
        "-u ",
        " -u",
        "curl -u a:",
        "curl ",
        " -p",
        "mysql -p",
        "--auth ",
        "a=a",
        "a:a",
        "cookie:",
        "authorization:",
        "x=%20",
        "a%3D",
        "PW=",
    ],
)
def test_hostile_commands_take_linear_time(unit: str) -> None:
    text = ("token=x mysql curl " + unit * (100_000 // len(unit))).encode()
    for truncated in (False, True):
        Redactor(SECRET).redact_frame(frame(text, "text", truncated=truncated), None)
