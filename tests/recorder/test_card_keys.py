"""The keys of the recorder: read from the file that the command line has checked."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from a2a_proxy.model.card_signature import CardForm, SignatureVerdict
from a2a_proxy.recorder.resume import load_verifier
from a2a_proxy.recording.read.reader import Recording
from a2a_proxy.recording.tools.recheck import CardRecheck, recheck_session
from a2a_proxy.rules.examples.conversation import fetch_card
from a2a_proxy.rules.examples.objects import CARD_KEYS, card, sign_card
from support_recorder import Bench


def test_without_a_file_nothing_is_verified() -> None:
    (found,) = load_verifier("").verify(sign_card(card()))
    assert (found.verdict, found.reason) == (SignatureVerdict.UNVERIFIED, "")


def test_a_file_that_is_gone_or_damaged_does_not_stop_a_recorder(tmp_path: Path) -> None:
    (tmp_path / "damaged").write_text("{")
    for name in ("gone", "damaged"):
        (found,) = load_verifier(str(tmp_path / name)).verify(sign_card(card()))
        assert (found.verdict, found.reason) == (
            SignatureVerdict.UNVERIFIED,
            "the file of --card-keys can no longer be read",
        )


@pytest.mark.parametrize("killed", [False, True], ids=["undisturbed", "killed"])
def test_the_verdict_is_that_before_redaction(
    bench: Callable[..., Bench], tmp_path: Path, killed: bool
) -> None:
    """The recorded card has a label in the place of a secret, the signature over the secret
    verifies; also if the recorder died in between. The keys are nowhere in the recording and the
    journal."""
    (tmp_path / "keys.json").write_bytes(CARD_KEYS)
    one = bench(card_keys=str(tmp_path / "keys.json"))
    signed = sign_card(card(documentationUrl="https://ann:pa55w0rd@docs.example.com"))
    chunks = fetch_card(signed).make_chunks()
    one.start()
    one.write(chunks[:3])
    if killed:
        one.kill_blamelessly()
    one.write(chunks[3:-1])
    secret = json.loads(CARD_KEYS)["k"].encode()
    journal = b"".join(path.read_bytes() for path in one.folder.path.iterdir())
    one.end()
    one.finish()
    assert secret not in journal
    assert secret not in one.recording.read_bytes()
    with Recording(one.recording) as stored:
        (row,) = stored.read_exchanges()
        payloads = b"".join(each.frame.payload for each in stored.read_frames(row.key))
        assert b"pa55w0rd" not in payloads
        (found,) = row.exchange.card_signatures
        assert (found.describe(), CardForm.SPECIFICATION in found.forms) == (
            "signed by key-1 (HS256), verified",
            True,
        )
        assert "A2A-CARD-013" not in {each.finding.rule for each in stored.read_findings()}
        keys = CardRecheck(load_verifier(str(tmp_path / "keys.json")))
        (session,) = stored.read_sessions()
        again = {each.rule for each in recheck_session(stored, session, cards=keys)}
    assert "A2A-CARD-013" not in again
    assert list(keys.lines) == ["signed by key-1 (HS256), verified"]
