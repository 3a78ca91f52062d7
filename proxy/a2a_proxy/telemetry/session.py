"""The HTTP session of an exporter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_PROVIDER = "CREDENTIAL_PROVIDER"
"""Part of the names of variables that give the SDK a session of the user's own."""


def own_session(variables: Mapping[str, str]) -> Any:
    """Return a session that trusts the certificates in `OTEL_EXPORTER_OTLP_CERTIFICATE`, which a
    plain `requests` session ignores if `REQUESTS_CA_BUNDLE` is set. None if the SDK must create a
    session from variables."""
    if any(_PROVIDER in name for name in variables):
        return None
    import requests

    class Session(requests.Session):
        def merge_environment_settings(
            self, url: Any, proxies: Any, stream: Any, verify: Any, cert: Any
        ) -> Any:
            trusted = (
                self.verify if verify is None else verify
            )  # set by the exporter: a file precedes the bundle
            return super().merge_environment_settings(url, proxies, stream, trusted, cert)

    return Session()
