"""What rules about streams and generations know survives a restart of the recorder, wherever it
happens."""

from __future__ import annotations

import pytest

from a2a_proxy.model.saved_state import decode_state, encode_state
from a2a_proxy.model.values import Finding, Observation
from a2a_proxy.model.wire import Chunk
from a2a_proxy.observer import Observer, ObserverState
from a2a_proxy.redaction import Redactor
from a2a_proxy.rules.define.catalogue import all_rules
from a2a_proxy.rules.define.rule import Rule
from support_rules import KEY

FAMILIES = ("A2A-GEN-", "A2A-STREAM-")
RULES = [each for each in all_rules().values() if each.id.startswith(FAMILIES)]


def found(chunks: list[Chunk], cut: int = -1) -> list[Finding]:
    """The findings, where the observer is saved and restored before one chunk."""
    observer = Observer(Redactor(KEY))
    out: list[Observation] = []
    for index, chunk in enumerate(chunks):
        if index == cut:
            saved = decode_state(encode_state(observer.save()), ObserverState)
            observer = Observer.restore(saved, Redactor(KEY))
        observer.feed(chunk, out)
    return [each for each in out if type(each) is Finding]


@pytest.mark.parametrize("rule", RULES, ids=[each.id for each in RULES])
def test_restarts_do_not_change_findings(rule: Rule) -> None:
    chunks = rule.flagged.make_chunks()
    whole = found(chunks)
    assert whole
    for cut in range(1, len(chunks)):
        assert found(chunks, cut) == whole, cut
