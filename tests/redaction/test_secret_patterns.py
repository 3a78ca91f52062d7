"""The sieve and the complete search agree; shapes of secrets in texts; and what is not one."""

from __future__ import annotations

from itertools import islice

import pytest

from a2a_proxy.redaction import Redactor, secret_patterns
from a2a_proxy.redaction.scrubber import Scrubber
from a2a_proxy.redaction.secret_patterns import SEARCHES, choose_searches, find_secrets
from support_encoded_secrets import find_disagreements, is_redacted_differently, made_texts

KEY = b"k" * 32
SECRET = "qZ3vT8mK1pLw9XyB"


def test_redaction_finds_the_same_with_and_without_the_sieve() -> None:
    """`tests/benchmarks/sieve` compares millions of such texts."""
    counts, different = find_disagreements(made_texts(1, 30_000))
    assert different == []
    assert counts["secrets"] > 15_000


@pytest.mark.parametrize("missing", range(len(SEARCHES)))
def test_the_comparison_finds_a_missing_trigger(
    missing: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the trigger of one search, it finds the same texts as redaction of each text with and
    without the sieve."""
    match = secret_patterns._TRIGGERS.Match
    concerned = (text for text in made_texts(1, 6_000) if missing in (match(text.data) or ()))
    texts = list(islice(concerned, 300))

    class Triggers:
        def Match(self, data: bytes) -> list[int]:
            return [number for number in match(data) or () if number != missing]

    monkeypatch.setattr(secret_patterns, "_TRIGGERS", Triggers())
    assert set(find_disagreements(texts)[1]) == set(filter(is_redacted_differently, texts)) != set()


@pytest.mark.parametrize(
    "text",
    [
        '{"text": "\\u00a0sk-aB3dEf6hIj9kLm2nOp5q"}',
        f'{{"text": "https://h/?user[password]={SECRET}"}}',
        f'{{"apiKeysValue": "{SECRET}"}}',
        f'{{"text": "mysql -p{SECRET}"}}',
        f'{{"text": "\\u00e9key: {SECRET}"}}',
        f'{{"url": "postgres://bob:{SECRET}\\u00e9@db"}}',
        '{"text": "hooks.slack.com\\/services\\/T012345678\\/B012345678\\/aB3dEf6hIj"}',
        '"-----BEGIN X25519 PRIVATE KEY-----\\nabc"',
        f'{{"to\\u212aen": "x", "{SECRET}": 1, "password" "{SECRET}"}}',
        (
            f'{{\\u0022token\\u0022:\\u0022{SECRET}\\u0022, "text": '
            f'"{{\\u0022token\\u0022:\\u0022{SECRET}\\u0022}}"}}'
        ),
    ],
)
def test_the_sieve_finds(text: str) -> None:
    assert choose_searches(text.encode())


@pytest.mark.parametrize(
    "unit",
    ["sk-", "p_a-s.s ", "--token-", "%25", "\\u0025", "eyJ", "bearer ", "curl mysql", "AKIA"],
)
def test_the_triggers_take_linear_time(unit: str) -> None:
    """Hundreds of thousands of bytes: with quadratic time, this test would not end."""
    choose_searches(unit.encode() * (400_000 // len(unit)))


def test_random_bytes_find_nothing_where_no_search_finds_anything() -> None:
    """RE2 begins anew when it has too many states; the result stays the same."""
    words = " ".join(f"{number * 7919:x}_{number:x}.x-p" for number in range(60_000)).encode()
    assert not choose_searches(words)
    assert choose_searches(words + f" password={SECRET}".encode())


@pytest.mark.parametrize(
    "line",
    [
        *(
            "password: '{}'",
            'password: "{}"',
            "password = '{}'",
            'login(user: "bob", password: "{}")',
            'apiKey := "{}"',
        ),
        *(
            'api_key: str = "{}"',
            'api_key: Optional[str] = "{}"',
            "'token' => '{}', token => '{}'",
            'token = \\"{}\\"',
        ),
        *(
            "['agent', '--api-key', '{}']",
            'args: ["--api-key", "{}"]',
            '{{"args": ["serve", "--api-key", "{}"]}}',
        ),
        *(
            "- name: DB_PASSWORD\n  value: {}",
            '- name: "DB_PASSWORD"\n  value: "{}"',
            "key=ApiKey, value={}",
        ),
        *(
            "<password>{}</password>",
            '<ns:apiKey a="b">\n{}\n</ns:apiKey>',
            '<add key="ApiKey" value="{}"/>',
        ),
        *(
            '{{"authHeader": "Bearer {}"}}',
            '{{"login_pw": "{}"}}',
            '{{"db_pwd": "{}"}}',
            "db_pw={}",
            "GET /?otp={}",
        ),
        *(
            "X-Custom-Secret-Value: {}",
            "X-Credentials-Data: {}",
            "corp-auth: {}",
            "Authentication: {}",
        ),
    ],
)
def test_a_secret_is_found(line: str) -> None:
    assert SECRET not in Redactor(KEY).redact_text(
        line.replace("{}", SECRET).replace("{{", "{").replace("}}", "}")
    )


@pytest.mark.parametrize(
    "line",
    [
        *(
            "docker run -p8080:80 nginx",
            "docker run --name mysql -p3306:3306 mysql:8",
            "ssh -p2222 host",
            "mkdir -pv a/b",
        ),
        *(
            "mysql -P3306 -h db",
            "curl -o out -L http://h/",
            "tar -xpf a.tar",
            "nmap -p1-1000 host",
            "rsync -Pp a b",
        ),
        *(
            'password: "<password>"',
            "token = '$TOKEN'",
            'token: "string"',
            "password: '{password}'",
            "auth: 'bearer'",
        ),
        *(
            "corp-auth: required",
            "authentication: oauth2",
            'max_tokens = "100"',
            "max_tokens: 4096",
            "usage: total_tokens: 1,234",
            "X-Max-Tokens: unlimited",
            "model:\n  maxTokens: 4096\n  api_key: null",
            "api_key: undefined",
            "password=None",
            "/login?token=undefined&password=***",
            "no-auth: true",
            "secretName: tls-cert",
        ),
        *(
            '"args": ["--token", "--verbose"]',
            '["--password", "$PASSWORD"]',
            '["--token", "the token of your account"]',
        ),
        *(
            "- name: LOG_LEVEL\n  value: debug",
            "<token></token>",
            "<keyword>abc123</keyword>",
            "<a>token</a>",
        ),
        *(
            "x-api-key-id: k-123456",
            "x-secret-name: db-main-1",
            "Access-Control-Allow-Credentials: true",
        ),
    ],
)
def test_a_text_without_secrets_stays(line: str) -> None:
    assert Redactor(KEY).redact_text(line) == line


def test_a_search_whose_trigger_does_not_match_is_not_needed_for_learned_names() -> None:
    """The names of agent cards have no trigger: they are searched whenever there are any."""
    scrub = Scrubber(KEY)
    scrub.learn_names({"ticket"})
    text = b"https://h/?ticket=%b" % SECRET.encode()
    assert not choose_searches(text)
    assert [each.secret for each in find_secrets(text, {"ticket"})] == [SECRET.encode()]
    assert SECRET.encode() not in scrub.redact_text(text)
