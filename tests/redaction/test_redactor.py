"""A canary secret in every place that holds credentials: no output contains it."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode, urlsafe_b64encode
from itertools import product
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
from google.protobuf import json_format
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_proto import message_class
from a2a_proxy.model.values import (
    ArtifactState,
    Binding,
    Connection,
    ConnectionTls,
    Dialect,
    EventKind,
    Exchange,
    Finding,
    Frame,
    FrameKind,
    Severity,
    Task,
)
from a2a_proxy.model.wire import CertificateFacts, ClientProcess, Direction, TlsFacts
from a2a_proxy.protocol.errors import error_line, message_with_details
from a2a_proxy.redaction import RedactionPolicy, Redactor, make_label
from a2a_proxy.redaction.scrubber import Scrubber
from a2a_proxy.redaction.secret_names import secret_member
from support_thin import thin
from support_wire import reload

KEY = b"a key for tests, 32 bytes long."
CANARY = "cAnary-7f3Q/x+9Zk=2w"
"""A secret with characters that each encoding treats differently."""
PLAIN = "cAnary7f3Qx9Zk2w"


def frame(payload: bytes, schema: str = "json", **more: Any) -> Frame:
    values: dict[str, Any] = {"kind": FrameKind.EVENT, "size": len(payload), **more}
    return Frame(
        connection=1,
        exchange=1,
        seq=0,
        direction=Direction.TO_AGENT,
        began=1,
        at=2,
        start=0,
        end=len(payload),
        payload=payload,
        schema=schema,
        **values,
    )


def exchange(**more: Any) -> Exchange:
    return Exchange(id=1, connection=1, stream=1, binding=Binding.JSONRPC, started=1, **more)


def traces(secret: str) -> list[bytes]:
    """Return the forms in which the secret could be read from an encoded observation."""
    raw = secret.encode()
    return [
        raw,
        quote(secret, safe="").encode(),
        json.dumps(secret)[1:-1].encode(),
        b64encode(raw).rstrip(b"="),
        urlsafe_b64encode(raw).rstrip(b"="),
        b64encode(b"\0" + raw)[2:-4],
        b64encode(b"\0\0" + raw)[3:-4],
    ]


def assert_gone(value: object, secret: str = CANARY) -> None:
    """Assert that no form of the secret is in the value or in its msgpack and JSON encodings."""
    outputs = [msgspec.msgpack.encode(value), msgspec.json.encode(value)]
    if isinstance(value, Frame):
        outputs += [value.payload, value.framing.encode(), repr(value).encode()]
    for output in outputs:
        for trace in traces(secret):
            assert trace not in output


def protobuf(line: Any, name: str, value: dict[str, Any]) -> bytes:
    return json_format.ParseDict(value, message_class(line, name)()).SerializeToString()


PUSH_10 = {
    "url": f"https://u:{PLAIN}@h/p?token={PLAIN}",
    "token": CANARY,
    "authentication": {"scheme": "Bearer", "credentials": CANARY},
}
PUSH_03 = {**PUSH_10, "authentication": {"schemes": ["Bearer"], "credentials": CANARY}}


def rpc(method: str, params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": "1", "method": method, "params": params}).encode()


JSON_PLACES = {
    "1.0 send": rpc("SendMessage", {"configuration": {"taskPushNotificationConfig": PUSH_10}}),
    "0.3 send": rpc("message/send", {"configuration": {"pushNotificationConfig": PUSH_03}}),
    "0.3 set": rpc(
        "tasks/pushNotificationConfig/set", {"taskId": "t", "pushNotificationConfig": PUSH_03}
    ),
    "0.1 send": rpc("tasks/send", {"id": "t", "pushNotification": PUSH_03}),
    "REST snake case": json.dumps(
        {"push_notification_config": {"token": CANARY, "client_secret": CANARY}}
    ).encode(),
    "push list answer": json.dumps(
        {"result": {"configs": [PUSH_10, PUSH_10], "nextPageToken": "p2"}}
    ).encode(),
    "0.1 card": json.dumps(
        {"url": "http://h", "authentication": {"schemes": ["b"], "credentials": CANARY}}
    ).encode(),
    "data part": json.dumps(
        {"parts": [{"data": {"a": [{"API-Key": CANARY, "accessToken": CANARY}]}}]}
    ).encode(),
    "metadata": json.dumps(
        {"metadata": {"x.password": CANARY, "refresh_token": CANARY, "PrivateKey": CANARY}}
    ).encode(),
    "cookies": json.dumps(
        {"headers": {"Cookie": f"a={CANARY}; b={CANARY}", "Authorization": f"Bearer {CANARY}"}}
    ).encode(),
    "escaped name": b'{"\\u0074oken":"'
    + CANARY.encode()
    + b'","p\\u0061ssword":"'
    + CANARY.encode()
    + b'"}',
    "JSON in a string": json.dumps(
        {"text": json.dumps({"in": json.dumps({"password": CANARY})})}
    ).encode(),
    "pretty": json.dumps({"a": {"secret": CANARY}}, indent=2).encode(),
    "error text": rpc("x", {"error": {"message": f"bad header Authorization: Bearer {CANARY}"}}),
    "error url": rpc(
        "x", {"message": f"POST https://h/p?access_token={quote(CANARY, safe='')}&x=1 failed"}
    ),
    "error data": rpc("x", {"error": {"data": [{"@type": "t", "metadata": {"token": CANARY}}]}}),
    "missing quote": b'{"a": "x, "token": "' + CANARY.encode() + b'", "b": 1}',
    "missing brace": b'{"token": "' + CANARY.encode() + b'"',
    "not UTF-8": b'{"x":"\xff","token":"' + CANARY.encode() + b'"}',
}


@pytest.mark.parametrize("place", JSON_PLACES)
def test_json_places(place: str) -> None:
    """Members with secret names lose their value at any depth, in any spelling, also in broken
    JSON."""
    payload = JSON_PLACES[place]
    done = Redactor(KEY).redact_frame(frame(payload), None)
    assert_gone(done)
    assert PLAIN.encode() not in done.payload
    assert done.redacted
    assert done.size == len(payload)
    try:
        json.loads(payload)
    except ValueError:
        return
    assert _shape(json.loads(done.payload)) == _shape(json.loads(payload))


def _shape(value: Any) -> Any:
    """Return the value with empty strings."""
    if isinstance(value, dict):
        return {key: _shape(inner) for key, inner in value.items()}
    return (
        [_shape(inner) for inner in value]
        if isinstance(value, list)
        else ""
        if isinstance(value, str)
        else value
    )


@pytest.mark.parametrize("place", JSON_PLACES)
def test_cut_anywhere(place: str) -> None:
    """A payload cut in the middle of a secret shows no useful part of the secret, wherever the cut
    is."""
    payload = JSON_PLACES[place]
    first = payload.find(CANARY.encode())
    for end in range(first + 4 if first >= 0 else 1, len(payload)):
        redactor = Redactor(KEY)
        redactor.redact_frame(frame(payload), None)
        done = redactor.redact_frame(frame(payload[:end], truncated=True, sha256=b"d" * 32), None)
        assert CANARY[:4].encode() not in done.payload
        assert done.payload == payload[:end] or done.sha256 == b""


PROTOBUF_PLACES = [
    (
        "1.0",
        "lf.a2a.v1.SendMessageRequest",
        {"configuration": {"taskPushNotificationConfig": PUSH_10}},
    ),
    ("1.0", "lf.a2a.v1.TaskPushNotificationConfig", {"taskId": "t", **PUSH_10}),
    (
        "1.0",
        "lf.a2a.v1.ListTaskPushNotificationConfigsResponse",
        {"configs": [PUSH_10], "nextPageToken": "p2"},
    ),
    ("0.3", "a2a.v1.SendMessageRequest", {"configuration": {"pushNotification": PUSH_03}}),
    (
        "0.3",
        "a2a.v1.TaskPushNotificationConfig",
        {"name": "tasks/1", "pushNotificationConfig": PUSH_03},
    ),
    (
        "0.3",
        "a2a.v1.CreateTaskPushNotificationConfigRequest",
        {"config": {"pushNotificationConfig": PUSH_03}},
    ),
    (
        "1.0",
        "lf.a2a.v1.StreamResponse",
        {"statusUpdate": {"metadata": {"apiKey": CANARY, "n": {"token": CANARY}}}},
    ),
    (
        "1.0",
        "lf.a2a.v1.StreamResponse",
        {"message": {"parts": [{"data": {"l": [{"password": CANARY}]}}]}},
    ),
    (
        "1.0",
        "lf.a2a.v1.StreamResponse",
        {"message": {"parts": [{"text": f"Authorization: Bearer {CANARY}"}]}},
    ),
    ("0.3", "a2a.v1.StreamResponse", {"task": {"metadata": {"client_secret": CANARY}}}),
]


@pytest.mark.parametrize(("line", "schema", "value"), PROTOBUF_PLACES)
def test_protobuf_places(line: Any, schema: str, value: dict[str, Any]) -> None:
    """Push credentials, Struct members and texts are redacted in every dialect; the rest and
    unknown fields stay."""
    unknown = b"\xfa\x3e\x03abc"
    name = schema.partition("@")[0].rpartition(".")[2]
    payload = protobuf(line, name, value) + unknown
    done = Redactor(KEY).redact_frame(frame(payload, schema), None)
    assert_gone(done)
    assert PLAIN.encode() not in done.payload
    assert done.redacted
    assert done.payload.endswith(unknown)
    parsed = message_class(line, name).FromString(done.payload)
    assert _shape(json_format.MessageToDict(parsed)) == _shape(value)


@pytest.mark.parametrize(("line", "schema", "value"), PROTOBUF_PLACES)
def test_protobuf_cut(line: Any, schema: str, value: dict[str, Any]) -> None:
    """A cut protobuf message is redacted up to its end."""
    payload = protobuf(line, schema.partition("@")[0].rpartition(".")[2], value)
    redactor = Redactor(KEY)
    redactor.redact_frame(frame(payload, schema), None)
    for end in range(len(payload)):
        done = redactor.redact_frame(frame(payload[:end], schema, truncated=True), None)
        assert CANARY[:4].encode() not in done.payload


def _field(number: int, value: bytes | str) -> bytes:
    """Return a length-delimited protobuf field with at most 127 bytes."""
    data = value if isinstance(value, bytes) else value.encode()
    return bytes([number << 3 | 2, len(data)]) + data


_PUSH_OF_PUSH = _field(2, "https://h/p") + _field(3, CANARY)
_AUTHENTICATION = _field(1, "Bearer") + _field(2, CANARY)
FOREIGN_PLACES = {
    "configuration in another field": (
        "a2a.v1.CreateTaskPushNotificationConfigRequest",
        _field(1, "t") + _field(5, _field(1, "c") + _field(2, _PUSH_OF_PUSH) + _field(3, "t")),
    ),
    "configuration of 1.0": (
        "a2a.v1.CreateTaskPushNotificationConfigRequest",
        _field(9, _field(4, "http://h/" + "p" * 30) + _field(5, CANARY)),
    ),
    "authentication": ("lf.a2a.v1.GetTaskRequest", _field(1, "t") + _field(9, _AUTHENTICATION)),
    "nested in a known field": (
        "lf.a2a.v1.SendMessageRequest",
        _field(3, _field(1, "text/plain")) + _field(2, _field(14, _field(6, _AUTHENTICATION))),
    ),
    "in a Struct, which it is not": ("a2a.v1.SendMessageRequest", _field(3, _PUSH_OF_PUSH)),
    "live proposal": ("lf.a2a.v1.StreamRequest@live-2153", _field(15, _PUSH_OF_PUSH)),
}


@pytest.mark.parametrize("place", FOREIGN_PLACES)
def test_credentials_in_fields_of_another_schema(place: str) -> None:
    """A push configuration in a field that the schema does not have is known by its URL,
    authentication by its scheme; the rest of the message stays."""
    schema, payload = FOREIGN_PLACES[place]
    done = Redactor(KEY).redact_frame(frame(payload, schema), None)
    assert_gone(done)
    assert done.redacted
    for kept in (b"https://h/p", b"Bearer", b"text/plain"):
        assert (kept in done.payload) == (kept in payload)
    for end in range(payload.index(CANARY.encode()) + 5, len(payload)):
        cut = frame(payload[:end], schema, truncated=True)
        assert CANARY[:4].encode() not in Redactor(KEY).redact_frame(cut, None).payload


@pytest.mark.parametrize(
    "value",
    [
        _field(1, "name") + _field(2, "ordinary") + _field(3, CANARY),
        _field(1, "Bearer of bad news") + _field(2, CANARY),
        _field(2, "see https://h/p") + _field(3, CANARY),
        _field(2, CANARY),
    ],
    ids=["no URL", "no scheme", "text with a URL", "one text"],
)
@pytest.mark.parametrize("schema", ["a2a.v1.GetTaskRequest", "some.other.Request"])
def test_other_fields_of_another_schema_stay(value: bytes, schema: str) -> None:
    """Texts of unknown fields are replaced only if they look like secrets or stand where one is
    expected."""
    given = frame(_field(9, value), schema)
    assert Redactor(KEY).redact_frame(given, None) is given


def test_unparsable_bytes_are_searched_as_text() -> None:
    """Bytes that cannot be parsed are searched with the text patterns."""
    head = f"POST / HTTP/1.1\r\nAuthorization: Bearer {CANARY}\r\nX-Api-Key: {CANARY}\r\n\r\n"
    wire = f"{head}a=1&password={quote(CANARY, safe='')}"
    for schema in ("bytes", "text", "lf.a2a.v1.Task", "who.knows.This", ""):
        done = Redactor(KEY).redact_frame(
            frame(b"\x00\xff" + wire.encode(), schema, kind=FrameKind.UNDECODABLE), None
        )
        assert_gone(done)
        assert b"POST / HTTP/1.1" in done.payload


@pytest.mark.parametrize(
    "form", ["grant_type=x&client_secret={}&a=1", "token={}", "key={}", "a=1&sig={}", "code={}"]
)
def test_forms(form: str) -> None:
    """Form bodies are read by their field names."""
    done = Redactor(KEY).redact_frame(
        frame(form.format(quote(CANARY, safe="")).encode(), "text"), None
    )
    assert_gone(done)


@pytest.mark.parametrize(
    "name",
    [
        "Authorization",
        "proxy-authorization",
        "Cookie",
        "set-cookie",
        "X-API-Key",
        "api-key",
        "x-a2a-notification-token",
        "x-goog-api-key",
        "x-auth-token",
        "x-amz-security-token",
        "x-client-secret",
        "ocp-apim-subscription-key",
        "x-token-bin",
        "X-Vendor-Auth",
    ],
)
@pytest.mark.parametrize("side", ["request_headers", "response_headers", "trailers"])
def test_headers(name: str, side: str) -> None:
    """Known names, and names learned from a card, are redacted in both directions; the scheme word
    stays."""
    redactor = Redactor(KEY)
    redactor.learn_card(
        {"securitySchemes": {"k": {"type": "apiKey", "in": "header", "name": "x-vendor-auth"}}}
    )
    value = {"authorization": f"Bearer {CANARY}", "cookie": f"a={CANARY}; b=x{CANARY}"}.get(
        name.lower(), CANARY
    )
    value = f"id={CANARY}; Path=/; HttpOnly" if name == "set-cookie" else value
    done = redactor.redact_exchange(
        exchange(**{side: ((name.encode(), value.encode()), (b"x-echo", CANARY.encode()))})
    )
    assert_gone(done)
    assert any(path.endswith(":" + name.lower()) for path in done.redacted)
    text = getattr(done, side)[0][1].decode()
    assert text.startswith(
        {"authorization": "Bearer redacted-", "cookie": "a=redacted-"}.get(name.lower(), text[:3])
    )
    assert "Path=/; HttpOnly" in text or name != "set-cookie"


def test_basic_credentials_teach_the_password() -> None:
    """The password of Basic credentials is also recognized alone."""
    redactor = Redactor(KEY)
    basic = b64encode(f"user:{PLAIN}".encode())
    head = exchange(request_headers=((b"authorization", b"Basic " + basic),))
    assert_gone(
        redactor.redact_frame(
            frame(json.dumps({"echo": PLAIN, "b": basic.decode()}).encode()), head
        ),
        PLAIN,
    )


@pytest.mark.parametrize(
    "echo",
    [
        CANARY,
        json.dumps(CANARY)[1:-1],
        quote(CANARY, safe=""),
        b64encode(CANARY.encode()).decode(),
        b64encode(f"x{CANARY}y".encode()).decode(),
        b64encode(f"xy{CANARY}".encode()).decode(),
        urlsafe_b64encode(CANARY.encode()).decode(),
    ],
)
@pytest.mark.parametrize("others", [0, 50])
def test_echoed_secrets_are_redacted(echo: str, others: int) -> None:
    """A secret from a header is then found in any payload, encoding and field, even among many
    other secrets."""
    redactor = Redactor(KEY)
    for number in range(others):
        redactor.redact_frame(
            frame(json.dumps({"token": f"another-secret-{number:06}"}).encode()), None
        )
    head = exchange(request_headers=((b"X-Api-Key", CANARY.encode()),))
    for pad in range(9):
        text = "." * pad + echo + "!"
        assert_gone(redactor.redact_frame(frame(json.dumps({"text": text}).encode()), head))
        payload = protobuf("1.0", "StreamResponse", {"message": {"parts": [{"text": text}]}})
        assert_gone(redactor.redact_frame(frame(payload, "lf.a2a.v1.StreamResponse"), head))
        assert_gone(
            redactor.redact_frame(
                frame(text.encode(), "text", note=text, framing=f"id: {text}\n", rpc_id=text), head
            )
        )
    assert_gone(redactor.redact_text(f"cannot reach {echo}"))


def test_headers_that_were_clean_are_redacted_once_their_secret_is_known() -> None:
    redactor = Redactor(KEY)
    echo = exchange(request_headers=((b"x-echo", PLAIN.encode()),))
    assert redactor.redact_exchange(echo) is echo
    redactor.redact_exchange(exchange(request_headers=((b"x-api-key", PLAIN.encode()),)))
    assert_gone(redactor.redact_exchange(echo), PLAIN)
    assert_gone(redactor.redact_exchange(exchange(response_headers=echo.request_headers)), PLAIN)


@pytest.mark.parametrize("side", ["request_headers", "response_headers", "trailers"])
def test_a_header_that_echoes_a_secret_of_a_later_header_is_redacted(side: str) -> None:
    fields = ((b"x-echo", PLAIN.encode()), (b"x-api-key", PLAIN.encode()))
    assert_gone(Redactor(KEY).redact_exchange(exchange(**{side: fields})), PLAIN)


@pytest.mark.parametrize("strings", [None, (b"a", b"b")])
def test_ids_that_are_not_in_the_payload_are_redacted(strings: tuple[bytes, ...] | None) -> None:
    """The path of a REST request names its task, and its body may have none."""
    redactor, secret = Redactor(KEY), "sk-proj-abcdefghijklmnop1234"
    cancel = frame(b'{"metadata":{"a":"b"}}', kind=FrameKind.REQUEST, task_id=secret)
    sieved = redactor.sieve_frames([cancel], [strings])
    assert_gone(redactor.redact_frame(cancel, None, sieved, strings), secret)


def test_secrets_of_the_request_target_are_redacted_in_the_payload() -> None:
    """They are learned before the payload that repeats them, even if no header has them and the
    exchange is open."""
    head = exchange(target=f"/rpc?api_key={PLAIN}")
    assert_gone(
        Redactor(KEY).redact_frame(frame(json.dumps({"text": f"you sent {PLAIN}"}).encode()), head),
        PLAIN,
    )


def test_exchange_texts() -> None:
    """Targets, authority and error text lose user info, secret parameters and bearer tokens."""
    redactor = Redactor(KEY)
    redactor.learn_card(
        {"securitySchemes": {"k": {"apiKeySecurityScheme": {"location": "query", "name": "vk"}}}}
    )
    done = redactor.redact_exchange(
        exchange(
            target=f"http://u:{PLAIN}@h/tasks/7?vk={PLAIN}&pageToken=abc&api_key={PLAIN}",
            error=f"UNAUTHENTICATED: invalid bearer {PLAIN}",
            response_headers=((b"location", f"https://h/?sig={PLAIN}".encode()),),
        )
    )
    assert_gone(done, PLAIN)
    assert "pageToken=abc" in done.target
    assert "/tasks/7?vk=redacted-" in done.target
    assert {"target", "error", "response-header:location"} <= set(done.redacted)


@pytest.mark.parametrize("known", [0, 1])
def test_trailers_frame(known: int) -> None:
    """Redacts gRPC trailers: plain, percent-encoded message, and details, whose protobuf stays
    readable."""
    status = message_class("rpc", "Status")()
    status.message = "bad token"  # type: ignore[attr-defined]
    info = message_class("rpc", "ErrorInfo")(metadata={"token": PLAIN, "taskId": "t1"})
    status.details.add(
        type_url="type.googleapis.com/google.rpc.ErrorInfo", value=info.SerializeToString()
    )  # type: ignore[attr-defined]
    details = b64encode(status.SerializeToString()).decode().rstrip("=")
    pairs = [
        ["grpc-status", "16"],
        ["grpc-message", quote(f"denied: Authorization: Bearer {PLAIN * known} é")],
        ["grpc-status-details-bin", details],
        ["x-refresh-token", PLAIN],
    ][: 3 + known]
    done = Redactor(KEY).redact_frame(
        frame(json.dumps(pairs).encode(), "trailers", kind=FrameKind.END), None
    )
    assert_gone(done, PLAIN)
    new = dict(json.loads(done.payload))
    assert new["grpc-status"] == "16"
    data = b64decode(new["grpc-status-details-bin"] + "==")
    assert PLAIN.encode() not in data
    read = message_class("rpc", "Status").FromString(data)
    assert b"t1" in read.details[0].value  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "line",
    [
        "agent --token {} -v",
        "agent --api-key={}",
        "TOKEN={} agent",
        "curl -H 'x-api-key: {}' http://h",
        'agent --token "{}" -v',
        "HOUSE_KEY={} agent",
        "API_KEY='{}' agent",
        "the api key: {}",
    ],
)
def test_command_lines(line: str) -> None:
    """Command lines and console texts lose secrets behind flags, in assignments and in headers."""
    text = Redactor(KEY).redact_text(line.format(PLAIN))
    assert text == line.format(make_label(KEY, PLAIN))


def test_secrets_in_separate_command_words_are_found() -> None:
    """A flag and its secret may be two words."""
    words = (
        "a2a-proxy",
        "stdio",
        "--",
        "agent",
        "--token",
        PLAIN,
        "--name=x",
        f"API_KEY={PLAIN}",
        "--verbose",
        "yes",
    )
    made = make_label(KEY, PLAIN)
    assert Redactor(KEY).redact_command(words) == (
        *words[:5],
        made,
        "--name=x",
        f"API_KEY={made}",
        "--verbose",
        "yes",
    )
    assert Redactor(KEY, RedactionPolicy(none=True)).redact_command(words) == words


@pytest.mark.parametrize(
    "head",
    [
        "X-API-Key: {}\r\n",
        "authorization:Bearer {}\r\n",
        'x-token: "{}"\n',
        "X-Note: token={}\r\n",
        "Foo: {}\n",
    ],
)
def test_the_header_block_of_a_pipe(head: str) -> None:
    """A header block is redacted by field, also with names learned from a card."""
    redactor = Redactor(KEY)
    redactor.learn_card(
        {"securitySchemes": {"k": {"type": "apiKey", "in": "header", "name": "foo"}}}
    )
    block = f"Content-Length: \x01\r\n{head.format(PLAIN)}\r\n\0"
    done = redactor.redact_frame(frame(b"{}", framing=block), None)
    assert_gone(done, PLAIN)
    assert done.framing.startswith("Content-Length: \x01\r\n")
    assert done.framing.endswith("\n\r\n\0")
    assert done.redacted == ("framing",)


@pytest.mark.parametrize(
    "line",
    [
        "agent --token {}",
        "export API_KEY={}",
        "Authorization: Bearer {}",
        '{{"password":"{}"}}',
        "https://u:{}@h",
    ],
)
def test_log_lines(line: str) -> None:
    """Secrets in an agent's stderr are redacted, in plain and structured lines."""
    done = Redactor(KEY).redact_frame(
        frame(line.format(PLAIN).encode(), "text", kind=FrameKind.LOG, framing="\0\n"), None
    )
    assert_gone(done, PLAIN)


def test_connection_finding_task() -> None:
    """User info in addresses, evidence with a secret's name, and ids that are secrets are
    redacted."""
    redactor = Redactor(KEY)
    connection = Connection(
        id=1,
        client="c",
        listen="l",
        upstream=f"http://me:{PLAIN}@h",
        opened=1,
        how=f"refused: http://h?token={PLAIN}",
    )
    assert_gone(redactor.redact_connection(connection), PLAIN)
    process = ClientProcess(71, f"agent?token={PLAIN}", (8001,))
    clean = redactor.redact_connection(
        msgspec.structs.replace(connection, client_process=process)
    ).client_process
    assert clean is not None
    assert (clean.pid, clean.ports) == (71, (8001,))
    assert_gone(clean, PLAIN)
    certificate = CertificateFacts("ab", ("agent.example", f"https://a/?token={PLAIN}"))
    tls = ConnectionTls(
        TlsFacts("TLSv1.3", "c", "", f"token={PLAIN}", certificate),
        TlsFacts("v", "c", client=certificate),
    )
    clean_tls = redactor.redact_connection(msgspec.structs.replace(connection, tls=tls)).tls
    assert clean_tls is not None
    assert clean_tls.upstream is not None
    assert clean_tls.upstream.client is not None
    assert clean_tls.upstream.client.names[0] == "agent.example"
    assert_gone(clean_tls, PLAIN)
    finding = Finding(
        "R", Severity.INFO, 1, f"sent Bearer {PLAIN}", evidence={"x-api-key": "shrt", "line": PLAIN}
    )
    assert_gone(redactor.redact_finding(finding), PLAIN)
    assert "shrt" not in str(redactor.redact_finding(finding))
    task = Task(agent="a", task_id=PLAIN, artifacts=(ArtifactState("a", name=PLAIN),))
    assert_gone(redactor.redact_task(task), PLAIN)


def test_a_sentence_after_the_name_of_a_cookie_is_not_remembered() -> None:
    """Documentation of cookies: what follows the name is replaced there, and nowhere else."""
    redactor, sentence = Redactor(KEY), "header. This is the default behavior"
    assert sentence not in redactor.redact_text(f"the Set-Cookie: {sentence}")
    assert redactor.redact_text(f"a {sentence}") == f"a {sentence}"
    assert "k7f3Qx9Zk2" not in redactor.redact_text("the Set-Cookie: sid=k7f3Qx9Zk2; Path=/")
    assert "k7f3Qx9Zk2" not in redactor.redact_text("a k7f3Qx9Zk2")


def test_a_text_known_as_clean_is_redacted_once_its_secret_is_known() -> None:
    redactor = Redactor(KEY)
    connection = Connection(
        id=1, client="c", listen="l", upstream="h", opened=1, how=f"reset: {PLAIN}"
    )
    assert redactor.redact_connection(connection).how == f"reset: {PLAIN}"
    other = Redactor(KEY)
    other.redact_frame(frame(b'{"password": "%b"}' % PLAIN.encode()), None)
    redactor.restore(other.save())
    assert_gone(redactor.redact_connection(connection), PLAIN)


def test_many_artifacts_are_redacted_again_when_the_task_grows() -> None:
    redactor = Redactor(KEY)
    named = tuple(ArtifactState(str(number), name="api_key=abcdef") for number in range(100))
    before = redactor.redact_task(Task(agent="a", task_id="t", artifacts=named)).artifacts
    grown = redactor.redact_task(
        Task(agent="a", task_id="t", artifacts=(*named, ArtifactState("x", name=PLAIN)))
    )
    assert grown.artifacts[:100] == before
    assert [each.artifact_id for each in before] == [str(number) for number in range(100)]
    assert "abcdef" not in str(grown)


@pytest.mark.parametrize(
    "text",
    [
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
        "sk-proj-abcdefghijklmnop1234",
        "ghp_abcdefghijklmnopqrstuvwxyz012345",
        "Bearer abcDEF123456",
        "Basic dXNlcjpodW50ZXIy",
        "api_key=abcdef",
        "X-Api-Key: abcdef",
        "password: hunter22",
    ],
)
def test_secrets_are_found_by_their_form(text: str) -> None:
    """Secrets are found by their form in any text: command lines, error texts, payloads."""
    secret = text.replace(": ", " ").replace("=", " ").split()[-1]
    for whole in (text, f"x {text}", f'failed: "{text}"'):
        assert secret not in Redactor(KEY).redact_text(whole)
        done = Redactor(KEY).redact_frame(frame(json.dumps({"text": whole}).encode()), None)
        assert secret.encode() not in done.payload


CLEAN = [
    {
        "nextPageToken": "abc123def",
        "pageToken": "abc123def",
        "usage": {"tokens": 12, "token": 7, "total_tokens": 9},
    },
    {"kind": "text", "text": "token"},
    {
        "text": (
            "The keyboard, the monkey, a bearer of news, basic functionality, Bearer authentication"
        )
    },
    {"text": "password: required. Your secret is safe. Tokens: twelve"},
    {"status": {"state": "working"}, "taskId": "task-1234-abcdefgh-ijkl", "contextId": "sk"},
    {
        "securitySchemes": {
            "apiKey": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
            "o": {"tokenUrl": "https://h/token"},
        }
    },
    {
        "security": [{"token": ["read"]}],
        "flows": {"password": {"tokenUrl": "u"}},
        "signatures": [{"protected": "eyJhbGciOiJIUzI1NiJ9", "signature": "abc"}],
    },
    {
        "email": "a@example.org",
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "url": "https://h/a@b?x=1&page=2",
    },
    {"token": "", "password": None, "key": "value", "secret": False},
]


@pytest.mark.parametrize("value", CLEAN)
def test_look_alikes_stay(value: Any) -> None:
    """A value that only looks like a secret stays, as the same object."""
    for clean in (
        frame(json.dumps(value).encode()),
        frame(json.dumps(value, indent=1).encode(), framing="data: \0\n\n"),
    ):
        assert Redactor(KEY).redact_frame(clean, exchange()) is clean


def test_protocol_words_are_not_searched_for() -> None:
    """With `working` as a password, the state of all tasks stays."""
    redactor = Redactor(KEY)
    redactor.redact_frame(frame(b'{"password":"working"}'), None)
    clean = frame(b'{"state":"working"}')
    assert redactor.redact_frame(clean, None) is clean


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(_JSON)
@settings(max_examples=150, deadline=None)
def test_clean_json_is_the_same_object(value: Any) -> None:
    """Arbitrary JSON without a secret name is returned unchanged."""
    payload = json.dumps(value).encode()
    if (
        not _has_secret_name(value)
        and b"=" not in payload
        and b"@" not in payload
        and b":" not in payload[1:-1]
    ):
        clean = frame(payload)
        assert Redactor(KEY).redact_frame(clean, None) is clean


def _has_secret_name(value: Any) -> bool:
    if isinstance(value, dict):
        return any(secret_member(key) or _has_secret_name(inner) for key, inner in value.items())
    return isinstance(value, list) and any(map(_has_secret_name, value))


@given(
    _JSON,
    st.text(st.characters(min_codepoint=33, max_codepoint=0x2FF), min_size=6, max_size=40),
    st.booleans(),
)
@settings(max_examples=200, deadline=None)
def test_any_secret_in_any_json(value: Any, secret: str, ascii_only: bool) -> None:
    """Any secret in any JSON is replaced, everything else is equal, and the result is JSON."""
    payload = json.dumps(
        {"a": value, "token": secret, "b": value}, ensure_ascii=ascii_only
    ).encode()
    done = Redactor(KEY).redact_frame(frame(payload), None)
    new = json.loads(done.payload)
    assert new["token"] == make_label(KEY, secret)
    if "redacted" not in json.dumps(new["a"]):
        assert new["a"] == value


@given(
    st.binary(max_size=200),
    st.sampled_from(
        [
            "json",
            "text",
            "bytes",
            "trailers",
            "control",
            "lf.a2a.v1.SendMessageRequest",
            "a2a.v1.Task",
            "x.Y",
        ]
    ),
    st.booleans(),
)
@settings(max_examples=300, deadline=None)
def test_garbage_never_raises(payload: bytes, schema: str, cut: bool) -> None:
    """Any bytes with any schema are accepted; only secrets change."""
    done = Redactor(KEY).redact_frame(frame(payload, schema, truncated=cut), None)
    assert "failed" not in done.note


_UNITS = (
    "\\",
    '\\"',
    '"',
    "token ",
    "token",
    " ",
    "bearer ",
    "bearer+",
    "://",
    "://a@",
    "a=",
    "a:",
    "eyJ",
    "eyJ.",
    "{",
    "[",
    "%",
    "-",
)
_STARTS = ("token", '{"authorization":"a', '{"cookie":"a', "bearer ", "")


@pytest.mark.parametrize("hostile", thin(product(_STARTS, _UNITS), len(_STARTS)), ids="".join)
def test_hostile_text_takes_linear_time(hostile: tuple[str, str]) -> None:
    """100,000 bytes that provoke backtracking take milliseconds; with quadratic time, this test
    would not end.

    CI has every unit with one of the starts.
    """
    start, unit = hostile
    text = start + unit * (100_000 // len(unit))
    for schema in ("json", "text", "lf.a2a.v1.SendMessageRequest"):
        Redactor(KEY).redact_frame(frame(text.encode(), schema), None)
        Redactor(KEY).redact_frame(frame(text.encode(), schema, truncated=True), None)


def test_common_words_are_redacted_only_in_their_own_field() -> None:
    """A plain word with a secret's name is replaced there, and stays in all other text."""
    redactor = Redactor(KEY)
    assert b"because" not in redactor.redact_frame(frame(b'{"token":"because"}'), None).payload
    clean = frame(b'{"text":"because of it"}')
    assert redactor.redact_frame(clean, None) is clean


@pytest.mark.parametrize("address", ["127.0.0.1", "192.0.2.17:8080", "::1", "[2001:db8::1]:443"])
def test_addresses_used_as_passwords_are_not_searched_for(address: str) -> None:
    redactor = Redactor(KEY)
    assert (
        address.encode()
        not in redactor.redact_frame(frame(b'{"password":"%b"}' % address.encode()), None).payload
    )
    clean = frame(b'{"text":"connected to %b"}' % address.encode())
    assert redactor.redact_frame(clean, None) is clean


def test_failure_drops_the_payload(monkeypatch: pytest.MonkeyPatch) -> None:
    """If redaction itself fails, the payload is dropped."""
    redactor = Redactor(KEY)

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError(CANARY)

    monkeypatch.setattr("a2a_proxy.redaction.payload.redact_payload", broken)
    done = redactor.redact_frame(frame(b'{"token":"' + CANARY.encode() + b'"}'), None)
    assert_gone(done)
    assert done.payload == b""
    assert "redaction failed" in done.note


def test_failure_drops_the_texts_of_any_object(monkeypatch: pytest.MonkeyPatch) -> None:
    """An object keeps only what cannot hold a secret."""

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError(CANARY)

    monkeypatch.setattr(Scrubber, "redact_named_value", broken)
    redactor = Redactor(KEY)
    finding = redactor.redact_finding(
        Finding("X-1", Severity.ERROR, 1, "clean", evidence={"token": CANARY})
    )
    assert finding.evidence.keys() == {"note"}
    for name in ("redact_header", "redact_text", "may_hold_secret", "redact_column"):
        monkeypatch.setattr(Scrubber, name, broken)
    redactor = Redactor(KEY)
    head = exchange(
        request_headers=((b"x", CANARY.encode()),),
        response_headers=((b"x", CANARY.encode()),),
        trailers=((b"x", CANARY.encode()),),
        target=CANARY,
        authority=CANARY,
        error=CANARY,
    )
    done = redactor.redact_exchange(head)
    assert_gone(done)
    assert (done.request_headers, done.response_headers, done.trailers, done.target) == (
        (),
        (),
        (),
        "",
    )
    assert "redaction failed" in done.error
    assert "redaction failed" in redactor.redact_text(CANARY)
    finding = redactor.redact_finding(
        Finding("X-1", Severity.ERROR, 1, CANARY, evidence={"value": CANARY})
    )
    assert_gone(finding)
    assert "redaction failed" in str(finding.evidence)
    clean = frame(json.dumps({"text": CANARY}).encode())
    assert redactor.sieve_frames([clean, clean]) == -1
    assert_gone(redactor.redact_frame(clean, head, redactor.sieve_frames([clean])))


@pytest.mark.parametrize("schema", ["json", "text", ""])
@pytest.mark.parametrize(
    "text",
    [
        '{"text": "Bearer p[x1gq',
        '{"say": "\\"", "text": "use sk-aB3dE',
        '["it is f00dbabe-cor',
        '{"t":" Bearer p[x1gq\\u003CH;o!ekY?\\\\u0022}',
    ],
)
def test_the_beginning_of_a_secret_is_replaced_where_json_ends_early(
    schema: str, text: str
) -> None:
    """As if the frame were known to be cut off: a connection may end inside a message."""
    redactor = Redactor(KEY)
    redactor.redact_text("Authorization: Bearer f00dbabe-correct-horse")
    early = frame(text.encode(), schema)
    clean = redactor.redact_frame(early, None, redactor.sieve_frames([early]))
    marked = redactor.redact_frame(msgspec.structs.replace(early, truncated=True), None)
    assert clean.payload == marked.payload != early.payload


def test_labels() -> None:
    """One secret, one label, in every place and after a restart; another key, another label; a
    label stays itself."""
    first, second = Redactor(KEY), Redactor(KEY)
    one = first.redact_frame(frame(json.dumps({"token": PLAIN}).encode()), None).payload
    two = second.redact_exchange(
        exchange(request_headers=((b"authorization", f"Bearer {PLAIN}".encode()),))
    ).request_headers
    assert make_label(KEY, PLAIN).encode() in one
    assert two[0][1] == f"Bearer {make_label(KEY, PLAIN)}".encode()
    assert make_label(b"other", PLAIN) != make_label(KEY, PLAIN)
    again = frame(one)
    assert second.redact_frame(again, None) is again


def test_save_and_restore() -> None:
    """Known names and secrets survive as plain values."""
    first, second = Redactor(KEY), Redactor(KEY)
    first.learn_card(
        {
            "security_schemes": {
                "a": {"api_key_security_scheme": {"location": "cookie", "name": "sid_x"}}
            }
        }
    )
    first.redact_frame(frame(json.dumps({"token": CANARY}).encode()), None)
    second.restore(reload(first.save()))
    assert_gone(second.redact_frame(frame(json.dumps({"text": f"echo {CANARY}"}).encode()), None))
    assert (
        second.redact_exchange(exchange(request_headers=((b"sid-x", b"abc"),))).request_headers[0][
            1
        ]
        != b"abc"
    )


def test_card_frames_teach() -> None:
    """The redactor learns the names in a card from its frame, plain or as the result of a call."""
    card = {"securitySchemes": {"k": {"type": "apiKey", "in": "query", "name": "zugang"}}}
    for value in (card, {"result": card}):
        redactor = Redactor(KEY)
        redactor.redact_frame(frame(json.dumps(value).encode(), event=EventKind.CARD), None)
        assert_gone(redactor.redact_exchange(exchange(target=f"/x?zugang={PLAIN}")), PLAIN)
        assert_gone(
            redactor.redact_frame(frame(json.dumps({"zugang": PLAIN}).encode()), None), PLAIN
        )


def test_paths() -> None:
    """`redacted` lists the places: JSON paths, protobuf field paths."""
    payload = rpc("message/send", {"configuration": {"pushNotificationConfig": {"token": CANARY}}})
    done = Redactor(KEY).redact_frame(frame(payload), exchange(dialect=Dialect.V0_3))
    assert done.redacted == ("$.params.configuration.pushNotificationConfig.token",)
    value = {
        "metadata": {"apiKey": CANARY},
        "configuration": {"taskPushNotificationConfig": {"token": CANARY}},
    }
    done = Redactor(KEY).redact_frame(
        frame(protobuf("1.0", "SendMessageRequest", value), "lf.a2a.v1.SendMessageRequest"), None
    )
    assert done.redacted == (
        "configuration.task_push_notification_config.token",
        "metadata.fields[apiKey]",
    )


def test_in_place() -> None:
    """Only the bytes of the value change: spaces, order, escapes and duplicates stay."""
    before = b'{ "b" :\t1.50e1,\r\n "token":  "' + PLAIN.encode() + b'" , "b":"\\u00e9\\/" }'
    after = Redactor(KEY).redact_frame(frame(before), None).payload
    assert after == before.replace(PLAIN.encode(), make_label(KEY, PLAIN).encode())


def test_disabled() -> None:
    """With redaction off, all values are returned unchanged."""
    redactor = Redactor(KEY, RedactionPolicy(none=True))
    dirty = frame(b'{"token":"' + CANARY.encode() + b'"}')
    assert redactor.redact_frame(dirty, None) is dirty
    assert redactor.redact_text(f"Bearer {CANARY}") == f"Bearer {CANARY}"


def test_the_scheme_of_a_credential_stays() -> None:
    assert (
        Redactor(KEY).redact_text("Bearer abcDEF123456, sent")
        == f"Bearer {make_label(KEY, 'abcDEF123456')}, sent"
    )


LONG = "q7Zr2kLmX9vB4nT8wYc3" * 5


@pytest.mark.parametrize(
    "details",
    [
        [{"metadata": {"hint": f"the given credential was {LONG}"}}],
        {"errors": {"client_secret": "s3cr3t phrase", "pin": "123456"}},
        [{"metadata": {"user.password": "s3cr3t phrase"}}],
        {"fieldViolations": [{"field": "login.pin", "description": "123456 is taken"}]},
        "x" * 140 + LONG,
    ],
    ids=["known and cut", "by their names", "a path", "a violation", "cut at the end"],
)
def test_the_details_in_the_line_of_an_error(details: object) -> None:
    """What is redacted in the payload is not in the line of the error either: neither the beginning
    of a known secret, nor the value of a member with the name of a secret."""
    redactor = Redactor(KEY)
    redactor.redact_exchange(
        exchange(request_headers=((b"authorization", b"Bearer " + LONG.encode()),))
    )
    line = error_line("", -32000, message_with_details("", "bad", details))
    done = redactor.redact_exchange(exchange(error=line)).error
    assert not any(secret in done for secret in (LONG[:8], "s3cr3t", "phrase", "123456")), done
    assert redactor.redact_exchange(exchange(error=done)).error == done


def test_a_harmless_line_of_an_error_stays() -> None:
    line = "INVALID_PARAMS -32602: bad (message.parts: is due, retry after 2s)"
    assert Redactor(KEY).redact_exchange(exchange(error=line)).error == line
