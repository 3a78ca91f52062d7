"""Files of keys: JWK sets, single keys, PEM, private keys, and texts that are none."""

from __future__ import annotations

import json

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from a2a_proxy.cards.keys import KeyFileError, parse_keys
from support_signed_cards import KEYS, private_jwk, public_jwk

ED = ed25519.Ed25519PrivateKey.generate()
P384 = ec.generate_private_key(ec.SECP384R1())
SECRET = {"kty": "oct", "k": "c2VjcmV0"}


def pem(
    key: ed25519.Ed25519PrivateKey | ec.EllipticCurvePrivateKey | ed448.Ed448PrivateKey,
) -> bytes:
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def private_pem(password: bytes = b"") -> bytes:
    way = BestAvailableEncryption(password) if password else NoEncryption()
    return P384.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, way)


def test_a_jwk_set() -> None:
    found = parse_keys(KEYS.read_bytes())
    assert found.private == ()
    assert [(each.kid, each.label, each.algorithms) for each in found.keys][:2] == [
        ("python-0.3", "python-0.3", ("ES256",)),
        ("python-1.1.2", "python-1.1.2", ("ES256",)),
    ]


def test_one_jwk_without_id_and_a_secret() -> None:
    key = parse_keys(json.dumps(public_jwk(ED)).encode()).keys[0]
    assert (key.kid, key.label, key.algorithms) == ("", "key 1", ("EdDSA", "Ed25519"))
    secret = parse_keys(json.dumps(SECRET | {"kid": "s"}).encode())
    assert (secret.keys[0].algorithms, secret.private) == (("HS256", "HS384", "HS512"), ())
    only = parse_keys(json.dumps(SECRET | {"alg": "HS512"}).encode()).keys[0]
    assert only.algorithms == ("HS512",)


def test_several_pem_blocks_with_text_between_them() -> None:
    text = b"# old\n" + pem(ED) + b"# new\n" + pem(P384) + pem(ed448.Ed448PrivateKey.generate())
    found = parse_keys(text)
    assert [(each.label, each.algorithms) for each in found.keys] == [
        ("key 1", ("EdDSA", "Ed25519")),
        ("key 2", ("ES384",)),
        ("key 3", ("EdDSA", "Ed448")),
    ]


def test_private_keys_are_reported_and_only_their_public_part_is_kept() -> None:
    found = parse_keys(pem(ED) + private_pem())
    assert found.private == ("key 2",)
    assert not hasattr(found.keys[1].material, "sign")
    jwk = parse_keys(
        json.dumps({"keys": [public_jwk(ED, kid="a"), private_jwk(ED, kid="b")]}).encode()
    )
    assert jwk.private == ("b",)
    assert not hasattr(jwk.keys[1].material, "sign")


SMALL = (
    rsa.generate_private_key(65537, 1024)
    .public_key()
    .public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "neither JSON nor PEM: "),
        (b"\xff", "neither JSON nor PEM: "),
        (b"[]", "neither a JWK set (`keys`) nor a JWK (`kty`)"),
        (b'{"keys": []}', "`keys` is no array with keys"),
        (b'{"keys": [5]}', "keys[0] is no object"),
        (b'{"keys": [{"kty": "EC"}]}', "keys[0] cannot be used: "),
        (
            json.dumps(
                {"keys": [public_jwk(ED), {"kty": "OKP", "crv": "Ed25519", "x": "AA"}]}
            ).encode(),
            "keys[1] cannot be used",
        ),
        (json.dumps(public_jwk(ED, kid=5)).encode(), "the key.kid is no text"),
        (
            json.dumps(public_jwk(ED, alg="RS256")).encode(),
            "the key.alg is 'RS256', which its key type does not have",
        ),
        (b"# text\n" + pem(ED)[:60], "line 2: PUBLIC KEY has no end"),
        (
            b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n",
            "line 1: PUBLIC KEY cannot be read",
        ),
        (b"-----BEGIN X-----\nAAAA\n-----END X-----\n", "line 1: X is no key"),
        (b" -----BEGIN X-----", "no PEM block begins at the start of a line"),
        (private_pem(b"secret"), "line 1: the private key is encrypted; the public key is enough"),
        (SMALL, "line 1 is an RSA key of 1024 bits"),
    ],
    ids=range(15),  # the keys differ in each process
)
def test_a_text_that_is_no_file_of_keys(data: bytes, message: str) -> None:
    with pytest.raises(KeyFileError) as caught:
        parse_keys(data)
    assert str(caught.value).startswith(message)
    assert len(str(caught.value).splitlines()) == 1
