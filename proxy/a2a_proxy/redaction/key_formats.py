"""Forms of keys: the maker's prefix, an alphabet, a length. `secret_patterns` searches for them."""

import re
from typing import Final, NamedTuple

WORD: Final = r"A-Za-z0-9_\-"
_ALNUM: Final = "A-Za-z0-9"
_HEX: Final = "0-9a-fA-F"
_UPPER: Final = "A-Z0-9"
_BASE64: Final = "A-Za-z0-9+/"


class KeyFormat(NamedTuple):
    """One form of key: a prefix, then at least `length` characters of `alphabet`, or exactly as
    many if `exact`."""

    maker: str
    prefixes: tuple[str, ...]
    alphabet: str
    length: int
    exact: bool = False
    """Whether longer words are not keys. For prefixes so short that other words have them too."""
    before: str = ""
    """A regular expression for the part of the key before `near`."""
    near: str = ""
    """A regular expression for the part directly before the prefix, which the trigger requires
    too."""
    after: str = ""
    """A regular expression for the part between the prefix and the counted characters."""


_STRIPE: Final = tuple(f"{kind}k_{mode}_" for kind in "prs" for mode in ("live", "test", "prod"))

FORMATS: Final = (
    KeyFormat("1Password", ("A3-",), _UPPER + r"\-", 29, after="[A-Z0-9]{6}-"),
    KeyFormat("1Password", ("ops_eyJ",), _BASE64, 200),
    KeyFormat("Adafruit", ("aio_",), _ALNUM, 28, exact=True),
    KeyFormat("Adobe", ("p8e-",), _ALNUM, 32, exact=True),
    KeyFormat("age", ("AGE-SECRET-KEY-",), _UPPER + r"\-", 40),
    KeyFormat("age", ("age-secret-key-",), r"a-z0-9\-", 40),
    KeyFormat("Airtable", ("pat",), _HEX, 64, exact=True, after=r"[A-Za-z0-9]{14}\."),
    KeyFormat("Alibaba Cloud", ("LTAI",), _ALNUM, 12),
    KeyFormat("Amazon Bedrock", ("ABSK",), _BASE64 + "=", 100),
    KeyFormat("Amazon Bedrock", ("bedrock-api-key-",), _BASE64 + "=", 40),
    KeyFormat("Anyscale", ("esecret_",), _ALNUM, 20),
    KeyFormat("Appwrite", ("standard_",), _HEX, 200),
    KeyFormat("Artifactory", ("AKCp",), _ALNUM, 60),
    KeyFormat("Artifactory", ("cmVmd",), _ALNUM, 59, exact=True),
    KeyFormat("Atlassian", ("ATATT3", "ATCTT3", "ATSTT3", "ATBB"), WORD + "=", 24),
    KeyFormat(
        "Authress",
        ("sc_", "ext_", "scauth_", "authress_"),
        _BASE64 + r"_\-=",
        30,
        after=r"[a-z0-9]{5,30}\.[a-z0-9]{4,6}\.acc[_\-][a-z0-9\-]{10,32}\.",
    ),
    KeyFormat("AWS", ("AKIA", "ASIA", "ABIA", "ACCA"), _UPPER, 16, exact=True),
    KeyFormat("AWS", ("A3T",), _UPPER, 17, exact=True),
    KeyFormat("Axiom", ("xaat-", "xapt-"), WORD, 30),
    KeyFormat(
        "Azure client secret", ("Q~",), WORD + "~.", 31, before=r"[A-Za-z0-9_~.\-]{3}", near="[0-9]"
    ),
    KeyFormat("Baidu", ("ALTAK-",), WORD + "/", 20),
    KeyFormat("Brevo", ("xkeysib-", "xsmtpsib-"), WORD, 60),
    KeyFormat("Browserbase", ("bb_live_",), WORD, 20),
    KeyFormat("Buildkite", ("bkua_",), _HEX, 40),
    KeyFormat("Cerebras", ("csk-",), _ALNUM, 40),
    KeyFormat("CircleCI", ("CCIPAT_", "CCIPRJ_"), _ALNUM + "_", 40),
    KeyFormat("ClickHouse", ("4b1d",), _ALNUM, 38, exact=True),
    KeyFormat("Clojars", ("CLOJARS_",), _ALNUM, 60),
    KeyFormat("Cloudflare", ("v1.0-",), _HEX, 146, exact=True, after="[0-9a-f]{24}-"),
    KeyFormat("CockroachDB", ("CCDB1_",), _ALNUM + "_", 40),
    KeyFormat("Contentful", ("CFPAT-",), WORD, 40),
    KeyFormat("Databricks", ("dapi",), _HEX, 32),
    KeyFormat("Defined Networking", ("dnkey-",), WORD + "=", 52, after=r"[A-Za-z0-9=_\-]{26}-"),
    KeyFormat("DigitalOcean", ("dop_v1_", "doo_v1_", "dor_v1_"), _HEX, 64),
    KeyFormat(
        "Discord",
        (".",),
        WORD,
        27,
        before=rf"[MNO][{WORD}]{{22,25}}",
        near=rf"[{WORD}]",
        after=rf"[{WORD}]{{6}}\.",
    ),
    KeyFormat("Docker", ("dckr_pat_", "dckr_oat_"), WORD, 20),
    KeyFormat(
        "Doppler",
        ("dp.pt.", "dp.st.", "dp.ct.", "dp.sa.", "dp.scim.", "dp.audit."),
        _ALNUM + "._",
        40,
    ),
    KeyFormat("Dropbox", ("sl.",), WORD, 100),
    KeyFormat("Duffel", ("duffel_test_", "duffel_live_"), WORD + "=", 40),
    KeyFormat("Dynatrace", ("dt0c01.", "dt0s01.", "dt0s16."), _ALNUM + ".", 80),
    KeyFormat("E2B", ("e2b_",), _HEX, 40),
    KeyFormat("EasyPost", ("EZAK", "EZTK"), _ALNUM, 54, exact=True),
    KeyFormat("ElevenLabs", ("sk_",), _HEX, 48, exact=True),
    KeyFormat("Facebook", ("EAAM", "EAAC"), _ALNUM, 100),
    KeyFormat("Figma", ("figd_", "figo_", "figu_"), WORD, 36),
    KeyFormat("Fireworks", ("fw_",), _ALNUM, 22, exact=True),
    KeyFormat("Flutterwave", ("FLWSECK-", "FLWSECK_TEST-"), WORD, 12),
    KeyFormat("Fly.io", ("fo1_", "fm1a_", "fm1r_", "fm2_"), _BASE64 + r"_\-=", 43),
    KeyFormat("Frame.io", ("fio-u-",), WORD + "=", 64),
    KeyFormat("GitHub", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), _ALNUM, 16),
    KeyFormat("GitHub", ("github_pat_",), _ALNUM + "_", 22),
    KeyFormat(
        "GitLab",
        (
            "glpat-",
            "gldt-",
            "glrt-",
            "glptt-",
            "glcbt-",
            "gloas-",
            "glft-",
            "glsoat-",
            "glimt-",
            "glagent-",
            "glffct-",
            "glwt-",
        ),
        WORD + ".",
        20,
    ),
    KeyFormat("GitLab", ("GR1348941",), WORD, 20),
    KeyFormat("Google", ("AIza",), WORD, 35, exact=True),
    KeyFormat("Google", ("GOCSPX-",), WORD, 20),
    KeyFormat("Google", ("ya29.",), WORD + ".", 20),
    KeyFormat("Google", ("1//0",), WORD, 30),
    KeyFormat("Grafana", ("glc_",), _BASE64, 32),
    KeyFormat("Grafana", ("glsa_",), _ALNUM + "_", 32),
    KeyFormat("Grafana", ("eyJrIjoi",), _ALNUM, 60),
    KeyFormat("Groq", ("gsk_",), _ALNUM, 40),
    KeyFormat("Harness", ("pat.", "sat."), _ALNUM + "._", 40, after=r"[A-Za-z0-9_\-]{22}\."),
    KeyFormat(
        "HashiCorp Terraform",
        (".atlasv1.",),
        WORD + "=",
        60,
        before=r"[A-Za-z0-9]{13}",
        near="[A-Za-z0-9]",
    ),
    KeyFormat("HashiCorp Vault", ("hvs.", "hvb.", "hvr."), WORD, 24),
    KeyFormat("Heroku", ("HRKU-AA",), WORD, 50),
    KeyFormat("Honeycomb", ("hcaik_", "hcxik_", "hcamk_"), _ALNUM + "_", 40),
    KeyFormat("HubSpot", ("pat-",), _HEX + r"\-", 36, after=r"[a-z]{2}[0-9]-"),
    KeyFormat("Hugging Face", ("hf_", "api_org_"), _ALNUM, 30),
    KeyFormat("Infracost", ("ico-",), _ALNUM, 32, exact=True),
    KeyFormat("Intra42", ("s-s4t2ud-", "s-s4t2af-"), _HEX, 64),
    KeyFormat("Jina", ("jina_",), WORD, 40),
    KeyFormat("Kaggle", ("KGAT_",), _ALNUM, 30),
    KeyFormat("Klaviyo", ("pk_",), _HEX, 34, exact=True),
    KeyFormat("LangSmith", ("lsv2_pt_", "lsv2_sk_"), _HEX + "_", 32),
    KeyFormat("Linear", ("lin_api_", "lin_oauth_"), _ALNUM, 32),
    KeyFormat("LlamaCloud", ("llx-",), WORD, 30),
    KeyFormat("Logfire", ("pylf_v1_",), _ALNUM + "_", 30),
    KeyFormat("Mailgun", ("key-",), _HEX, 32, exact=True),
    KeyFormat("Mapbox", ("sk.eyJ",), WORD + ".", 60),
    KeyFormat("MongoDB Atlas", ("mdb_sa_sk_",), WORD, 30),
    KeyFormat("Neon", ("napi_",), _ALNUM, 40),
    KeyFormat("Netlify", ("nfp_", "nfo_", "nfc_", "nfu_"), _ALNUM, 30),
    KeyFormat("New Relic", ("NRAK-", "NRAA-", "NRII-"), WORD, 27),
    KeyFormat("Notion", ("ntn_",), _ALNUM, 40),
    KeyFormat("Notion", ("secret_",), _ALNUM, 43, exact=True),
    KeyFormat("npm", ("npm_",), _ALNUM, 36, exact=True),
    KeyFormat("NVIDIA", ("nvapi-",), WORD, 40),
    KeyFormat("Octopus Deploy", ("API-",), _UPPER, 26),
    KeyFormat("OpenAI, Anthropic, OpenRouter and others", ("sk-", "rk-", "pk-"), WORD, 16),
    KeyFormat("OpenShift", ("sha256~",), WORD, 43),
    KeyFormat("Perplexity", ("pplx-",), _ALNUM, 40),
    KeyFormat("Pinecone", ("pcsk_",), _ALNUM + "_", 40),
    KeyFormat("PlanetScale", ("pscale_tkn_", "pscale_oauth_", "pscale_pw_"), WORD + "=.", 30),
    KeyFormat("PostHog", ("phx_",), _ALNUM, 40),
    KeyFormat(
        "Plaid", ("access-sandbox-", "access-development-", "access-production-"), _HEX + r"\-", 36
    ),
    KeyFormat("Postman", ("PMAK-",), _HEX + r"\-", 50),
    KeyFormat("Prefect", ("pnu_",), _ALNUM, 36),
    KeyFormat("Pulumi", ("pul-",), _HEX, 40),
    KeyFormat("PyPI", ("pypi-AgE",), WORD, 50),
    KeyFormat("ReadMe", ("rdme_",), _ALNUM, 60),
    KeyFormat("Render", ("rnd_",), _ALNUM, 28, exact=True),
    KeyFormat("Replicate", ("r8_",), _ALNUM, 37, exact=True),
    KeyFormat("Resend", ("re_",), _ALNUM, 24, after=r"[A-Za-z0-9]{8}_"),
    KeyFormat("RubyGems", ("rubygems_",), _HEX, 48),
    KeyFormat("Scalingo", ("tk-us-",), WORD, 48),
    KeyFormat("SendGrid", ("SG.",), WORD + ".", 60),
    KeyFormat("Sentry", ("sntrys_eyJ",), _BASE64 + "_=", 30),
    KeyFormat("Sentry", ("sntryu_",), _HEX, 64),
    KeyFormat("SettleMint", ("sm_aat_", "sm_pat_", "sm_sat_"), _ALNUM, 16),
    KeyFormat("Shippo", ("shippo_live_", "shippo_test_"), _HEX, 40),
    KeyFormat("Shopify", ("shpat_", "shpca_", "shppa_", "shpss_", "shpua_"), _HEX, 32),
    KeyFormat(
        "Slack",
        ("xoxa-", "xoxb-", "xoxe-", "xoxo-", "xoxp-", "xoxr-", "xoxs-", "xoxe.xoxb-", "xoxe.xoxp-"),
        WORD,
        10,
    ),
    KeyFormat("Slack", ("xapp-",), WORD, 20),
    KeyFormat("Snyk", ("snyk_uat.", "snyk_sat."), WORD + ".", 30),
    KeyFormat("SonarQube", ("sqp_", "squ_", "sqa_"), _HEX, 40),
    KeyFormat("Sourcegraph", ("sgp_",), _ALNUM + "_", 40),
    KeyFormat("Square", ("sq0atp-", "sq0csp-"), WORD, 22),
    KeyFormat("Square", ("EAAA",), WORD, 56),
    KeyFormat("Stripe, Clerk, Paystack", _STRIPE, _ALNUM, 16),
    KeyFormat("Stripe, Svix", ("whsec_",), _BASE64 + "=", 24),
    KeyFormat("Supabase", ("sbp_",), _HEX, 40),
    KeyFormat("Supabase", ("sb_secret_",), WORD, 20),
    KeyFormat("Tailscale", ("tskey-",), WORD, 16),
    KeyFormat("Telegram", (":A",), WORD, 33, before="[0-9]{7,9}", near="[0-9]"),
    KeyFormat("Tencent Cloud", ("AKID",), _ALNUM, 32, exact=True),
    KeyFormat("Together", ("tgp_v1_",), WORD, 40),
    KeyFormat("Twilio", ("SK",), "0-9a-f", 32, exact=True),
    KeyFormat("Typeform", ("tfp_",), WORD + ".=", 40),
    KeyFormat("Vercel", ("vck_", "vercel_blob_rw_"), _ALNUM + "_", 40),
    KeyFormat("Weights & Biases", ("wandb_v1_",), WORD, 40),
    KeyFormat("xAI", ("xai-",), _ALNUM, 60),
    KeyFormat("Yandex Cloud", ("AQVN",), WORD, 35),
)

WEBHOOKS: Final = (
    KeyFormat(
        "Discord",
        ("discord.com/api/webhooks/", "discordapp.com/api/webhooks/"),
        WORD,
        40,
        after="[0-9]{10,24}/",
    ),
    KeyFormat(
        "Slack",
        tuple(f"hooks.slack.com/{kind}/" for kind in ("services", "workflows", "triggers")),
        WORD + "/",
        20,
    ),
    KeyFormat("Microsoft Teams", ("webhook.office.com/webhookb2/",), WORD + "@/", 60),
    KeyFormat("Telegram", ("api.telegram.org/bot",), WORD + ":", 35),
    KeyFormat("Zapier", ("hooks.zapier.com/hooks/catch/",), WORD + "/", 16),
)
"""Addresses whose last part is the secret. Only that part is replaced."""

# A key starts at the start of a word, after a percent-encoded character, or after an escape such as
# `\n`.
_BEGIN: Final = r"(?:(?<![A-Za-z0-9_\-])|(?<=%[0-9A-Fa-f]{2})|(?<=\\[nrt]))"


def compile_formats() -> re.Pattern[bytes]:
    """Return one pattern for all forms. The last group that matched is the secret: a key, or the
    end of an address."""
    by_start: dict[str, list[str]] = {}
    for form in FORMATS:
        for prefix in form.prefixes:
            rest = re.escape(prefix[1:]) + _make_tail_expression(form)
            by_start.setdefault(form.before + form.near + re.escape(prefix[0]), []).append(rest)
    keys = "|".join(f"{start}(?:{'|'.join(rests)})" for start, rests in by_start.items())
    hooks = "|".join(
        f"{re.escape(prefix)}({_make_tail_expression(form)})"
        for form in WEBHOOKS
        for prefix in form.prefixes
    )
    return re.compile(f"{_BEGIN}({keys})|{hooks}".encode())


def compile_beginnings() -> re.Pattern[bytes]:
    """Return a pattern for keys without their end: the last group that matched extends to the end
    of the bytes."""
    keys = "|".join(
        re.escape(prefix) for form in FORMATS if not form.near for prefix in form.prefixes
    )
    hooks = "|".join(re.escape(prefix) for form in WEBHOOKS for prefix in form.prefixes)
    rest = rf"[{WORD}.=+/:]"
    return re.compile(rf"(?:{_BEGIN}((?:{keys}|eyJ){rest}*)|(?:{hooks})({rest}+))\Z".encode())


def _make_tail_expression(form: KeyFormat) -> str:
    count, end = ("", rf"(?![{WORD}])") if form.exact else (",", "")
    return f"{form.after}[{form.alphabet}]{{{form.length}{count}}}{end}"


_COUNTED: Final = 16
"""Counted characters that a trigger requires, at most."""


def make_key_trigger() -> str:
    """Return an RE2 expression that matches wherever `compile_formats` does: it requires no bounds
    of words, and fewer characters.
    """
    return "|".join(
        f"{form.near}{re.escape(prefix)}{form.after}"
        f"[{form.alphabet}]{{{min(_COUNTED, form.length)}}}"
        for form in (*FORMATS, *WEBHOOKS)
        for prefix in form.prefixes
    )
