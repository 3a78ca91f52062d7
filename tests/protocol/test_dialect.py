from __future__ import annotations

import pytest

from a2a_proxy.model.values import Dialect
from a2a_proxy.protocol.dialect import (
    DialectEvidence,
    classify_dialect,
    correct_guess,
    dialect_of_request,
    dialect_of_result,
    dialect_of_version,
    dialect_with_generation,
)
from a2a_proxy.protocol.json_shapes import decode_result
from a2a_proxy.protocol.session_facts import CardFacts

_U = Dialect.UNKNOWN


@pytest.mark.parametrize(
    ("version", "dialect"),
    [
        ("1.0", "1.0"),
        ("1.0.1", "1.0"),
        ("1.1", "1.1"),
        ("0.3", "0.3"),
        ("0.3.0", "0.3"),
        ("0.2.6", "0.2"),
        ("0.1", "0.1"),
        (" 1.0 ", "1.0"),
        ("1.0-rc", "1.0"),
        ("1", "1.0"),
        ("2.0", ""),
        ("", ""),
        ("x", ""),
    ],
)
def test_versions(version: str, dialect: str) -> None:
    """A2A-Version is read by major and minor, a patch number ignored (A2A 1.0 section 3.6)."""
    assert dialect_of_version(version) == dialect


@pytest.mark.parametrize(
    ("evidence", "dialect"),
    [
        (DialectEvidence(Dialect.V1_0, "1.0"), "1.0"),
        (DialectEvidence(Dialect.V1_0, "1.1"), "1.1"),
        (DialectEvidence(Dialect.V1_0, ""), "1.0"),
        (DialectEvidence(Dialect.V1_0, "0.3", Dialect.V0_3), "0.3"),
        (DialectEvidence(Dialect.V1_0, "0.3", Dialect.V1_0), "1.0"),
        (DialectEvidence(Dialect.V0_1, ""), "0.1"),
        (DialectEvidence(_U, "0.3"), "0.3"),
        (DialectEvidence(_U, "1.0", Dialect.V1_0), "1.0"),
        (DialectEvidence(_U, "", Dialect.V0_3), "0.3"),
        (DialectEvidence(_U, "", Dialect.V0_3, card=CardFacts(version="0.2.6")), "0.2"),
        (DialectEvidence(_U, "", Dialect.VENDOR), "vendor"),
        (DialectEvidence(_U, "", _U, Dialect.V0_1), "0.1"),
        (DialectEvidence(_U, "", _U, Dialect.V1_0), "0.3"),
        (DialectEvidence(_U, "", _U, _U, CardFacts(version="0.2.5")), "0.2"),
        (DialectEvidence(_U), "0.3"),
    ],
)
def test_classification(evidence: DialectEvidence, dialect: str) -> None:
    """Strong evidence first; where it contradicts itself the body decides; then stickiness, then
    the card."""
    assert classify_dialect(evidence)[0] == dialect


@pytest.mark.parametrize(
    ("params", "dialect"),
    [
        (
            b'{"message":{"role":"user","parts":[{"kind":"text","text":"x"}],"messageId":"m"}}',
            "0.3",
        ),
        (
            b'{"message":{"role":"user","parts":[{"type":"text","text":"x"}],"messageId":"m"}}',
            "vendor",
        ),
        (b'{"id":"t","message":{"role":"user","parts":[{"type":"text","text":"x"}]}}', "0.1"),
        (b'{"message":{"role":"ROLE_USER","parts":[{"text":"x"}],"messageId":"m"}}', "1.0"),
        (b'{"id":"t"}', ""),
        (b"[", ""),
        (b'{"message":7}', ""),
    ],
)
def test_request_bodies(params: bytes, dialect: str) -> None:
    """Part discriminator and role spelling tell the line of a send (manual/protocol.md "JSON-RPC
    fingerprints")."""
    assert dialect_of_request(params) == dialect


@pytest.mark.parametrize(
    ("result", "method", "dialect"),
    [
        (b'{"statusUpdate":{}}', "SendStreamingMessage", "1.0"),
        (b'{"kind":"task","id":"t"}', "message/send", "0.3"),
        (b'{"id":"t","status":{"state":"working"},"final":false}', "message/stream", "vendor"),
        (b'{"id":"t","status":{"state":"working"},"final":false}', "tasks/sendSubscribe", "0.1"),
        (b'{"id":"t","sessionId":"s","status":{"state":"working"}}', "tasks/get", "0.1"),
        (b'{"id":"t","status":{"state":"working"}}', "tasks/get", ""),
    ],
)
def test_results(result: bytes, method: str, dialect: str) -> None:
    """Wrapper, `kind`, `final` without `kind`: each belongs to one line (manual/protocol.md
    "JSON-RPC fingerprints")."""
    assert dialect_of_result(decode_result(result), method) == dialect


def test_correction() -> None:
    """A guess gives way to what the response shows, but 0.2 and 0.3 show the same."""
    assert correct_guess(Dialect.V0_3, Dialect.VENDOR) is Dialect.VENDOR
    assert correct_guess(Dialect.V0_2, Dialect.V0_3) is Dialect.V0_2
    assert correct_guess(Dialect.V0_3, Dialect.UNKNOWN) is Dialect.V0_3
    assert correct_guess(Dialect.V1_1, Dialect.V1_0) is Dialect.V1_1


def test_generation() -> None:
    """Generation fields make 1.0 the 1.1 draft, and nothing else."""
    assert dialect_with_generation(Dialect.V1_0) is Dialect.V1_1
    assert dialect_with_generation(Dialect.V0_3) is Dialect.V0_3


def test_a_version_and_a_body_of_1_0_outweigh_an_older_method() -> None:
    """The response may still correct it."""
    evidence = DialectEvidence(proof=Dialect.V0_3, version="1.0", body=Dialect.V1_0)
    assert classify_dialect(evidence) == (Dialect.V1_0, True)
