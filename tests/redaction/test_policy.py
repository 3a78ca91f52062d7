"""Policies: their words, both encodings, and one label per secret everywhere."""

from __future__ import annotations

import json
from typing import Any

import pytest
from google.protobuf import json_format

from a2a_proto import message_class
from a2a_proxy.model.values import Binding, Exchange, Frame, FrameKind
from a2a_proxy.model.wire import Direction
from a2a_proxy.redaction import Redactor, create_redactor, make_label
from a2a_proxy.redaction.payload_paths import canonicalize_place, compile_paths
from a2a_proxy.redaction.policy import PolicyError, policy_of, words_of
from support_wire import reload

KEY = b"a key for tests, 32 bytes long."
TEXT = "Plan a day in Lisbon"
MESSAGE = {
    "messageId": "m-1",
    "contextId": "c-1",
    "role": "ROLE_USER",
    "parts": [
        {"text": TEXT},
        {
            "data": {
                "ssn": 123456789,
                "deep": [{"Home_Address": {"city": "Lisbon", "flat": 4.5, "own": True}}],
            }
        },
    ],
    "metadata": {"customer": "acme-4711", "plan": "gold"},
}


def frame(payload: bytes, schema: str = "json", **more: Any) -> Frame:
    values: dict[str, Any] = {
        "direction": Direction.TO_AGENT,
        "kind": FrameKind.REQUEST,
        "began": 1,
        "at": 2,
        **more,
    }
    return Frame(
        1, 1, 0, start=0, end=len(payload), payload=payload, size=len(payload),
        schema=schema, **values,
    )  # fmt: skip


def as_json() -> Frame:
    call = {"jsonrpc": "2.0", "id": 7, "method": "SendMessage", "params": {"message": MESSAGE}}
    return frame(json.dumps(call).encode(), context_id="c-1", message_id="m-1", rpc_id="7")


def as_protobuf() -> Frame:
    request = json_format.ParseDict(
        {"message": MESSAGE}, message_class("1.0", "SendMessageRequest")()
    )
    return frame(
        request.SerializeToString(),
        "lf.a2a.v1.SendMessageRequest",
        context_id="c-1",
        message_id="m-1",
    )


def message_of(clean: Frame) -> Any:
    """Return the message of a frame of any encoding as JSON."""
    if clean.schema == "json":
        return json.loads(clean.payload)["params"]["message"]
    request = message_class("1.0", "SendMessageRequest").FromString(clean.payload)
    return json_format.MessageToDict(request)["message"]


def made(*words: str) -> Redactor:
    return create_redactor(KEY, policy_of(words))


@pytest.fixture(params=[as_json, as_protobuf], ids=["json", "protobuf"])
def one(request: pytest.FixtureRequest) -> Frame:
    """The same message in each encoding."""
    found: Frame = request.param()
    return found


def named(value: str) -> str:
    return make_label(KEY, value)


@pytest.mark.parametrize(
    "path", ["message.parts.text", "parts[0].text", "$..text", "$..parts[*].text", "*.parts.text"]
)
def test_a_path_reaches_both_encodings(one: Frame, path: str) -> None:
    """The value there becomes a label, everything else stays, and the frame lists the path."""
    clean = made(path if path.startswith("$") else f"path:{path}").redact_frame(one, None)
    message = message_of(clean)
    assert message["parts"][0] == {"text": named(TEXT)}
    assert {**message, "parts": message["parts"][1:]} == {**MESSAGE, "parts": MESSAGE["parts"][1:]}
    assert [each.rpartition("message.")[2].replace("[0]", "") for each in clean.redacted] == [
        "parts.text"
    ]
    assert clean.size == one.size


def test_a_path_redacts_everything_below_it(one: Frame) -> None:
    """Strings and numbers are replaced; names, true and null stay. A number has the same label as
    its text."""
    message = message_of(made("member:ssn", "$..homeAddress").redact_frame(one, None))
    home = {"city": named("Lisbon"), "flat": named("4.5"), "own": True}
    assert message["parts"][1]["data"] == {
        "ssn": named("123456789"),
        "deep": [{"Home_Address": home}],
    }
    assert message["parts"][0] == {"text": TEXT}


def test_an_index_selects_one_element() -> None:
    """In JSON only: elements of protobuf fields are not distinguished, so all of them are
    replaced."""
    call = as_json()
    assert message_of(made("$.params.message.parts[1].text").redact_frame(call, None)) == MESSAGE
    assert message_of(made("$.params.message.parts[0].text").redact_frame(call, None))["parts"][
        0
    ] == {"text": named(TEXT)}


def test_patterns_and_exceptions(one: Frame) -> None:
    """A pattern matches anywhere in texts; its first group, if any, is replaced. `keep` makes
    exceptions."""
    clean = message_of(made("regex:acme-\\d+").redact_frame(one, None))
    assert clean["metadata"] == {"customer": named("acme-4711"), "plan": "gold"}
    clean = message_of(made("regex:acme-(\\d+)").redact_frame(one, None))
    assert clean["metadata"]["customer"] == f"acme-{named('4711')}"
    for kept in ("regex:acme-47\\d\\d", "member:customer", "path:message.metadata"):
        assert (
            message_of(made("regex:acme-\\d+", f"keep:{kept}").redact_frame(one, None)) == MESSAGE
        )


def test_labels_are_the_same_in_every_column(one: Frame) -> None:
    """An id replaced in a payload has the same label in the columns of the frame and of its
    exchange."""
    redact = made("path:message.contextId", "member:messageId")
    clean = redact.redact_frame(one, None)
    assert (clean.context_id, clean.message_id) == (named("c-1"), named("m-1"))
    exchange = Exchange(1, 1, 0, Binding.JSONRPC, 1, context_id="c-1", task_id="t-1")
    assert (
        redact.redact_exchange(exchange).context_id,
        redact.redact_exchange(exchange).task_id,
    ) == (
        named("c-1"),
        "t-1",
    )


def test_a_second_redaction_changes_nothing(one: Frame) -> None:
    """Labels stay: the same policy changes nothing at export."""
    redact = made("pii", "strict", "$..text", "member:customer", "regex:gold")
    clean = redact.redact_frame(one, None)
    assert clean != one
    again = made("pii", "strict", "$..text", "member:customer", "regex:gold").redact_frame(
        clean, None
    )
    assert again.payload == clean.payload


def test_credentials_are_redacted_by_every_policy_except_none(one: Frame) -> None:
    """A policy adds to the default; only `keep` removes something from it."""
    call = frame(b'{"params":{"token":"cAnary7f3Qx9Zk2w","houseKey":"cAnary-house-key-1"}}')
    assert b"cAnary7" not in made("regex:zzz").redact_frame(call, None).payload
    assert b"cAnary7" in made("none").redact_frame(call, None).payload
    assert b"cAnary7" in made("keep:member:token").redact_frame(call, None).payload
    assert b"cAnary7" in made("keep:regex:cAnary.*").redact_frame(call, None).payload
    assert b"cAnary7" in made("keep:path:$.params.token").redact_frame(call, None).payload


def test_headers() -> None:
    """Headers are replaced by name, with `*`; `strict` keeps only headers of the protocol."""
    heads = (
        (b"X-Tenant-Id", b"acme-4711"),
        (b"X-Color", b"red"),
        (b"Content-Type", b"application/json"),
        (b"Authorization", b"Bearer cAnary7f3Qx9Zk2w"),
    )
    exchange = Exchange(
        1, 1, 0, Binding.JSONRPC, 1, request_headers=heads, error="unknown tenant acme-4711"
    )
    clean = made("header:x-tenant-*").redact_exchange(exchange)
    secret = f"Bearer {named('cAnary7f3Qx9Zk2w')}".encode()
    assert [value for _, value in clean.request_headers] == [
        named("acme-4711").encode(), b"red", b"application/json", secret
    ]  # fmt: skip
    assert clean.error == f"unknown tenant {named('acme-4711')}"
    assert clean.redacted == ("error", "header:x-tenant-id", "header:authorization")
    strict = made("strict", "keep:header:x-color").redact_exchange(exchange)
    assert [value for _, value in strict.request_headers] == [
        named("acme-4711").encode(), b"red", b"application/json", secret
    ]  # fmt: skip
    assert (
        dict(made("strict").redact_exchange(exchange).request_headers)[b"X-Color"]
        == named("red").encode()
    )
    assert (
        dict(made("keep:header:authorization").redact_exchange(exchange).request_headers)[
            b"Authorization"
        ]
        == heads[3][1]
    )


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        ("write to ana.silva+x@mail.example.org today", "ana.silva+x@mail.example.org"),
        ("call +351 21 000 0000 now", "+351 21 000 0000"),
        ("pay to DE89 3704 0044 0532 0130 00.", "DE89 3704 0044 0532 0130 00"),
        ("card 4111 1111 1111 1111 ok", "4111 1111 1111 1111"),
        ("ssn 536-90-4399", "536-90-4399"),
    ],
)
def test_personal_data_is_found(text: str, taken: str) -> None:
    """Personal data is found by its form, if its check digits are valid."""
    assert made("pii").redact_text(text) == text.replace(taken, named(taken))
    assert made().redact_text(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "DE89 3704 0044 0532 0130 01",
        "4111 1111 1111 1112",
        "0000 0000 0000 0000",
        "2026-11-22T05:00:00.123456Z",
        "7604af5e-efd3-449c-94db-8950136d0e66",
        "000-12-3456",
        "1732251600123456789",
        "@mention and a@b",
        "grpc://127.0.0.1:50051",
    ],
)
def test_lookalikes_of_personal_data_stay(text: str) -> None:
    """Wrong check digits, times, ids and addresses stay."""
    assert made("pii").redact_text(text) == text


def test_strict_redacts_random_looking_words() -> None:
    """Keys without a revealing name are replaced, but not ids, digests, paths and names in camel
    case."""
    key = "Zq8Rk3VtY0pLw7Hs2Nd5Xb9Mc4"
    assert made("strict").redact_text(f"use {key} here") == f"use {named(key)} here"
    for plain in (
        "7604af5e-efd3-449c-94db-8950136d0e66",
        "a" * 64,
        "0123456789abcdef" * 4,
        "SendStreamingMessageRequest1",
        "TaskPushNotificationConfigV2Request",
        "type.googleapis.com/lf.a2a.v1.SendMessageRequest",
        "/extensions/traceability/v1/TraceData2Json",
    ):
        assert made("strict").redact_text(plain) == plain


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["hedaer:x"], "'hedaer:x' is not a redaction policy"),
        (["regex:("], "not a regular expression"),
        (["regex:x*"], "also matches the empty string"),
        (["$"], "is not a path: it does not name a value"),
        (["path:a b"], "is not a path"),
        (["path:a.."], "is not a path: it does not name a value"),
        (["header:*_*"], "is not a name"),
        (["none", "pii"], "cannot be combined"),
        (["none", "member:x"], "cannot be combined"),
        (["keep:none"], "'keep:none' is not a redaction policy"),
    ],
)
def test_invalid_policies_are_refused(words: list[str], said: str) -> None:
    """The error has a clear message and a hint with valid input."""
    with pytest.raises(PolicyError, match=said) as caught:
        policy_of(words)
    assert caught.value.hint


def test_policy_files_and_words_are_equivalent() -> None:
    """A file is converted to words; the policy returns its words in a fixed order."""
    tables = {
        "preset": ["pii", "strict"],
        "metadata-only": True,
        "headers": ["x-tenant"],
        "members": ["ssn"],
        "paths": ["$..address", "message.parts.text"],
        "patterns": ["CUST-[0-9]+"],
        "keep": {"headers": ["x-color"], "patterns": ["CUST-0+"]},
    }
    words = ["strict", "pii", "metadata-only", "header:x-tenant", "member:ssn", "path:$..address"]
    words += [
        "path:message.parts.text",
        "regex:CUST-[0-9]+",
        "keep:header:x-color",
        "keep:regex:CUST-0+",
    ]
    policy = policy_of(words_of(tables))
    assert list(policy.words) == words
    assert policy_of(reversed(policy.words)).words == (*words[:5], words[6], words[5], *words[7:])
    assert policy_of(["default"]).plain
    for wrong in (
        {"heders": []},
        {"headers": "x"},
        {"preset": "loud"},
        {"metadata-only": 1},
        {"keep": {"x": []}},
    ):
        with pytest.raises(PolicyError):
            words_of(wrong)


@pytest.mark.parametrize(
    "payload",
    [b"[" * 100_000, b'{"a":' * 50_000, b'["x"' * 50_000, b'"' * 99_999, b"{" + b"9" * 99_999],
)
def test_hostile_payloads_take_linear_time(payload: bytes) -> None:
    """With deep nesting and unfinished texts, the walk is bounded and raises nothing."""
    clean = made("$..a", "keep:path:$.b").redact_frame(frame(payload), None)
    assert clean.note == ""


def test_places() -> None:
    """A path matches everything inside its place, but not places that only begin with the same
    characters."""
    deep = compile_paths(["$.metadata.*.x"])
    assert deep is not None
    told = {
        "metadata.fields[deep].fields[x]": True,
        "$.metadata.deep.x.y[3]": True,
        "$.metadata.x": False,
    }
    told |= {
        "$.a.metadata.deep.x": False,
        "$.metadatas.deep.x": False,
        '$.metadata["de/ep"].x': True,
    }
    assert {each: bool(deep.match(canonicalize_place(each))) for each in told} == told


def test_a_snapshot_keeps_known_secrets() -> None:
    """A recorder that continues a session knows the secrets of the previous recorder."""
    first = made("header:x-tenant")
    first.redact_exchange(
        Exchange(1, 1, 0, Binding.JSONRPC, 1, request_headers=((b"X-Tenant", b"acme-4711"),))
    )
    second = made("header:x-tenant")
    second.restore(reload(first.save()))
    assert second.redact_text("for acme-4711") == f"for {named('acme-4711')}"
