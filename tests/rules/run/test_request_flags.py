"""Rules skipped by request flags would have found nothing."""

from __future__ import annotations

import pytest

from a2a_proxy.model.values import Finding, Observation
from a2a_proxy.model.wire import Chunk
from a2a_proxy.observer import Observer
from a2a_proxy.redaction import Redactor
from a2a_proxy.rules.define.catalogue import all_rules
from a2a_proxy.rules.define.rule import Rule
from a2a_proxy.rules.run import engine
from a2a_proxy.rules.run.request_flags import may_have_push_config
from support_mutations import SAMPLES, chunks, loaded


def found(session: list[Chunk]) -> list[Finding]:
    """What the rules say."""
    observer = Observer(Redactor(b"k" * 32))
    out: list[Observation] = []
    for chunk in session:
        observer.feed(chunk, out)
    return [each for each in out if type(each) is Finding]


def ask_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on rules are asked whatever they need."""

    def select(asked: engine._RuleJudges, flags: int) -> engine._RuleJudges:
        return tuple(
            each
            for each in asked
            if each[0].trigger_flags is None or flags & int(each[0].trigger_flags)
        )

    monkeypatch.setattr(engine, "_select_judges", select)
    tables: engine._RuleTables = {}
    monkeypatch.setattr(engine, "_shared_tables", lambda: tables)


@pytest.mark.parametrize("rule", all_rules().values(), ids=list(all_rules()))
def test_rule_examples_are_judged_alike_without_flags(
    rule: Rule, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each rule where it has something to say, and all others beside it."""
    few = found(rule.flagged.make_chunks())
    ask_all(monkeypatch)
    assert found(rule.flagged.make_chunks()) == few


@pytest.mark.parametrize(
    "sample", sorted(path.name.removesuffix(".a2a.jsonl") for path in SAMPLES.glob("*.jsonl"))
)
def test_samples_are_judged_alike_without_flags(
    sample: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Real conversations."""
    session = chunks(loaded(sample))
    few = found(session)
    ask_all(monkeypatch)
    assert found(session) == few


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (b'{"configuration":{"taskPushNotificationConfig":{"url":"https://a.example"}}}', True),
        (
            b'{"configuration":{"task_push_notification_config":{"url":"https:\\/\\/a.example"}}}',
            True,
        ),
        (b'{"pushNotification":{"url":"http://a.example"}}', True),
        (b'{"message":{"parts":[{"text":"see https://a.example"}]}}', False),
        (b'{"message":{"parts":[{"text":"a notification"}]}}', False),
        (b"\x0a\x15https://a.example/hook", True),
    ],
)
def test_push_configurations(payload: bytes, expected: bool) -> None:
    """Their names in all dialects; protobuf has none."""
    assert may_have_push_config(payload) is expected


def test_many_rules_require_flags() -> None:
    """Many rules need something: else these tests would compare a thing with itself."""
    assert sum(each.required_flags is not None for each in all_rules().values()) > 40
