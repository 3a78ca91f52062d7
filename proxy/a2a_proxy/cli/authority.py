"""`a2a-proxy ca`, and the environment variables that lead the traffic of programs through the
proxy."""

from __future__ import annotations

import importlib.util
import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from a2a_proxy.capture import file_layout
from a2a_proxy.cli.errors import state_directory_errors
from a2a_proxy.installation import install_hint
from a2a_proxy.model.errors import UserError
from a2a_proxy.relay.route import LOOPBACK, Listen, RouteError, format_address

if TYPE_CHECKING:
    from a2a_proxy.certificates.authority import Authority

PROXY_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "grpc_proxy")
_EXCEPTION_VARIABLES = ("NO_PROXY", "no_proxy", "no_grpc_proxy")
_NEW_CLIENTS = (
    "clients on other machines:    a2a-proxy ca export -o a2a-proxy-ca.pem",
    'programs in this shell:       eval "$(a2a-proxy ca env)"',
)


def is_cryptography_installed() -> bool:
    """Return whether the extra `tls` is installed."""
    return importlib.util.find_spec("cryptography") is not None


def require_cryptography(feature: str) -> None:
    """Raises UserError if the extra `tls` is not installed."""
    if not is_cryptography_installed():
        raise UserError(f"{feature} needs the extra tls", install_hint("tls"))


def load_authority(feature: str) -> Authority:
    """Return the authority, created on first use. `feature` is the option or command that needs it.

    Raises UserError: it cannot be used.
    """
    require_cryptography(feature)
    with state_directory_errors():
        from a2a_proxy.certificates.contexts import utc_now
        from a2a_proxy.certificates.store import open_authority

        return open_authority(file_layout.authority_dir(), utc_now())


def show_authority() -> list[str]:
    """Return the lines that describe the authority. Raises UserError."""
    return [*_describe_authority(load_authority("a2a-proxy ca")), *_NEW_CLIENTS]


def replace_authority() -> list[str]:
    """Replace the authority, and return the lines that describe the new one. Raises UserError."""
    require_cryptography("a2a-proxy ca")
    with state_directory_errors():
        from a2a_proxy.certificates.contexts import utc_now
        from a2a_proxy.certificates.store import renew_authority

        authority = renew_authority(file_layout.authority_dir(), utc_now())
    return [
        *_describe_authority(authority),
        "clients refuse the proxy until they trust this new authority",
        *_NEW_CLIENTS,
    ]


def export_certificate(output: Path | None) -> list[str]:
    """Write the certificate to `output` and return a line that says so, or the lines of the
    certificate. Raises UserError."""
    certificate = load_authority("a2a-proxy ca").certificate_pem
    if output is None:
        return certificate.decode().splitlines()
    try:
        output.write_bytes(certificate)
    except OSError as error:
        raise UserError(
            f"cannot write {output}: {(error.strerror or str(error)).lower()}", "name another file"
        ) from None
    return [f"wrote the authority's certificate to {output}"]


def environment_lines(forward: str | None) -> str:
    """Return shell lines that make programs trust the authority and use the proxy `forward`. Raises
    UserError."""
    variables = {} if forward is None else proxy_variables(_proxy_address(forward))
    certificate = load_authority("a2a-proxy ca").certificate_pem
    trust, problems = trust_variables(certificate)
    if problems:
        raise problems[0]
    return shell_lines(variables | trust)


def trust_variables(certificate: bytes) -> tuple[dict[str, str], list[UserError]]:
    """Return the variables of this process's environment with `certificate` added, without those
    whose file cannot be read, and an error for each of these. Raises UserError: the state directory
    cannot be used."""
    from a2a_proxy.certificates.trust import make_trust_variables

    with state_directory_errors():
        variables, problems = make_trust_variables(
            certificate, os.environ, file_layout.authority_dir()
        )
    errors = []
    for name, error in problems.items():
        reason = (error.strerror or str(error)).lower()
        text = f"{name} names {os.environ[name]}, which cannot be read: {reason}"
        errors.append(UserError(text, f"correct it: unset {name}"))
    return variables, errors


def proxy_variables(address: str) -> dict[str, str]:
    """Return the variables with which programs send all traffic to the forward proxy at `address`
    (`host:port`)."""
    return {
        **dict.fromkeys(PROXY_VARIABLES, f"http://{address}"),
        **dict.fromkeys(_EXCEPTION_VARIABLES, ""),
        "NODE_USE_ENV_PROXY": "1",
    }


def shell_lines(variables: Mapping[str, str]) -> str:
    """Return commands of a POSIX shell that set the variables, one per line."""
    return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in variables.items())


def _proxy_address(text: str) -> str:
    try:
        listen = Listen.parse(text)
    except RouteError as wrong:
        raise UserError(
            f"--forward {text}: {wrong.message}", "for example: --forward :9000"
        ) from wrong
    return format_address(listen.host or LOOPBACK[0], listen.port)


def _describe_authority(authority: Authority) -> tuple[str, ...]:
    from a2a_proxy.certificates.contexts import utc_now
    from a2a_proxy.certificates.store import CERTIFICATE_FILE

    start, end = (
        authority.certificate.not_valid_before_utc,
        authority.certificate.not_valid_after_utc,
    )
    digits = authority.sha256.upper()
    return (
        f"certificate  {file_layout.authority_dir() / CERTIFICATE_FILE}",
        f"SHA-256      {':'.join(digits[at : at + 2] for at in range(0, len(digits), 2))}",
        f"valid        {start:%Y-%m-%d} to {end:%Y-%m-%d}, {(end - utc_now()).days} days left",
    )
