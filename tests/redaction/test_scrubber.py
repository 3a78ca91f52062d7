"""The batch check of many payloads at once does not change what is found."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_proto import from_dict
from a2a_proxy.model.values import Finding, Frame, FrameKind, Severity
from a2a_proxy.model.wire import Direction
from a2a_proxy.redaction import Redactor
from a2a_proxy.redaction.json_walk import redact_json
from a2a_proxy.redaction.protobuf_walk import find_shapes
from a2a_proxy.redaction.protobuf_walk import redact_message as walk_protobuf
from a2a_proxy.redaction.scrubber import Scrubber
from a2a_proxy.redaction.secret_patterns import choose_searches, find_secrets

SECRET = "cAnary7f3Qx9Zk2w"
SEND = "lf.a2a.v1.SendMessageRequest"


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


def redacted(frames: list[Frame], redactor: Redactor | None = None) -> list[Frame]:
    redactor = redactor or Redactor(b"k" * 32)
    sieved = redactor.sieve_frames(frames)
    return [redactor.redact_frame(each, None, sieved) for each in frames]


def test_clean_payloads_are_clean_in_a_batch() -> None:
    frames = [frame(b'{"text":"a word"}'), frame(b"plain", "text"), frame(b"")]
    assert all(after is before for after, before in zip(redacted(frames), frames, strict=True))


@pytest.mark.parametrize("place", [0, 1, 2])
def test_one_secret_among_clean_payloads_is_found(place: int) -> None:
    frames = [frame(b'{"text":"a word"}') for _ in range(3)]
    frames[place] = frame(b'{"token":"%b"}' % SECRET.encode())
    done = redacted(frames)
    assert SECRET.encode() not in b"".join(each.payload for each in done)
    assert [each.redacted for each in done] == [
        ("$.token",) if n == place else () for n in range(3)
    ]


def test_secrets_learned_after_the_batch_check_are_found() -> None:
    redactor = Redactor(b"k" * 32)
    frames = [frame(b'{"text":"echo: %b"}' % SECRET.encode())]
    sieved = redactor.sieve_frames(frames)
    redactor.redact_frame(frame(b'{"password":"%b"}' % SECRET.encode()), None)
    assert SECRET.encode() not in redactor.redact_frame(frames[0], None, sieved).payload


def test_a_known_secret_is_found_in_every_payload() -> None:
    redactor = Redactor(b"k" * 32)
    redactor.redact_frame(frame(b'{"password":"%b"}' % SECRET.encode()), None)
    for shift in range(9):
        frames = [
            frame(b"x" * shift, "text"),
            frame(b"said " + SECRET.encode(), "text"),
            frame(b"end", "text"),
        ]
        assert SECRET.encode() not in b"".join(each.payload for each in redacted(frames, redactor))


def test_a_secret_known_only_by_its_field_is_found() -> None:
    push = {"url": "http://127.0.0.1/hook", "token": SECRET}
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hello"}]}
    value = {"message": message, "configuration": {"taskPushNotificationConfig": push}}
    sends = [
        frame(from_dict("1.0", "SendMessageRequest", each).SerializeToString(), SEND)
        for each in ({"message": message}, value)
    ]
    assert SECRET.encode() in sends[1].payload
    plain, done = redacted(sends)
    assert plain is sends[0]
    assert SECRET.encode() not in done.payload
    assert done.redacted == ("configuration.task_push_notification_config.token",)


def test_unparsable_protobuf_is_unchanged() -> None:
    broken = frame(b"\x12\xff", SEND)
    assert redacted([broken])[0] is broken


def test_findings_between_frames_are_skipped() -> None:
    redactor = Redactor(b"k" * 32)
    finding = Finding("X", Severity.INFO, 1, f"password={SECRET}")
    clean, secret = frame(b"plain", "text"), frame(b'{"token":"%b"}' % SECRET.encode())
    assert redactor.sieve_frames([finding, clean]) == redactor.sieve_frames([clean])
    assert redactor.sieve_frames([clean]) != redactor.sieve_frames([finding, secret])
    assert redactor.sieve_frames([finding, secret]) == redactor.sieve_frames([secret])


_WORDS = [
    "token", "access_token", "tokens", "secret", "clientSecret", "DB-PASSWORD", "passwd", "pwd",
    "pw", "pass word", "passphrase", "pass_code", "credentials", "Authorization", "cookies",
    "bearer", "api_key", "apiKeys", "privateKey", "jwt", "auth", "pass", "userPass", "pin", "otp",
    "otp_code", "otpValue", "session_id", "sessionIds", "X-Session-Id", "clientAssertion",
    "code-verifier", "tokenValue", "api_key_value", "connectionString", "connection strings",
    "X-Vendor-Key", "HOUSE_KEY", "x-jwt-assertion", "x-auth", "X-Passcode",
]  # fmt: skip
_PLAIN = [
    "a",
    "name",
    "key",
    "value",
    "Name",
    "Value",
    "grant_type",
    "code",
    "assertion",
    "logprob",
    "bytes",
    "required",
]
_PLAIN += ["params", "metadata", "properties", "flows", "security", "schemes", "text"]
_NAMES = st.sampled_from(_WORDS + _PLAIN)
_SCALARS = (
    st.sampled_from(
        [
            "",
            "hunter22",
            "x y",
            SECRET,
            "4711",
            "Bearer " + SECRET,
            SECRET * 12,
            "authorization_code",
            "x:jwt-bearer",
        ]
    )
    | _NAMES
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.booleans()
    | st.none()
)
_VALUES = st.recursive(
    _SCALARS | st.tuples(_NAMES, _SCALARS).map(list),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=4),
    max_leaves=10,
)


@given(_VALUES, st.sampled_from([None, 1]), st.integers(0, 40))
@settings(max_examples=300, deadline=None)
def test_only_suspicious_text_is_replaced(value: Any, indent: int | None, missing: int) -> None:
    """With any names and nesting: JSON, JSON in a string, cut JSON, Struct and ListValue."""
    text = json.dumps(value, indent=indent).encode()
    for data in (text, json.dumps({"text": text.decode()}).encode(), text[: len(text) - missing]):
        assert redact_json(data, Scrubber(b"k" * 32).redact_string)[0] == data or choose_searches(
            data
        )
    struct = from_dict("1.0", "Part", {"data": value}).SerializeToString()
    new = walk_protobuf(
        struct, find_shapes("lf.a2a.v1.Part")[0], Scrubber(b"k" * 32).redact_string
    )[0]
    assert new == struct or choose_searches(struct)


def test_a_string_of_six_bytes_is_searched_and_a_shorter_one_is_a_secret_by_its_name() -> None:
    scrubber = Scrubber(b"k" * 32)
    assert scrubber.redact_string(b"pwd=xy", None, False) == b"pwd=" + scrubber.make_label(b"xy")
    assert scrubber.redact_string(b"pwd=x", None, False) is None
    assert scrubber.redact_string(b"pwd=x", None, True) == b"pwd=" + scrubber.make_label(b"x")
    assert scrubber.redact_string(b"x1", "password", False) == scrubber.make_label(b"x1")
    scrubber.learn_secret(b"h8nt3r")
    assert scrubber.redact_string(b"h8nt3r", None, False) == scrubber.make_label(b"h8nt3r")
    assert scrubber.redact_string(b"", "password", False) is None


@given(st.text("0123456789abcdef-", max_size=200))
@settings(max_examples=300, deadline=None)
def test_ids_without_further_characters_hold_no_secret(text: str) -> None:
    """The sieve lets such text pass without a search: UUIDs and numbers are most of the short
    texts."""
    assert not choose_searches(text.encode())
    assert find_secrets(text.encode()) == []
