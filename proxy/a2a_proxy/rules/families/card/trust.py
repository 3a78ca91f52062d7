"""Rules about secrets in a card, its signatures, and the extended card (A2A 1.0 sections 8.4.2,
13.4, 14.3)."""

import re
from base64 import urlsafe_b64decode
from collections.abc import Iterator
from typing import Any

import msgspec

from a2a_proxy.model.card_signature import CardForm, SignatureVerdict
from a2a_proxy.model.values import Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define.conditions import CARD, RPC, Dialects, FrameFlag
from a2a_proxy.rules.define.rule import RuleFinding, rule
from a2a_proxy.rules.examples.conversation import fetch_card
from a2a_proxy.rules.examples.objects import card, sign_card
from a2a_proxy.rules.facts.hosts import scheme_of
from a2a_proxy.rules.facts.secret_places import secret_paths
from a2a_proxy.rules.families.card.reading import read_card
from a2a_proxy.rules.state.card_declarations import (
    Json,
    indexed_objects,
    object_member,
    string_member,
)

_BASE64URL = re.compile(r"[A-Za-z0-9_-]+")
_UNREADABLE = (ValueError, RecursionError)
_SIGNATURE_HEADER = "eyJhbGciOiJFUzI1NiIsImtpZCI6ImsxIn0"
"""`{"alg":"ES256","kid":"k1"}`."""


def _signed_card(protected: str) -> Json:
    return card(signatures=[{"protected": protected, "signature": "c2lnbmF0dXJl"}])


@rule(
    "A2A-CARD-012",
    "A card signature is malformed",
    Severity.ERROR,
    section="1.0 8.4.2; 0.3 5.5.6; RFC 7515",
    dialects=Dialects.SINCE_0_2,
    bindings=CARD | RPC,
    trigger_flags=FrameFlag.CARD,
    flagged=fetch_card(_signed_card("abc")),
    clean=fetch_card(_signed_card(_SIGNATURE_HEADER)),
)
def signature(context: RuleContext) -> Iterator[RuleFinding]:
    """`protected` of a signature is not a base64url-encoded JSON object with `alg` and `kid`, or
    `signature` is not base64url. Reported as a warning if `jku` is not an https URL.

    Such a signature cannot be verified, so a client that requires one refuses the card. The agent
    must sign its card again.
    """
    for index, entry in indexed_objects(read_card(context).get("signatures")):
        path = f"{context.root}signatures[{index}]"
        signed = string_member(entry, "signature")
        if not _BASE64URL.fullmatch(signed):
            yield RuleFinding(
                summary="`signature` is not base64url", path=f"{path}.signature", value=signed
            )
        yield from _check_protected(
            path, string_member(entry, "protected"), object_member(entry, "header")
        )


def _check_protected(path: str, text: str, unprotected: Json) -> Iterator[RuleFinding]:
    place = f"{path}.protected"
    header = _decode_base64_json(text)
    if header is None:
        yield RuleFinding(
            summary="`protected` is not a JSON object in base64url", path=place, value=text
        )
        return
    for name in ("alg", "kid"):
        if not string_member(header, name):
            yield RuleFinding(
                summary=f"the protected header lacks `{name}`", path=place, value=text
            )
    source = header.get("jku", unprotected.get("jku"))
    if source is not None and (not isinstance(source, str) or scheme_of(source) != "https"):
        yield RuleFinding(
            summary=f"`jku` is {str(source)[:120]!r}, expected an https URL",
            path=place,
            value=str(source),
            severity=Severity.WARNING,
        )


def _decode_base64_json(text: str) -> Json | None:
    if not _BASE64URL.fullmatch(text):
        return None
    try:
        value: Any = msgspec.json.decode(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except _UNREADABLE:
        return None
    return value if isinstance(value, dict) else None


@rule(
    "A2A-CARD-013",
    "A card signature does not verify as specified",
    Severity.WARNING,
    section="1.0 8.4.1, 8.4.3; RFC 7515; RFC 8785",
    dialects=Dialects.SINCE_0_2,
    bindings=CARD | RPC,
    trigger_flags=FrameFlag.CARD,
    flagged=fetch_card(sign_card(card()) | {"description": "An altered text"}),
    clean=fetch_card(sign_card(card())),
)
def unverified(context: RuleContext) -> Iterator[RuleFinding]:
    """With the keys of `--card-keys`, no signature of the card verifies, in none of the forms that
    the specification and the SDKs sign ([signatures](signatures.md)). Reported as information that
    names the form if one verifies, but not in the form of the specification.

    Either the card was altered after it was signed, or another key signed it; clients that require
    the signature refuse the card. The agent must sign the card that it serves. Signatures for which
    the file has no key are not judged.
    """
    signatures = context.exchange.card_signatures
    verified = [each for each in signatures if each.verdict is SignatureVerdict.VERIFIED]
    if any(CardForm.SPECIFICATION in each.forms for each in verified):
        return
    path = f"{context.root}signatures"
    for each in verified[:1]:
        summary = f"the card signed by {each.kid} verifies only in the form: {each.forms[0]}"
        yield RuleFinding(summary=summary, path=path, severity=Severity.INFO)
    failed = [each for each in signatures if each.verdict is SignatureVerdict.FAILED]
    if failed and not verified:
        yield RuleFinding(summary=f"no signature verifies: {failed[0].describe()}", path=path)


_NO_SECRETS = frozenset({"signatures", "securityRequirements", "security", "scopes"})
"""Members that contain signatures, or the names of schemes and scopes."""


@rule(
    "A2A-CARD-016",
    "A card contains an apparent secret",
    Severity.WARNING,
    section="1.0 14.3, 13.4; 0.3 5.4",
    bindings=CARD | RPC,
    trigger_flags=FrameFlag.CARD,
    flagged=fetch_card(card(documentationUrl="https://ann:pa55w0rd@docs.example.com")),
    clean=fetch_card(card(documentationUrl="https://docs.example.com")),
)
def secret(context: RuleContext) -> Iterator[RuleFinding]:
    """A text in the card looks like a credential: it has the form of a token or key, is the value
    of a member with such a name, is a password in a URL, or is a credential that was used in this
    session. The recording contains a label in its place.

    Cards are public, cached and copied, so anyone can use the secret. The operator of the agent
    must remove the secret from the card and replace it.
    """
    for path in secret_paths(read_card(context), _NO_SECRETS):
        yield RuleFinding(summary=f"`{path}` looks like a secret", is_sure=False)
