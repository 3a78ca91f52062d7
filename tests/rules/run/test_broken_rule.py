"""A rule that fails costs one warning, not the findings of the other rules."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from a2a_proxy.model.values import Severity
from a2a_proxy.rules.context import RuleContext
from a2a_proxy.rules.define import catalogue
from a2a_proxy.rules.define.rule import RuleFinding
from a2a_proxy.rules.examples.conversation import rpc
from a2a_proxy.rules.examples.objects import task
from a2a_proxy.rules.run import engine
from a2a_proxy.rules.run.engine import BROKEN_RULE_ID
from support_rules import findings

BROKEN = "A2A-RPC-002"


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """One rule of the catalogue fails after its first finding."""
    rules = dict(catalogue.all_rules())

    def judge(context: RuleContext) -> Iterator[RuleFinding]:
        yield RuleFinding(summary="before")
        raise ValueError("hostile " + "x" * 400)

    rules[BROKEN] = msgspec.structs.replace(rules[BROKEN], judge=judge)
    monkeypatch.setattr(engine, "all_rules", lambda: rules)
    monkeypatch.setattr(engine, "_shared_tables", dict)


def test_a_rule_that_fails_is_reported_once_and_the_others_run(broken: None) -> None:
    call = rpc("GetTask", {"id": "t1"}, task(), envelope={"jsonrpc": None})
    script = call + rpc("GetTask", {"id": "t1"}, task(id="t2"), id=2)
    found = findings(script)
    (report,) = (each for each in found if each.rule == BROKEN_RULE_ID)
    assert report.severity is Severity.WARNING
    assert report.summary.startswith(
        f"{BROKEN} failed on this frame or exchange: ValueError: hostile xxx"
    )
    assert len(report.summary) == 300
    assert (report.connection, report.exchange) == (1, 1)
    assert {each.rule for each in found} > {BROKEN_RULE_ID, BROKEN}
