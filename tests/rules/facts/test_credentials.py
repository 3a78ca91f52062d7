from __future__ import annotations

import pytest

from a2a_proxy.rules.facts.credentials import Credential
from a2a_proxy.rules.state.card_declarations import Scheme


@pytest.mark.parametrize("place", ["header", "query", "cookie"])
def test_an_api_key_belongs_to_a_scheme_of_its_place(place: str) -> None:
    """Also to a scheme that names no place. The name of a cookie is not compared: a credential is
    all cookies."""
    key = Credential(place, "X-Key", "v")
    assert key.fits_scheme(Scheme("apiKey", "x-key", place))
    assert key.fits_scheme(Scheme("apiKey", "x-key"))
    assert key.fits_scheme(Scheme("apiKey", "other", place)) is (place == "cookie")
    for other in {"header", "query", "cookie"} - {place}:
        assert not key.fits_scheme(Scheme("apiKey", "x-key", other))
    assert not key.fits_scheme(Scheme("http", "bearer"))


def test_a_bearer_token_belongs_to_each_scheme_with_tokens() -> None:
    token = Credential("authorization", "bearer", "v")
    assert all(token.fits_scheme(Scheme(kind)) for kind in ("http", "oauth2", "openIdConnect"))
    assert token.fits_scheme(Scheme("http", "bearer"))
    assert token.fits_scheme(Scheme("apiKey", "Authorization", "header"))
    assert not token.fits_scheme(Scheme("http", "basic"))
    assert not token.fits_scheme(Scheme("mutualTLS"))


@pytest.mark.parametrize(
    ("location", "name", "text"),
    [
        ("authorization", "bearer", "Authorization: Bearer"),
        ("cookie", "sid", "cookie"),
        ("userinfo", "me", "userinfo"),
        ("header", "X-Api-Key", "header X-Api-Key"),
        ("query", "key", "query key"),
    ],
)
def test_a_credential_is_described_by_its_place(location: str, name: str, text: str) -> None:
    assert str(Credential(location, name, "hidden")) == text
