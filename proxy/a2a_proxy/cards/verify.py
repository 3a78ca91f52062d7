"""The signatures of a card, verified with the keys of the user. Nothing is fetched."""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from typing import TYPE_CHECKING, Any

import msgspec

from a2a_proxy.model.card_signature import CardSignature, SignatureVerdict
from a2a_proxy.model.values import JSONRPC_BINDINGS, Binding, Frame
from a2a_proxy.protocol.event import decode_payload
from a2a_proxy.protocol.schema import is_protobuf, split_schema

if TYPE_CHECKING:
    from a2a_proxy.cards.forms import SignedForm
    from a2a_proxy.cards.keys import CardKey

Json = dict[str, Any]

MAX_SIGNATURES = 8
"""Signatures of one card that are read; a card has one, or two while its key changes."""
_MAX_KNOWN = 64
"""Cards whose result is kept, because clients fetch the same card again and again."""
_MAX_TEXT = 200
_MAX_SIGNATURE = 4096
"""Characters of a signature; RSA with 16384 bits needs 2731."""
_FAILED, _UNVERIFIED, _VERIFIED = (
    SignatureVerdict.FAILED,
    SignatureVerdict.UNVERIFIED,
    SignatureVerdict.VERIFIED,
)
_UNREADABLE = (ValueError, Base64Error, RecursionError)


class CardVerifier:
    """Reads the signatures of cards, and verifies them if there are keys."""

    def __init__(self, keys: tuple[CardKey, ...] | None = None, reason: str = "") -> None:
        """Create a verifier with the keys of `--card-keys`; None: none were given. `reason` says
        why they are missing."""
        self._keys = keys
        self._reason = reason
        self._known: dict[bytes, tuple[CardSignature, ...]] = {}

    def read_frame(self, frame: Frame, binding: Binding) -> tuple[CardSignature, ...]:
        """Return the signatures of the card in a frame, before redaction, with their verdicts;
        empty without any."""
        digest = hashlib.sha256(f"{frame.schema} {binding} ".encode() + frame.payload).digest()
        found = self._known.get(digest)
        if found is None:
            found = self._verify_frame(frame, binding)
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            self._known[digest] = found
        return found

    def _verify_frame(self, frame: Frame, binding: Binding) -> tuple[CardSignature, ...]:
        card = decode_payload(frame.payload, frame.schema)
        if isinstance(card, dict) and binding in JSONRPC_BINDINGS:
            card = card.get("result")
        if not isinstance(card, dict):
            return ()
        if is_protobuf(frame.schema) and split_schema(frame.schema)[0] == "0.3":
            return tuple(
                msgspec.structs.replace(each, reason="cards of 0.3 over gRPC are not verified")
                for each in CardVerifier().verify(card)
            )
        return self.verify(card)

    def verify(self, card: Json) -> tuple[CardSignature, ...]:
        """Return the signatures of a card with their verdicts; empty if it has none."""
        entries = card.get("signatures")
        found = (
            [each for each in entries if isinstance(each, dict)]
            if isinstance(entries, list)
            else []
        )
        if not found:
            return ()
        if self._keys is None:
            return tuple(self._read_header(each)[1] for each in found[:MAX_SIGNATURES])
        from a2a_proxy.cards.forms import signed_forms

        forms = list(signed_forms(card))
        return tuple(
            self._verify_entry(each, card, forms, self._keys) for each in found[:MAX_SIGNATURES]
        )

    def _read_header(self, entry: Json) -> tuple[Json, CardSignature]:
        """Return the protected header of a signature, empty if it cannot be read, and the signature
        without a verdict."""
        header = _decode_header(entry.get("protected")) or {}
        unprotected = entry.get("header")
        outside = unprotected if isinstance(unprotected, dict) else {}
        texts = (
            _text(header.get("kid")),
            _text(header.get("alg")),
            _text(header.get("jku", outside.get("jku"))),
        )
        return header, CardSignature(*texts, reason=self._reason)

    def _verify_entry(
        self, entry: Json, card: Json, forms: list[SignedForm], keys: tuple[CardKey, ...]
    ) -> CardSignature:
        header, read = self._read_header(entry)
        chosen, verdict, reason = _choose_keys(header, keys)
        if not chosen:
            return msgspec.structs.replace(read, verdict=verdict, reason=reason)
        if not forms:
            return msgspec.structs.replace(
                read, verdict=_FAILED, reason="the card has no canonical form"
            )
        try:
            signature = _decode_base64(_text(entry.get("signature"), _MAX_SIGNATURE))
        except _UNREADABLE:
            return msgspec.structs.replace(read, reason="`signature` is not base64url")
        key, data = _find_match(str(entry["protected"]), header["alg"], signature, chosen, forms)
        if key is None:
            labels = " and ".join(each.label for each in chosen[:3])
            return msgspec.structs.replace(
                read, verdict=_FAILED, reason=f"{labels} tried with every form"
            )
        matching = [each for each in forms if each.data == data]
        from a2a_proxy.cards.forms import uncovered_members

        return msgspec.structs.replace(
            read,
            verdict=_VERIFIED,
            key=key.label,
            forms=tuple(each.form for each in matching),
            uncovered=uncovered_members(card, matching[0].covered),
            reason="",
        )


def _choose_keys(
    header: Json, keys: tuple[CardKey, ...]
) -> tuple[list[CardKey], SignatureVerdict, str]:
    """Return the keys to try; if there are none, the verdict and its reason."""
    kid, alg = header.get("kid"), header.get("alg")
    if not isinstance(alg, str):
        return [], _UNVERIFIED, "`protected` is not readable or names no algorithm"
    if alg.lower() == "none":
        return [], _FAILED, "`none` is not a signature"
    if "crit" in header:
        return [], _FAILED, "its header demands an extension (`crit`) that is not supported"
    named = [each for each in keys if each.kid == kid and each.kid] or [
        each for each in keys if not each.kid
    ]
    if not named and kid:
        return [], _UNVERIFIED, f"--card-keys has no key {_text(kid)}"
    named = named or list(keys)
    fitting = [each for each in named if alg in each.algorithms]
    if not fitting:
        kinds = ", ".join(sorted({name for each in named for name in each.algorithms}))
        return [], _FAILED, f"{_text(alg)} is not an algorithm of the key ({kinds})"
    return fitting, _FAILED, ""


def _find_match(
    protected: str, alg: str, signature: bytes, keys: list[CardKey], forms: list[SignedForm]
) -> tuple[CardKey | None, bytes]:
    """Return the key and the bytes with which the signature verifies, or None."""
    from jwt.algorithms import get_default_algorithms

    algorithms: dict[str, Any] = get_default_algorithms()
    algorithm = algorithms.get(alg) or algorithms["EdDSA"]
    for data in dict.fromkeys(each.data for each in forms):
        signed = protected.encode("ascii") + b"." + urlsafe_b64encode(data).rstrip(b"=")
        for key in keys:
            if algorithm.verify(signed, key.material, signature):
                return key, data
    return None, b""


def _decode_header(text: object) -> Json | None:
    try:
        found = msgspec.json.decode(_decode_base64(text)) if isinstance(text, str) else None
    except _UNREADABLE:
        return None
    return found if isinstance(found, dict) else None


def _decode_base64(text: str) -> bytes:
    """Return the bytes of unpadded base64url. Raises ValueError."""
    if not text.isascii():
        raise ValueError("not ASCII")
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _text(value: object, limit: int = _MAX_TEXT) -> str:
    return value[:limit] if isinstance(value, str) else ""
