"""The public keys of a file: a JWK set, one JWK, or PEM blocks. Needs the extra `cards`."""

import re
from typing import Any

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed448 import Ed448PublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key
from jwt import PyJWK
from jwt.exceptions import PyJWTError

_BEGIN = re.compile(rb"^-----BEGIN ([A-Z0-9 ]+)-----", re.MULTILINE)
_PRIVATE_MEMBERS = frozenset(("d", "p", "q", "dp", "dq", "qi", "oth"))
_CURVES = {
    "secp256r1": ("ES256",),
    "secp384r1": ("ES384",),
    "secp521r1": ("ES512",),
    "secp256k1": ("ES256K",),
}
_RSA = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
_SECRET = ("HS256", "HS384", "HS512")
_MIN_RSA_BITS = 2048


class KeyFileError(Exception):
    """The text is no file of keys; `str` says what is wrong, and where."""


class CardKey(msgspec.Struct, frozen=True):
    """One key that verifies signatures."""

    kid: str
    """Its id; empty if the file gives none."""
    label: str
    """Its id, or `key 2`, its place in the file."""
    algorithms: tuple[str, ...]
    """The algorithms that it can verify."""
    material: Any
    """The key as the library for signatures takes it."""


class CardKeys(msgspec.Struct, frozen=True):
    """The keys of a file."""

    keys: tuple[CardKey, ...]
    private: tuple[str, ...] = ()
    """Labels of the keys of which the file has the private part, which nothing here needs."""


def parse_keys(data: bytes) -> CardKeys:
    """Return the keys of a file. Raises KeyFileError."""
    if b"-----BEGIN " in data:
        return _parse_pem(data)
    try:
        found = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as wrong:
        raise KeyFileError(f"neither JSON nor PEM: {wrong}") from wrong
    if isinstance(found, dict) and "keys" in found:
        entries = found["keys"]
        if not isinstance(entries, list) or not entries:
            raise KeyFileError("`keys` is no array with keys")
        places = [f"keys[{index}]" for index in range(len(entries))]
    elif isinstance(found, dict) and "kty" in found:
        entries, places = [found], ["the key"]
    else:
        raise KeyFileError("neither a JWK set (`keys`) nor a JWK (`kty`)")
    numbered = enumerate(zip(entries, places, strict=True), 1)
    made = [_parse_jwk(each, place, number) for number, (each, place) in numbered]
    private = tuple(
        key.label for key, entry in zip(made, entries, strict=True) if _is_private(entry)
    )
    return CardKeys(tuple(made), private)


def _is_private(entry: dict[str, Any]) -> bool:
    return entry.get("kty") != "oct" and "d" in entry


def _parse_jwk(entry: Any, place: str, number: int) -> CardKey:
    if not isinstance(entry, dict):
        raise KeyFileError(f"{place} is no object")
    public = (
        entry
        if entry.get("kty") == "oct"
        else {k: v for k, v in entry.items() if k not in _PRIVATE_MEMBERS}
    )
    try:
        material = PyJWK({name: value for name, value in public.items() if name != "alg"}).key
    except (PyJWTError, ValueError, TypeError, KeyError, AttributeError) as wrong:
        raise KeyFileError(f"{place} cannot be used: {wrong}") from wrong
    kid = entry.get("kid", "")
    if not isinstance(kid, str):
        raise KeyFileError(f"{place}.kid is no text")
    algorithms = _SECRET if isinstance(material, bytes) else _algorithms_of(material, place)
    alg = entry.get("alg")
    if alg is not None:
        algorithms = tuple(each for each in algorithms if each == alg)
        if not algorithms:
            raise KeyFileError(f"{place}.alg is {alg!r}, which its key type does not have")
    return CardKey(kid, kid or f"key {number}", algorithms, material)


def _algorithms_of(material: Any, place: str) -> tuple[str, ...]:
    """Return the algorithms of a public key. Raises KeyFileError."""
    if isinstance(material, RSAPublicKey):
        if material.key_size < _MIN_RSA_BITS:
            raise KeyFileError(
                f"{place} is an RSA key of {material.key_size} bits, and less than 2048 are not "
                f"secure"
            )
        return _RSA
    if isinstance(material, EllipticCurvePublicKey) and material.curve.name in _CURVES:
        return _CURVES[material.curve.name]
    if isinstance(material, Ed25519PublicKey):
        return ("EdDSA", "Ed25519")
    if isinstance(material, Ed448PublicKey):
        return ("EdDSA", "Ed448")
    raise KeyFileError(f"{place} is a key of a type that signs no cards")


def _parse_pem(data: bytes) -> CardKeys:
    keys: list[CardKey] = []
    private: list[str] = []
    for number, begin in enumerate(_BEGIN.finditer(data), 1):
        place = f"line {data[: begin.start()].count(10) + 1}"
        kind = begin[1].decode()
        end = data.find(b"-----END " + begin[1] + b"-----", begin.end())
        if end < 0:
            raise KeyFileError(f"{place}: {kind} has no end")
        block = data[begin.start() : end] + b"-----END " + begin[1] + b"-----\n"
        label = f"key {number}"
        material = _load_block(kind, block, place)
        keys.append(CardKey("", label, _algorithms_of(material, place), material))
        if kind.endswith("PRIVATE KEY"):
            private.append(label)
    if not keys:
        raise KeyFileError("no PEM block begins at the start of a line")
    return CardKeys(tuple(keys), tuple(private))


def _load_block(kind: str, block: bytes, place: str) -> Any:
    """Return the public key of a PEM block. Raises KeyFileError."""
    if "ENCRYPTED" in kind or b"ENCRYPTED" in block:
        raise KeyFileError(f"{place}: the private key is encrypted; the public key is enough")
    try:
        if kind == "CERTIFICATE":
            return x509.load_pem_x509_certificate(block).public_key()
        if kind.endswith("PRIVATE KEY"):
            return load_pem_private_key(block, None).public_key()
        if kind.endswith("PUBLIC KEY"):
            return load_pem_public_key(block)
    except Exception as wrong:  # the library raises many types for damaged keys
        raise KeyFileError(f"{place}: {kind} cannot be read") from wrong
    raise KeyFileError(f"{place}: {kind} is no key")
