"""Verdicts about the signatures of cards: those of real SDKs, and those that must never verify."""

from __future__ import annotations

import hmac
import json
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a_proto import from_dict
from a2a_proxy.cards.keys import CardKeys, parse_keys
from a2a_proxy.cards.verify import MAX_SIGNATURES, CardVerifier
from a2a_proxy.model.card_signature import CardForm, CardSignature, SignatureVerdict
from a2a_proxy.model.values import Binding, Frame, FrameKind
from a2a_proxy.model.wire import Direction
from a2a_proxy.rules.examples.objects import CARD_KEYS, card, sign_card
from support_signed_cards import KEYS, base64url, public_jwk, sign_bytes, signed_card

Json = dict[str, Any]

SPECIFICATION, SDK, PYTHON_1 = CardForm.SPECIFICATION, CardForm.SDK, CardForm.PYTHON_1_1_2
OBJECT, PYTHON_0, SERVED = CardForm.JAVASCRIPT_OBJECT, CardForm.PYTHON_0_3, CardForm.AS_SERVED
ED = Ed25519PrivateKey.generate()
SDK_KEYS = KEYS.read_bytes()
UNVERIFIED, FAILED = SignatureVerdict.UNVERIFIED, SignatureVerdict.FAILED
REQUIREMENTS = ("securityRequirements[0]",)
OF_SIGNER: dict[str, list[tuple[str, set[CardForm], tuple[str, ...]]]] = {
    "python-0.3": [
        ("ascii", {PYTHON_0}, ()),
        ("umlauts", {PYTHON_0}, ()),
        ("fractions", {PYTHON_0}, ()),
        ("security", {PYTHON_0}, ("security[0]",)),
    ],
    "python-1.1.2": [
        ("ascii", {SPECIFICATION, SDK, PYTHON_1, SERVED}, ()),
        ("umlauts", {PYTHON_1}, ()),
        ("fractions", {PYTHON_1}, ()),
        ("security", {SDK, PYTHON_1}, REQUIREMENTS),
    ],
    "python-1.3": [
        ("ascii", {SPECIFICATION, SDK, PYTHON_1, SERVED}, ()),
        ("umlauts", {SPECIFICATION, SDK, SERVED}, ()),
        ("fractions", {SPECIFICATION, SDK, SERVED}, ()),
        ("security", {SDK, PYTHON_1}, REQUIREMENTS),
    ],
    "javascript-1.3": [
        ("ascii", {SPECIFICATION, SDK, PYTHON_1, SERVED}, ()),
        ("umlauts", {SPECIFICATION, SDK, SERVED}, ()),
        ("fractions", {SPECIFICATION, SDK, SERVED}, ()),
        ("security", {SDK, PYTHON_1}, REQUIREMENTS),
    ],
    "javascript-1.3-object": [
        ("ascii", {SPECIFICATION, SDK, PYTHON_1, SERVED}, ()),
        ("umlauts", {SPECIFICATION, SDK, SERVED}, ()),
        ("fractions", {SPECIFICATION, SDK, SERVED}, ()),
        ("security", {OBJECT}, ("securitySchemes", *REQUIREMENTS)),
    ],
}
MATRIX = [(signer, *row) for signer, rows in OF_SIGNER.items() for row in rows]


def verifier(data: bytes | Json = SDK_KEYS) -> CardVerifier:
    found: CardKeys = parse_keys(data if isinstance(data, bytes) else json.dumps(data).encode())
    return CardVerifier(found.keys)


def only(value: Json, data: bytes | Json = SDK_KEYS) -> CardSignature:
    (found,) = verifier(data).verify(value)
    return found


@pytest.mark.parametrize(("signer", "kind", "forms", "uncovered"), MATRIX)
def test_cards_of_real_sdks(
    signer: str, kind: str, forms: set[CardForm], uncovered: tuple[str, ...]
) -> None:
    """Verified in the forms that are the same bytes; after a change of any covered member in
    none."""
    value = signed_card(signer, kind)
    found = only(value)
    assert (found.verdict, found.key, set(found.forms), found.uncovered) == (
        SignatureVerdict.VERIFIED,
        signer,
        forms,
        uncovered,
    )
    assert found.jku == "https://agent.example.com/jwks.json"
    assert [only(_without(value, path)).verdict for path in uncovered] == [
        SignatureVerdict.VERIFIED
    ] * len(uncovered)
    for name in value.keys() - {"signatures", *uncovered}:
        altered = only({each: member for each, member in value.items() if each != name})
        # without a default of 0.3, the card says the same
        same = signer == "python-0.3" and name in ("protocolVersion", "preferredTransport")
        expected = SignatureVerdict.VERIFIED if same else SignatureVerdict.FAILED
        assert (name, altered.verdict) == (name, expected)


def _without(value: Json, path: str) -> Json:
    """Return a card without a member, or without the first element of one."""
    name, index, _ = path.partition("[")
    rest = {each: member for each, member in value.items() if each != name}
    return rest | {name: value[name][1:]} if index else rest


def test_words() -> None:
    """What people read about a signature."""
    jku = "jku https://agent.example.com/jwks.json (not fetched)"
    value = signed_card("python-1.3", "security")
    assert only(value).describe() == (
        "signed by python-1.3 (ES256), verified, only in the form: SDKs of today, "
        f"not covered: securityRequirements[0], {jku}"
    )
    altered = only(value | {"name": "Another"}).describe()
    assert (
        altered
        == f"signed by python-1.3 (ES256), does not verify: python-1.3 tried with every form, {jku}"
    )
    (unverified,) = CardVerifier().verify(value)
    assert unverified.describe() == f"signed by python-1.3 (ES256), not verified, {jku}"
    assert only(sign_card(card()), CARD_KEYS).describe() == "signed by key-1 (HS256), verified"
    empty = card(description="")
    text = (
        b'{"capabilities":{"streaming":true},"defaultInputModes":["t"],'
        b'"defaultOutputModes":["t"],"description":"",'
    )
    text += b'"name":"E","skills":[],"supportedInterfaces":[],"version":"1"}'
    empty = json.loads(text) | {"signatures": [sign_bytes(ED, text, kid="")]}
    assert only(empty, public_jwk(ED)).describe() == (
        "signed by an unnamed key (EdDSA), verified with key 1, "
        "but the SDKs of today compute other bytes and refuse it"
    )


def test_a_key_with_another_id_is_not_tried() -> None:
    value = sign_card(card())
    found = only(value, json.loads(CARD_KEYS) | {"kid": "key-2"})
    assert (found.verdict, found.reason) == (
        SignatureVerdict.UNVERIFIED,
        "--card-keys has no key key-1",
    )
    without_id = {name: member for name, member in json.loads(CARD_KEYS).items() if name != "kid"}
    assert only(value, without_id).key == "key 1"


def test_none_never_verifies() -> None:
    for alg in ("none", "None", "NONE"):
        protected = base64url(json.dumps({"alg": alg, "kid": "key-1"}).encode())
        found = only(card(signatures=[{"protected": protected, "signature": ""}]), CARD_KEYS)
        assert (found.verdict, found.reason) == (
            SignatureVerdict.FAILED,
            "`none` is not a signature",
        )


def test_a_public_key_is_no_secret() -> None:
    """The text of an RSA key as the secret of HS256: an attack on verifiers that trust `alg`."""
    public = (
        generate_private_key(65537, 2048)
        .public_key()
        .public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    )
    protected = base64url(b'{"alg":"HS256","kid":"a"}')
    text = json.dumps(card(), separators=(",", ":"), sort_keys=True)
    signature = hmac.digest(public, f"{protected}.{base64url(text.encode())}".encode(), "sha256")
    found = only(
        card(signatures=[{"protected": protected, "signature": base64url(signature)}]), public
    )
    assert found.verdict is SignatureVerdict.FAILED
    assert found.reason.startswith("HS256 is not an algorithm of the key (PS256, ")


@pytest.mark.parametrize(
    ("entry", "verdict", "reason"),
    [
        ({}, UNVERIFIED, "`protected` is not readable or names no algorithm"),
        (
            {"protected": "!", "signature": "AA"},
            UNVERIFIED,
            "`protected` is not readable or names no algorithm",
        ),
        (
            {"protected": base64url(b"[]"), "signature": "AA"},
            UNVERIFIED,
            "`protected` is not readable or names no algorithm",
        ),
        (
            {"protected": "é", "signature": "AA"},
            UNVERIFIED,
            "`protected` is not readable or names no algorithm",
        ),
        (
            sign_bytes(ED, b"{}", crit=["b64"], b64=False),
            FAILED,
            "its header demands an extension (`crit`) that is not supported",
        ),
        (sign_bytes(ED, b"{}") | {"signature": "é"}, UNVERIFIED, "`signature` is not base64url"),
        (sign_bytes(ED, b"{}") | {"signature": "A"}, UNVERIFIED, "`signature` is not base64url"),
        (sign_bytes(ED, b"{}") | {"signature": ""}, FAILED, "key 1 tried with every form"),
    ],
)
def test_a_malformed_signature(entry: Json, verdict: SignatureVerdict, reason: str) -> None:
    found = only(card(signatures=[entry]), public_jwk(ED))
    assert (found.verdict, found.reason) == (verdict, reason)


def test_one_of_two_signatures_and_no_more_than_eight() -> None:
    """A card has two signatures while its key changes."""
    signed = sign_card(card())
    both = signed | {
        "signatures": [sign_bytes(ED, b"{}", kid="old"), *signed["signatures"], "text"]
    }
    assert [each.verdict.name for each in verifier(CARD_KEYS).verify(both)] == [
        "UNVERIFIED",
        "VERIFIED",
    ]
    many = signed | {"signatures": signed["signatures"] * 100}
    assert len(verifier(CARD_KEYS).verify(many)) == MAX_SIGNATURES
    assert not verifier(CARD_KEYS).verify(card())
    assert not verifier(CARD_KEYS).verify(card(signatures={"a": 1}))


def frame(payload: bytes, schema: str) -> Frame:
    return Frame(
        1, 1, 1, Direction.TO_CLIENT, FrameKind.RESPONSE, 1, 1, 0, 1, payload, schema=schema
    )


def test_cards_in_results_and_in_protobuf() -> None:
    """The extended card over JSON-RPC and gRPC; that of 0.3 over gRPC has another shape."""
    signed = sign_card(card())
    verify = verifier(CARD_KEYS).read_frame
    rpc = json.dumps({"jsonrpc": "2.0", "id": 1, "result": signed}).encode()
    (found,) = verify(frame(rpc, "json"), Binding.JSONRPC)
    assert found.verdict is SignatureVerdict.VERIFIED
    grpc = from_dict("1.0", "AgentCard", signed).SerializeToString()
    (found,) = verify(frame(grpc, "lf.a2a.v1.AgentCard"), Binding.GRPC)
    assert found.verdict is SignatureVerdict.VERIFIED
    old = from_dict(
        "0.3", "AgentCard", {"name": "A", "signatures": signed["signatures"]}
    ).SerializeToString()
    (found,) = verify(frame(old, "a2a.v1.AgentCard"), Binding.GRPC)
    assert (found.verdict, found.reason) == (
        SignatureVerdict.UNVERIFIED,
        "cards of 0.3 over gRPC are not verified",
    )
    assert not verify(frame(b'{"signature', "json"), Binding.CARD)
    assert not verify(frame(b'["signature"]', "json"), Binding.CARD)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
NAMES = (
    "signatures",
    "capabilities",
    "skills",
    "securitySchemes",
    "security",
    "provider",
    "name",
    "supportedInterfaces",
)


@given(st.dictionaries(st.sampled_from(NAMES), JSON_VALUES, max_size=4))
@settings(max_examples=300)
def test_any_json_is_read(members: Json) -> None:
    """No card raises; one whose signed members were replaced does not verify."""
    value = sign_card(card()) | members
    for each in verifier(CARD_KEYS).verify(value):
        if each.verdict is SignatureVerdict.VERIFIED:
            assert "signatures" not in members
            assert all(
                value[name] == card()[name]
                for name in members.keys() - set(each.uncovered)
                if name in card()
            )


def test_a_card_that_is_fetched_again_is_not_verified_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = verifier(CARD_KEYS)
    each = frame(json.dumps(sign_card(card())).encode(), "json")
    first = one.read_frame(each, Binding.CARD)
    monkeypatch.setattr(one, "verify", None)
    assert one.read_frame(each, Binding.CARD) is first
