"""Which credentials a request carries, by their kinds. The values are labels where redaction is on."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from a2a_proxy.model.exchange import Exchange
from a2a_proxy.protocol.rest_path import parse_query
from a2a_proxy.redaction.secret_names import credential_header, secret_parameter
from a2a_proxy.rules.state.card_declarations import CardDeclarations, Scheme

_HOP = frozenset({"proxy-authorization"})
"""Fields for proxies on the way, not for the agent."""
_SIGNED = frozenset(
    {"code", "sig", "signature", "xamzsignature", "xamzcredential", "xgoogsignature"}
    | {"sid", "session", "sessionid", "otp", "pin", "assertion", "codeverifier"}
)
"""Query parameters that are secret but no key of this protocol's."""
_BY_TOKEN = frozenset({"oauth2", "openIdConnect"})
"""Kinds of schemes the tokens of which go as `Authorization: Bearer`."""


class Credential(NamedTuple):
    """One credential of a request."""

    place: str
    """`authorization`, `header`, `query`, `cookie` or `userinfo`."""
    name: str
    """The scheme (lower case) of `authorization`, else the name of the field or parameter as sent."""
    value: str

    def __str__(self) -> str:
        """In words, without the value."""
        if self.place == "authorization":
            return f"Authorization: {self.name.title()}"
        return self.place if self.place in ("cookie", "userinfo") else f"{self.place} {self.name}"

    def fits(self, scheme: Scheme) -> bool:
        """It is a credential of this security scheme."""
        if self.place == "authorization":
            by_token = self.name == "bearer" and scheme.kind in _BY_TOKEN
            named = scheme.kind == "apiKey" and scheme.name.lower() == "authorization"
            return by_token or named or (scheme.kind == "http" and scheme.name in (self.name, ""))
        if scheme.kind != "apiKey":
            return False
        if self.place == "cookie":
            return scheme.place in ("cookie", "")
        return scheme.name.lower() == self.name.lower() and scheme.place in (self.place, "")


def credentials(exchange: Exchange, declared: CardDeclarations | None = None) -> list[Credential]:
    """All of them; `declared` tells under which names this agent wants API keys."""
    names = tuple([name for name, _ in exchange.request_headers])
    if declared is None and not _carry(names) and "?" not in exchange.target and "@" not in exchange.authority:
        return []
    return [*in_headers(exchange, declared), *in_url(exchange, declared)]


def in_headers(exchange: Exchange, declared: CardDeclarations | None = None) -> Iterator[Credential]:
    """Those of header fields or metadata."""
    wanted = _wanted(declared, "header")
    for raw, octets in exchange.request_headers:
        name, secret = _known(raw)
        if not secret and name not in wanted:
            continue
        if name == "authorization":
            scheme, _, rest = octets.decode("latin-1").strip().partition(" ")
            yield Credential("authorization", scheme.lower() if rest else "", rest or scheme)
        elif name == "cookie":
            yield Credential("cookie", name, octets.decode("latin-1"))
        else:
            yield Credential("header", name, octets.decode("latin-1"))


@lru_cache(1024)
def _carry(names: tuple[bytes, ...]) -> bool:
    """Fields of these names may hold credentials. Clients send the same names again and again."""
    return any(_known(raw)[1] for raw in names)


@lru_cache(4096)
def _known(raw: bytes) -> tuple[str, bool]:
    """A field's name in lower case, and whether fields of that name hold credentials."""
    name = raw.decode("latin-1").lower()
    return name, name in ("authorization", "cookie") or (credential_header(name) and name not in _HOP)


def in_url(exchange: Exchange, declared: CardDeclarations | None = None) -> Iterator[Credential]:
    """Those of the query and before the host."""
    _, mark, query = exchange.target.partition("?")
    if mark:
        wanted = _wanted(declared, "query")
        for name, value in parse_query(query.encode("latin-1", "replace")):
            folded = name.translate(_SEPARATORS).lower()
            if value and (name.lower() in wanted or (secret_parameter(name) and folded not in _SIGNED)):
                yield Credential("query", name, value)
    if "@" in exchange.authority:
        yield Credential("userinfo", "", exchange.authority.rpartition("@")[0])


_SEPARATORS = str.maketrans("", "", "_-. ")


def _wanted(declared: CardDeclarations | None, place: str) -> frozenset[str]:
    if declared is None:
        return frozenset()
    keys = declared.schemes.values()
    return frozenset(each.name.lower() for each in keys if each.kind == "apiKey" and each.place == place)


def principal(exchange: Exchange, declared: CardDeclarations | None = None) -> str:
    """Who asks: a digest of the credentials; empty where there are none."""
    found = [each.value for each in credentials(exchange, declared) if each.place != "cookie"]
    return hashlib.sha256("\n".join(found).encode()).hexdigest()[:16] if found else ""
