"""The properties of certificates that clients check, most of them in the strict mode of OpenSSL."""

from __future__ import annotations

import datetime
import ipaddress
import shutil
import ssl
import subprocess
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from a2a_proxy.certificates.authority import Authority, encode_server, make_key

NOW = datetime.datetime(2026, 11, 23, 12, tzinfo=datetime.UTC)
DAY = datetime.timedelta(days=1)
NAMES = ["localhost", "agent.example.com", "an_agent", "127.0.0.1", "::1"]


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority.create("machine", datetime.datetime.now(datetime.UTC))


def extension(certificate: x509.Certificate, kind: type[x509.ExtensionType]) -> tuple[object, bool]:
    """The value of an extension, and whether it is critical."""
    found = certificate.extensions.get_extension_for_class(kind)
    return found.value, found.critical


def usages(certificate: x509.Certificate) -> set[str]:
    usage, critical = extension(certificate, x509.KeyUsage)
    assert critical
    names = (
        "digital_signature",
        "content_commitment",
        "key_encipherment",
        "data_encipherment",
        "key_agreement",
    )
    return {name for name in (*names, "key_cert_sign", "crl_sign") if getattr(usage, name)}


def test_the_authority() -> None:
    """P-256, two years from yesterday, and no authority below it."""
    authority = Authority.create("m" * 100, NOW)
    certificate = authority.certificate
    assert isinstance(authority.key.curve, ec.SECP256R1)
    assert certificate.not_valid_before_utc == NOW - DAY
    assert certificate.not_valid_after_utc == NOW - DAY + 730 * DAY
    assert certificate.subject == certificate.issuer
    assert extension(certificate, x509.BasicConstraints) == (x509.BasicConstraints(True, 0), True)
    assert usages(certificate) == {"key_cert_sign", "crl_sign"}
    assert Authority.create("m" * 100, NOW).certificate.serial_number != certificate.serial_number
    assert [authority.is_valid(at) for at in (NOW - 2 * DAY, NOW, NOW + 730 * DAY)] == [
        False,
        True,
        False,
    ]


def test_a_server() -> None:
    """90 days from yesterday, no subject but the alternative name, issued for servers only."""
    authority, key = Authority.create("machine", NOW), make_key()
    certificate = authority.issue("agent.example.com", key, NOW)
    assert certificate.not_valid_before_utc == NOW - DAY
    assert certificate.not_valid_after_utc == NOW + 89 * DAY
    assert certificate.subject == x509.Name([])
    names = x509.SubjectAlternativeName([x509.DNSName("agent.example.com")])
    assert extension(certificate, x509.SubjectAlternativeName) == (names, True)
    assert extension(certificate, x509.BasicConstraints) == (
        x509.BasicConstraints(False, None),
        True,
    )
    assert usages(certificate) == {"digital_signature"}
    assert extension(certificate, x509.ExtendedKeyUsage)[0] == x509.ExtendedKeyUsage(
        [ExtendedKeyUsageOID.SERVER_AUTH]
    )
    own_id = authority.certificate.extensions.get_extension_for_class(
        x509.SubjectKeyIdentifier
    ).value.digest
    issuer_id, _ = extension(certificate, x509.AuthorityKeyIdentifier)
    assert isinstance(issuer_id, x509.AuthorityKeyIdentifier)
    assert issuer_id.key_identifier == own_id


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_an_address_is_an_ip_name(authority: Authority, address: str) -> None:
    names, _ = extension(authority.issue(address, make_key(), NOW), x509.SubjectAlternativeName)
    assert names == x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))])


def test_no_certificate_outlives_the_authority() -> None:
    authority = Authority.create("machine", NOW)
    late = NOW + 700 * DAY
    assert (
        authority.issue("a", make_key(), late).not_valid_after_utc
        == authority.certificate.not_valid_after_utc
    )


def test_the_file_holds_key_and_certificate(authority: Authority) -> None:
    assert Authority.parse(authority.encode()).certificate == authority.certificate
    assert b"PRIVATE KEY" not in authority.certificate_pem
    other = Authority.create("other", NOW)
    with pytest.raises(ValueError, match="does not belong"):
        Authority.parse(other.encode().partition(b"-----BEGIN CERT")[0] + authority.certificate_pem)
    for pem in (b"", authority.certificate_pem, b"garbage"):
        with pytest.raises(ValueError, match=r"."):
            Authority.parse(pem)


@pytest.mark.parametrize("name", NAMES)
def test_pythons_strict_mode_accepts_it(authority: Authority, tmp_path: Path, name: str) -> None:
    """A handshake with all flags; a client that expects another name refuses."""
    key = make_key()
    (tmp_path / "server.pem").write_bytes(
        encode_server(key, authority.issue(name, key, datetime.datetime.now(datetime.UTC)))
    )
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(tmp_path / "server.pem")
    client = ssl.create_default_context(cadata=authority.certificate_pem.decode())
    client.verify_flags |= ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN
    shake_hands(client, server, name)
    with pytest.raises(ssl.SSLCertVerificationError, match="mismatch"):
        shake_hands(client, server, "other.example")


def shake_hands(client: ssl.SSLContext, server: ssl.SSLContext, name: str) -> None:
    """Complete a handshake in memory. Raises ssl.SSLError."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server, server_hostname=name),
        server.wrap_bio(to_server, to_client, True),
    ]
    for _ in range(4):
        for end in tuple(ends):
            try:
                end.do_handshake()
                ends.remove(end)
            except ssl.SSLWantReadError:
                pass
    assert not ends


@pytest.mark.parametrize("name", NAMES)
def test_openssls_strict_mode_accepts_it(authority: Authority, tmp_path: Path, name: str) -> None:
    program = shutil.which("openssl")
    assert program, "install openssl"
    key = make_key()
    (tmp_path / "ca.pem").write_bytes(authority.certificate_pem)
    (tmp_path / "server.pem").write_bytes(
        encode_server(key, authority.issue(name, key, datetime.datetime.now(datetime.UTC)))
    )
    options = ("-x509_strict", "-purpose", "sslserver", "-no-CApath", "-CAfile", "ca.pem")
    subject = ("-verify_ip" if ":" in name or name[0].isdigit() else "-verify_hostname", name)
    line = [program, "verify", *options, *subject, "server.pem"]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "server.pem: OK\n"), done.stderr
