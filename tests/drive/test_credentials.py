"""Credentials given again: by header name for all calls, or by redaction label for the calls that
had it."""

from __future__ import annotations

from pathlib import Path

import pytest

from a2a_proxy.cli.drive.options import parse_credentials
from a2a_proxy.drive.load import load_plan
from a2a_proxy.model.errors import UserError
from a2a_proxy.recording.cassette.file import open_recording_or_cassette

SAMPLES = Path(__file__).parents[2] / "recordings"
ONE, OTHER = b"redacted-0123456789ab", b"redacted-ba9876543210"


def test_each_label_stands_for_its_own_credential() -> None:
    """Calls of two users keep their own; a header of which one label is not known is left out."""
    given = parse_credentials(
        (f"{ONE.decode()}: token-1", f"{OTHER.decode()}: token-2", "x-api-key: k")
    )
    assert given.headers == ((b"x-api-key", b"k"),)
    sent, left = given.apply_to(((b"Authorization", b"Bearer " + ONE), (b"x-a", b"1")))
    assert (sent, left) == (((b"Authorization", b"Bearer token-1"), (b"x-a", b"1")), ())
    sent, left = given.apply_to(((b"cookie", b"a=" + OTHER + b"; b=" + ONE), (b"x-api-key", ONE)))
    assert (sent, left) == (((b"cookie", b"a=token-2; b=token-1"), (b"x-api-key", b"k")), ())
    sent, left = given.apply_to(((b"cookie", b"a=" + ONE + b"; b=redacted-ffffffffffff"),))
    assert (sent, left) == ((), ("cookie",))


def test_header_values_given_by_the_user_are_secrets() -> None:
    """Also values of headers whose names are not those of credentials."""
    with open_recording_or_cassette(SAMPLES / "live-bidi.a2a.jsonl") as recording:
        steps = load_plan(recording, list(recording.read_exchanges())).steps
    recorded = next(
        value
        for step in steps
        for name, value in step.exchange.request_headers
        if name == b"authorization"
    )
    given = parse_credentials((f"{recorded.decode().removeprefix('Bearer ')}: token", "X-Own: v"))
    assert given.replaced_names(steps) == {"authorization", "x-own"}
    assert given.for_plan(steps).secrets == given.secrets


def test_errors_do_not_repeat_a_credential() -> None:
    """Not even in the error."""
    with pytest.raises(UserError) as wrong:
        parse_credentials((f"{ONE.decode()} token",))
    assert "token" not in wrong.value.message
