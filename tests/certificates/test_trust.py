from __future__ import annotations

import datetime
import ssl
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, pkcs12

from a2a_proxy.certificates import trust
from a2a_proxy.certificates.authority import Authority
from a2a_proxy.certificates.store import REPLACED_FILE
from a2a_proxy.certificates.trust import (
    BUNDLE_VARIABLES,
    TRUSTSTORE_PASSWORD,
    make_java_truststore,
    make_trust_variables,
)

NOW = datetime.datetime.now(datetime.UTC)
OURS = Authority.create("test", NOW).certificate_pem


class Paths:
    def __init__(self, cafile: Path) -> None:
        self.openssl_cafile = str(cafile)


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of authorities that the system trusts."""
    path = tmp_path / "system.pem"
    path.write_bytes(b"-----system-----")
    monkeypatch.setattr(ssl, "get_default_verify_paths", lambda: Paths(path))
    return path


def test_what_was_trusted_stays_trusted(tmp_path: Path, system: Path) -> None:
    """The system's authorities, or those that the environment names; Node.js has its own."""
    (tmp_path / "own.pem").write_bytes(b"-----own-----\n")
    environment = {"SSL_CERT_FILE": str(tmp_path / "own.pem"), "DENO_CERT": ""}
    made, problems = make_trust_variables(OURS, environment, tmp_path)
    contents = {name: Path(path).read_bytes() for name, path in made.items()}
    by_system = b"-----system-----\n" + OURS
    assert contents == {
        "SSL_CERT_FILE": b"-----own-----\n" + OURS,
        "REQUESTS_CA_BUNDLE": by_system,
        "CURL_CA_BUNDLE": by_system,
        "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": by_system,
        "DENO_CERT": by_system,
        "NODE_EXTRA_CA_CERTS": OURS,
    }
    assert problems == {}
    assert make_trust_variables(OURS, made, tmp_path) == (made, {})  # nothing is added twice


def test_a_renewed_authority_replaces_its_predecessor(tmp_path: Path, system: Path) -> None:
    """Also in the files that the previous `ca env` made, for others may have read its key. Other
    authorities stay, also one of another folder with the same name, and text that is no
    certificate."""
    other, new = (Authority.create("test", NOW).certificate_pem for _ in range(2))
    (tmp_path / "own.pem").write_bytes(
        b"# comment\n" + other + OURS + b"-----BEGIN CERTIFICATE-----\n!\n"
    )
    before, _ = make_trust_variables(OURS, {"SSL_CERT_FILE": str(tmp_path / "own.pem")}, tmp_path)
    (tmp_path / REPLACED_FILE).write_bytes(OURS)
    after, _ = make_trust_variables(new, before, tmp_path)
    contents = {name: Path(path).read_bytes() for name, path in after.items()}
    assert (
        contents["SSL_CERT_FILE"]
        == b"# comment\n" + other + b"-----BEGIN CERTIFICATE-----\n!\n" + new
    )
    assert contents["REQUESTS_CA_BUNDLE"] == b"-----system-----\n" + new
    assert contents["NODE_EXTRA_CA_CERTS"] == new


def test_a_file_that_cannot_be_read_is_a_problem(tmp_path: Path, system: Path) -> None:
    """It is not replaced by another; the other variables are made."""
    made, problems = make_trust_variables(
        OURS, {"NODE_EXTRA_CA_CERTS": str(tmp_path / "missing.pem")}, tmp_path
    )
    assert {name: type(error) for name, error in problems.items()} == {
        "NODE_EXTRA_CA_CERTS": FileNotFoundError
    }
    assert set(made) == set(BUNDLE_VARIABLES)


def test_a_folder_of_certificates(tmp_path: Path, system: Path) -> None:
    """Those that OpenSSL finds, each once; a link to nothing is left out."""
    other = Authority.create("other", NOW).certificate_pem
    folder = tmp_path / "certs"
    folder.mkdir()
    (folder / "other.pem").write_bytes(b"# comment\n" + other)
    (folder / "1a2b3c4d.0").symlink_to("other.pem")
    (folder / "5a6b7c8d.0").symlink_to("other.pem")
    (folder / "5a6b7c8d.1").symlink_to("missing.pem")
    (folder / "unlisted.pem").write_bytes(Authority.create("unlisted", NOW).certificate_pem)
    made, problems = make_trust_variables(OURS, {"REQUESTS_CA_BUNDLE": str(folder)}, tmp_path)
    assert problems == {}
    assert Path(made["REQUESTS_CA_BUNDLE"]).read_bytes() == other + OURS


def test_a_system_without_authorities(
    tmp_path: Path, system: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of gRPC are the last resort: a program must not lose all that it trusts."""
    system.unlink()
    monkeypatch.setattr(trust, "_SYSTEM_BUNDLES", ())
    made, _ = make_trust_variables(OURS, {}, tmp_path)
    assert Path(made["SSL_CERT_FILE"]).read_bytes().count(b"BEGIN CERTIFICATE") > 50


def test_a_truststore_of_java_has_the_certificates_of_a_bundle(tmp_path: Path) -> None:
    """Without those that no library reads; equal bundles have one file."""
    certificate = Authority.create("test", datetime.datetime.now(datetime.UTC)).certificate_pem
    broken = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    bundle = b"# comment\n" + certificate + broken + b"text"
    path = make_java_truststore(bundle, tmp_path)
    _, _, found = pkcs12.load_key_and_certificates(path.read_bytes(), TRUSTSTORE_PASSWORD.encode())
    assert [each.public_bytes(Encoding.PEM) for each in found] == [certificate]
    assert make_java_truststore(bundle, tmp_path) == path
    assert list(tmp_path.iterdir()) == [path]
