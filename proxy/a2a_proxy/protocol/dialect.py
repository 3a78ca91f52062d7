"""Determine the dialect of a call. Per call, not per connection: one port may serve several
dialects.

The proof of each dialect is listed in manual/protocol.md "Dialects".

Strong evidence is the gRPC package, the JSON-RPC method, the REST path form and `A2A-Version`.
Where two of them contradict each other, or none is present, the body decides, then the dialect last
spoken with this agent.
"""

import msgspec

from a2a_proxy.model.values import Dialect
from a2a_proxy.protocol.json_shapes import UNREADABLE_ERRORS, ResultShape
from a2a_proxy.protocol.session_facts import CardFacts

_V0_DIALECTS = frozenset({Dialect.V0_1, Dialect.V0_2, Dialect.V0_3, Dialect.VENDOR})
_V1_DIALECTS = frozenset({Dialect.V1_0, Dialect.V1_1})


def dialect_of_version(version: str) -> Dialect:
    """Return the dialect of a version number (`1.0`, `0.3`, patch number allowed); UNKNOWN for any
    other version."""
    major, _, rest = version.strip().partition(".")
    minor = rest.partition(".")[0].partition("-")[0]
    if major == "1":
        return Dialect.V1_1 if minor == "1" else Dialect.V1_0
    return (
        {"1": Dialect.V0_1, "2": Dialect.V0_2, "3": Dialect.V0_3}.get(minor, Dialect.UNKNOWN)
        if major == "0"
        else Dialect.UNKNOWN
    )


class DialectEvidence(msgspec.Struct, frozen=True):
    """Evidence about the dialect of a call, available when its request is complete."""

    proof: Dialect = Dialect.UNKNOWN
    """Dialect proved by the method or path; UNKNOWN if it is one of the 0.x dialects and it is open
    which one."""
    version: str = ""
    """Value of `A2A-Version` as sent."""
    body: Dialect = Dialect.UNKNOWN
    """Dialect shown by the request's body (`dialect_of_request`)."""
    sticky: Dialect = Dialect.UNKNOWN
    """Dialect last spoken with this agent."""
    card: CardFacts = CardFacts()


def classify_dialect(evidence: DialectEvidence) -> tuple[Dialect, bool]:
    """Return the dialect of a call, and whether it is a guess that the response may still
    correct."""
    version_dialect = dialect_of_version(evidence.version)
    if evidence.proof in _V1_DIALECTS:
        if version_dialect in _V0_DIALECTS and evidence.body in _V0_DIALECTS:
            return evidence.body, True
        return (
            version_dialect
            if version_dialect is Dialect.V1_1 and evidence.proof is Dialect.V1_0
            else evidence.proof
        ), False
    if version_dialect in _V1_DIALECTS and evidence.body in _V1_DIALECTS:
        return version_dialect, True
    if evidence.proof is not Dialect.UNKNOWN:
        return evidence.proof, False
    return _choose_v0_dialect(evidence, version_dialect), True


def _choose_v0_dialect(evidence: DialectEvidence, version_dialect: Dialect) -> Dialect:
    """Return the 0.x dialect of a call whose method is shared by several of them."""
    if evidence.body in _V0_DIALECTS:
        # `kind` is common to 0.2 and 0.3: the card distinguishes them; without a card the later one
        # is assumed.
        return (
            _v0_2_by_card(evidence) or Dialect.V0_3
            if evidence.body is Dialect.V0_3
            else evidence.body
        )
    if version_dialect in _V0_DIALECTS:
        return version_dialect
    if evidence.sticky in _V0_DIALECTS:
        return evidence.sticky
    return (
        dialect_of_version(evidence.card.version)
        if dialect_of_version(evidence.card.version) in _V0_DIALECTS
        else Dialect.V0_3
    )


def _v0_2_by_card(evidence: DialectEvidence) -> Dialect | None:
    return Dialect.V0_2 if dialect_of_version(evidence.card.version) is Dialect.V0_2 else None


class _PartEvidence(msgspec.Struct):
    type: msgspec.Raw = msgspec.Raw()
    kind: msgspec.Raw = msgspec.Raw()


class _MessageEvidence(msgspec.Struct, rename="camel"):
    role: str | None = None
    kind: msgspec.Raw = msgspec.Raw()
    message_id: msgspec.Raw = msgspec.Raw()
    parts: list[_PartEvidence] = []


class _RequestEvidence(msgspec.Struct):
    message: _MessageEvidence | None = None


_decode_request = msgspec.json.Decoder(_RequestEvidence).decode


def dialect_of_request(params: bytes) -> Dialect:
    """Return the dialect of a send's parameters: part discriminator, role spelling, `kind`. UNKNOWN
    for other calls."""
    try:
        message = _decode_request(params).message
    except UNREADABLE_ERRORS:
        return Dialect.UNKNOWN
    if message is None:
        return Dialect.UNKNOWN
    part = message.parts[0] if message.parts else _PartEvidence()
    if part.type:
        # 0.1 messages had no id; the vendor hybrid has one.
        return Dialect.VENDOR if message.message_id else Dialect.V0_1
    if part.kind or message.kind:
        return Dialect.V0_3
    return Dialect.V1_0 if (message.role or "").startswith("ROLE_") else Dialect.UNKNOWN


def dialect_of_result(result: ResultShape, method: str) -> Dialect:
    """Return the dialect of a result or event, UNKNOWN if it fits several. `method` is the wire
    name."""
    if (
        result.task is not None
        or result.status_update is not None
        or result.artifact_update is not None
    ):
        return Dialect.V1_0
    if result.kind is not None:
        return Dialect.V0_3
    if result.session_id:
        return Dialect.V0_1
    if result.status is not None and (result.final is not None or method == "message/stream"):
        return Dialect.VENDOR if method.startswith("message/") else Dialect.V0_1
    return Dialect.UNKNOWN


def correct_guess(guess: Dialect, shown: Dialect) -> Dialect:
    """Return the dialect after the response: `shown`, unless it fits the guess too (0.2 and 0.3
    have the same bodies)."""
    if shown is Dialect.UNKNOWN or (
        shown is Dialect.V0_3 and guess in (Dialect.V0_2, Dialect.V0_3)
    ):
        return guess
    return guess if shown is Dialect.V1_0 and guess in _V1_DIALECTS else shown


def dialect_with_generation(dialect: Dialect) -> Dialect:
    """Return the dialect of a peer that uses the generation fields (manual/protocol.md
    "Classification")."""
    return Dialect.V1_1 if dialect is Dialect.V1_0 else dialect
