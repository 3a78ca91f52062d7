"""The options for TLS: mistakes, the lines at the start, and a run with them."""

from __future__ import annotations

import json
import ssl
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trustme

from a2a_proxy.cli import authority
from a2a_proxy.cli.arguments import ProxyArguments
from a2a_proxy.cli.config import ProxyConfig, proxy_config
from a2a_proxy.cli.tls import ClientTlsOptions, make_client_tls
from a2a_proxy.installation import install_hint
from a2a_proxy.model.errors import UserError
from a2a_proxy.relay.tls import CertificateFiles
from support_cli import SECONDS, Agent, Proxy, until


@pytest.fixture(scope="module")
def ca() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def files(tmp_path: Path, ca: trustme.CA, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with certificates and keys, right ones and wrong ones."""
    monkeypatch.setenv("A2A_PROXY_STATE", str(tmp_path / "state"))
    monkeypatch.delenv("SSLKEYLOGFILE", raising=False)
    leaf, other = ca.issue_cert("agent.example"), ca.issue_cert("other.example")
    leaf.private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "both.pem"))
    leaf.cert_chain_pems[0].write_to_path(str(tmp_path / "cert.pem"))
    leaf.private_key_pem.write_to_path(str(tmp_path / "key.pem"))
    other.private_key_pem.write_to_path(str(tmp_path / "other.pem"))
    ca.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    (tmp_path / "encrypted.pem").write_text("-----BEGIN ENCRYPTED PRIVATE KEY-----\n")
    (tmp_path / "broken.pem").write_text(
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    )
    (tmp_path / "empty.pem").write_text("")
    return tmp_path


def config(**options: Any) -> ProxyConfig:
    return proxy_config(
        ProxyArguments(**{"listen": (":0",), "upstream": ("localhost:1",), **options})
    )


def mistake(call: Callable[[], object]) -> tuple[str, str]:
    with pytest.raises(UserError) as wrong:
        call()
    return wrong.value.message, wrong.value.hint


@pytest.mark.parametrize("option", ["tls", "upstream"])
@pytest.mark.parametrize(
    ("certificate", "key", "message", "hint"),
    [
        (
            "missing.pem",
            None,
            "cannot read --OPTION-cert DIR/missing.pem: no such file or directory",
            "check the name",
        ),
        (
            "cert.pem",
            None,
            "--OPTION-cert DIR/cert.pem holds no private key",
            "name its file: --OPTION-key FILE",
        ),
        ("key.pem", None, "--OPTION-cert DIR/key.pem holds no certificate", "PEM"),
        ("cert.pem", "empty.pem", "--OPTION-key DIR/empty.pem holds no private key", "PEM"),
        (
            "cert.pem",
            "missing.pem",
            "cannot read --OPTION-key DIR/missing.pem: no such file",
            "check the name",
        ),
        (
            "cert.pem",
            "encrypted.pem",
            "the private key in DIR/encrypted.pem is encrypted",
            "openssl pkey -in DIR/encryp",
        ),
        (
            *("cert.pem", "other.pem"),
            "the private key in DIR/other.pem does not belong to the certificate in DIR/cert.pem",
            "--OPTION-key FILE",
        ),
        (
            "broken.pem",
            "key.pem",
            "cannot use the certificate in DIR/broken.pem with the key in DIR/key.pem",
            "openssl x509",
        ),
        (None, "key.pem", "--OPTION-key without --OPTION-cert", "--OPTION-cert FILE"),
    ],
)
def test_wrong_certificates(
    files: Path, option: str, certificate: str | None, key: str | None, message: str, hint: str
) -> None:
    """One line that names the file and the option, one with the action."""
    given = {
        f"{option}_{name}": files / file
        for name, file in (("cert", certificate), ("key", key))
        if file
    }
    error = mistake(lambda: config(tls=True, **given))
    expected = [
        text.replace("OPTION", option).replace("DIR", str(files)) for text in (message, hint)
    ]
    assert error[0].startswith(expected[0])
    assert expected[1] in error[1]


def test_an_unreadable_key(files: Path) -> None:
    """A folder stands for a file without permission, which does not exist for root."""
    (files / "folder.pem").mkdir()
    error = mistake(
        lambda: config(tls=True, tls_cert=files / "cert.pem", tls_key=files / "folder.pem")
    )
    assert error[0] == f"cannot read --tls-key {files / 'folder.pem'}: is a directory"


def test_options_without_effect(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for option, given in (
        ("--tls-cert", {"tls_cert": files / "both.pem"}),
        ("--client-ca", {"client_ca": files / "ca.pem"}),
    ):
        assert mistake(lambda given=given: config(**given)) == (  # type: ignore[misc]
            f"{option} has no effect without --tls",
            "add --tls, or leave it out",
        )
    error = mistake(lambda: config(listen=(), upstream=(), forward=(":0",), tls=True))
    assert error[0] == "--tls has no effect without --listen"
    monkeypatch.setattr(authority.importlib.util, "find_spec", lambda _: None)
    assert mistake(lambda: config(tls=True)) == (
        "--tls needs the extra tls",
        install_hint("tls"),
    )


def test_files_that_only_the_start_reads(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A CA file without certificates, and a file of keys that cannot be written."""
    assert mistake(lambda: make_client_tls(ClientTlsOptions(client_ca=files / "empty.pem"))) == (
        f"cannot read CA certificates from {files / 'empty.pem'}: it holds none",
        "the file must hold certificates in PEM format",
    )
    monkeypatch.setenv("SSLKEYLOGFILE", str(files / "missing" / "keys"))
    assert (
        mistake(lambda: make_client_tls(ClientTlsOptions()))[1] == "without it: unset SSLKEYLOGFILE"
    )


@pytest.mark.parametrize(
    ("listen", "message", "hint"),
    [
        (
            "https://:9443",
            "https:// is not part of the address",
            "write --listen :9443; to take https:// there: --tls",
        ),
        (
            "https://localhost/",
            "https:// is not part of the address",
            "write --listen :9000; to take https:// there: --tls",
        ),
        (
            "http://0.0.0.0:9000/",
            "http:// is not part of the address",
            "write --listen 0.0.0.0:9000",
        ),
        (
            "unix:/run/agent.sock",
            "Unix sockets are not supported",
            "clients connect by TCP: --listen :9000",
        ),
        (
            "/run/agent.sock",
            "Unix sockets are not supported",
            "clients connect by TCP: --listen :9000",
        ),
        (
            "./agent.sock",
            "Unix sockets are not supported",
            "clients connect by TCP: --listen :9000",
        ),
    ],
)
def test_addresses_that_are_none(listen: str, message: str, hint: str) -> None:
    assert mistake(lambda: config(listen=(listen,))) == (
        f"cannot listen on {listen!r}: {message}",
        hint,
    )


@pytest.mark.parametrize(
    ("forward", "hint"),
    [
        ("http://localhost:9912", "write --forward localhost:9912"),
        ("9912", "write --forward :9912"),
        ("localhost", "write --forward :9900"),
        ("/run/agent.sock", "clients connect by TCP: --forward :9900"),
    ],
)
def test_the_hint_for_a_forward_proxy_names_its_option(forward: str, hint: str) -> None:
    assert mistake(lambda: config(listen=(), upstream=(), forward=(forward,)))[1] == hint


@pytest.mark.parametrize(
    "upstream", ["unix:/run/agent.sock", "unix:///run/agent.sock", "/run/agent.sock"]
)
def test_an_upstream_that_is_a_unix_socket(upstream: str) -> None:
    error = mistake(lambda: config(upstream=(upstream,)))
    assert error[0] == f"cannot send to {upstream!r}: Unix sockets are not supported"
    assert error[1].endswith("UNIX-CONNECT:/run/agent.sock")


def test_the_options_reach_the_config(files: Path) -> None:
    made = config(
        tls=True,
        tls_cert=files / "both.pem",
        client_ca=files / "ca.pem",
        upstream_cert=files / "cert.pem",
        upstream_key=files / "key.pem",
    )
    assert made.client_tls == ClientTlsOptions(
        CertificateFiles(files / "both.pem", None, "--tls"), files / "ca.pem"
    )
    assert made.editing.trust.own == CertificateFiles(
        files / "cert.pem", files / "key.pem", "--upstream"
    )
    assert config().client_tls is None


def call_over_tls(address: str, context: ssl.SSLContext) -> Any:
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}]}
    call = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
    body = json.dumps(call).encode()
    request = urllib.request.Request(
        f"https://{address}/", body, {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, context=context, timeout=SECONDS) as answer:
        return json.load(answer)


def test_a_run_with_tls(proxy: Callable[..., Proxy], agent: Agent, tmp_path: Path) -> None:
    """The start says what clients must trust and where the keys go, and it is so."""
    keys = tmp_path / "keys"
    words = (
        "--listen",
        "127.0.0.1:0",
        "--upstream",
        agent.upstream,
        "--tls",
        "--log-format",
        "json",
    )
    running = proxy(*words, SSLKEYLOGFILE=str(keys))
    (address,) = running.addresses()
    context = ssl.create_default_context(cafile=str(running.state / "ca" / "ca.pem"))
    assert call_over_tls(address, context)["result"]["message"]["role"] == "ROLE_AGENT"
    assert running.stop() == 0
    events = [json.loads(line) for line in running.out.splitlines()]
    shown = [
        (each["event"], each["message"]) for each in events if each["event"] in ("note", "warning")
    ]
    assert shown == [
        ("note", "the proxy takes TLS at each --listen, with certificates of its own authority"),
        ("warning", f"the keys of all TLS connections are written to {keys} (SSLKEYLOGFILE)"),
    ]
    assert b"CLIENT_TRAFFIC_SECRET_0" in keys.read_bytes()
    assert running.err == ""


def test_a_forward_proxy_says_where_the_keys_go(
    proxy: Callable[..., Proxy], tmp_path: Path
) -> None:
    """Its clients may name `https://` origins, and TLS in tunnels may be opened."""
    running = proxy("--forward", "127.0.0.1:0", SSLKEYLOGFILE=str(tmp_path / "keys"))
    until(lambda: "stop with Ctrl-C" in running.err)
    assert running.stop() == 0
    assert (
        f"the keys of all TLS connections are written to {tmp_path / 'keys'} (SSLKEYLOGFILE)"
        in running.err
    )
