"""A copy without payloads keeps the findings that need none and drops those that may quote a
payload."""

from __future__ import annotations

from pathlib import Path

import pytest

from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.tools.redact import open_redacted
from a2a_proxy.redaction.policy import policy_of
from a2a_proxy.rules.define.catalogue import all_rules
from support_rules import record

KEY = b"k" * 32


def findings(path: Path, *words: str) -> dict[str, str]:
    """Rule -> what the copy says that it found."""
    with Recording(path) as recording, open_redacted(recording, policy_of(words), KEY) as copy:
        return {row.finding.rule: repr(row.finding) for row in copy.recording.read_findings()}


@pytest.mark.parametrize(
    ("ident", "quoted"),
    [("A2A-CAP-004", "image/png"), ("A2A-CAP-002", "streaming is not supported")],
)
def test_findings_that_may_quote_a_payload_are_removed(
    ident: str, quoted: str, tmp_path: Path
) -> None:
    """It goes with the payload; with another policy it stays."""
    record(tmp_path / "r.db", all_rules()[ident].flagged.make_chunks())
    assert quoted in findings(tmp_path / "r.db", "pii")[ident]
    assert quoted not in str(findings(tmp_path / "r.db", "metadata-only"))


def test_rules_without_payloads_find_the_same_in_the_copy(tmp_path: Path) -> None:
    """As often as before; what was not found before is not found now."""
    record(tmp_path / "r.db", all_rules()["A2A-STATE-001"].flagged.make_chunks())
    before = findings(tmp_path / "r.db", "pii")
    after = findings(tmp_path / "r.db", "metadata-only")
    assert after["A2A-STATE-001"] == before["A2A-STATE-001"]
    assert after.keys() <= before.keys()
