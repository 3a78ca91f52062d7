"""The HTTP session of an exporter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_PROVIDER = "CREDENTIAL_PROVIDER"
"""In the names of variables by which the SDK is given a session of somebody's own."""


def own_session(variables: Mapping[str, str]) -> Any:
    """One that trusts what `OTEL_EXPORTER_OTLP_CERTIFICATE` names; those of `requests` trust what `REQUESTS_CA_BUNDLE`
    names instead, where that is set too. None where the SDK is to make one that variables describe."""
    if any(_PROVIDER in name for name in variables):
        return None
    import requests

    class Session(requests.Session):
        def merge_environment_settings(self, url: Any, proxies: Any, stream: Any, verify: Any, cert: Any) -> Any:
            trusted = self.verify if verify is None else verify  # the exporter sets it; a file goes before the bundle
            return super().merge_environment_settings(url, proxies, stream, trusted, cert)

    return Session()
