"""Create the authority and issue certificates. Reads and writes no files, and takes the time as an
argument."""

from __future__ import annotations

import datetime
import hashlib
import ipaddress
import secrets

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

AUTHORITY_LIFETIME = datetime.timedelta(days=730)
LEAF_LIFETIME = datetime.timedelta(days=90)
_BACKDATED = datetime.timedelta(days=1)
"""Certificates are valid from yesterday, for clients whose clock is slow."""
_MAX_COMMON_NAME = 64


class Authority(msgspec.Struct, frozen=True):
    """A certificate authority with its key."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @classmethod
    def create(cls, machine: str, now: datetime.datetime) -> Authority:
        """Return a new authority. `machine` is a name for people, by which it is found in lists of
        authorities."""
        key, start = make_key(), now - _BACKDATED
        name = x509.Name(
            [
                x509.NameAttribute(NameOID.ORGANIZATION_NAME, "a2a-proxy"),
                x509.NameAttribute(
                    NameOID.COMMON_NAME, f"a2a-proxy on {machine}"[:_MAX_COMMON_NAME]
                ),
            ]
        )
        certificate = (
            _begin_certificate(name, key.public_key(), start, start + AUTHORITY_LIFETIME)
            .subject_name(name)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_key_usage(authority=True), critical=True)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
            )
            .sign(key, hashes.SHA256())
        )
        return cls(key, certificate)

    @classmethod
    def parse(cls, pem: bytes) -> Authority:
        """Return the authority of `encode`. Raises ValueError or TypeError."""
        key = serialization.load_pem_private_key(pem, None)
        certificate = x509.load_pem_x509_certificate(pem)
        if (
            not isinstance(key, ec.EllipticCurvePrivateKey)
            or key.public_key() != certificate.public_key()
        ):
            raise ValueError("the key does not belong to the certificate")
        return cls(key, certificate)

    def encode(self) -> bytes:
        """Return the key and the certificate (PEM)."""
        return _encode_key(self.key) + self.certificate_pem

    @property
    def certificate_pem(self) -> bytes:
        """The certificate without the key."""
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def sha256(self) -> str:
        """The fingerprint of the certificate, in hexadecimal digits."""
        return hashlib.sha256(self.certificate.public_bytes(serialization.Encoding.DER)).hexdigest()

    def is_valid(self, now: datetime.datetime) -> bool:
        """Return whether the certificate is valid at this time."""
        return self.certificate.not_valid_before_utc <= now < self.certificate.not_valid_after_utc

    def issue(
        self, name: str, key: ec.EllipticCurvePrivateKey, now: datetime.datetime
    ) -> x509.Certificate:
        """Return a certificate of a server for a host name or an IP address. It is not valid longer
        than this one."""
        alternative = x509.SubjectAlternativeName([_general_name(name)])
        issuer_id = self.certificate.extensions.get_extension_for_class(
            x509.SubjectKeyIdentifier
        ).value
        start = now - _BACKDATED
        end = min(start + LEAF_LIFETIME, self.certificate.not_valid_after_utc)
        return (
            _begin_certificate(self.certificate.subject, key.public_key(), start, end)
            .subject_name(x509.Name([]))
            .add_extension(
                alternative, critical=True
            )  # as RFC 5280, 4.2.1.6 requires without a subject
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(authority=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
            )
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(issuer_id),
                critical=False,
            )
            .sign(self.key, hashes.SHA256())
        )


def make_key() -> ec.EllipticCurvePrivateKey:
    """Return a new key for certificates of servers."""
    return ec.generate_private_key(ec.SECP256R1())


def encode_server(key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> bytes:
    """Return the key and the certificate of a server (PEM)."""
    return _encode_key(key) + certificate.public_bytes(serialization.Encoding.PEM)


def _encode_key(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _begin_certificate(
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    start: datetime.datetime,
    end: datetime.datetime,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(secrets.randbits(152) + 1)
        .not_valid_before(start)
        .not_valid_after(end)
    )


def _key_usage(*, authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=authority,
        crl_sign=authority,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
