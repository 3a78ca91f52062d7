"""`--card-keys`: files that are none, the extra that is missing, private keys."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from a2a_proxy.cli.card_keys import MAX_BYTES, load_card_verifier
from a2a_proxy.installation import install_hint
from a2a_proxy.model.errors import UserError
from a2a_proxy.rules.examples.objects import CARD_KEYS, card, sign_card
from support_cli import run
from support_signed_cards import private_jwk, public_jwk

HINT = "the file must hold public keys: a JWK set, one JWK, or PEM"


def test_private_keys_are_accepted_and_reported(tmp_path: Path) -> None:
    key, keys = Ed25519PrivateKey.generate(), tmp_path / "keys.json"
    keys.write_bytes(CARD_KEYS)
    verifier, note = load_card_verifier(keys)
    assert (verifier.verify(sign_card(card()))[0].key, note) == ("key-1", "")
    many = [public_jwk(key, kid="a"), *(private_jwk(key, kid=f"k{number}") for number in range(5))]
    keys.write_text(str({"keys": many}).replace("'", '"'))
    _, note = load_card_verifier(keys)
    assert note == (
        f"--card-keys {keys} has private keys (k0, k1, k2, ...): "
        "only their public parts are used, which are enough"
    )


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"{}", ": neither a JWK set (`keys`) nor a JWK (`kty`)"),
        (b'{"keys": []}', ": `keys` is no array with keys"),
        (b" " * (MAX_BYTES + 1), " has more than 1 MiB"),
    ],
)
def test_a_file_without_keys(tmp_path: Path, data: bytes, words: str) -> None:
    """One line with the place, and one with the hint; nothing is made."""
    keys = tmp_path / "keys"
    keys.write_bytes(data)
    with pytest.raises(UserError) as caught:
        load_card_verifier(keys)
    assert (caught.value.message, caught.value.hint) == (f"--card-keys {keys}{words}", HINT)


def test_the_proxy_refuses_a_file_that_does_not_exist(tmp_path: Path) -> None:
    pair = ("--listen", "127.0.0.1:0", "--upstream", "127.0.0.1:1")
    done = run(tmp_path / "state", "a2a-proxy", *pair, "--card-keys", tmp_path / "gone")
    assert (done.code, done.err.splitlines()) == (
        2,
        [
            (
                "a2a-proxy: error: cannot read --card-keys "
                f"{tmp_path / 'gone'}: no such file or directory"
            ),
            f"a2a-proxy: hint: {HINT}",
        ],
    )


def test_the_extra_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserError) as caught:
        load_card_verifier(tmp_path / "keys")
    assert (caught.value.message, caught.value.hint) == (
        "--card-keys needs the extra cards",
        install_hint("cards"),
    )
