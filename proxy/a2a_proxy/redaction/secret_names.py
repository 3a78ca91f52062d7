"""Names that hold secrets: of JSON members, header fields and query parameters."""

import re
from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import Any, Final

_IGNORED = str.maketrans("", "", "_-. \u212a")
"""Separators, and the Kelvin sign, whose lower case is the letter k."""

TEXT: Final = 1
"""Strings under the name are secret."""
NUMBER: Final = 2
"""Numbers under the name are secret."""
LIST: Final = 4
"""Strings and numbers in an array of that name are secret."""
OBJECT: Final = 8
"""Strings and numbers in an object of that name are secret."""
SHORT: Final = 16
"""Only values of 4 to 12 characters are secret."""
PROTOCOL: Final = 32
"""A2A 0.1 has a field of that name, which stays (`scope.judged_name`)."""
SCHEME: Final = 64
"""Names of authentication schemes are not secret."""
COUNT: Final = 128
"""Strings of digits are not secret, as in `total_tokens`."""

_ALL: Final = TEXT | NUMBER | LIST | OBJECT
_UNIT: Final = TEXT | LIST | OBJECT
"""For names that are also units of counts, such as `token`. Numbers stay."""

_SESSION: Final = TEXT | NUMBER | LIST | PROTOCOL
_LOGINS: Final = (
    "user db database admin root smtp mail ftp ssh login account http proxy mysql pg postgres "
    "redis client service"
)

_WHOLE: Final = {
    **dict.fromkeys(("pwd", "pw", "proxyauthorization", "setcookie", "codeverifier"), _ALL),
    **dict.fromkeys(("clientassertion", "samlassertion", "jwtassertion"), _ALL),
    **dict.fromkeys(
        (f"{each}{end}" for each in _LOGINS.split() for end in ("pass", "pw", "pwd")), _ALL
    ),
    "bearer": _UNIT,
    **dict.fromkeys(("auth", "xauth"), TEXT | LIST | SCHEME),
    "pass": TEXT | COUNT,
    **dict.fromkeys(("pin", "otp", "totp", "otpcode"), TEXT | NUMBER | SHORT),
}
_END: Final = {
    **dict.fromkeys(("secret", "password", "passwd", "passphrase", "passcode"), _ALL),
    **dict.fromkeys(
        ("credential", "credentials", "authorization", "authheader", "cookie", "connectionstring"),
        _ALL,
    ),
    **dict.fromkeys(
        ("apikey", "privatekey", "secretkey", "accesskey", "signingkey", "authkey", "sharedkey"),
        _ALL,
    ),
    **dict.fromkeys(
        ("encryptionkey", "masterkey", "accountkey", "subscriptionkey", "sshkey", "hmackey"), _ALL
    ),
    "token": _UNIT,
    "jwt": TEXT | LIST,
    "sessionid": _SESSION,
}
"""Ends of secret names, each also followed by `s` or `value`."""
_ENDS: Final = tuple(_END)
_INNOCENT_END: Final = (
    "pagetoken",
    "continuationtoken",
    "synctoken",
    "progresstoken",
    "stoptoken",
    "eostoken",
    "bostoken",
    "padtoken",
    "unktoken",
    "masktoken",
    "septoken",
    "maxtoken",
    "nexttoken",
    "specialtoken",
    "addedtoken",
    # the conversation of a user in Google's ADK, which is in the context id too; it opens nothing
    "adksessionid",
)
_HEADER_END = (
    "token",
    "secret",
    "key",
    "password",
    "authorization",
    "cookie",
    "credential",
    "credentials",
)
_INNOCENT_HEADERS = frozenset(
    {
        "idempotencykey",
        "xidempotencykey",
        "secwebsocketkey",
        "cachekey",
        "xcachekey",
        "surrogatekey",
        "xsurrogatekey",
        "publickey",
        *("primarykey", "foreignkey", "sortkey", "partitionkey", "rowkey"),
        "accesscontrolallowcredentials",
    }
)
_HEADERS: Final = frozenset(
    {"authentication", "dpop", "xsid", "xotp", "xpin", "xpasscode", "secwebsocketprotocol"}
)
_PROOF_END: Final = (
    "session",
    "sessionid",
    "jwt",
    "assertion",
    "tokens",
    "apikeys",
    "secrets",
    "passwords",
    "otp",
    "auth",
)
"""Ends of header names that are secret only after a prefix: `X-Session`, `Ory-Kratos-Session`."""
_HEADER_PARTS: Final = ("authorization", "credential", "secret", "password", "apikey")
"""Parts of names of headers that are secret: `X-Credentials-Data`."""
_FACT_END: Final = (
    "id",
    "name",
    "type",
    "version",
    "url",
    "uri",
    "scheme",
    "status",
    "policy",
    "expires",
    "required",
)
"""Ends of header names that describe a secret."""
_PARAMETERS = frozenset(
    {
        "key",
        "sig",
        "signature",
        "token",
        "auth",
        "code",
        "pass",
        "pwd",
        "secret",
        "sid",
        "session",
        "jwt",
        "otp",
        "totp",
        "otpcode",
        "assertion",
        "xamzsignature",
        "xamzcredential",
        "xgoogsignature",
    }
)
AUTH_SCHEMES: Final = frozenset(
    b"none basic bearer digest oauth oauth2 openid oidc openidconnect apikey mtls mutualtls jwt "
    b"dpop password token "
    b"required optional".split()
)
"""Words for kinds of authentication, which are not secrets."""
_PASSING: Final = ("session", "sessionid", "sessionids", "sid", "pin", "otp", "totp", "otpcode")
"""Ends of names whose values are replaced only in their place: elsewhere they may be ids and common
words."""
_COUNTED: Final = re.compile(rb"[\d.,]+")
_SHORTEST_CODE: Final = 4
_LONGEST_CODE: Final = 12

_CLEAR = frozenset(
    {
        "contenttype",
        "contentlength",
        "host",
        "accept",
        "useragent",
        "a2aversion",
        "a2aextensions",
        "message",
        "messageid",
        "contextid",
        "taskid",
        "artifactid",
        "method",
        "jsonrpc",
        "result",
        "params",
        "status",
        "metadata",
        "filename",
        "mediatype",
        "protocolversion",
    }
)
"""Names of the protocol. A card that declares one of them for its API key is ignored, because it
would blank the recording."""

_ENVIRONMENT: Final = re.compile("[A-Z][A-Z0-9_]*")
_ENVIRONMENT_END: Final = re.compile(r"\w+_(?:PW|PASS|PWD)|PW|PASS|SSHPASS")
_ESCAPED = re.compile(r"\\u([0-9a-fA-F]{4})")


def fold_name(name: str) -> str:
    """Return the name without case and separators: `API-Key`, `api_key` and `apiKey` are the
    same."""
    return name.translate(_IGNORED).lower()


@lru_cache(maxsize=4096)
def member_kind(name: str) -> int:
    """Return flags (`TEXT`, ...) for the secret values of a member, Struct key or field of that
    name; 0 for none."""
    folded = fold_name(name)
    if (kind := _WHOLE.get(folded)) is not None:
        return kind
    stem = folded.removesuffix("value")
    for each in (stem, stem.removesuffix("s")):
        if each.endswith(_ENDS) and not each.endswith(_INNOCENT_END):
            kind = next(kind for end, kind in _END.items() if each.endswith(end))
            return kind | COUNT if kind == _UNIT and each != stem else kind
    return 0


def secret_member(name: str) -> bool:
    """Whether a JSON member, Struct key or protobuf field of that name may hold a secret."""
    return member_kind(name) != 0


def hides_text(kind: int, value: bytes) -> bool:
    """Whether a string under a name of this kind is secret."""
    if not kind & TEXT:
        return False
    if kind & SHORT:
        return _SHORTEST_CODE <= len(value) <= _LONGEST_CODE
    if kind & SCHEME and value.lower() in AUTH_SCHEMES:
        return False
    return not (kind & COUNT and len(value) <= _LONGEST_CODE and _COUNTED.fullmatch(value))


@lru_cache(maxsize=4096)
def is_learned(folded: str) -> bool:
    """Whether the values of a secret name are replaced elsewhere too."""
    return not folded.endswith(_PASSING)


@lru_cache(maxsize=4096)
def pair_name(name: str) -> str | None:
    """Return the name by which the value in `{"name": "DB_PASSWORD", "value": ...}` is judged.

    None if the value is not a secret.
    """
    if member_kind(name):
        return name
    return (
        "secret" if is_secret_variable(name) or (_is_custom(name) and secret_header(name)) else None
    )


def _is_custom(name: str) -> bool:
    """Whether a name is a header's wherever it is."""
    return name[:2].lower() == "x-"


def is_secret_variable(name: str) -> bool:
    """Whether a variable holds a secret. Environment variables may also end with KEY, PW, PASS or
    PWD."""
    if secret_member(name):
        return name != "PWD"  # the working directory
    environment = _ENVIRONMENT.fullmatch(name) is not None
    return environment and (credential_header(name) or _ENVIRONMENT_END.fullmatch(name) is not None)


@lru_cache(maxsize=4096)
def credential_header(name: str) -> bool:
    """Whether a header or metadata field of that name holds credentials that identify the client in
    each call."""
    folded = fold_name(name.lower().removesuffix("-bin"))
    return (
        folded.endswith(_HEADER_END)
        and folded not in _INNOCENT_HEADERS
        and not folded.endswith(_INNOCENT_END)
    )


@lru_cache(maxsize=4096)
def secret_header(name: str) -> bool:
    """Whether a header or metadata field of that name holds a secret; gRPC's `-bin` form counts as
    the plain one."""
    folded = fold_name(name)
    return _ends_as_secret(name) or (
        any(part in folded for part in _HEADER_PARTS)
        and folded not in _INNOCENT_HEADERS
        and not folded.endswith(_FACT_END)
    )


@lru_cache(maxsize=4096)
def secret_field(name: str) -> bool:
    """Whether `name: value` in a text holds a secret. Only after `X-` a part in the middle of the
    name is enough."""
    return secret_header(name) if _is_custom(name) else _ends_as_secret(name)


def _ends_as_secret(name: str) -> bool:
    if credential_header(name):
        return True
    folded = fold_name(name.lower().removesuffix("-bin"))
    return folded in _HEADERS or (
        folded.endswith(_PROOF_END)
        and folded not in _PROOF_END
        and not folded.removesuffix("s").endswith(_INNOCENT_END)
        and "ratelimit" not in folded
        and folded != "oauth"
    )


@lru_cache(maxsize=4096)
def parameter_kind(name: str) -> int:
    """Return the flags of `member_kind` for a query parameter or form field."""
    return TEXT if fold_name(name) in _PARAMETERS else member_kind(name)


def secret_parameter(name: str) -> bool:
    """Whether a query parameter or form field of that name may hold a secret."""
    return parameter_kind(name) != 0


def unescape_name(name: str) -> str:
    r"""Resolve the `\u` escapes in a member name of broken JSON."""
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), name)


def card_names(card: dict[str, Any]) -> set[str]:
    """Return the folded names that an agent card of any dialect declares for its API keys (A2A 1.0
    section 4.5).

    `in`/`name` up to 0.3, `location`/`name` within `apiKeySecurityScheme` in 1.0, and an object of
    that shape under `authentication` in 0.1.
    """
    found: set[str] = set()
    for member in ("securitySchemes", "security_schemes", "authentication"):
        _collect_names(card.get(member), found, 8)
    return {name for name in found if len(name) > 1 and name not in _CLEAR}


def _collect_names(value: Any, found: set[str], depth: int) -> None:
    if depth == 0:
        return
    if isinstance(value, dict):
        name = value.get("name")
        if isinstance(name, str) and ("in" in value or "location" in value):
            found.add(fold_name(name))
        for inner in value.values():
            _collect_names(inner, found, depth - 1)
    elif isinstance(value, list):
        for inner in value:
            _collect_names(inner, found, depth - 1)


def make_name_triggers() -> tuple[str, str]:
    """Return two RE2 expressions, without case, that match wherever a secret name is before its
    value, in any format.

    The second is for sessions, which A2A 0.1 has in every message.
    """
    sessions = {"session", "sessionid"}
    names = _spell({*_WHOLE, *_END, *_HEADERS, *_PROOF_END} - sessions)
    custom = rf"x-[\w\-]*{_spell(_HEADER_PARTS)}[\w\-. ]*"
    key = rf"{_spell(['key'])}(?:-bin)?"
    return "|".join(
        (
            rf"(?:{names}{_SUFFIX}|{custom}){_AFTER}",
            rf"--[\w\-]*{names}{_SUFFIX}{_SPACE}",
            rf"(?:[a-z0-9]{_GAP}{key}|(?-i:{_spell(['KEY'])})){_AFTER_QUOTE}",
            rf"{key}{_BETWEEN}[:=>]",
            rf"{_spell(_PARAMETERS)}\]?=",
            rf"{_spell(['value'])}{_GAP}\x12|form-data;|authorization_code|jwt-bearer",
        )
    ), rf"{_spell(sessions)}{_SUFFIX}{_AFTER}|--[\w\-]*{_spell(sessions)}{_SUFFIX}{_SPACE}"


def _spell(names: Iterable[str]) -> str:
    """Return an expression for folded names in any spelling."""
    return f"(?:{'|'.join(_GAP.join(name) for name in sorted(names))})"


_GAP: Final = r"[_\-. ]*"
_SUFFIX: Final = rf"(?:{_GAP}s)?(?:{_GAP}{_spell(['value'])})?{_GAP}(?:bin)?"
_SPACE: Final = r"(?:[\s\x0b]|\\+[nrtf])"
_BETWEEN: Final = rf"\]?{_SPACE}*"
_AFTER_QUOTE: Final = (
    rf"(?:\\*\"|[`']{_SPACE}*(?:[:=,]|value)|(?:[\n\r]|\\[nr]){_SPACE}*value|\n(?s:.){{1,3}}\x1a)"
)
"""After a double quote anything may follow, because broken JSON is searched too. `value` follows in
pairs of YAML and XML, and the last form is a pair of protobuf."""
_AFTER: Final = rf"(?:{_AFTER_QUOTE}|{_BETWEEN}[:=>\x12])"


def list_names_by_use() -> dict[str, Collection[str]]:
    """Return all folded names of this module by use. The manual lists them."""
    return {
        "Members, fields, flags and parameters": [
            name for name in _WHOLE if not _WHOLE[name] & SHORT
        ],
        f"The same, only for values of {_SHORTEST_CODE} to {_LONGEST_CODE} characters": [
            name for name in _WHOLE if _WHOLE[name] & SHORT
        ],
        "Names that end with one of these, also followed by `s` or `value`": _END,
        "Headers and metadata": _HEADERS,
        "Headers and metadata that end with one of these": _HEADER_END,
        "Headers and metadata that end with one of these after a prefix": _PROOF_END,
        "Headers and metadata that contain one of these": _HEADER_PARTS,
        "Query parameters and form fields": _PARAMETERS,
        "Never, although their end matches": _INNOCENT_END,
        "Never, as a header": _INNOCENT_HEADERS,
        "Never, as the end of a header that only contains such a word": _FACT_END,
    }
