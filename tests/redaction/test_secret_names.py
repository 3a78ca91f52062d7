"""Secrets found by the names above and beside them: numbers, nested values, pairs, forms; and what
stays."""

from __future__ import annotations

import json
import struct
from typing import Any

import pytest

from a2a_proto import from_dict
from a2a_proxy.model.values import Binding, Exchange, Frame, FrameKind
from a2a_proxy.model.wire import Direction
from a2a_proxy.redaction import Redactor, make_label
from a2a_proxy.redaction.json_hiding import hide_json_values
from a2a_proxy.redaction.payload_paths import compile_paths

KEY = b"a key for tests, 32 bytes long."
SECRET = "cAnary7f3Qx9Zk2w"
NUMBER = 73512345678901
SHORT = "cA7f3Qx"
STREAM = "lf.a2a.v1.StreamResponse"
CRLF = "\r\n"


def frame(payload: bytes, schema: str = "json", **more: Any) -> Frame:
    place: dict[str, Any] = {
        "direction": Direction.TO_CLIENT,
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


def exchange(**more: Any) -> Exchange:
    return Exchange(id=1, connection=1, stream=1, binding=Binding.JSONRPC, started=1, **more)


def protobuf(value: Any) -> Frame:
    """Return a frame with the value as a member of metadata."""
    message = {"message": {"metadata": {"m": value}}}
    return frame(from_dict("1.0", "StreamResponse", message).SerializeToString(), STREAM)


NAMES = [
    "jwt",
    "accessJwt",
    "auth",
    "X-Auth",
    "pass",
    "userPass",
    "DB_PASS",
    "pw",
    "passcode",
    "sessionId",
    "session_id",
    "X-Session-Id",
    "clientAssertion",
    "code_verifier",
    "tokenValue",
    "apiKeyValue",
    "api_key_value",
    "connectionString",
]
LISTS = [
    "tokens",
    "apiKeys",
    "secrets",
    "passwords",
    "password",
    "credentials",
    "apiKey",
    "jwt",
    "auth",
    "cookies",
    "accessTokens",
    "sessionIds",
]
HIDDEN: dict[str, Any] = {
    **{name: {name: SECRET} for name in NAMES},
    **{f"{name} short": {name: SHORT} for name in ("pin", "otp", "PIN", "totp")},
    **{f"{name} list": {name: ["", SECRET, None, True]} for name in LISTS},
    "list of objects": {"password": [[{"q": SECRET}]]},
    "object": {"credentials": {"pw": SECRET, "n": {"z": [SECRET]}}},
    "object of tokens": {"tokens": {"access": SECRET, "expires": 3600}},
    "number": {"apiKey": NUMBER},
    "numbers": {"password": [NUMBER, 1]},
    "number below": {"credentials": {"user": {"id": NUMBER}}},
    "pin": {"pin": int(str(NUMBER)[:9])},
    "pair": {"name": "DB_PASSWORD", "value": SECRET},
    "pair, value first": {"value": SECRET, "name": "DB_PASSWORD"},
    "pair with key": {"key": "X-Vendor-Key", "value": SECRET},
    "pair with an object": {"name": "DB_PASSWORD", "value": {"x": [SECRET]}},
    "pair with a number": {"value": NUMBER, "key": "apiKey"},
    "environment": [
        {"name": "HOUSE_KEY", "value": SECRET},
        {"Name": "API_SECRET", "Value": SECRET},
    ],
    "array": ["Authorization", SECRET],
    "array of arrays": [
        ["Authorization", f"Bearer {SECRET}"],
        ["X-Api-Key", SECRET],
        ["Accept", "y"],
    ],
    "array with a name": {"field": ["password", SECRET]},
    "grant": {"grant_type": "authorization_code", "code": SECRET},
    "assertion": {"assertion": SECRET, "grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer"},
    "grant with a verifier": {"code": SECRET, "code_verifier": "x"},
    "property": {"properties": {"password": SECRET}},
    "form": {
        "text": (
            f'--b{CRLF}Content-Disposition: form-data; name="password"{CRLF * 2}{SECRET}{CRLF}--b--'
        )
    },
    "JSON in a string": {"text": json.dumps({"password": [SECRET], "sessionId": SECRET})},
    "number in a text": {"text": f'refused: {{"apiKey": {NUMBER}}}'},
    "query in a text": {
        "text": f"http://h/?session={SECRET}&sid={SECRET}&jwt={SECRET}&assertion={SECRET}&otp={SHORT}"
    },
    "header in a text": {
        "text": (
            f"X-Session: {SECRET}\nX-JWT-Assertion: {SECRET}\nX-Auth: {SECRET}\nX-Tokens: {SECRET}"
        )
    },
}


def is_gone(payload: bytes) -> bool:
    traces = (SECRET.encode(), SHORT.encode(), str(NUMBER)[:9].encode(), struct.pack("<d", NUMBER))
    return not any(trace in payload for trace in (*traces, struct.pack("<d", int(str(NUMBER)[:9]))))


@pytest.mark.parametrize("place", HIDDEN)
@pytest.mark.parametrize("how", ["plain", "indented", "cut", "broken", "protobuf"])
def test_values_of_secret_names_are_hidden(place: str, how: str) -> None:
    """In JSON, also without its end or with one end too many, and in a Struct."""
    text = json.dumps({"a": HIDDEN[place]}, indent=1 if how == "indented" else None).encode()
    before = {
        "cut": frame(text[:-1], truncated=True),
        "broken": frame(text + b"}"),
        "protobuf": protobuf(HIDDEN[place]),
    }
    done = Redactor(KEY).redact_frame(before.get(how, frame(text)), None)
    assert is_gone(done.payload)
    assert done.redacted
    assert how not in ("plain", "indented") or json.loads(done.payload)


CLEAN: list[Any] = [
    {
        "usage": {
            "tokens": 12,
            "token": 7,
            "total_tokens": 512,
            "maxTokens": 9,
            "prompt_tokens_details": {"cached": 3},
        }
    },
    {"total_tokens": "512", "metadata": {"completion_tokens": "1,024"}},
    {"token": "the", "logprob": -0.1},
    {
        "content": [
            {
                "token": " cat",
                "bytes": [32],
                "top_logprobs": [{"token": "dog", "logprob": -2, "bytes": None}],
            }
        ]
    },
    {"tokens": ["the", " cat"], "token_logprobs": [-1, -2]},
    {"tokens": [{"token": "a", "logprob": -1}, {"token": "b", "logprob": -2}]},
    {"error": {"code": -32700, "message": "x"}, "code": "ABC123"},
    {
        "otp": {"required": "yes"},
        "pin": {"x": "left"},
        "session": {"id": "x", "user": "bob"},
        "auth": {"type": "none"},
    },
    {"pin": "abc", "otp": "1234567890123"},
    {
        "author": "bob smith",
        "authority": "a",
        "authorizationUrl": "http://h/a",
        "passage": "a b c",
        "passed": "all",
    },
    {
        "pinned": "yes",
        "opinion": "good",
        "tokenizer": "bpe-200",
        "tokenType": "Bearer",
        "bypass": "north1",
    },
    {
        "required": ["password", "address2"],
        "a": ["apiKey", "displayName"],
        "schemes": ["apiKey", "oauth2"],
    },
    {"columns": ["password", "username"], "redacted": ["$.params.token", "$.params.credentials"]},
    {
        "type": "object",
        "properties": {"password": {"type": "string", "title": "Yours"}},
        "required": ["password"],
    },
    {
        "securitySchemes": {"apiKey": {"type": "apiKey", "in": "header", "name": "X-API-Key"}},
        "security": [{"token": ["x"]}],
    },
    {"securityRequirements": [{"schemes": {"apiKey": {"list": ["read"]}}}]},
    {
        "flows": {
            "password": {"tokenUrl": "u", "scopes": {"a": "b"}},
            "clientCredentials": {"tokenUrl": "u"},
        }
    },
    {
        "credentials": {
            "schemes": ["Bearer"],
            "scheme": "Basic",
            "tokenUrl": "u",
            "nextPageToken": "p2",
        }
    },
    {"authentication": {"schemes": ["Bearer"]}, "nextPageToken": ["x"]},
    {"auth": "oauth2", "pass": 12, "fail": 3},
    {"password": None, "secret": False, "apiKeys": [], "credentials": {"ok": True, "n": None}},
    [{"key": "color", "value": "abc-123"}, {"name": "total_tokens", "value": 512}],
    {"stop_tokens": ["</s>"], "special_tokens": ["<pad>"], "assertion": "x equals y1234"},
    {"text": "use name=password\n\nThen go on; tokens=512, pass=12"},
]


@pytest.mark.parametrize("value", CLEAN)
def test_values_of_innocent_names_stay(value: Any) -> None:
    """The same object is returned."""
    wrapped = {"jsonrpc": "2.0", "id": 1, "result": {"artifacts": [{"parts": [{"data": value}]}]}}
    for clean in (
        frame(json.dumps(value).encode()),
        frame(json.dumps(wrapped).encode()),
        protobuf(value),
    ):
        assert Redactor(KEY).redact_frame(clean, None) is clean


@pytest.mark.parametrize("how", ["plain", "cut", "protobuf"])
def test_the_session_id_of_adk_stays(how: str) -> None:
    """It names a conversation, as the context id does: `ADK$app$user$session`. Other session ids
    are hidden."""

    def payload(value: Any) -> Frame:
        text = json.dumps({"metadata": value}).encode()
        return (
            protobuf(value)
            if how == "protobuf"
            else frame(text[:-1], truncated=True)
            if how == "cut"
            else frame(text)
        )

    redactor = Redactor(KEY)
    clean = payload({"adk_session_id": SECRET, "adk_app_name": "app"})
    assert redactor.redact_frame(clean, None) is clean
    for name in ("session_id", "adk_session_token", "gadk_session_ids_token", "web_session_id"):
        done = redactor.redact_frame(payload({"adk_session_id": "s", name: SECRET}), None)
        assert is_gone(done.payload), name
    for header in (b"adk-session-id", b"cookie"):
        done = redactor.redact_exchange(
            exchange(request_headers=((header, b"adk_session_id=" + SECRET.encode()),))
        )
        assert is_gone(done.request_headers[0][1])


@pytest.mark.parametrize(
    "value",
    [
        {"method": "tasks/send", "params": {"id": "t", "sessionId": "s-12345678", "message": {}}},
        {"result": {"id": "t", "sessionId": "s-12345678"}},
        [{"result": {"task": {"sessionId": "s-12345678"}}}],
        {"id": "t", "sessionId": "s-12345678"},
    ],
)
def test_session_ids_of_0_1_stay(value: Any) -> None:
    """They are hidden in other objects, but not learned, because the same id may be a context's."""
    redactor = Redactor(KEY)
    hidden = json.dumps(
        {"params": {"sessionId": "s-12345678", "metadata": {"sessionId": "s-12345678"}}}
    ).encode()
    assert redactor.redact_frame(frame(hidden), None).redacted == ("$.params.metadata.sessionId",)
    assert redactor.redact_exchange(
        exchange(request_headers=((b"x-session-id", b"s-12345678"),))
    ).redacted
    clean = frame(json.dumps(value).encode())
    assert redactor.redact_frame(clean, None) is clean


@pytest.mark.parametrize(
    "name",
    [
        "X-Auth",
        "DPoP",
        "X-Session",
        "X-Session-Id",
        "X-Sid",
        "Ory-Kratos-Session",
        "X-JWT-Assertion",
        "X-Passcode",
        "X-OTP",
        "X-PIN",
        "X-Tokens",
        "X-Session-Bin",
    ],
)
def test_headers(name: str) -> None:
    """Headers of sessions and proofs are redacted."""
    done = Redactor(KEY).redact_exchange(
        exchange(request_headers=((name.encode(), SECRET.encode()),))
    )
    assert SECRET.encode() not in done.request_headers[0][1]


@pytest.mark.parametrize(
    ("value", "left"),
    [
        (f"bearer, {SECRET}", f"bearer, {make_label(KEY, SECRET)}"),
        (f"v1.x, base64url.bearer.authorization.k8s.io.{SECRET}", None),
        *(
            (f"a2a.v1, {word}{SECRET}", f"a2a.v1, {word}{make_label(KEY, SECRET)}")
            for word in ("bearer.", "Bearer-", "jwt_", "access_token.", "openai-insecure-api-key.")
        ),
        ("authorization.bearer." + SECRET, None),
        ("a2a.v1, 5f0c1b7ae2d94c6f8a7b3e21", None),
        *((names, names) for names in ("graphql-ws, bearer", "graphql-transport-ws, v4.stomp")),
        *((name, name) for name in ("com.example.protocol.v1", "actioncable-v1-json")),
    ],
)
def test_tokens_as_subprotocols(value: str, left: str | None) -> None:
    """The item after `bearer` is a token, not the name of a protocol."""
    raw = ((b"Sec-WebSocket-Protocol", value.encode()),)
    clean = Redactor(KEY).redact_exchange(exchange(request_headers=raw)).request_headers[0][1]
    assert SECRET.encode() not in clean
    assert clean == left.encode() if left is not None else clean != value.encode()


@pytest.mark.parametrize(
    "name",
    [
        "X-RateLimit-Remaining-Tokens",
        "Access-Control-Allow-Credentials",
        "Author",
        "X-Pinned",
        "Session",
    ],
)
def test_innocent_headers(name: str) -> None:
    """Counts and switches stay."""
    clean = exchange(request_headers=((name.encode(), b"149984"),))
    assert Redactor(KEY).redact_exchange(clean) is clean


@pytest.mark.parametrize("name", ["sid", "session", "jwt", "otp", "assertion", "sessionId"])
def test_queries(name: str) -> None:
    """Parameters of logins and sessions are redacted."""
    done = Redactor(KEY).redact_exchange(exchange(target=f"/x?{name}={SHORT}&a=1"))
    assert done.target == f"/x?{name}={make_label(KEY, SHORT)}&a=1"


def test_only_long_numbers_are_searched_for_elsewhere() -> None:
    """As with strings, common numbers are hidden in their place only."""
    redactor = Redactor(KEY)
    done = redactor.redact_frame(
        frame(f'{{"apiKey": {NUMBER}, "secret": 123456, "pin": 4711}}'.encode()), None
    )
    assert done.redacted == ("$.apiKey", "$.secret", "$.pin")
    assert (
        done.payload
        == f'{{"apiKey": "{make_label(KEY, str(NUMBER))}", "secret": '
        f'"{make_label(KEY, "123456")}", '.encode()
        + (f'"pin": "{make_label(KEY, "4711")}"}}'.encode())
    )
    assert (
        redactor.redact_text(f"key {NUMBER} of 123456")
        == f"key {make_label(KEY, str(NUMBER))} of 123456"
    )


def test_a_number_has_one_label_in_json_and_protobuf() -> None:
    """The label is derived from the digits, not from the encoding. All digits of JSON integers
    count."""
    text = Redactor(KEY).redact_frame(frame(b'{"apiKey": 735.0}'), None).payload
    data = Redactor(KEY).redact_frame(protobuf({"apiKey": 735}), None).payload
    assert make_label(KEY, "735").encode() in text
    assert make_label(KEY, "735").encode() in data
    long = b"735123456789012345678901"
    places = compile_paths(["$.apiKey"])
    assert places is not None
    assert (
        hide_json_values(b'{"apiKey":%b}' % long, places, lambda each: each)[0]
        == b'{"apiKey":"%b"}' % long
    )


def test_names_of_a_card_hide_no_object() -> None:
    """A card that names its key `data` makes strings of that name secret, not whole payloads."""
    redactor = Redactor(KEY)
    redactor.learn_card(
        {"securitySchemes": {"k": {"type": "apiKey", "in": "query", "name": "data"}}}
    )
    done = redactor.redact_frame(
        frame(json.dumps({"data": SECRET, "x": {"data": {"y": "stays"}}}).encode()), None
    )
    assert json.loads(done.payload) == {
        "data": make_label(KEY, SECRET),
        "x": {"data": {"y": "stays"}},
    }


@pytest.mark.parametrize(
    "unit",
    [
        '{"name":"token","value":',
        '["token",',
        '{"token":',
        "name=a form-data;",
        "form-data; name=token\n\n",
        '"token":1,',
    ],
)
def test_hostile_payloads_take_linear_time(unit: str) -> None:
    """Hundreds of thousands of bytes: with quadratic time, this test would not end."""
    text = ("{" if unit.startswith('"') else "") + "grant value" + unit * (300_000 // len(unit))
    for start in ("", '["jwt",'):
        Redactor(KEY).redact_frame(frame((start + text).encode()), None)
        Redactor(KEY).redact_frame(frame((start + text).encode(), STREAM), None)


def test_only_the_secret_part_of_a_form_is_replaced() -> None:
    """The part ends at the next boundary."""
    head = "Content-Disposition: form-data; name="
    form = (
        f'--b{CRLF}{head}"password"{CRLF * 2}{SECRET}{CRLF}'
        f'--b{CRLF}{head}"city"{CRLF * 2}Paris{CRLF}--b--'
    )
    clean = Redactor(KEY).redact_text(form)
    assert SECRET not in clean
    assert clean.endswith(form.partition(SECRET)[2])
