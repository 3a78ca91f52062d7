"""Cards signed by real SDKs (`tests/peers/sign_cards.py`), and keys made for a test."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from jwt.algorithms import OKPAlgorithm

FOLDER = Path(__file__).parent / "data" / "signed_cards"
KEYS = FOLDER / "keys.json"

Json = dict[str, Any]


def signed_card(signer: str, kind: str) -> Json:
    """Return a card as an agent with this SDK serves it."""
    found: Json = json.loads((FOLDER / signer / f"{kind}.json").read_text("utf-8"))
    return found


def base64url(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")


def sign_bytes(key: Ed25519PrivateKey, payload: bytes, **header: object) -> Json:
    """Return a signature over these bytes, with members of its header."""
    protected = base64url(json.dumps({"alg": "EdDSA", "kid": "k", **header}).encode())
    signature = key.sign(f"{protected}.{base64url(payload)}".encode())
    return {"protected": protected, "signature": base64url(signature)}


def public_jwk(key: Ed25519PrivateKey, **members: object) -> Json:
    return {**OKPAlgorithm.to_jwk(key.public_key(), as_dict=True), **members}


def private_jwk(key: Ed25519PrivateKey, **members: object) -> Json:
    return {**OKPAlgorithm.to_jwk(key, as_dict=True), **members}
