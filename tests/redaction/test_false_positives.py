"""Values that only resemble secrets stay byte for byte, in JSON, in protobuf and as text."""

from __future__ import annotations

import json
from typing import Any

import pytest

from a2a_proto import from_dict
from a2a_proxy.model.values import Frame, FrameKind
from a2a_proxy.model.wire import Direction
from a2a_proxy.redaction import Redactor

KEY = b"k" * 32

TEXTS = [
    "primary_key: id\nsort_key: name\nforeign_key: user_id\npartition_key: pk1",
    # Prose.
    (
        "The password is required. Your token has expired; "
        "ask for a new key, and keep the secret to yourself."
    ),
    "Tokens: twelve. Token count: 512. Max tokens per minute: 90000.",
    (
        "A bearer of news; basic functionality, Bearer "
        "authentication, Basic auth and digest auth are supported."
    ),
    (
        "key: value; secret: none. The keyboard, the monkey, "
        "the turkey, a hockey game and a cookie recipe."
    ),
    "I forgot my password: what now? Password: at least 12 characters.",
    "Her passport, his compass, the bypass, a trespass and the encompassing passage of the author.",
    "Compare access-token handling with refresh-token handling in OAuth 2.0 (RFC 6749).",
    "An api-key can be rotated. The x-api-key header is checked first.",
    (
        "SG. Wattenscheid 09 played; e.g. at the hf_hub; "
        "ya29. is a prefix, sk- another, AKIA one more."
    ),
    "The risk-adjusted-return-on-capital and the task-oriented-dialogue-system were compared.",
    # Markdown and help texts about keys and flags.
    "Set `--token <TOKEN>` or `--token=$TOKEN`; `--password` reads it from stdin.",
    "Use --token to authenticate, or --password if you must. --secret is deprecated.",
    "usage: agent [--token TOKEN] [--api-key KEY] [--password PASSWORD] [--auth none] --verbose",
    (
        "  --token string      API token (default: none)\n"
        "  --password TEXT  Password.  [required]\n  --auth-token FILE"
    ),
    (
        "if it does not accept the certificate: "
        "a2a-proxy ca env; to leave it unread: --pass agent.test"
    ),  # our own
    "agent --token ... --api-key … --secret *** --password xxxx",
    "agent --token --verbose",
    "agent --token",
    "agent --token $TOKEN --password ${PASSWORD} --api-key {{ api_key }} --secret %SECRET%",
    "curl -u $USER:$PASSWORD https://example.org/ -H 'Accept: application/json'",
    "curl -u <user>:<password> https://example.org/",
    "docker run --user 1000:1000 -p 8080:8080 image; mkdir -p /tmp/a; ssh -p 22 host; cp -u a b:c",
    "mysql -h db -u root -p orders; find . -print; ps -u bob:staff",
    (
        "# API keys\n\nGo to *Settings > API keys*, press **Create "
        "key** and copy it. Store `API_KEY` in your environment."
    ),
    "export API_KEY=<your key>\nexport TOKEN=$(cat token.txt)\nPWD=/home/bob OLDPWD=/home/bob/a",
    "BYPASS=1 COMPASS=north TESTS_RUN=12",
    # Code.
    (
        "token = get_token()\n"
        "client = Client(token=get_token(), api_key=os.environ['API_KEY'], password=None)"
    ),
    (
        "def login(token: str, password: str | None = None) -> Session: return "
        "Session(token=token_of(user))"
    ),
    "def f(auth_token: str, api_key: Optional[str] = None, client_secret: bytes = b''): ...",
    "const token = await auth.getToken(); if (!token) throw new Error('no token');",
    "tokenizer = AutoTokenizer.from_pretrained('gpt2'); tokenizer.pad_token = tokenizer.eos_token",
    "max_tokens=4096, stop_token_ids=[1, 2], key=lambda item: item.key",
    "<div class='sk-spinner sk-spinner-pulse sk-fading-circle'><i class='pk-icon'></i></div>",
    (
        "hf_hub_download, hf_transfer, npm_config_registry, "
        "npm_package_name, glc_context, r8_count, re_match, fw_version"
    ),
    (
        "secret_manager, secret_scanning_alert, xai-explainability, "
        "pul-monitor, p8e-format, key-value-store, SKU12345"
    ),
    "from a.b.c.d import e; obj.method().other(); www.example.com/a/b.html",
    "AKIAIOSFODNN7 is no key of 20 characters, and ASIA is a continent: Asia/Tokyo, ASIA/KOLKATA",
    # Identifiers and digests.
    "task 4f0c9b2a-7d5e-4163-aa90-c3d1e5f72b84, context 0190a5c2-9f3e-7b1d-8c4a-1e2f3a4b5c6d",
    (
        "commit 9fceb02d0ae598e95dc970b74767f19372d61af8 and "
        "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca4959"
    ),
    "sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==",
    (
        'md5 d41d8cd98f00b204e9800998ecf8427e; etag W/"686897696a7c876b7e"; traceparent '
        "00-4bf92f3577b34da6a3ce929d0e0e47"
    ),
    (
        "task-4f0c9b2a-7d5e-4163-aa90-c3d1e5f72b84 artifact-0190a5c29f3e7b1d8c4a "
        "msg_01XFDUDYJgAACzvnptvVoYEL"
    ),
    "TASK_STATE_INPUT_REQUIRED TASK_STATE_AUTH_REQUIRED ROLE_AGENT A2A AUTHENTICATION_REQUIRED",
    (
        "call_9JcXkLm2 chatcmpl-8abcDEF run_abc123 thread_abc123 "
        "toolu_01A09q90qw90lq917835lq9 req_011CSHoEeqs5C35K2UUq"
    ),
    "mailto:bob@example.org and @handle, 10:30:AM, C:\\Users\\bob, 1//2 and 3//4",
    # Addresses.
    "https://example.org/search?page=2&pageToken=abc123def&q=token&sort=key&limit=20#section",
    (
        "https://example.org/a%20b/c%2Fd?x=50%25&y=%E2%9C%93 and "
        "http://127.0.0.1:8000/.well-known/agent-card.json"
    ),
    "https://hooks.slack.com/ and https://discord.com/api/webhooks are where webhooks live",
    "git clone https://github.com/a2aproject/A2A.git && cd A2A && pip install -e .[dev]",
]

VALUES: list[Any] = [
    {
        "usage": {
            "total_tokens": 812,
            "prompt_tokens": 700,
            "completion_tokens": 112,
            "maxTokens": 4096,
        }
    },
    {
        "usage": {
            "prompt_tokens_details": {"cached_tokens": 64, "audio_tokens": 0},
            "inputTokens": 7,
            "token": 9,
        }
    },
    {
        "logprobs": {
            "content": [{"token": "", "logprob": -0.31, "bytes": [72, 105], "top_logprobs": []}]
        }
    },
    {
        "author": "Ann",
        "passage": "It passed.",
        "pinned": True,
        "opinion": "good",
        "tokenizer": "cl100k_base",
    },
    {
        "keyboard": "qwerty",
        "monkey": "Abu",
        "keys": ["a", "b"],
        "keywords": ["x"],
        "primaryKey": "id-7",
        "sortKey": "n",
    },
    {
        "id": "t-1",
        "sessionId": "s-1f3e7b1d",
        "status": {"state": "working", "timestamp": "2026-01-01T00:00:00Z"},
    },
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tasks/send",
        "params": {"id": "t-1", "sessionId": "8f01f3d172cd4396a0e535ae"},
    },
    {
        "nextPageToken": "abc123def",
        "pageToken": "eyJvZmZzZXQiOjEwMH0",
        "continuationToken": "x1y2z3",
    },
    {
        "securitySchemes": {"apiKey": {"type": "apiKey", "in": "header", "name": "X-API-Key"}},
        "schemes": ["Bearer"],
    },
    {"flows": {"clientCredentials": {"tokenUrl": "https://h/token", "scopes": {"read": "Read"}}}},
    {
        "bos_token": "<s>",
        "eos_token": "</s>",
        "pad_token": "<pad>",
        "unk_token": "<unk>",
        "stop_token": "END",
    },
    {
        "artifactId": "artifact-0190a5c29f3e7b1d8c4a",
        "name": "secret-santa-list",
        "parts": [{"text": "Ann, Bob"}],
    },
    {
        "mimeType": "image/png",
        "bytes": (
            "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"
            "AAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
        ),
    },
    {
        "digest": "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "etag": 'W/"33a64df5"',
    },
    {
        "passed": 12,
        "failed": 0,
        "compass": "north",
        "bypass": False,
        "passengers": ["Ann"],
        "passive": True,
    },
]


def frame(payload: bytes, schema: str = "json") -> Frame:
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
    )


def protobuf(message: dict[str, Any]) -> Frame:
    return frame(
        from_dict("1.0", "SendMessageRequest", message).SerializeToString(),
        "lf.a2a.v1.SendMessageRequest",
    )


def texts_of(text: str) -> list[Frame]:
    """Return frames with the text at every place that can hold a text."""
    message = {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"text": text}]}
    return [
        frame(json.dumps({"jsonrpc": "2.0", "id": 1, "params": {"message": message}}).encode()),
        frame(json.dumps({"text": text}, ensure_ascii=False, indent=1).encode()),
        frame(text.encode(), "text"),
        frame(json.dumps({"text": json.dumps({"inner": text})}).encode()),
        protobuf({"message": message, "metadata": {"note": text}}),
    ]


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_stays(text: str) -> None:
    redactor = Redactor(KEY)
    for each in texts_of(text):
        assert redactor.redact_frame(each, None).payload == each.payload
    assert redactor.redact_text(text) is text


@pytest.mark.parametrize("value", VALUES, ids=lambda value: next(iter(value)))
def test_a_value_stays(value: Any) -> None:
    redactor = Redactor(KEY)
    message = {"messageId": "m-1", "role": "ROLE_USER", "parts": [{"data": value}]}
    for each in (
        frame(json.dumps(value).encode()),
        frame(json.dumps({"result": {"metadata": {"deep": [value]}}}, indent=1).encode()),
        frame(json.dumps({"text": json.dumps(value)}).encode()),
        protobuf({"message": message, "metadata": value}),
    ):
        assert redactor.redact_frame(each, None).payload == each.payload


def test_all_together_stay() -> None:
    """In one session, no text teaches the redactor something that changes another text."""
    redactor = Redactor(KEY)
    for _ in range(2):
        for each in [each for text in TEXTS for each in texts_of(text)] + [
            frame(json.dumps(v).encode()) for v in VALUES
        ]:
            assert redactor.redact_frame(each, None).payload == each.payload
