"""Secrets that are recognisable by their form or by the words around them: where each is planted,
and what is kept on purpose."""

from __future__ import annotations

import string
from random import Random
from typing import NamedTuple

ALNUM = string.ascii_letters + string.digits
WORD = ALNUM + "_-"
HEX = "0123456789abcdef"
CAPITALS = string.ascii_uppercase + "234567"
BASE64 = ALNUM + "+/"


class Key(NamedTuple):
    """The format of an API key, as its vendor or a public scanner describes it."""

    what: str
    prefix: str
    alphabet: str
    length: int
    suffix: str = ""

    def made(self, random: Random) -> str:
        """Return one such key."""
        return self.prefix + "".join(random.choices(self.alphabet, k=self.length)) + self.suffix


KEYS = [
    Key("AWS key id", "AKIA", CAPITALS, 16),
    Key("AWS temporary key id", "ASIA", CAPITALS, 16),
    Key("AWS bearer", "ABIA", CAPITALS, 16),
    Key("AWS context", "ACCA", CAPITALS, 16),
    Key("AWS old", "A3TX", CAPITALS, 16),
    Key("age", "AGE-SECRET-KEY-1", "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58),
    Key("age in small letters", "age-secret-key-1", "qpzry9x8gf2tvdw0s3jn54khce6mua7l", 58),
    Key("age, hybrid", "AGE-SECRET-KEY-PQ-1", "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58),
    Key("Adafruit", "aio_", ALNUM, 28),
    Key("Adobe", "p8e-", ALNUM, 32),
    Key("Alibaba", "LTAI", ALNUM, 20),
    Key("Airtable", "patAbC123dEf456Gh.", HEX, 64),
    Key("Amazon Bedrock", "ABSK", BASE64, 120),
    Key("Amazon Bedrock for a short time", "bedrock-api-key-", BASE64, 80),
    Key("Artifactory reference", "cmVmd", ALNUM, 59),
    Key("Authress", "sc_abc123def.a1b2.acc_abcdef-123456.", BASE64, 60),
    Key("ClickHouse", "4b1d", ALNUM, 38),
    Key("Cloudflare origin", "v1.0-0123456789abcdef01234567-", HEX, 146),
    Key("Defined Networking", "dnkey-ABCDEFGHIJKLMNOPQRSTUVWXYZ-", ALNUM, 52),
    Key("Frame.io", "fio-u-", WORD, 64),
    Key("GitLab registration", "GR1348941", WORD, 20),
    Key("Infracost", "ico-", ALNUM, 32),
    Key("Intra42", "s-s4t2ud-", HEX, 64),
    Key("Mapbox", "sk.eyJ", ALNUM, 70, ".AbCdEfGhIjKlMnOpQrStUv"),
    Key("1Password secret", "A3-ABCDEF-", CAPITALS, 11, "-ABCDE-FGHIJ-KLMNO"),
    Key("Plaid", "access-sandbox-", HEX, 8, "-0123-4567-89ab-0123456789ab"),
    Key("Anthropic", "sk-ant-api03-", WORD, 93, "AA"),
    Key("Anthropic admin", "sk-ant-admin01-", WORD, 93, "AA"),
    Key("Artifactory", "AKCp", ALNUM, 69),
    Key("Atlassian", "ATATT3", WORD + "=", 186),
    Key("Axiom", "xaat-", HEX + "-", 36),
    Key("Azure client secret", "aB38Q~", WORD + "~.", 34),
    Key("Bitbucket", "ATBB", ALNUM, 32),
    Key("Brevo", "xkeysib-", HEX, 64, "-AbCdEfGh12345678"),
    Key("CircleCI", "CCIPAT_", ALNUM, 22, "_0123456789abcdef0123456789abcdef01234567"),
    Key("Clojars", "CLOJARS_", HEX, 60),
    Key("Contentful", "CFPAT-", WORD, 43),
    Key("Databricks", "dapi", HEX, 32),
    Key("DigitalOcean", "dop_v1_", HEX, 64),
    Key("DigitalOcean OAuth", "doo_v1_", HEX, 64),
    Key("Discord bot", "MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.", WORD, 27),
    Key("Docker", "dckr_pat_", WORD, 27),
    Key("Doppler", "dp.pt.", ALNUM, 43),
    Key("Dropbox", "sl.", WORD, 135),
    Key("Duffel", "duffel_live_", WORD, 43),
    Key("Dynatrace", "dt0c01.ABCDEFGHIJKLMNOPQRSTUVWX.", ALNUM, 64),
    Key("E2B", "e2b_", HEX, 40),
    Key("EasyPost", "EZAK", ALNUM, 54),
    Key("ElevenLabs", "sk_", HEX, 48),
    Key("Facebook", "EAAC", ALNUM, 120),
    Key("Figma", "figd_", WORD, 40),
    Key("Flutterwave", "FLWSECK_TEST-", "abcdefgh0123456789", 32, "-X"),
    Key("Fly.io", "fo1_", WORD, 43),
    Key("GitHub", "ghp_", ALNUM, 36),
    Key("GitHub app", "ghs_", ALNUM, 36),
    Key(
        "GitHub fine-grained",
        "github_pat_",
        ALNUM,
        22,
        "_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVW",
    ),
    Key("GitLab", "glpat-", WORD, 20),
    Key("GitLab deploy", "gldt-", WORD, 20),
    Key("GitLab runner", "glrt-", WORD, 20),
    Key("GitLab trigger", "glptt-", HEX, 40),
    Key("GitLab job", "glcbt-", WORD, 25),
    Key("Google API", "AIza", WORD, 35),
    Key("Google OAuth secret", "GOCSPX-", WORD, 28),
    Key("Google access", "ya29.", WORD, 60),
    Key("Google refresh", "1//0", WORD, 60),
    Key("Grafana cloud", "glc_", BASE64, 60),
    Key("Grafana account", "glsa_", ALNUM, 32, "_0a1b2c3d"),
    Key("Groq", "gsk_", ALNUM, 52),
    Key("Harness", "pat.AbCdEfGhIjKlMnOpQrStUv.", ALNUM, 24, ".AbCdEfGhIjKlMnOpQrSt"),
    Key("Heroku", "HRKU-AA", WORD, 58),
    Key("HubSpot", "pat-na1-", HEX, 8, "-0123-4567-89ab-0123456789ab"),
    Key("Hugging Face", "hf_", string.ascii_letters, 34),
    Key("Kaggle", "KGAT_", HEX, 32),
    Key("LangSmith", "lsv2_pt_", HEX, 32, "_0123456789"),
    Key("Linear", "lin_api_", ALNUM, 40),
    Key("Mailgun", "key-", HEX, 32),
    Key("Netlify", "nfp_", ALNUM, 40),
    Key("New Relic", "NRAK-", ALNUM, 27),
    Key("Notion old", "secret_", ALNUM, 43),
    Key("Notion", "ntn_", ALNUM, 46),
    Key("npm", "npm_", ALNUM, 36),
    Key("NVIDIA", "nvapi-", WORD, 64),
    Key("Octopus", "API-", CAPITALS, 26),
    Key("1Password", "ops_eyJ", BASE64, 260),
    Key("OpenAI", "sk-", ALNUM, 48),
    Key("OpenAI project", "sk-proj-", WORD, 156),
    Key("OpenRouter", "sk-or-v1-", HEX, 64),
    Key("OpenShift", "sha256~", WORD, 43),
    Key("Perplexity", "pplx-", ALNUM, 48),
    Key("Pinecone", "pcsk_", ALNUM, 60),
    Key("PlanetScale", "pscale_tkn_", WORD, 43),
    Key("PlanetScale password", "pscale_pw_", WORD, 43),
    Key("Postman", "PMAK-", HEX, 24, "-0123456789abcdef0123456789abcdef01"),
    Key("Prefect", "pnu_", ALNUM, 36),
    Key("Pulumi", "pul-", HEX, 40),
    Key("PyPI", "pypi-AgEIcHlwaS5vcmc", WORD, 80),
    Key("ReadMe", "rdme_", ALNUM.lower(), 70),
    Key("Replicate", "r8_", ALNUM, 37),
    Key("Resend", "re_AbCd1234_", ALNUM, 24),
    Key("RubyGems", "rubygems_", HEX, 48),
    Key("SendGrid", "SG.", WORD, 22, ".AbCdEfGhIjKlMnOpQrStUvWxYz0123456789AbCdEfG"),
    Key("Sentry", "sntryu_", HEX, 64),
    Key("Shippo", "shippo_live_", HEX, 40),
    Key("Shopify", "shpat_", HEX, 32),
    Key("Shopify shared", "shpss_", HEX, 32),
    Key("Slack bot", "xoxb-123456789012-1234567890123-", ALNUM, 24),
    Key("Slack user", "xoxp-123456789012-123456789012-123456789012-", HEX, 32),
    Key("Slack app", "xapp-1-A0123456789-1234567890123-", HEX, 64),
    Key("Slack refresh", "xoxe-1-", ALNUM, 146),
    Key("SonarQube", "squ_", HEX, 40),
    Key("Sourcegraph", "sgp_", HEX, 40),
    Key("Square", "sq0atp-", WORD, 22),
    Key("Square production", "EAAA", WORD, 60),
    Key("Stripe", "sk_live_", ALNUM, 24),
    Key("Stripe restricted", "rk_live_", ALNUM, 24),
    Key("Stripe test", "sk_test_", ALNUM, 24),
    Key("Stripe webhook", "whsec_", BASE64, 32),
    Key("Supabase", "sbp_", HEX, 40),
    Key("Tailscale", "tskey-auth-", ALNUM, 30),
    Key("Telegram", "123456789:AA", WORD, 33),
    Key("Tencent", "AKID", ALNUM, 32),
    Key("Terraform", "AbCdEfGhIjKlMn.atlasv1.", WORD, 67),
    Key("Twilio", "SK", HEX, 32),
    Key("Typeform", "tfp_", WORD, 59),
    Key("Vault", "hvs.", WORD, 95),
    Key("Vault batch", "hvb.", WORD, 150),
    Key("xAI", "xai-", ALNUM, 80),
    Key("Yandex", "AQVN", WORD, 36),
]

LINES = {
    "flag": "agent --token {} -v",
    "flag after a flag": "agent --verbose --api-key {}",
    "flag of an API": "agent serve --access-token {}",
    "flag in camel case": "agent --authToken {} --port 9000",
    "flag with =": "agent --client-secret={} -v",
    "quoted flag": "agent --password '{}' -v",
    "flag at the end": "run it with `agent --secret {}` then",
    "auth flag": "agent --auth {}",
    "pass flag": "vpn --pass {} --user bob",
    "curl -u": "curl -u bob:{} http://127.0.0.1:8000/",
    "curl -su": "$ curl -su bob:{} http://127.0.0.1:8000/",
    "curl -u with a quote": 'curl -X POST -u "bob:{}" http://127.0.0.1:8000/',
    "curl --user": "curl --user bob:{} http://127.0.0.1:8000/",
    "curl --proxy-user": "curl --proxy-user=bob:{} http://127.0.0.1:8000/",
    "mysql -p": "mysql -h db -u root -p{} orders",
    "mysqldump -p": "mysqldump -uroot -p{} orders",
    "mariadb -p": "mariadb -u root -p{} orders",
    "sshpass": "sshpass -p {} ssh bob@host",
    "environment PW": "CORP_PW={} agent",
    "environment PASS": "SMTP_PASS={} agent",
    "environment PWD": "MYSQL_PWD={} mysqldump orders",
    "environment PGPASSWORD": "PGPASSWORD={} psql -h db",
    "environment KEY": "export HOUSE_KEY='{}'",
    "header": 'curl -H "Authorization: Bearer {}" http://127.0.0.1:8000/',
    "header of an API": "curl -H 'X-Api-Key: {}' http://127.0.0.1:8000/",
    "Azure storage": (
        "DefaultEndpointsProtocol=https;AccountName=me;"
        "AccountKey={};EndpointSuffix=core.windows.net"
    ),
    "Azure SAS": (
        "https://me.blob.core.windows.net/c/b?sv=2022-11-02&se=2030-01-01&sr=b&sp=r&sig={}"
    ),
    "Slack webhook": "post to https://hooks.slack.com/services/T{}/x",
    "URL password": "postgres://bob:{}@db:5432/orders",
    "YAML": 'password: "{}"',
    "GraphQL": 'mutation {login(user: "bob", password: "{}") {id}}',
    "TOML": "api_key = '{}'",
    "Python": 'api_key: str = "{}"',
    "list of words": "running ['agent', '--api-key', '{}']",
    "XML": "<user><password>{}</password></user>",
    "XML attribute": '<add key="ApiKey" value="{}"/>',
    "header in a log": "X-Custom-Secret-Value: {}",
}
"""Lines with a random word of letters and digits in place of `{}`."""

PLACES = (
    *("message", "metadata", "artifact", "error", "protobuf", "struct"),
    *("stderr", "card", "header", "query", "grpc-message"),
)
EACH = 3
"""Number of places of each line. Each has another secret, because a secret that was found once is
found again by its value."""


class Plant(NamedTuple):
    """A secret, the line with it, and the place of the line."""

    what: str
    place: str
    line: str
    secret: str


def planted() -> list[Plant]:
    """Return all planted secrets, the same in each run."""
    random = Random(14)
    lines = [(key.what, "use {} for this", key) for key in KEYS]
    lines += [(what, line, Key(what, "q", ALNUM, 22)) for what, line in LINES.items()]
    found = []
    for index, (what, line, key) in enumerate(lines):
        for offset in range(EACH):
            secret = key.made(random)
            place = PLACES[(index * EACH + offset) % len(PLACES)]
            found.append(Plant(f"{what} in {place}", place, line.replace("{}", secret), secret))
    return found


class Rest(NamedTuple):
    """A secret that is not redacted, and the reason."""

    place: str
    line: str
    secret: str
    why: str


REMAINS = [
    Rest(
        "path",
        "/v1/tenants/qZ3vT8mK1pLw9XyB/rpc",
        "qZ3vT8mK1pLw9XyB",
        "a segment of a path has no name",
    ),
    Rest(
        "message",
        "the password is wD5nR2sJ7hGc4Vta, keep it",
        "wD5nR2sJ7hGc4Vta",
        "prose says so, no form does",
    ),
    Rest(
        "stderr",
        "starting agent eM9bU6fYxQ1oZk3i",
        "eM9bU6fYxQ1oZk3i",
        "an argument without a flag",
    ),
    Rest(
        "stderr",
        "tool -p kH8gB3vN6mT1rWsC",
        "kH8gB3vN6mT1rWsC",
        "a short flag of an unknown program",
    ),
    Rest(
        "metadata",
        "4f0c9b2a7d5e8163aa90c3d1e5f72b84-us19",
        "4f0c9b2a7d5e8163aa90c3d1e5f72b84",
        "hexadecimal digits alone",
    ),
]

STRUCTURED: dict[str, list[str]] = {
    "named header": [
        *(
            "X-Auth: {}",
            "DPoP: {}",
            "X-Session: {}",
            "X-Session-Id: {}",
            "X-Sid: {}",
            "Ory-Kratos-Session: {}",
        ),
        *("X-JWT-Assertion: {}", "X-Passcode: {}", "X-OTP: {}", "X-PIN: {}", "X-Tokens: {}"),
        *(
            "Authentication: {}",
            "X-Authorization-Extra: {}",
            "X-Credentials-Data: {}",
            "X-Custom-Secret-Value: {}",
        ),
        *("Corp-Auth: {}", "Sec-WebSocket-Protocol: bearer, {}"),
    ],
    "named query": [
        "sid={}",
        "session={}",
        "jwt={}",
        "otp={}",
        "otp=12345678{}",
        "assertion={}",
        "user[password]={}",
    ],
    "data": [
        *(
            f'{{"{name}": "{{}}"}}'
            for name in ("jwt", "auth", "pass", "userPass", "passcode", "clientAssertion")
        ),
        *(
            f'{{"{name}": "{{}}"}}'
            for name in ("code_verifier", "tokenValue", "apiKeyValue", "connectionString")
        ),
        *(
            f'{{"{name}": ["{{}}"]}}'
            for name in ("password", "tokens", "apiKeys", "secrets", "passwords")
        ),
        '{"credentials": {"pw": "{}"}}',
        '{"secret": {"db": [{"value": "{}"}]}}',
        '{"settings": {"sessionId": "{}"}}',
        '{"name": "DB_PASSWORD", "value": "{}"}',
        '{"manifest": "- name: DB_PASSWORD\\n  value: {}"}',
        '{"accessKeyId": "{}", "secretAccessKey": "x"}',
        '{"args": ["agent", "--api-key", "{}", "-v"]}',
        *(f'{{"{name}": "{{}}"}}' for name in ("authHeader", "login_pw", "db_pwd", "apiKeysValue")),
        '{"headers": [["Authorization", "{}"]]}',
    ],
    "number": ['{"apiKey": {}}', '{"pin": {}}', '{"otp": "{}"}'],
}
"""Places whose names or structure are the only sign of a secret. `{}` is the secret."""


def split() -> list[Plant]:
    """Return one key of each format, each in a text that is sent in pieces."""
    random = Random(16)
    secrets = [(key.what, key.made(random)) for key in KEYS]
    return [Plant(what, "pieces", f"use {secret} for this", secret) for what, secret in secrets]


def private_key(lines: int = 25) -> list[str]:
    """Return the lines of a private key."""
    random = Random(17)
    body = ["".join(random.choices(BASE64, k=64)) for _ in range(lines)]
    return ["-----BEGIN RSA PRIVATE KEY-----", *body, "-----END RSA PRIVATE KEY-----"]


def structured() -> list[Plant]:
    """Return a secret for each of these: a word, or a number of ten digits."""
    random = Random(15)
    found = []
    for place, lines in STRUCTURED.items():
        for line in lines:
            key = Key("", "7", "0123456789", 9) if place == "number" else Key("", "q", ALNUM, 9)
            secret = key.made(random)
            found.append(
                Plant(
                    line, "data" if place == "number" else place, line.replace("{}", secret), secret
                )
            )
    return found
