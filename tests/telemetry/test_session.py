"""Certificates trusted by an exporter over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from a2a_proxy.telemetry.sdk import own_session


@pytest.mark.parametrize(
    ("verify", "trusted"), [("own.pem", "own.pem"), (True, "bundle.pem"), (False, False)]
)
def test_the_certificate_file_of_the_exporter_precedes_the_bundle(
    verify: Any, trusted: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "bundle.pem")
    session = own_session({})
    session.verify = verify

    assert (
        session.merge_environment_settings("https://c:4318", {}, None, None, None)["verify"]
        == trusted
    )


def test_a_custom_credential_provider_is_left_to_the_sdk() -> None:
    assert own_session({"OTEL_PYTHON_EXPORTER_OTLP_HTTP_CREDENTIAL_PROVIDER": "mine"}) is None
