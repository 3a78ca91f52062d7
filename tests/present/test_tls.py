from __future__ import annotations

import msgspec
import pytest

from a2a_proxy.model.values import Binding, Connection, ConnectionTls, Exchange
from a2a_proxy.model.wire import CertificateFacts, TlsFacts
from a2a_proxy.present.tls import describe_other_host, describe_tls

OURS = CertificateFacts("ab" * 32, ("localhost", "127.0.0.1"), "2027-02-20T16:57:57Z")
NEAR = TlsFacts("TLSv1.3", "TLS_AES_256_GCM_SHA384", "http/1.1", "localhost", OURS)
CONNECTION = Connection(1, "c", "l", "u", 1, tls=ConnectionTls(NEAR))


def test_handshakes_in_words() -> None:
    """One line for each leg with TLS; what is not known is said to be."""
    ((name, words),) = describe_tls(CONNECTION)
    assert name == "client's TLS"
    assert words == (
        "TLSv1.3, TLS_AES_256_GCM_SHA384, http/1.1; server name localhost; "
        f"proxy's certificate: localhost, 127.0.0.1, until 2027-02-20, SHA-256 {'ab' * 32}"
    )
    unknown = CertificateFacts("cd" * 32)
    both = ConnectionTls(
        msgspec.structs.replace(NEAR, client=CertificateFacts("ef" * 32, ("me",), verified=True)),
        TlsFacts("TLSv1.2", "ECDHE", server=unknown),
    )
    near, far = (words for _, words in describe_tls(msgspec.structs.replace(CONNECTION, tls=both)))
    assert near.endswith(f"client's certificate: me, verified, SHA-256 {'ef' * 32}")
    assert far == (
        "TLSv1.2, ECDHE, no ALPN; no server name; "
        f"agent's certificate: names unknown, not verified, SHA-256 {'cd' * 32}"
    )
    assert list(describe_tls(msgspec.structs.replace(CONNECTION, tls=None))) == []


@pytest.mark.parametrize(
    ("authority", "asked", "words"),
    [
        ("localhost:9000", "localhost", ""),
        ("LOCALHOST.", "localhost", ""),
        (
            "agent.example",
            "localhost",
            "the call is for agent.example, the TLS handshake for localhost",
        ),
        ("[::1]:9000", "localhost", "the call is for ::1, the TLS handshake for localhost"),
        ("agent.example", "", ""),
        ("", "localhost", ""),
    ],
)
def test_a_call_for_another_host(authority: str, asked: str, words: str) -> None:
    call = Exchange(1, 1, 1, Binding.REST, 1, authority=authority)
    tls = ConnectionTls(msgspec.structs.replace(NEAR, server_name=asked))
    assert describe_other_host(call, msgspec.structs.replace(CONNECTION, tls=tls)) == words
    assert describe_other_host(call, msgspec.structs.replace(CONNECTION, tls=None)) == ""
