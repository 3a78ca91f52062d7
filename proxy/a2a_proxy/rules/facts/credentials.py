"""Credentials carried by a request, by kind. With redaction on, their values are labels."""

import hashlib
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from a2a_proxy.model.values import Exchange
from a2a_proxy.protocol.rest_path import parse_query
from a2a_proxy.redaction.secret_names import credential_header, secret_parameter
from a2a_proxy.rules.state.card_declarations import CardDeclarations, Scheme

_PROXY_FIELDS = frozenset({"proxy-authorization"})
"""Header fields addressed to proxies, not to the agent."""
_SIGNED = frozenset(
    {"code", "sig", "signature", "xamzsignature", "xamzcredential", "xgoogsignature"}
    | {"sid", "session", "sessionid", "otp", "pin", "assertion", "codeverifier"}
)
"""Query parameters that are secret but are not A2A API keys or tokens."""
_BY_TOKEN = frozenset({"oauth2", "openIdConnect"})
"""Kinds of security schemes whose tokens are sent as `Authorization: Bearer`."""


class Credential(NamedTuple):
    """One credential of a request."""

    location: str
    """`authorization`, `header`, `query`, `cookie` or `userinfo`."""
    name: str
    """The scheme (lower case) of `authorization`, otherwise the name of the field or parameter as
    sent."""
    value: str

    def __str__(self) -> str:
        """Return a description without the value."""
        if self.location == "authorization":
            return f"Authorization: {self.name.title()}"
        return (
            self.location
            if self.location in ("cookie", "userinfo")
            else f"{self.location} {self.name}"
        )

    def fits_scheme(self, scheme: Scheme) -> bool:
        """Whether this credential belongs to the security scheme."""
        if self.location == "authorization":
            by_token = self.name == "bearer" and scheme.kind in _BY_TOKEN
            named = scheme.kind == "apiKey" and scheme.name.lower() == "authorization"
            return by_token or named or (scheme.kind == "http" and scheme.name in (self.name, ""))
        if scheme.kind != "apiKey":
            return False
        if self.location == "cookie":
            return scheme.place in ("cookie", "")
        return scheme.name.lower() == self.name.lower() and scheme.place in (self.location, "")


def find_credentials(
    exchange: Exchange, declared: CardDeclarations | None = None
) -> list[Credential]:
    """Return all credentials of the request; `declared` supplies the names under which this agent
    expects API keys."""
    names = tuple([name for name, _ in exchange.request_headers])
    if (
        declared is None
        and not _may_hold_credentials(names)
        and "?" not in exchange.target
        and "@" not in exchange.authority
    ):
        return []
    return [*header_credentials(exchange, declared), *url_credentials(exchange, declared)]


def header_credentials(
    exchange: Exchange, declared: CardDeclarations | None = None
) -> Iterator[Credential]:
    """Yield the credentials in header fields or metadata."""
    wanted = _api_key_names(declared, "header")
    for raw, data in exchange.request_headers:
        name, secret = _classify_field(raw)
        if not secret and name not in wanted:
            continue
        if name == "authorization":
            scheme, _, rest = data.decode("latin-1").strip().partition(" ")
            yield Credential("authorization", scheme.lower() if rest else "", rest or scheme)
        elif name == "cookie":
            yield Credential("cookie", name, data.decode("latin-1"))
        else:
            yield Credential("header", name, data.decode("latin-1"))


@lru_cache(1024)
def _may_hold_credentials(names: tuple[bytes, ...]) -> bool:
    """Whether a field of one of these names may hold credentials. Cached because clients repeat the
    same names."""
    return any(_classify_field(raw)[1] for raw in names)


@lru_cache(4096)
def _classify_field(raw: bytes) -> tuple[str, bool]:
    """Return a field's name in lower case, and whether fields of that name hold credentials."""
    name = raw.decode("latin-1").lower()
    return name, name in ("authorization", "cookie") or (
        credential_header(name) and name not in _PROXY_FIELDS
    )


def url_credentials(
    exchange: Exchange, declared: CardDeclarations | None = None
) -> Iterator[Credential]:
    """Yield the credentials in the query and in the user info of the authority."""
    _, mark, query = exchange.target.partition("?")
    if mark:
        wanted = _api_key_names(declared, "query")
        for name, value in parse_query(query.encode("latin-1", "replace")):
            folded = name.translate(_SEPARATORS).lower()
            if value and (
                name.lower() in wanted or (secret_parameter(name) and folded not in _SIGNED)
            ):
                yield Credential("query", name, value)
    if "@" in exchange.authority:
        yield Credential("userinfo", "", exchange.authority.rpartition("@")[0])


_SEPARATORS = str.maketrans("", "", "_-. ")


def _api_key_names(declared: CardDeclarations | None, place: str) -> frozenset[str]:
    if declared is None:
        return frozenset()
    keys = declared.schemes.values()
    return frozenset(
        each.name.lower() for each in keys if each.kind == "apiKey" and each.place == place
    )


def principal_digest(exchange: Exchange, declared: CardDeclarations | None = None) -> str:
    """Return a digest of the credentials, which identifies the principal; empty if the request has
    none."""
    found = [
        each.value for each in find_credentials(exchange, declared) if each.location != "cookie"
    ]
    return hashlib.sha256("\n".join(found).encode()).hexdigest()[:16] if found else ""
