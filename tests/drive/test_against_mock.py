"""A recording drives the mock built from it: both agree on every sample that a mock can serve
unchanged."""

from __future__ import annotations

from pathlib import Path

import pytest

from a2a_proxy.recording.cassette.file import open_recording_or_cassette
from a2a_proxy.replay.load import load_script
from a2a_proxy.replay.serve.mock import MockServer
from support_drive import JUDGED_LATER, SAMPLES, driven
from support_thin import thin

_SERVED = [
    ("js-three-bindings", JUDGED_LATER),
    ("sdk-1.x-jsonrpc", JUDGED_LATER),
    ("sdk-1.x-rest", JUDGED_LATER),
    ("sdk-1.x-grpc", JUDGED_LATER),
    ("sdk-0.3-grpc", JUDGED_LATER),
    ("demo", ()),
    ("lossy", ()),
    ("concurrent-grpc", ()),
    ("dialect-vendor", ()),
    ("live-1975", ()),
    # Events over several data lines are one line now.
    ("sdk-0.3-rest", JUDGED_LATER),
    ("js-to-0.3", JUDGED_LATER),
]
"""The other samples have calls that a mock lists as not served, or two calls at once whose order
only a clock knows."""


@pytest.mark.parametrize("case", thin(_SERVED, len(_SERVED)), ids=str)
async def test_driving_the_mock_of_a_recording_finds_no_difference(
    case: tuple[str, tuple[str, ...]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Heads of responses included. The mock is called by its own name, which it may write its card
    by."""
    sample, words = case
    with open_recording_or_cassette(SAMPLES / f"{sample}.a2a.jsonl") as recording:
        mock = MockServer(load_script(recording))
    named: list[str] = []
    card = mock.cards.card_page
    monkeypatch.setattr(
        mock.cards, "card_page", lambda path, host: (named.append(host), card(path, host))[1]
    )
    await mock.start()
    try:
        found = await driven(sample, tmp_path, "--upstream", mock.address, *words)
    finally:
        await mock.stop()
    assert [each for each in found if each["kind"] in ("call", "task", "remark")] == []
    assert found[0]["same"]
    assert set(named) <= {mock.address}
